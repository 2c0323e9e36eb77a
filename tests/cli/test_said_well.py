"""Refusals that name what is wrong first, hints that can be followed, and words that agree with their numbers."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import shuffledp
from shuffledp import BinarySum, Privacy
from shuffledp.continual.plan import CounterPlan
from shuffledp.errors import DataError, ParameterError

TARGET = ["--epsilon", "1", "--delta", "1e-6"]


@pytest.fixture
def gaps(tmp_path: Path) -> Path:
    file = tmp_path / "gaps.csv"
    file.write_text("clicked,city\n" + "1,Oslo\n0,Rome\n,\n" * 40)
    return file


def test_an_unknown_command_is_looked_for_where_it_would_be(run) -> None:
    assert run("foo")[2].endswith("see `shuffledp --help`.\n")
    assert run("plan", "foo")[2].endswith("see `shuffledp plan --help`.\n")
    assert run("sum", "x.csv", "--foo")[2].endswith("see `shuffledp sum --help`.\n")


@pytest.mark.parametrize("twice", [["-o", "a.pdf", "-o", "b.json"], ["--out=a.pdf", "-o", "b.json"]])
def test_of_two_files_none_is_left_out_in_silence(
    run, gaps: Path, twice: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(gaps.parent)
    words = ["histogram", gaps, "--column", "city", "--domain", "Oslo,Rome", "--missing", "other", *TARGET]
    code, out, err = run(*words, *twice)
    assert code == 2 and out == "" and err.startswith("shuffledp: out must be given once") and "--picture" in err
    assert [path.name for path in gaps.parent.iterdir()] == [gaps.name]


@pytest.mark.parametrize(
    "words",
    [
        ["sum", "FILE", "--column", "clicked"],
        ["histogram", "FILE", "--column", "city", "--domain", "Oslo,Rome"],
        ["heavy-hitters", "FILE", "--column", "city"],
        ["count", "FILE", "--column", "clicked"],
    ],
    ids=lambda words: words[0],
)
def test_a_wrong_question_is_named_before_what_is_wrong_with_the_data(asked, gaps: Path, words: list[Any]) -> None:
    words = [gaps if word == "FILE" else word for word in words]
    assert asked(*words, "--epsilon", -1, "--delta", 1e-6, code=2)["error"]["parameter"] == "epsilon"
    assert asked(*words, "--epsilon", 1, "--delta", 2, code=2)["error"]["parameter"] == "delta"


def test_the_way_out_of_a_gap_is_one_that_is_taken(run, gaps: Path) -> None:
    bits = ["sum", gaps, "--column", "clicked", *TARGET]
    err = run(*bits)[2]
    assert "--missing default=VALUE" in err and "other" not in err and "missing=" not in err
    err = run("histogram", gaps, "--column", "city", "--domain", "Oslo,Rome", *TARGET)[2]
    assert "--missing default=VALUE or --missing other" in err and "missing=" not in err
    assert run(*bits, "--missing", "default=0")[0] == 0
    with pytest.raises(DataError, match='report instead, missing="default=VALUE"\\.') as refused:
        shuffledp.count([1, None], epsilon=1, delta=1e-6)
    assert "--missing" not in str(refused.value)


@pytest.mark.parametrize("public", [0, False, np.int64(0), 0.0])
def test_a_number_is_what_people_without_one_report(public: Any) -> None:
    people = [1] * 30 + [None] * 70
    asked: dict[str, Any] = {"epsilon": 1, "delta": 1e-6, "seed": 1}
    assert shuffledp.count(people, missing=public, **asked) == shuffledp.count(people, missing="default=0", **asked)
    with pytest.raises(ParameterError, match="missing names a value that must be 0 or 1"):
        shuffledp.count(people, missing=2, **asked)
    with pytest.raises(ParameterError, match="missing must name a finite number"):
        shuffledp.count(people, missing=float("nan"), **asked)


def test_a_ledger_has_no_options_of_a_table(run) -> None:
    said = run("ledger", "spend", "--help")[1]
    assert "--protocol" in said
    for option in ("--missing", "--delimiter", "--sql", "--user ", "--by "):
        assert option not in said


def test_one_is_not_many() -> None:
    plan = BinarySum.plan(users=10_000_000, privacy=Privacy(1, 1e-6), method="poisson-bits")
    assert plan.sends.startswith("1 message on average, at most") and plan.sends.endswith("of 1 bit each")
    counter = CounterPlan.plan(users=300, shufflers=2, privacy=Privacy(4, 1e-2), noise="coins")
    assert "up to 1 bit" in counter.sends and "1 bits" not in counter.sends


@pytest.mark.parametrize(
    ("words", "parameter"),
    [
        (["--domain", "2026-01-01:2026-12-31x0:3"], "domain"),
        (["--domain", "2026-01-01T00:00:2026-12-31T00:00"], "domain"),
        (["--domain", "2026-12-31:2026-01-01"], "domain"),
        (["--domain", "2026-02-30:2026-12-31"], "domain"),
        (["--domain", "2026-01-01:2026-12-31", "--steps", "10"], "steps"),
        (["--domain", "2026-01-01:2026-12-31", "--missing", "default=yesterday"], "missing"),
    ],
)
def test_what_days_cannot_be_is_said(asked, gaps: Path, words: list[str], parameter: str) -> None:
    error = asked("quantile", gaps, "--column", "city", *words, *TARGET, code=2)["error"]
    assert error["parameter"] == parameter


@pytest.mark.parametrize(
    ("groups", "more", "named"),
    [("A,B", {}, "groups must be a list"), (["A", "A"], {}, "groups"), (2, {"other_group": "C"}, "other_group")],
)
def test_groups_are_named_by_their_own_argument(groups: Any, more: dict[str, Any], named: str) -> None:
    asked: dict[str, Any] = {"by": ["A", "B"] * 50, "epsilon": 1, "delta": 1e-6, "groups": groups, **more}
    with pytest.raises(ParameterError, match=f"^{named}"):
        shuffledp.count([0, 1] * 50, **asked)
    with pytest.raises(ParameterError, match=f"^{named}"):
        shuffledp.difference([0, 1] * 50, **asked)


def test_after_a_plan_for_devices_come_keys_and_a_task(run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    words = ["plan", "binary-sum", "--users", 100, *TARGET]
    steps = [line.split("shuffledp ")[-1] for line in run(*words, "--live", "-o", "p.json")[1].splitlines()[-6:]]
    assert steps[-2:] == ["keys keys", "task create --plan p.json --keys keys -o task.json"]
    for step in steps[-2:]:
        assert run(*step.split())[0] == 0
    assert (tmp_path / "task.json").exists()
    assert "task create" not in run(*words)[1] and "task create" not in run(*words, "-o", "q.json")[1]


@pytest.mark.parametrize(
    "values", [["repeated-mean", "--low", "0", "--high", "9"], ["grouped-rows-count", "--groups", "a,b"]]
)
def test_of_people_with_several_rows_all_rows_are_replaced(asked, run, values: list[str]) -> None:
    words = ["explain", *values, "--users", "2265", "--at-most", "3", *TARGET]
    whole = "all rows of one person, of which at most 3 count"
    found = asked(*words)["neighbours"]["in_words"]
    assert found.startswith(whole) and "distance of up to 6" in found and "one value" not in found
    assert whole in " ".join(run(*words)[1].replace("│", " ").split())


def test_of_people_with_one_row_one_value_is_replaced(asked) -> None:
    found = asked("explain", "--users", "500", *TARGET)["neighbours"]["in_words"]
    assert found.startswith("one value") and "change-one distance of 1" in found
