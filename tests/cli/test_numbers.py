"""`shuffledp sum`, `mean`, `variance` and `predict`: one obvious place for each number."""

import csv
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from shuffledp import cli

USERS = 2000
TARGET = ["--epsilon", "1", "--delta", "1e-6"]


@pytest.fixture(scope="module")
def people(tmp_path_factory) -> tuple[Path, dict[str, Any]]:
    draws = np.random.default_rng(4)
    columns = {
        "bit": draws.integers(0, 2, USERS),
        "age": draws.integers(18, 90, USERS),
        "weight": draws.random(USERS).round(3),
        "x": draws.uniform(-1, 1, USERS).round(4),
        "y": draws.uniform(-1, 1, USERS).round(4),
    }
    columns["label"] = (columns["x"] > 0).astype(int)
    file = tmp_path_factory.mktemp("people") / "people.csv"
    rows = zip(*(column.tolist() for column in columns.values()), strict=True)
    file.write_text(",".join(columns) + "\n" + "".join(",".join(map(str, row)) + "\n" for row in rows))
    return file, columns


@pytest.fixture
def screen(capsys) -> Any:
    def call(*words: object) -> str:
        with pytest.raises(SystemExit) as ended:
            cli.main([str(word) for word in words])
        out, err = capsys.readouterr()
        assert not ended.value.code, err
        return re.sub(r"\s+", " ", out)

    return call


def off(found: dict[str, Any], truth: float) -> float:
    return abs(found["estimate"] - truth)


def test_a_sum_is_of_bits_of_numbers_or_of_vectors(asked, people) -> None:
    file, columns = people
    bits = asked("sum", file, "--column", "bit", *TARGET)
    assert bits["protocol"] == "binary-sum" and off(bits, columns["bit"].sum()) <= 3 * bits["bound"]
    ages = asked("sum", file, "--column", "age", "--low", 0, "--high", 100, *TARGET)
    assert ages["protocol"] == "bounded-sum" and off(ages, columns["age"].sum()) <= 3 * ages["bound"]
    both = asked("sum", file, "--columns", "x,y", "--radius", 1.5, *TARGET)
    truth = [columns["x"].sum(), columns["y"].sum()]
    assert both["protocol"] == "vector-sum" and both["dimension"] == 2
    assert np.abs(np.array(both["estimate"]) - truth).max() <= 3 * both["bound"]
    assert asked("sum", file, "--column", "age", "--low", 0, *TARGET, code=2)["error"]["parameter"] == "high"
    assert asked("sum", file, "--column", "age", *TARGET, code=2)["error"]["parameter"] == "values"


def test_a_mean_may_be_weighted(asked, people) -> None:
    file, columns = people
    words = ["mean", file, "--low", 0, "--high", 100, *TARGET]
    plain = asked(*words, "--column", "age")
    assert plain["protocol"] == "mean" and off(plain, columns["age"].mean()) <= 3 * plain["bound"]
    weighted = asked(*words, "--columns", "age,weight", "--largest-weight", 1, "--with-truth")
    mean = np.average(columns["age"], weights=columns["weight"])
    assert weighted["protocol"] == "weighted-mean" and weighted["truth"][0] == pytest.approx(mean)
    assert abs(weighted["estimate"][0] - mean) <= 3 * weighted["bound"]


def test_a_variance_comes_with_its_mean_and_deviation(asked, people, tmp_path: Path) -> None:
    file, columns = people
    words = ["variance", file, "--column", "age", "--low", 0, "--high", 100, *TARGET]
    found = asked(*words, "--csv", tmp_path / "v.csv")
    assert off(found, columns["age"].var()) <= 3 * found["bound"]
    assert abs(found["mean"]["estimate"] - columns["age"].mean()) <= 3 * found["mean"]["bound"]
    assert 0 <= found["lower"] <= found["estimate"] <= found["upper"] and found["truth"] is None
    assert found["standard_deviation"] == pytest.approx(found["estimate"] ** 0.5)
    rows = {row["name"]: row for row in csv.DictReader((tmp_path / "v.csv").read_text().splitlines())}
    assert rows.keys() == {"mean", "variance"} and "truth" not in rows["mean"]
    assert float(rows["variance"]["estimate"]) == pytest.approx(found["estimate"])
    told = asked(*words, "--with-truth")
    assert told["truth"] == pytest.approx(columns["age"].var())
    assert told["mean"]["truth"] == pytest.approx(columns["age"].mean())
    # People who are all alike have a variance of 0, and no interval begins below it.
    alike = tmp_path / "alike.csv"
    alike.write_text("age\n" + "40\n" * USERS)
    flat = asked("variance", alike, "--column", "age", "--low", 0, "--high", 100, *TARGET)
    assert flat["lower"] == 0 <= flat["upper"]


@pytest.mark.parametrize("command", ["sum", "mean", "variance"])
def test_the_first_screen_says_what_how_accurate_who_is_trusted_and_what_next(screen, people, command: str) -> None:
    out = screen(command, people[0], "--column", "age", "--low", 0, "--high", 100, *TARGET)
    for said in ("asked", "what happened", "each person sends", "±", "95% confidence", "trusted", "collude", "Next:"):
        assert said in out, said
    assert "whoever holds the file sees it all" in out and "true value" not in out


def test_a_plan_s_file_decides(asked, people, tmp_path: Path) -> None:
    file, plan = people[0], tmp_path / "plan.json"
    made = asked("plan", "bounded-sum", "--users", USERS, "--low", 0, "--high", 100, *TARGET, "-o", plan)
    assert asked("sum", file, "--column", "age", "--plan", plan)["fingerprint"] == made["fingerprint"]
    assert asked("mean", file, "--column", "age", "--plan", plan, code=2)["error"]["parameter"] == "plan"


def test_a_model_predicts_a_file(asked, screen, people, tmp_path: Path) -> None:
    file, columns = people
    model, table = tmp_path / "model.json", tmp_path / "said.csv"
    features = ["--features", "x,y", "--bounds", "-1:1"]
    asked("fit", file, "--target", "label", "--classes", "0,1", *features, *TARGET, "--seed", 1, "-o", model)
    found = asked("predict", file, "--model", model)
    said = np.array(found["predictions"]["prediction"])
    assert found["rows"] == USERS and set(said.tolist()) <= {0, 1} and found["score"] is None
    assert np.mean(said == columns["label"]) > 0.9
    chances = np.array(found["predictions"]["probability"])
    assert ((chances > 0.5) == (said == 1)).all()
    assert asked("predict", file, "--model", model, "--csv", table)["predictions"] is None
    rows = list(csv.DictReader(table.read_text().splitlines()))
    assert len(rows) == USERS and [int(row["prediction"]) for row in rows[:50]] == said[:50].tolist()
    scored = asked("predict", file, "--model", model, "--with-truth", "--target", "label")
    assert scored["score"] == pytest.approx(np.mean(said == columns["label"]))
    assert asked("predict", file, "--model", model, "--target", "label", code=2)["error"]["parameter"] == "target"
    assert asked("predict", file, "--model", model, "--csv", file, code=2)["error"]["parameter"] == "csv"
    other = tmp_path / "other.csv"
    other.write_text("x,z\n1,2\n")
    assert "y" in asked("predict", other, "--model", model, code=2)["error"]["message"]
    assert "costs the people it learned from nothing more" in screen("predict", file, "--model", model)
