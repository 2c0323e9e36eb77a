"""What is printed is for people: figures of one kind, words that agree, hints that keep a plan, and data first."""

import csv
import re
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from shuffledp import Privacy
from shuffledp.cli import report
from shuffledp.cli.asked import Asked
from shuffledp.protocols.binary_sum import BinarySum
from shuffledp.service.analyzer.server import AnalyzerServer

TARGET = ["--epsilon", "1", "--delta", "1e-6"]


@pytest.fixture
def visits(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    rows = (f"v{number % 100},{number % 5},{'AB'[number % 2]},{number % 2}" for number in range(300))
    (tmp_path / "visits.csv").write_text("\n".join(["visitor,spent,arm,bought", *rows]) + "\n")
    monkeypatch.chdir(tmp_path)
    return "visits.csv"


def said(text: str) -> str:
    return re.sub(r"\s+", " ", text)


def test_the_error_beside_a_mean_of_rows_says_of_how_many_rows_it_is(run, visits: str) -> None:
    words = ["mean", visits, "--column", "spent", "--low", "0", "--high", "4", "--user", "visitor", "--at-most", "3"]
    code, out, _ = run(*words, *TARGET)
    assert code == 0 and "If everybody had one row, 100 rows in all; with more rows every error is smaller" in said(out)


def test_a_search_is_planned_in_words_without_rows_that_say_nothing(run) -> None:
    code, out, _ = run("plan", "heavy-hitters", "--users", 100_000, "--length", 4, *TARGET)
    told = said(out)
    assert code == 0 and re.search(r"everybody: surely finds strings of [\d,]+ users with", told)
    assert "e+0" not in told and "not proved here" not in told
    assert re.search(r"noise histograms, bins [\d,]+, keep", told)


@pytest.mark.parametrize("option", ["--top", "--keep"])
def test_a_search_for_nothing_is_refused_as_what_was_typed(run, visits: str, option: str) -> None:
    code, _, err = run("heavy-hitters", visits, "--column", "arm", option, -1, *TARGET)
    assert code == 2 and err.startswith(f"shuffledp: {option[2:]} must be >= 1, got -1: ask for one or more")


def test_hints_of_a_search_name_each_option_once(run, visits: str) -> None:
    words = ["--alphabet", "AB", "--length", "1", "--top", "2", "--missing", "other"]
    _, out, _ = run("heavy-hitters", visits, "--column", "arm", *words, "--fast", *TARGET)
    hints = [line for line in out.splitlines() if " shuffledp " in line]
    assert len(hints) == 2 and all(line.count("--length") == line.count("--top") == 1 for line in hints)


@pytest.mark.parametrize(
    "family, command", [(["binary-sum", "--live"], "sum"), (["counter", "--shufflers", "2"], "count")]
)
def test_a_plan_that_is_kept_is_named_in_the_hint_for_ones_own_data(
    run, visits: str, family: list[str], command: str
) -> None:
    _, out, _ = run("plan", *family, "--users", 300, *TARGET, "-o", "kept plan.json")
    assert f"{command} YOUR.csv --column C --plan 'kept plan.json'" in out


@pytest.mark.parametrize("more", [["--by", "arm", "--groups", "A,B"], ["--user", "visitor", "--at-most", "2"]])
def test_every_histogram_says_how_its_plan_is_kept(run, visits: str, more: list[str]) -> None:
    _, out, _ = run(
        "histogram", visits, "--column", "spent", "--domain", "0:4", *more, "--method", "decoys", "--fast", *TARGET
    )
    (hint,) = (line.split("shuffledp ")[1] for line in out.splitlines() if line.strip().startswith("keep the plan"))
    assert run(*hint.split())[0] == 0 and Path("plan.json").exists()


def test_nothing_that_was_sent_is_not_called_sent(capsys: pytest.CaptureFixture[str]) -> None:
    task: Any = SimpleNamespace(id="0" * 64, plan=BinarySum.plan(users=60, privacy=Privacy(1, 1e-6)))

    def told(values: int, reports: int) -> str:
        nothing, sent = (SimpleNamespace(reports=some, retried=0, refused=0) for some in (0, reports))
        report._tell(task, values, nothing, sent, 0.1)  # type: ignore[arg-type]
        return said(capsys.readouterr().out)

    assert "0 reports in 0.1 s: there was nothing new to send" in told(5, 0) and "what was sent" not in told(5, 0)
    assert "1 report in 0.1 s: the shuffler has it on disk" in told(2, 1) and "1 row of this file was" in told(2, 1)
    assert "the shuffler has them on disk" in told(2, 2) and "what was sent" in told(2, 2)


def test_an_analyzer_that_stops_counts_one_batch_as_one() -> None:
    progress = SimpleNamespace(batches_received=1, batches_read=1, releases=1)
    server: Any = SimpleNamespace(tasks=["task"], campaigns=[], progress=lambda _: progress)
    assert AnalyzerServer._leaves(server) == ["1 batch read, 0 that are not", "1 estimate released"]


def test_a_plan_that_is_loaded_is_not_said_to_be_chosen(run, visits: str) -> None:
    plan: Any = object()
    asked = Asked.__new__(Asked)
    for loaded, more in ((plan, ""), (None, " and choosing a method")):
        object.__setattr__(asked, "loaded", loaded)
        assert asked.at_first(None) == f"making data up{more}"
        assert asked.at_first(Path("a/people.csv")) == f"reading people.csv{more}"


def test_a_group_that_is_not_listed_is_found_before_anything_is_planned(
    run, visits: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Asked, "plan", lambda *_, **__: pytest.fail("planned first"))
    code, _, err = run("difference", visits, "--column", "bought", "--by", "arm", "--groups", "A,C", *TARGET)
    assert code == 2 and "got 'B' in row 2" in err


@pytest.mark.parametrize("values, most", [(["--column", "bought"], 1), (["--column", "spent", "--values", "reals"], 1)])
def test_no_running_count_is_said_to_be_below_nothing_or_above_everybody(
    run, visits: str, values: list[str], most: int
) -> None:
    if "reals" in values:
        Path(visits).write_text("spent\n" + "0.5\n" * 300)
    code, _, err = run("count", visits, *values, "--shufflers", "2", "--fast", *TARGET, "--every", "--out", "e.csv")
    with Path("e.csv").open() as file:
        rows = [{name: float(cell) for name, cell in row.items()} for row in csv.DictReader(file)]
    assert code == 0 and err == "" and len(rows) == 300
    assert all(0 <= row["lower"] <= row["upper"] <= most * row["time"] for row in rows)
    assert any(row["upper"] - row["lower"] > 1 for row in rows)


def test_colluding_is_never_said_to_show_less(run, asked) -> None:
    explained = ["explain", "binary-sum", "--users", 1000, "--method", "pure", *TARGET]
    told = [row["epsilon"] for row in asked(*explained)["collusions"]]
    assert all(epsilon is None or epsilon >= 1 for epsilon in told)
    _, out, _ = run(*explained)
    rows = [line.split() for line in out.splitlines() if line.strip().startswith("analyzer") and "users" in line]
    assert len(rows) >= 2 and all("0.9994" not in row for row in rows) and all("1" in row for row in rows)


def test_noise_is_told_with_a_few_digits(run) -> None:
    _, out, _ = run("plan", "binary-sum", "--users", 1000, "--method", "pure", *TARGET)
    assert re.search(
        r"noise random bits, random probability 0\.0\d{4}\b, bits per user \d+, decay 0\.\d{4}\b", said(out)
    )


def test_what_was_meant_is_guessed_in_whole_sentences(run, visits: str) -> None:
    assert run("cont")[2] == "shuffledp: No such command 'cont'. Did you mean 'count'? See `shuffledp --help`.\n"
    assert "Did you mean 'binary-sum'? See `shuffledp plan --help`." in run("plan", "binary_sum")[2]
    words = ["mean", visits, "--column", "spent", "--low", "0", "--high", "4", *TARGET]
    assert "user must be a column of visits.csv" in run(*words, "--user", "visitr", "--at-most", "3")[2]
    assert "by must be a column of visits.csv" in run(*words, "--by", "am", "--groups", "A,B")[2]


def test_a_ledger_breaks_no_name_of_a_method(run, visits: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    run("ledger", "open", "l.json", "--population", "visitors", "--epsilon", "3", "--delta", "1e-5")
    words = ["--protocol", "binary-sum", "--users", 1000, "--method", "poisson-bits", *TARGET]
    assert "poisson-bits" in run("ledger", "spend", "l.json", *words)[1]
