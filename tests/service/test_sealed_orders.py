"""What a shuffler is for, at the sizes that are really used: sealed batches leave in uniformly random orders.

Batches of some thousand messages, uploaded in pieces, permuted, written down a megabyte a commit and read back from the
store. The shuffler's bits are seeded, so that a run repeats; every check has a false-alarm rate of 1e-9.
"""

import json
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from harness.world import accept_reports, batch_rows
from shuffledp.randomness import RandomBits
from shuffledp.service.routing import Routing
from shuffledp.service.shuffler import desk as shuffler_desk
from shuffledp.service.shuffler.desk import PIECE_BYTES, Accepted, permuted
from shuffledp.service.shuffler.server import ShufflerServer
from shuffledp.service.store import open_shuffler_store
from shuffledp.service.store.sqlite import shuffler as sqlite_shuffler
from shuffledp.service.wire import CIPHERTEXT_BYTES, SentReport, new_id

BITS = RandomBits.seeded(31)


def marked(places: range) -> bytes:
    """Ciphertexts that say in which place they came; the rest of each says it, too."""
    numbers = np.array(places, dtype=">u4").view(np.uint8).reshape(-1, 4)
    rows = np.tile(numbers, (1, -(-CIPHERTEXT_BYTES // 4)))[:, :CIPHERTEXT_BYTES]
    return rows.tobytes()


def places_in(body: bytes) -> np.ndarray:
    """The places in which a body's ciphertexts came, each of which must be whole."""
    rows = np.frombuffer(body, dtype=np.uint8).reshape(-1, CIPHERTEXT_BYTES)
    places = np.ascontiguousarray(rows[:, :4]).view(">u4").ravel().astype(np.int64)
    assert (rows == np.tile(rows[:, :4], (1, -(-CIPHERTEXT_BYTES // 4)))[:, :CIPHERTEXT_BYTES]).all()
    return places


class Sealing:
    """A shuffler on a store of its own, and what it sends on."""

    def __init__(self, folder: Path) -> None:
        self.sent: list[bytes] = []
        self.server = ShufflerServer(open_shuffler_store(folder / "shuffler.db"), post=self._post)
        self.server.desk = replace(self.server.desk, bits=RandomBits.seeded(32))
        self._tasks = 0

    def _post(self, path: str, body: bytes) -> int:
        self.sent.append(body)
        return 201

    def fill(self, users: int, messages: int, uploads: int) -> str:
        """One batch of so many messages from each user, marked in the order in which they come."""
        routing = Routing(
            users=users, budget=1, shufflers=1, slot_users=users, every_slot=False, messages={users: messages}
        )
        self._tasks += 1
        task_id, _ = self.server.add_task(json.dumps({"number": self._tasks, "routing": routing.document()}))
        seats = self.server.take_seats(task_id, users).result(timeout=30)
        reports = [
            SentReport(new_id(bits=BITS), seat.seat, marked(range(user * messages, (user + 1) * messages)))
            for user, seat in enumerate(seats)
        ]
        for part in np.array_split(np.arange(users), uploads):
            answers = accept_reports(self.server, task_id, [reports[user] for user in part]).result(timeout=30)
            assert answers == [Accepted(new=True)] * len(part)
        return task_id

    def seal(self) -> None:
        assert self.server.seal_full()

    def released(self) -> list[np.ndarray]:
        """The orders of all that is sealed, as the next hop gets them."""
        self.sent.clear()
        assert self.server.send_waiting()
        return [places_in(body) for body in self.sent]


@pytest.fixture
def sealing(tmp_path: Path) -> Iterator[Sealing]:
    made = Sealing(tmp_path)
    yield made
    made.server.stop()


@pytest.mark.parametrize("messages", [1001, 1500, 14_000, 100_000])
def test_ciphertexts_of_a_large_batch_are_permuted(messages: int, assert_uniform_orders: Callable[..., None]) -> None:
    bits = RandomBits.seeded(33)
    parts = [marked(range(start, min(start + 700, messages))) for start in range(0, messages, 700)]
    trials = max(2, 100_000 // messages)
    assert_uniform_orders([places_in(permuted(parts, bits=bits)) for _ in range(trials)])


def test_batches_through_the_store_have_orders_of_their_own(
    sealing: Sealing, assert_uniform_orders: Callable[..., None]
) -> None:
    """40 batches of 1,500 messages each, from 15 users in 3 uploads: one order says nothing about the next."""
    for _ in range(40):
        sealing.fill(users=15, messages=100, uploads=3)
    sealing.seal()
    orders = sealing.released()
    assert len(orders) == 40
    assert_uniform_orders(orders)


def test_a_batch_of_several_megabytes_is_permuted_as_a_whole(
    sealing: Sealing, assert_uniform_orders: Callable[..., None]
) -> None:
    """Written a megabyte a commit: messages must not stay in the piece, or the upload, that they came in."""
    for _ in range(2):
        sealing.fill(users=300, messages=150, uploads=6)
    sealing.seal()
    pieces = batch_rows(sealing.server._store, "pieces")
    assert len(pieces) == 8 and {len(body) for *_, body in pieces} >= {PIECE_BYTES}
    orders = sealing.released()
    assert [order.size for order in orders] == [45_000, 45_000]
    assert_uniform_orders(orders)


def test_small_pieces_make_the_same_whole(
    sealing: Sealing, assert_uniform_orders: Callable[..., None], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Pieces that end in the middle of a ciphertext, hundreds of them, and as many commits to delete the parts."""
    monkeypatch.setattr(shuffler_desk, "PIECE_BYTES", 1000)
    monkeypatch.setattr(sqlite_shuffler, "MOST_BYTES", 5000)
    for _ in range(2):
        sealing.fill(users=30, messages=50, uploads=5)
    sealing.seal()
    assert_uniform_orders(sealing.released())
