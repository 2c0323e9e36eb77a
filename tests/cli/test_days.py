"""Quantiles of a column of days or times: asked for, shown, written and drawn as days."""

import csv
import datetime
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import shuffledp
from shuffledp import Privacy, RandomBits
from shuffledp.errors import ParameterError
from shuffledp.protocols.catalogue import plan_from_document
from shuffledp.protocols.ranges import Ranges

TARGET = ["--epsilon", "4", "--delta", "1e-6", "--seed", "1"]
YEAR = "2024-01-01:2024-12-31"


@pytest.fixture
def orders(tmp_path: Path) -> Path:
    """Every day of 2024 twice, once with a time; one order without a day, one of the year before."""
    days = [datetime.date(2024, 1, 1) + datetime.timedelta(days=day) for day in range(366)]
    cells = [text for day in days for text in (day.isoformat(), f"{day}T13:05:00")]
    path = tmp_path / "orders.csv"
    path.write_text("id,day\n" + "".join(f"{row},{cell}\n" for row, cell in enumerate([*cells, "", "2023-07-01"])))
    return path


def test_quantiles_are_days(asked: Any, run: Any, orders: Path, tmp_path: Path) -> None:
    table, picture = tmp_path / "cdf.csv", tmp_path / "cdf.svg"
    words = (
        "quantile",
        orders,
        "--column",
        "day",
        "--domain",
        YEAR,
        "--missing",
        "default=2024-01-01",
        "--clip",
        *TARGET,
    )
    found = asked(*words, "--with-truth", "--csv", table, "--picture", picture)
    assert found["clipped"] == 1
    for row, true in zip(found["quantiles"], ("2024-04-01", "2024-07-01", "2024-09-30"), strict=True):
        assert abs(datetime.date.fromisoformat(row["truth"]) - datetime.date.fromisoformat(true)).days <= 1
        assert row["lower"] <= row["truth"] <= row["upper"] and row["lower"] <= row["value"] <= row["upper"]
    written = list(csv.DictReader(table.read_text().splitlines()))
    assert len(written) == 366 and written[31]["value"] == "2024-02-01" and picture.stat().st_size > 1000
    said = " ".join(run(*words)[1].split())
    assert f"{found['quantiles'][1]['lower']} .. {found['quantiles'][1]['upper']}" in said
    assert f"--domain {YEAR}" in said


def test_days_outside_and_words_that_are_none_are_refused(asked: Any, orders: Path) -> None:
    words = ("quantile", orders, "--domain", YEAR, *TARGET, "--missing", "default=2024-01-01")
    outside = asked(*words, "--column", "day", code=2)["error"]
    assert outside["parameter"] == "values" and "--clip" in outside["message"] and "2023-07-01" in outside["message"]
    assert "must be a date" in asked(*words, "--column", "id", code=2)["error"]["message"]


def test_a_plan_of_days_is_kept_and_counts_ranges() -> None:
    plan: Any = Ranges.plan(users=732, privacy=Privacy(4, 1e-6), domain=("2024-01-01", "2024-12-31"))
    assert plan_from_document(json.loads(json.dumps(plan.document()))) == plan
    days = np.arange("2024-01-01", "2025-01-01", dtype="datetime64[D]").repeat(2)
    ranges = plan.ranges(plan.sample_estimate(plan.encode(days), bits=RandomBits.seeded(1)))
    may = ranges.count("2024-05-01", datetime.date(2024, 5, 31))
    assert abs(may.value - 62) <= may.bound
    with pytest.raises(ParameterError, match="in order"):
        ranges.count("2024-05-31", "2024-05-01")
    assert "2024-" in str(ranges) and "2024-12-31" in ranges._repr_html_() and str(ranges[0.5]).startswith("2024-")


def test_from_python() -> None:
    days = [datetime.date(2024, 3, day) for day in range(1, 32)] * 20
    limits: dict[str, Any] = {"epsilon": 4, "delta": 1e-6, "seed": 1}
    found = shuffledp.quantiles(days, low="2024-01-01", high="2024-12-31", **limits)
    assert found[0.5].lower <= "2024-03-16" <= found[0.5].upper
    same = shuffledp.quantiles(days, low=datetime.date(2024, 1, 1), high=datetime.date(2024, 12, 31), **limits)
    assert same.as_dict() == found.as_dict()


@pytest.mark.parametrize("command", ["quantile", "histogram"])
@pytest.mark.parametrize(
    ("domain", "said"),
    [
        ("2025-12-31:2025-01-01", "the first day must come before the last: write 2025-01-01:2025-12-31"),
        ("01.01.2025:31.12.2025", "write days as 2025-01-01"),
        ("1/1/2025:12/31/2025", "write days as 2025-01-01"),
        ("2025/01/01:2025/12/31", "write days as 2025-01-01"),
    ],
)
def test_days_in_another_order_or_form_are_told_how_to_be_written(run, tmp_path, command, domain, said) -> None:
    file = tmp_path / "visits.csv"
    file.write_text("day\n" + "2025-03-01\n" * 3)
    code, out, err = run(command, file, "--column", "day", "--domain", domain, "--epsilon", "1", "--delta", "1e-6")
    assert code == 2 and out == "" and said in err and len(err.splitlines()) == 1, err


