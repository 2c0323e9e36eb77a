"""Messy files under the command line's contract: missing values, delimiters, standard input, queries, quotes."""

import csv
import io
import re
import shlex
import sys
from pathlib import Path
from typing import Any

import pytest
import typer

from harness.frames import library
from shuffledp import cli
from shuffledp.cli.app import app

TARGET = ["--epsilon", "2", "--delta", "1e-3", "--fast"]
QUICK = [*TARGET, "--method", "opt-in"]
ROWS = 200


@pytest.fixture
def messy(tmp_path: Path) -> Path:
    """A quarter of the people have no value in any column."""
    file = tmp_path / "people.csv"
    rows = ["1.0;44;Łódź, centre;0.5;1", "0.0;30;東京;0.25;0", "1.0;18;Łódź, centre;0;1", ";;;NA;"]
    file.write_text("\ufeffclicked;age;city;share;bought\n" + "\n".join(rows * (ROWS // 4)) + "\n", encoding="utf-8")
    return file


CITIES = ["--domain", '"Łódź, centre",東京']
# A command for every reader of a file, with a public value that fits it.
COMMANDS: list[tuple[list[Any], str]] = [
    (["simulate", "FILE", "--column", "clicked", "--method", "coins", *TARGET], "default=0"),
    (
        ["simulate", "FILE", "--protocol", "bounded-sum", "--low", 0, "--high", 99, "--column", "age", *TARGET],
        "default 18",
    ),
    (
        ["simulate", "FILE", "--protocol", "vector-sum", "--radius", 2, "--columns", "clicked,share", *TARGET],
        "default=0",
    ),
    (["histogram", "FILE", "--column", "city", *CITIES, *QUICK], "default=東京"),
    (["histogram", "FILE", "--column", "city", *CITIES, *QUICK], "other"),
    (["histogram", "FILE", "--column", "age", "--domain", "18:44", *QUICK], "default=18"),
    (["count", "FILE", "--column", "clicked", "--shufflers", 2, *TARGET], "default=0"),
    (["quantile", "FILE", "--column", "age", "--domain", "0:63", *TARGET], "default=40"),
    (["heavy-hitters", "FILE", "--column", "city", "--length", 2, "--epsilon", 8, "--delta", 1e-2], "default=no"),
    (["test-uniform", "FILE", "--column", "city", *CITIES, "--distance", 0.5, *TARGET[:-1]], "default=東京"),
    (
        [
            "fit",
            "FILE",
            "--target",
            "bought",
            "--features",
            "share",
            "--classes",
            "0,1",
            "--bounds",
            "0:1",
            *TARGET[:-1],
        ],
        "default=0",
    ),
]


@pytest.mark.parametrize(("words", "policy"), COMMANDS, ids=lambda given: given if isinstance(given, str) else given[0])
def test_people_without_a_value_report_something_public(run, asked, messy: Path, words: list[Any], policy: str) -> None:
    words = [messy if word == "FILE" else word for word in words]
    code, out, err = run(*words)
    assert code == 2 and out == "" and "must have a value in every row, got rows without one" in err, err
    assert "--missing default=VALUE" in err and "50" not in err and "row 4" not in err
    found = asked(*words, "--missing", policy)
    # Nobody was left out: the number of reports is that of the rows.
    assert found["users"] + found.get("held_out", 0) == ROWS
    if "other" in policy:
        assert found["categories"]["names"] == ["Łódź, centre", "東京", "missing"]


def test_every_column_may_have_a_public_value_of_its_own(asked, messy: Path) -> None:
    """What each reports is what stands there without noise, in a fit, a vector and one column."""
    words = [messy if word == "FILE" else word for word in COMMANDS[2][0]]
    found = asked(*words, "--missing", "clicked=1,share=0.5", "--with-truth")
    assert found["truth"] == [150.0, 0.75 * 50 + 0.5 * 50]
    words = ["histogram", messy, "--column", "city", *CITIES, *QUICK, "--missing", "city=東京,age=3", "--with-truth"]
    assert {row["category"]: row["truth"] for row in asked(*words)["histogram"]} == {"Łódź, centre": 100, "東京": 100}
    # People without a number and people without a city are told apart: no one value would do for both columns.
    fit = ["fit", messy, "--target", "bought", "--features", "age,city", "--classes", "0,1", "--bounds", "age=0:99"]
    fit += ["--categories", '"city=Łódź, centre",東京', "--epsilon", 2, "--delta", 1e-3, "--seed", 1]
    assert asked(*fit, "--missing", "age=40,bought=0,city=東京")["users"] == ROWS
    refused = asked(*fit, "--missing", "age=40,bought=0", code=2)["error"]["message"]
    assert "column city" in refused and "--missing city=VALUE" in refused
    refused = asked(*fit, "--missing", "age=none,bought=0,city=東京", code=2)["error"]
    assert refused["parameter"] == "missing" and "got age=none" in refused["message"]


def test_how_many_have_none_is_told_with_the_truth_alone(run, messy: Path) -> None:
    words = ["histogram", messy, "--column", "city", *CITIES, *QUICK]
    code, _, err = run(*words, "--with-truth")
    assert code == 2 and "got 50 of 200 rows without one, the first in row 4" in err
    # A seed repeats a simulation, and tells nothing more.
    code, _, err = run(*words, "--seed", 1)
    assert code == 2 and "50" not in err and "row 4" not in err
    code, out, _ = run(*words, "--missing", "other", "--with-truth")
    assert code == 0 and "missing" in out and "50" in out


def test_a_catch_all_has_them_unless_they_are_refused(asked, messy: Path) -> None:
    words = ["histogram", messy, "--column", "city", "--domain", '"Łódź, centre"', "--other", "rest", *QUICK]
    found = asked(*words, "--with-truth")
    assert {row["category"]: row["truth"] for row in found["histogram"]} == {"Łódź, centre": 100, "rest": 100}
    assert "--missing" in asked(*words, "--missing", "refuse", code=2)["error"]["message"]


@pytest.mark.parametrize(
    ("words", "policy", "said"),
    [
        (COMMANDS[0][0], "other", "needs a list of categories"),
        (COMMANDS[0][0], "default=2", "must be 0 or 1"),
        (COMMANDS[0][0], "default=none", "must name a finite number"),
        (COMMANDS[1][0], "default=100", r"must lie in \[0, 99\]"),
        (COMMANDS[1][0], "drop", "must be refuse, other or default=VALUE"),
        (COMMANDS[2][0], "default=9", "radius 2"),
        (COMMANDS[2][0], "clicked=0,share=9", "radius 2"),
        (COMMANDS[2][0], "share=1", "must name every column of a row.*add clicked=VALUE"),
        (COMMANDS[2][0], "clicked=0,shares=1", "must name columns of .*got shares=1"),
        (COMMANDS[1][0], "age=100", r"must lie in \[0, 99\]"),
        (COMMANDS[3][0], "city=Paris", "must name a public value of the domain, got city=Paris"),
        (COMMANDS[3][0], "default=Paris", "must name a public value of the domain"),
        (COMMANDS[5][0], "other", "needs a list of names, and the domain is one of integers"),
        (COMMANDS[5][0], "default=90", "must name a public value of the domain"),
        (COMMANDS[7][0], "default=90", "must lie in"),
    ],
)
def test_a_policy_is_refused_whatever_the_data_are(asked, tmp_path: Path, messy: Path, words, policy, said) -> None:
    complete = tmp_path / "complete.csv"
    whole = [line for line in messy.read_text(encoding="utf-8").splitlines() if not line.startswith(";")]
    complete.write_text("\n".join(whole) + "\n", encoding="utf-8")
    for file in (messy, complete):
        given = [file if word == "FILE" else word for word in words]
        error = asked(*given, "--missing", policy, code=2)["error"]
        assert error["parameter"] == "missing"
        assert re.search(said, error["message"]), error


def test_a_plan_of_names_must_have_a_category_for_them(asked, run, messy: Path, tmp_path: Path) -> None:
    plan = tmp_path / "plan.json"
    words = ["plan", "histogram", "--users", ROWS, *QUICK[:4], "--method", "opt-in", "-o", plan]
    assert run(*words, *CITIES)[0] == 0
    read = ["histogram", messy, "--column", "city", "--plan", plan, "--fast"]
    assert "does not have" in asked(*read, "--missing", "other", code=2)["error"]["message"]
    assert asked(*read, "--missing", "default=東京")["users"] == ROWS
    assert run(*words, "--domain", '"Łódź, centre",東京,missing')[0] == 0
    assert asked(*read, "--missing", "other")["users"] == ROWS


def test_what_is_suggested_reads_the_file_in_the_same_way(run, messy: Path) -> None:
    code, out, _ = run(
        "histogram", messy, "--column", "city", *CITIES, *QUICK, "--missing", "other", "--delimiter", ";"
    )
    (again,) = [line for line in out.splitlines() if line.strip().startswith("draw it")]
    words = shlex.split(again.partition("shuffledp ")[2])
    assert code == 0 and words[words.index("--missing") + 1] == "other" and words[words.index("--delimiter") + 1] == ";"
    assert run(*words[:-2], "--fast")[0] == 0
    (plan,) = [line for line in out.splitlines() if line.strip().startswith("other methods")]
    assert '"Łódź, centre",東京,missing' in plan


class Typed:
    """Standard input as a terminal's pipe has it: bytes that can be read once."""

    def __init__(self, content: bytes) -> None:
        self.buffer = io.BytesIO(content)


@pytest.mark.parametrize("words", [words for words, _ in COMMANDS[:1] + COMMANDS[3:4]], ids=["simulate", "histogram"])
def test_standard_input(asked, messy: Path, monkeypatch: pytest.MonkeyPatch, words: list[Any]) -> None:
    monkeypatch.setattr(sys, "stdin", Typed(messy.read_bytes()))
    policy = ["--missing", "default=0"] if words[0] == "simulate" else ["--missing", "other"]
    given = ["-" if word == "FILE" else word for word in words]
    assert asked(*given, *policy)["users"] == ROWS
    for content, said in ((b"", "at least one row"), (b"x;y\n1;2\n", "column must be a column of standard input")):
        monkeypatch.setattr(sys, "stdin", Typed(content))
        assert said in asked(*given, *policy, code=2)["error"]["message"]


def test_delimiters(asked, messy: Path, tmp_path: Path) -> None:
    words = ["simulate", messy, "--column", "clicked", *TARGET, "--missing", "default=0"]
    assert asked(*words, "--delimiter", ";")["users"] == ROWS
    tabs = tmp_path / "tabs.csv"
    tabs.write_text(messy.read_text(encoding="utf-8-sig").replace(";", "\t"), encoding="utf-8")
    for said in ([], ["--delimiter", r"\t"], ["--delimiter", "\t"]):
        assert asked("simulate", tabs, *words[2:], *said)["users"] == ROWS
    for said in (";;", "", '"', "é", "\n"):
        assert asked(*words, "--delimiter", said, code=2)["error"]["parameter"] == "delimiter"
    assert asked(*words, "--delimiter", ",", code=2)["error"]["parameter"] == "file"


def test_options_of_a_file_need_one(asked) -> None:
    for name, value in (("missing", "default=0"), ("delimiter", ";"), ("sql", "from data")):
        words = ["simulate", "--synthetic", "--users", ROWS, *TARGET, f"--{name}", value]
        assert asked(*words, code=2)["error"]["parameter"] == name
        words = ["test-uniform", "--users-needed", *CITIES, "--distance", 0.5, *TARGET[:-1], f"--{name}", value]
        assert asked(*words, code=2)["error"]["parameter"] == name


def test_queries(asked, messy: Path) -> None:
    library("duckdb")
    sql = "select coalesce(clicked, 0) = 1 as clicked, coalesce(city, 'none') as city from data"
    found = asked("simulate", messy, "--column", "clicked", "--sql", sql, *TARGET, "--with-truth")
    assert found["users"] == ROWS and found["truth"] == 100
    words = ["histogram", messy, "--column", "city", "--domain", '"Łódź, centre",東京,none', *QUICK, "--sql", sql]
    assert asked(*words)["users"] == ROWS
    error = asked("simulate", messy, "--sql", "delete from data", *TARGET, code=2)["error"]
    assert error["parameter"] == "sql" and "must be one query" in error["message"]


def test_bits_may_be_written_as_fractions(asked, tmp_path: Path) -> None:
    file = tmp_path / "bits.csv"
    file.write_text("x\n" + "1.0\n0.0\n0\n" * 50)
    assert asked("simulate", file, *TARGET, "--with-truth")["truth"] == 50
    assert asked("count", file, "--shufflers", 2, *TARGET, "--with-truth")["truth"] == 50
    file.write_text("x\n" + "1.0\n0.5\n" * 50)
    assert "0.5 in row 2" in asked("simulate", file, *TARGET, code=2)["error"]["message"]


NAMES = ["東京都", "München", "مدينة", "नमस्ते", "😀", 'say "hi", twice', "[bold]", "a\nb", "\x1b[31mred", "=1+1"]


def test_names_in_any_script_keep_the_table_straight_and_the_file_exact(run, tmp_path: Path) -> None:
    from rich.cells import cell_len

    names, data, out = tmp_path / "names.csv", tmp_path / "data.csv", tmp_path / "out.csv"
    for file, header in ((names, []), (data, ["name"])):
        with file.open("w", encoding="utf-8", newline="") as stream:
            csv.writer(stream).writerows(
                [header, *([name] for name in NAMES)] if header else [[name] for name in NAMES]
            )
    with data.open("a", encoding="utf-8", newline="") as stream:
        csv.writer(stream).writerows([[name] for name in NAMES] * 20)
    code, shown, _ = run("histogram", data, "--domain", names, *QUICK, "--csv", out)
    assert code == 0 and "\x1b" not in shown
    lines = shown.splitlines()
    table = lines[: next(place for place, line in enumerate(lines) if line.startswith("A private"))]
    assert len({cell_len(line) for line in table if line.strip()}) == 1, table
    assert r"a\nb" in shown and r"\x1b[31mred" in shown and "[bold]" in shown
    with out.open(encoding="utf-8", newline="") as stream:
        assert [row[0] for row in csv.reader(stream)] == ["category", *NAMES]


def test_a_screen_without_the_letters_still_shows_an_answer(messy: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    screen = io.BytesIO()
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(screen, encoding="ascii", write_through=True))
    words = ["histogram", str(messy), "--column", "city", *CITIES, *QUICK, "--missing", "other"]
    with pytest.raises(SystemExit) as ended:
        cli.main([str(word) for word in words])
    assert not ended.value.code and rb"\u6771\u4eac" in screen.getvalue() and b"missing" in screen.getvalue()


def commands_in(group: Any, name: str = "") -> dict[str, Any]:
    """All commands by the words that call them."""
    if not hasattr(group, "commands"):
        return {name: group}
    found: dict[str, Any] = {}
    for word, command in group.commands.items():
        found |= commands_in(command, f"{name} {word}".strip())
    return found


def test_every_command_that_reads_a_file_reads_it_by_the_same_options() -> None:
    readers = {
        name: {parameter.name for parameter in command.params}
        for name, command in commands_in(typer.main.get_command(app)).items()
        # A ledger's and a task's file hold no table.
        if any(each.name == "file" and "CSV" in (getattr(each, "help", None) or "") for each in command.params)
    }
    assert {"simulate", "histogram", "count", "quantile", "heavy-hitters", "fit", "report", "mean"} <= readers.keys()
    without = {name for name, options in readers.items() if not options >= {"missing", "delimiter", "sql"}}
    # A log of rounds is nobody's answers: nothing public stands for what is missing in it.
    assert without == {"papers linucb", "experiment linucb"}


def test_decimal_commas_and_encodings_are_options(asked, run, tmp_path: Path) -> None:
    file = tmp_path / "semi.csv"
    file.write_bytes(("stadt;minuten\n" + "Köln;62,61\nUlm;0,5\n" * 100).encode("latin-1"))
    words = ["mean", file, "--column", "minuten", "--low", 0, "--high", 100, "--encoding", "latin-1", *TARGET]
    assert "add --decimal , if" in asked(*words, code=2)["error"]["message"]
    found = asked(*words, "--decimal", ",", "--with-truth")
    assert found["truth"] == pytest.approx(31.555)
    hints = run(*words, "--decimal", ",")[1]
    assert "plan mean" in hints and "--decimal" not in hints
