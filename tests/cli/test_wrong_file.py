"""A file of another kind than the option's, and a value of another kind than the question's: each is called by name."""

from pathlib import Path

import pytest

from shuffledp import BinarySum, Privacy
from shuffledp.randomness import RandomBits
from shuffledp.service.keys import load_public_key, make_keys
from shuffledp.service.task import Task

TARGET = ["--epsilon", "1", "--delta", "1e-6"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A plan, a task with its keys and a table; `panel.json` is made by the command itself."""
    found, bits = tmp_path_factory.mktemp("kinds"), RandomBits.secure()
    plan = BinarySum.plan(users=100, privacy=Privacy(4, 1e-2), method="rr")
    make_keys(found / "keys", bits=bits)
    Task.create(plan, load_public_key(found / "keys"), bits=bits).save(found / "task.json")
    (found / "visits.csv").write_text("spent\n" + "23.5\n0\n1\n" * 40)
    return found


@pytest.fixture
def made(run, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(folder)
    if not Path("panel.json").exists():
        assert run("ledger", "open", "panel.json", "--population", "panel", *TARGET)[0] == 0
        assert run("plan", "binary-sum", "--users", "100", "--method", "rr", *TARGET, "-o", "plan.json")[0] == 0


ANALYZER = ["--analyzer", "http://127.0.0.1:9", "--token-file", "keys/read.token"]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["sum", "visits.csv", "--column", "spent", "--plan", "panel.json"], "a plan's document, got a ledger: "),
        (["evaluate", "plan.json", "visits.csv", "--target", "spent", *TARGET], "-linear-model, got a plan: fit it"),
        (["explain", "--plan", "task.json"], "a plan's document, got a task: "),
        (["estimate", "--task", "plan.json", *ANALYZER], "a task's file, got a plan: "),
        (["task", "show", "panel.json"], "a task's file, got a ledger: "),
        (["ledger", "show", "plan.json"], "a ledger's file, got a plan: "),
        (["ledger", "show", "task.json"], "a ledger's file, got a task: "),
    ],
)
def test_a_file_of_another_kind_is_called_by_its_kind(run, made, words: list[str], said: str) -> None:
    code, out, err = run(*words)
    assert code == 2 and out == "" and said in err and len(err.splitlines()) == 1, err


def test_numbers_that_are_no_bits_are_offered_limits(run, made) -> None:
    code, _, err = run("sum", "visits.csv", "--column", "spent", *TARGET)
    assert code == 2 and "got 23.5 in row 1" in err and "--low A --high B" in err


def test_of_one_typed_value_no_row_is_named(run, made) -> None:
    to = ["--task", "task.json", "--shuffler", "http://127.0.0.1:9", "--token-file", "keys/enrol.token"]
    code, _, err = run("report", "2", *to)
    assert code == 2 and "values must be 0 or 1, got 2: " in err and "row" not in err and "column" not in err
