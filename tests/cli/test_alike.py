"""The command line and Python ask for the same things, by the same names and with the same defaults."""

import inspect
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import shuffledp
from shuffledp.errors import DataError

TARGET = ["--epsilon", "1", "--delta", "1e-6"]


@pytest.fixture
def people(tmp_path: Path) -> Path:
    rows = np.random.default_rng(3).integers(0, 100, 500)
    file = tmp_path / "people.csv"
    file.write_text("age,clicked\n" + "".join(f"{age},{age % 2}\n" for age in rows.tolist()))
    return file


def test_a_running_count_has_as_many_shufflers_as_in_python(asked, run, people: Path) -> None:
    words = ["count", people, "--column", "clicked", *TARGET, "--fast"]
    default = inspect.signature(shuffledp.running_count).parameters["shufflers"].default
    assert asked(*words)["shufflers"] == default
    assert asked(*words, "--shufflers", 2)["shufflers"] == 2
    # A hint must say it where another command has no default.
    assert f"plan counter --users 500 --epsilon 1.0 --delta 1e-06 --shufflers {default}" in run(*words)[1]


@pytest.mark.parametrize(
    "words",
    [
        ["quantile", "FILE", "--column", "age", "--fast"],
        ["mean", "FILE", "--column", "age"],
        ["sum", "FILE", "--column", "age"],
        ["variance", "FILE", "--column", "age"],
        ["plan", "mean", "--users", 500],
        ["plan", "ranges", "--users", 500],
        ["explain", "mean", "--users", 500],
        ["explain", "ranges", "--users", 500],
    ],
    ids=lambda words: " ".join(words[:2]).replace(" FILE", ""),
)
def test_limits_are_said_in_either_way(asked, run, people: Path, words: list[Any]) -> None:
    words = [people if word == "FILE" else word for word in words] + TARGET
    apart, together = asked(*words, "--low", 0, "--high", 100), asked(*words, "--domain", "0:100")
    assert apart["fingerprint"] == together["fingerprint"]
    both = asked(*words, "--domain", "0:100", "--low", 0, code=2)["error"]
    assert both["parameter"] == "low" and "must not both be given" in both["message"]
    wrong = asked(*words, "--domain", "old", code=2)["error"]
    assert wrong["parameter"] == "domain" and "LOW:HIGH" in wrong["message"]
    if words[0] == "quantile":
        alone = asked(*words, "--low", 0, code=2)["error"]
        assert alone["parameter"] == "high" and "--high" in alone["message"]


def test_whoever_has_no_category_is_in_the_one_for_all_others() -> None:
    cities = ["Oslo"] * 300 + [None] * 400 + ["Rome"] * 300
    asked: dict[str, Any] = {"categories": ["Oslo"], "epsilon": 1, "delta": 1e-6, "seed": 1}
    found = shuffledp.histogram(cities, other="else", **asked)
    assert abs(found.as_dict()["else"] - 700) <= found.bound
    with pytest.raises(DataError, match="must have a value in every row"):
        shuffledp.histogram(cities, other="else", missing="refuse", **asked)
    with pytest.raises(DataError, match="must have a value in every row"):
        shuffledp.histogram(cities, **asked | {"categories": ["Oslo", "Rome"]})


def test_both_counts_say_what_the_other_one_is(run) -> None:
    said = " ".join(run("count", "--help")[1].split())
    assert "shuffledp sum" in said and "shuffledp.count" in said
    assert "running_count" in str(shuffledp.count.__doc__) and "shuffledp sum" in str(shuffledp.count.__doc__)
