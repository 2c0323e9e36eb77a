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
