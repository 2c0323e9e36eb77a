"""Ranges, quantiles and frequent strings under the command line's contract."""

import json
from pathlib import Path

import numpy as np
import pytest

TARGET = ["--epsilon", "1", "--delta", "1e-4"]
USERS = 20_000


@pytest.fixture(scope="module")
def people(tmp_path_factory) -> Path:
    draws = np.random.default_rng(1)
    ages = draws.normal(50, 15, USERS).clip(0, 120).round().astype(int)
    heights = draws.normal(1.7, 0.1, USERS)
    fruits = draws.choice(["fig", "kiwi", "pear"], USERS, p=[0.6, 0.3, 0.1])
    file = tmp_path_factory.mktemp("data") / "people.csv"
    rows = zip(ages.tolist(), heights.tolist(), fruits.tolist(), strict=True)
    file.write_text("age,height,fruit\n" + "".join(f"{a},{h:.4f},{f}\n" for a, h, f in rows))
    return file


def test_quantiles_of_whole_numbers(run, people, tmp_path) -> None:
    picture = tmp_path / "cdf.png"
    words = ["quantile", str(people), "--column", "age", "--domain", "0:127", *TARGET, "--seed", "1", "--with-truth"]
    code, out, err = run(*words, "-o", str(picture), "--json")
    assert code == 0, err
    document = json.loads(out)
    assert document["schema"] == 1 and document["simulated"] and picture.stat().st_size > 10_000
    assert [row["q"] for row in document["quantiles"]] == [0.25, 0.5, 0.75]
    for row in document["quantiles"]:
        assert row["lower"] <= row["truth"] <= row["upper"]
        assert row["rank_error"] <= document["rank_bound"] < 0.01
    code, out, _ = run(*words, "--fast", "--quantiles", "0.1", "--branching", "4")
    assert code == 0 and "Quantiles" in out and "Next:" in out


def test_quantiles_of_reals_on_a_grid(run, people) -> None:
    words = ["quantile", str(people), "--column", "height", *TARGET, "--fast", "--seed", "2", "--with-truth", "--json"]
    code, out, _ = run(*words, "--domain", "1:2.5", "--steps", "300", "--quantiles", "0.5")
    (median,) = json.loads(out)["quantiles"]
    assert code == 0 and abs(median["value"] - 1.7) < 0.02
    code, out, _ = run(*words, "--domain", "1.6:1.8", "--steps", "100", "--clip")
    assert code == 0 and json.loads(out)["clipped"] > 0


@pytest.mark.parametrize(
    ("more", "said"),
    [
        ([], "without noise"),
        (["--domain", "data"], "without noise"),
        (["--domain", "5"], "LOW:HIGH"),
        (["--domain", "0:20"], "row"),
        (["--domain", "0:127", "--quantiles", "2"], "quantiles"),
        (["--domain", "0:127x0:3"], "one axis"),
        (["--domain", "0:127", "--method", "sketch"], "method"),
    ],
)
def test_refusals_are_one_line(run, people, more, said) -> None:
    code, out, err = run("quantile", str(people), "--column", "age", *TARGET, "--fast", *more)
    assert code == 2 and out == "" and len(err.strip().splitlines()) == 1 and said in err


def test_a_plan_is_kept_explained_and_simulated(run, tmp_path) -> None:
    file = str(tmp_path / "plan.json")
    words = ["plan", "ranges", "--domain", "0:63", "--users", "2000", *TARGET]
    code, out, _ = run(*words, "-o", file)
    assert code == 0 and "all prefixes" in out and "Table 6" in out
    code, out, _ = run(*words, "--json")
    document = json.loads(out)
    assert document["prefix_bound"] > document["prefix_standard_error"] > 0
    assert {row["technique"] for row in document["techniques"]} == {"count-min", "hadamard"}
    code, out, _ = run("explain", "--plan", file, "--json")
    assert code == 0 and json.loads(out)["delta_proved"] <= 1e-4
    code, out, err = run("simulate", "--plan", file, "--synthetic", "--fast", "--seed", "1", "--json")
    assert code == 0, err
    assert len(json.loads(out)["estimate"]) == 64
    (tmp_path / "values.csv").write_text("v\n" + "7\n" * 2000)
    code, out, _ = run("simulate", str(tmp_path / "values.csv"), "--plan", file, "--fast", "--with-truth", "--json")
    assert code == 0 and json.loads(out)["truth"][7] == 2000
    code, out, err = run("explain", "ranges", "--users", "2000", *TARGET)
    assert code == 2 and "domain" in err and len(err.strip().splitlines()) == 1
    code, out, _ = run("plan", "ranges", "--domain", "0:7x0:3", "--users", "2000", *TARGET)
    assert code == 0 and "grid" in out


def test_frequent_strings(run, people) -> None:
    words = [
        "heavy-hitters",
        str(people),
        "--column",
        "fruit",
        "--top",
        "2",
        "--length",
        "4",
        *TARGET,
        "--seed",
        "3",
        "--with-truth",
    ]
    words += ["--alphabet", "abcdefghijklmnopqrstuvwxyz"]
    code, out, err = run(*words, "--json")
    assert code == 0, err
    document = json.loads(out)
    assert [row["string"] for row in document["found"]] == ["fig", "kiwi"]
    for row in document["found"]:
        assert row["lower"] <= row["truth"] <= row["upper"]
    code, out, _ = run(*words, "--fast", "--length", "3")
    assert code == 0 and "cut" in out and "missed: none" in out and "'kiw…'" in out
    assert document["surely_found"] < 300 and document["levels"] <= 3 and document["groups"] == 1
    few = people.parent / "few.csv"
    few.write_text("fruit\n" + "fig\n" * 40)
    code, _, err = run("heavy-hitters", str(few), "--length", "4", *TARGET)
    assert code == 2 and "users" in err and len(err.strip().splitlines()) == 1


def test_the_truth_is_shown_only_where_it_is_asked_for(run, people) -> None:
    words = ["quantile", str(people), "--column", "age", "--domain", "0:60", "--clip", *TARGET, "--fast"]
    document = json.loads(run(*words, "--json")[1])
    assert document["clipped"] is None and not document["simulated"]
    assert all(row["truth"] is None and row["rank_error"] is None for row in document["quantiles"])
    _, out, _ = run(*words)
    assert "truth" not in out and "clipped" not in out
    document = json.loads(run(*words, "--with-truth", "--json")[1])
    assert document["clipped"] > 0 and document["quantiles"][0]["truth"] is not None
    words = ["heavy-hitters", str(people), "--column", "fruit", "--top", "2", "--length", "3", *TARGET, "--fast"]
    words += ["--alphabet", "abcdefghijklmnopqrstuvwxyz"]
    document = json.loads(run(*words, "--json")[1])
    assert document["cut"] is None and document["true_top"] is None
    assert document["found"] and all(row["truth"] is None for row in document["found"])
    _, out, _ = run(*words)
    assert "truth" not in out and "missed" not in out and "cut" not in out


def test_a_device_of_a_live_task_reports_values_not_codes() -> None:
    from shuffledp import Privacy, RandomBits, Ranges
    from shuffledp.errors import DataError
    from shuffledp.service.crypto import PrivateKey
    from shuffledp.service.task import Task

    plan = Ranges.plan(users=60, privacy=Privacy(4, 1e-2), domain=(10, 25), branching=4)
    task = Task.create(plan, PrivateKey.generate().public, bits=RandomBits.secure())
    assert task.plan.encode([10, 25]).tolist() == [0, 15]
    with pytest.raises(DataError, match="domain 10:25, got 9"):
        task.plan.check_values(task.plan.encode([9]))
