"""Servers under everything that can happen to them (`harness.machine`); those wrong on purpose are caught."""

from concurrent.futures import Future
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from harness.machine import Machine, run
from harness.model import WrongError
from shuffledp.randomness import RandomBits
from shuffledp.service.problems import RefusedError
from shuffledp.service.shuffler import desk as shuffler_desk
from shuffledp.service.shuffler.desk import ShufflerDesk, permuted
from shuffledp.service.shuffler.large import BatchSizes
from shuffledp.service.shuffler.sending import Post
from shuffledp.service.shuffler.server import ShufflerServer
from shuffledp.service.store import sqlite
from shuffledp.service.store.sqlite import shuffler as sqlite_shuffler
from shuffledp.service.store.sqlite.engine import SqliteStore
from shuffledp.service.store.sqlite.shuffler import SqliteShufflerRecords
from shuffledp.service.wire import CIPHERTEXT_BYTES

SEEDS, STEPS = 6, 600


@pytest.mark.parametrize("seed", [0, 1, *(pytest.param(seed, marks=pytest.mark.sweep) for seed in range(2, SEEDS))])
def test_nothing_is_lost_doubled_or_permuted_again_whatever_happens(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, seed: int
) -> None:
    if seed % 2:
        in_small_pieces(monkeypatch)
    told = run(tmp_path, seed, STEPS).told
    # A run in which nothing happened would prove nothing.
    assert told["acknowledged"] > 30 and told["sealed"] > 8 and told["tasks finished"] > 0, told
    assert min(told["refused"], told["retried"], told["stray"]) > 0, told
    assert sum(count for words, count in told.items() if "killed" in words) > 20, told


@pytest.mark.parametrize("seed", range(2))
def test_nothing_is_lost_or_doubled_by_batches_in_pieces(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, seed: int
) -> None:
    """Every batch is dealt to buckets, travels in pieces of four messages and is opened piece by piece."""
    in_small_pieces(monkeypatch)
    machine = run(tmp_path, seed, STEPS * 3 // 4, kind=PiecesMachine, sizes=IN_PIECES)
    told = machine.told
    assert told["acknowledged"] > 30 and told["sealed"] > 8 and machine.world.network.manifests > 8, told
    assert told["shuffler killed inside a step"] > 3, told
    assert sum(count for words, count in told.items() if "analyzer killed" in words) > 3, told
    assert told["stray"] > 0, told


@dataclass
class PiecesMachine(Machine):
    """Servers die anywhere in the many commits that a batch in pieces takes."""

    longest_read: int = 12
    longest_seal: int = 60
    longest_send: int = 8


IN_PIECES = BatchSizes(whole=0, piece=4 * CIPHERTEXT_BYTES, dealt=7 * CIPHERTEXT_BYTES, bucket=5 * CIPHERTEXT_BYTES)


def in_small_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every batch is large: it takes many commits to seal, tidy and purge."""
    monkeypatch.setattr(shuffler_desk, "PIECE_BYTES", 5 * CIPHERTEXT_BYTES)
    monkeypatch.setattr(sqlite_shuffler, "MOST_BYTES", 1)
    monkeypatch.setattr(sqlite_shuffler, "MOST_IDS", 2)


# --- wrong on purpose ------------------------------------------------------------------------


class PermutesWhenSending(ShufflerServer):
    """Every try to send a batch has an order of its own."""

    def __init__(self, store: Any, *, post: Post, **more: Any) -> None:
        bits = RandomBits.secure()
        super().__init__(store, post=lambda path, body: post(path, permuted([body], bits=bits)), **more)


class PurgesBeforeSending(ShufflerServer):
    """A batch is deleted when it leaves, not when it has arrived."""

    def __init__(self, store: Any, **more: Any) -> None:
        super().__init__(store, **more)
        self.sender.send = self._send

    def _send(self, task_id: str, batch_id: str) -> bool:
        batch = self._store.read(lambda records: records.sealed(task_id, batch_id))
        self._store.write(lambda records: records.purge(task_id, batch_id))
        if batch is not None:
            self._post(f"/v1/tasks/{task_id}/batches/{batch_id}", batch)
        return True


class AnswersBeforeCommit(SqliteStore):
    """A request is answered when its statements have run."""

    def _commit(self, work: "list[tuple[Any, Future[Any]]]") -> None:
        super()._commit([(_at_once(act, future), Future()) for act, future in work])

    def submit_here(self, work: Any) -> "Future[Any]":
        return self.submit(work)


def _at_once(act: Any, future: "Future[Any]") -> Any:
    def both(records: Any) -> None:
        try:
            future.set_result(act(records))
        except RefusedError as refused:
            future.set_exception(refused)

    return both


TWINS: dict[str, tuple[Any, str, Any, str]] = {
    "answers before the commit": (sqlite, "SqliteStore", AnswersBeforeCommit, "lost|forgotten"),
    "seals early": (sqlite_shuffler, "_FULL", "filled >= size - 1", "left with"),
    "forgets its refusals": (
        ShufflerDesk,
        "_retire",
        lambda *_: None,
        "refused with 410 and later accepted|kept|seat that is gone",
    ),
    "forgets report ids": (
        SqliteShufflerRecords,
        "accepted_among",
        lambda *_: set(),
        "acknowledged report was refused",
    ),
    "does not permute": (shuffler_desk, "permuted", lambda parts, **_: b"".join(parts), "not permuted"),
}


@pytest.mark.parametrize("name", TWINS)
def test_a_shuffler_that_is_wrong_is_caught(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    where, attribute, wrong, words = TWINS[name]
    monkeypatch.setattr(where, attribute, wrong)
    with pytest.raises(WrongError, match=words):
        run_until_wrong(tmp_path)


@pytest.mark.parametrize(
    ("twin", "words"), [(PermutesWhenSending, "permuted twice"), (PurgesBeforeSending, "purged|unreachable")]
)
def test_a_shuffler_that_sends_wrongly_is_caught(tmp_path: Path, twin: Any, words: str) -> None:
    with pytest.raises(WrongError, match=words):
        run_until_wrong(tmp_path, make_shuffler=twin)


def run_until_wrong(folder: Path, **world: Any) -> None:
    """The same runs as those that pass."""
    for seed in range(SEEDS):
        run(folder, seed, STEPS, **world)