MEAN = ("--low", "2024-01-01", "--high", "2024-12-31")


def test_a_mean_of_days_is_a_day(asked: Any, run: Any, orders: Path, tmp_path: Path) -> None:
    """Every day of 2024 twice, half of them at 13:05, which counts as that day where the limits are days."""
    words = ("mean", orders, "--column", "day", *MEAN, "--missing", "default=2024-01-01", "--clip", *TARGET)
    found = asked(*words, "--with-truth", "-o", tmp_path / "answer.json")
    assert found["truth"] == "2024-07-01" and found["clipped"] == 1 and found["unit"] == "days"
    assert found["lower"] <= found["truth"] <= found["upper"] and found["lower"] <= found["estimate"] <= found["upper"]
    days = [datetime.date.fromisoformat(found[name]) for name in ("lower", "upper")]
    assert 0 <= (days[1] - days[0]).days <= 2 * found["bound"] + 1 and 0 < found["standard_error"] < 3
    assert json.loads((tmp_path / "answer.json").read_text())["estimate"] == found["estimate"]
    said = " ".join(run(*words)[1].split())
    assert f"{found['estimate']} (from {found['lower']} to {found['upper']}" in said and "19723 is 2024-01-01" in said
    # The same limits in the other way, and times, which are shown where they are asked for.
    same = asked(*words[:4], "--domain", YEAR, *words[8:])
    assert same["estimate"] == found["estimate"] and same["fingerprint"] == found["fingerprint"]
    times = asked(*words[:4], "--low", "2024-01-01T00:00", "--high", "2024-12-31T23:59", *words[8:], "--with-truth")
    assert times["truth"].startswith("2024-07-01T") and times["estimate"][10] == "T"


def test_quantiles_take_days_as_low_and_high(asked: Any, orders: Path) -> None:
    words = ("quantile", orders, "--column", "day", "--missing", "default=2024-01-01", "--clip", *TARGET)
    apart, together = asked(*words, *MEAN), asked(*words, "--domain", YEAR)
    assert apart["quantiles"] == together["quantiles"] and apart["fingerprint"] == together["fingerprint"]


@pytest.mark.parametrize(
    ("words", "parameter", "said"),
    [
        (("mean", *MEAN), "values", "2023-07-01 in row 734"),
        (("mean", *MEAN[:2], "--high", "9"), "high", "must be a day where the other limit is one"),
        (("mean", *MEAN[:2]), "high", "must be given beside --low"),
        (("mean", "--low", "2024-12-31", "--high", "2024-01-01"), "high", "must be behind --low 2024-12-31"),
        (("mean", "--low", "01.01.2024", "--high", "31.12.2024"), "low", "a number, or a day in ISO form"),
        (("mean", *MEAN, "--clip", "--missing", "default=7"), "missing", "must name a day here"),
        (("mean", *MEAN, "--clip", "--missing", "default=2025-06-01"), "missing", "must lie in"),
        (("mean", *MEAN, "--clip", "--by", "id", "--groups", "a,b"), "by", "a mean of days is one day"),
        (("variance", *MEAN), "low", "must be a number here"),
        (("sum", *MEAN), "low", "must be a number here"),
    ],
)
def test_days_that_are_no_limits_are_refused_in_a_sentence(asked: Any, orders: Path, words, parameter, said) -> None:
    more = () if "--missing" in words else ("--missing", "default=2024-01-01")
    refused = asked(words[0], orders, "--column", "day", *words[1:], *more, *TARGET, code=2)["error"]
    assert refused["parameter"] == parameter and said in refused["message"], refused


def test_a_column_that_holds_no_days_is_refused(asked: Any, orders: Path) -> None:
    refused = asked("mean", orders, "--column", "id", *MEAN, *TARGET, code=2)["error"]
    assert refused["parameter"] == "values" and "must be a day or a time" in refused["message"]


def test_a_mean_of_days_of_people_with_several_rows(asked: Any, tmp_path: Path) -> None:
    file = tmp_path / "visits.csv"
    rows = [f"u{person},2024-03-{1 + 10 * visit:02d}\n" for person in range(300) for visit in range(3)]
    file.write_text("who,day\n" + "".join(rows))
    words = ("mean", file, "--column", "day", *MEAN, "--user", "who", "--at-most", 2, *TARGET, "--with-truth")
    found = asked(*words)
    assert found["protocol"] == "repeated-mean" and found["truth"] == "2024-03-06" and found["rows_left_out"] == 300
