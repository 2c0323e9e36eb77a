"""`shuffledp batch`: what its commands say, and what they refuse."""

import json
from pathlib import Path

import pytest

from harness.messages import numbers_in, write_ciphertexts
from shuffledp.privacy import Privacy
from shuffledp.protocols.binary_sum import BinarySum
from shuffledp.randomness import RandomBits
from shuffledp.service.keys import make_keys
from shuffledp.service.task import Task


@pytest.fixture
def source(tmp_path: Path) -> Path:
    return write_ciphertexts(tmp_path / "in", (30, 20))


def test_a_shuffle_says_what_it_left_out(run, source: Path, tmp_path: Path) -> None:
    write_ciphertexts(source / "_old", (7,))
    code, out, err = run("batch", "shuffle", source, tmp_path / "out", "--reports", "50", "--processes", "1")
    assert code == 0 and err == ""
    assert "1, such as _old/hour-00.parquet: names that begin with _ or a dot" in " ".join(out.split())
    assert "50 ciphertexts" in out and "received_at, address: not read" in " ".join(out.split())
    assert sorted(numbers_in(tmp_path / "out")) == list(range(50))


def test_a_shuffle_as_json(asked, source: Path, tmp_path: Path) -> None:
    found = asked("batch", "shuffle", source, tmp_path / "out", "--processes", "1")
    assert found["messages"] == 50 and found["kind"] == "ciphertexts" and found["reports"] is None
    assert found["dropped_columns"] == ["received_at", "address"] and found["files"] == 1
    assert "ignored_files" not in found
    write_ciphertexts(source / "_old", (7,))
    more = asked("batch", "shuffle", source, tmp_path / "more", "--processes", "1")
    assert more["ignored_files"] == ["_old/hour-00.parquet"]
    refused = asked("batch", "shuffle", source, tmp_path / "out", "--processes", "1", code=2)
    assert "is finished" in refused["error"]["message"] and refused["error"]["parameter"] == "out"


def test_what_cannot_be_done_is_said_in_a_sentence(run, source: Path, tmp_path: Path) -> None:
    for words, said in (
        (["--resume"], "resume must be of a job that was stopped"),
        (["--column", "address"], "must be whole numbers or byte strings, and is string"),
        (["--memory", "little"], "memory must be a size"),
    ):
        code, out, err = run("batch", "shuffle", source, tmp_path / "out", *words)
        assert code == 2 and out == "" and said in err and len(err.splitlines()) == 1


@pytest.fixture(scope="module")
def task(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with keys, a plan, a task of 90 people, and their values."""
    folder = tmp_path_factory.mktemp("task")
    plan = BinarySum.plan(users=90, privacy=Privacy(2, 1e-5), method="coins")
    made = Task.create(plan, make_keys(folder / "keys", bits=RandomBits.secure()), bits=RandomBits.secure())
    made.save(folder / "task.json")
    (folder / "plan.json").write_text(json.dumps(plan.document()))
    (folder / "people.csv").write_text("smokes\n" + "".join(f"{number % 3 == 0:d}\n" for number in range(90)))
    return folder


def test_from_values_to_an_estimate(run, asked, task: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    own, here = ["--task", task / "task.json"], ["--processes", "1"]
    assert asked("batch", "collect", task / "people.csv", "got", "--column", "smokes", *own)["reports"] == 90
    assert asked("batch", "shuffle", "got", "mixed", *here)["reports"] == 90
    opened = asked("batch", "open", "mixed", "opened", "--keys", task / "keys", *own, *here)
    assert opened["malformed"] == opened["copies"] == 0 and opened["messages"] + opened["fillers"] > 90
    assert asked("ledger", "open", "panel", "--population", "panel", "--epsilon", "3", "--delta", "1e-4")
    for _ in range(2):
        found = asked("batch", "analyze", "opened", "--ledger", "panel", *own, *here)
    assert len(asked("ledger", "show", "panel")["entries"]) == 1
    assert abs(found["estimate"] - 30) <= found["bound"] and found["users"] == 90 and found["dropped"] == 0
    assert found["epsilon"] == 2 and found["malformed"] == 0 and found["messages"] == opened["messages"]
    by_plan = asked("batch", "analyze", "opened", "--plan", task / "plan.json", *here)
    assert by_plan["estimate"] == found["estimate"] and by_plan["task_id"] is None
    code, out, err = run("batch", "analyze", "opened", *own, *here)
    assert code == 0 and err == "" and "all 90 users" in out and f"{found['estimate']:.1f}" in out
    code, out, err = run("batch", "open", "mixed", "again", "--keys", task / "keys", *own, *here)
    assert code == 0 and "batch analyze again --task" in out
    for words, said in (
        (["analyze", "opened"], "plan or --task must be given"),
        (["analyze", "mixed", *own], "must be opened messages"),
        (["open", "opened", "new", "--keys", task / "keys", *own], "must be ciphertexts of 77 bytes"),
        (["collect", task / "people.csv", "got", *own], "out is finished"),
    ):
        code, out, err = run("batch", *words)
        assert code == 2 and said in err and len(err.splitlines()) == 1, err
