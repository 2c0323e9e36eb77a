"""Batches that are permuted, delivered and opened piece by piece: on both stores the same as if they were whole."""

import json
import sqlite3
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import closing, suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from harness.looking import SqliteLook
from harness.postgresql import Server
from harness.world import OpenerHere, World, accept_reports, ciphertexts, made_report, open_here, rows, small_task
from service.test_sealed_orders import marked, places_in
from shuffledp.errors import DataError, ParameterError
from shuffledp.randomness import RandomBits
from shuffledp.service import delivery
from shuffledp.service.analyzer import results
from shuffledp.service.analyzer.openings import Openings
from shuffledp.service.analyzer.results import PieceResult, copies_among, tally_of
from shuffledp.service.analyzer.server import AnalyzerServer
from shuffledp.service.crypto import PrivateKey
from shuffledp.service.delivery import LARGEST_PIECE_BYTES, Manifest, Sending, recut
from shuffledp.service.problems import RefusedError
from shuffledp.service.routing import Routing
from shuffledp.service.shuffler.desk import Accepted
from shuffledp.service.shuffler.large import BatchSizes
from shuffledp.service.shuffler.server import ShufflerServer
from shuffledp.service.store import migrate_store, open_analyzer_store, open_shuffler_store
from shuffledp.service.store.contract import BatchPart, ClaimLostError
from shuffledp.service.store.postgresql.migrating import files_of
from shuffledp.service.store.sqlite import shuffler as sqlite_shuffler
from shuffledp.service.task import Task
from shuffledp.service.wire import CIPHERTEXT_BYTES, LARGEST_BATCH_BYTES, MESSAGE_BYTES, SentReport, new_id

SMALL = BatchSizes(whole=0, piece=50 * CIPHERTEXT_BYTES, dealt=300 * CIPHERTEXT_BYTES, bucket=200 * CIPHERTEXT_BYTES)
BITS = RandomBits.seeded(51)


class Sealing:
    """A shuffler on a store of its own that takes every batch for a large one, and what it sends on."""

    def __init__(self, address: str, sizes: BatchSizes = SMALL) -> None:
        self.requests: list[tuple[str, bytes]] = []
        self.server = ShufflerServer(open_shuffler_store(address), post=self._post, sizes=sizes)
        self.server.desk = replace(self.server.desk, bits=RandomBits.seeded(52))

    def _post(self, path: str, body: bytes, media: str = "") -> int:
        self.requests.append((path, body))
        return 201

    def fill(
        self, users: int, messages: int, uploads: int, number: int = 0, made: Callable[[range], bytes] = marked
    ) -> str:
        """One batch of so many messages from each user, marked in the order in which they come unless they are made."""
        shape: dict[str, Any] = {"budget": 1, "shufflers": 1, "every_slot": False, "messages": {users: messages}}
        routing = Routing(users=users, slot_users=users, **shape)
        task_id, _ = self.server.add_task(json.dumps({"number": number, "routing": routing.document()}))
        seats = self.server.take_seats(task_id, users).result(timeout=30)
        reports = [
            SentReport(new_id(bits=BITS), seat.seat, made(range(user * messages, (user + 1) * messages)))
            for user, seat in enumerate(seats)
        ]
        for part in np.array_split(np.arange(users), uploads):
            answers = accept_reports(self.server, task_id, [reports[user] for user in part]).result(timeout=30)
            assert answers == [Accepted(new=True)] * len(part)
        return task_id

    def pieces(self) -> list[bytes]:
        return [body for path, body in self.requests if "/pieces/" in path]


@pytest.fixture
def sealing(store_address: Callable[[str], str]) -> Iterator[Sealing]:
    made = Sealing(store_address("shuffler"))
    yield made
    made.server.stop()


def test_two_passes_over_a_store_leave_no_memory_of_how_it_came(
    sealing: Sealing, assert_uniform_orders: Callable[..., None]
) -> None:
    """6 batches of 1,500 messages in three uploads, 8 buckets, pieces of 50: one order says nothing about the next."""
    for number in range(6):
        sealing.fill(users=15, messages=100, uploads=3, number=number)
    assert sealing.server.seal_full() and sealing.server.send_waiting()
    by_batch: dict[str, list[bytes]] = {}
    for path, body in sealing.requests:
        if path.endswith("/manifest"):
            whole = b"".join(by_batch[path.split("/")[3]])
            manifest = Manifest.from_text(body.decode())
            assert (manifest.pieces, manifest.bytes) == (len(by_batch[path.split("/")[3]]), len(whole))
        else:
            by_batch.setdefault(path.split("/")[3], []).append(body)
            assert len(body) <= SMALL.piece and not len(body) % CIPHERTEXT_BYTES
    orders = [places_in(b"".join(pieces)) for pieces in by_batch.values()]
    assert len(orders) == 6 and {tuple(sorted(order)) for order in orders} == {tuple(range(1500))}
    assert_uniform_orders(orders)


def test_a_draft_of_either_pass_is_thrown_away_and_drawn_anew(
    sealing: Sealing, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A process that dies in pass 1 or 2 leaves the batch as it came; what it dealt goes before it is dealt again."""
    task_id = sealing.fill(users=30, messages=20, uploads=2)
    kind = type(sealing.server._store.read(lambda records: records))
    for act, at in (("add_runs", 3), ("add_piece", 5), ("seal", 0)):
        real, left = getattr(kind, act), [at]

        def dies(records: Any, *given: Any, real: Any = real, left: list[int] = left) -> Any:
            left[0] -= 1
            if left[0] < 0:
                raise ClaimLostError("as good as a kill")
            return real(records, *given)

        monkeypatch.setattr(kind, act, dies)
        assert sealing.server.seal_full() is False
        assert sealing.server.send_waiting() and not sealing.requests
        monkeypatch.setattr(kind, act, real)
        assert sealing.server._store.read(lambda records: records.has_draft(task_id, "1.0.1"))
    assert sealing.server.seal_full() and sealing.server.send_waiting()
    assert sorted(places_in(b"".join(sealing.pieces()))) == list(range(600))
    left = sealing.server._store.read(lambda records: (records.sealed_bytes(task_id, "1.0.1"), records.full_batches()))
    assert left == (None, [])


def test_told_to_stop_it_leaves_a_draft(sealing: Sealing) -> None:
    task_id = sealing.fill(users=30, messages=20, uploads=2)
    sealing.server._chores.ask_to_stop()
    assert sealing.server.seal_full()
    assert sealing.server._store.read(lambda records: records.full_bytes(task_id, "1.0.1")) == 600 * CIPHERTEXT_BYTES


def test_pieces_that_were_taken_are_not_sent_again_unless_the_manifest_is_refused(sealing: Sealing) -> None:
    sealing.fill(users=30, messages=20, uploads=2)
    sealing.server.seal_full()
    answers: dict[str, int] = {"/pieces/4": 503}

    def post(path: str, body: bytes, media: str = "") -> int:
        sealing.requests.append((path, body))
        return next((status for end, status in answers.items() if path.endswith(end)), 201)

    sealing.server._post = post
    assert not sealing.server.send_waiting()
    assert [path.rpartition("/")[2] for path, _ in sealing.requests] == list("01234")
    answers.clear()
    answers["/manifest"] = 409
    assert not sealing.server.send_waiting()
    first = dict(sealing.requests)
    assert [path.rpartition("/")[2] for path, _ in sealing.requests[5:7]] == ["4", "5"]
    answers.clear()
    sealing.requests.clear()
    assert sealing.server.send_waiting()
    assert dict(sealing.requests) == first


def test_when_a_piece_leaves_nothing_on_disk_tells_how_it_came(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither parts nor buckets: of a message that leaves one copy is there, and none of a report side by side."""
    monkeypatch.setattr(sqlite_shuffler, "MOST_BYTES", 5000)
    sealing = Sealing(str(tmp_path / "shuffler.db"))
    sent: list[bytes] = []

    def made(places: range) -> bytes:
        sent.append(BITS.unsigned(len(places) * CIPHERTEXT_BYTES, 8).tobytes())
        return sent[-1]

    sealing.fill(users=30, messages=20, uploads=30, made=made)
    assert sealing.server.seal_full()
    in_order = [body[at * CIPHERTEXT_BYTES :][: 3 * CIPHERTEXT_BYTES] for body in sent for at in (0, 3, 9)]

    def post(path: str, body: bytes, media: str = "") -> int:
        files = [file.read_bytes() for file in tmp_path.iterdir()]
        # One that begins on a page and ends on another is not found.
        assert max(sum(file.count(one) for file in files) for one in ciphertexts(body)) == 1, "copies on disk"
        assert not any(three in file for three in in_order for file in files), "a report is together on disk"
        tables = {name for (name,) in rows(sealing.server._store, "SELECT name FROM sqlite_master")}
        assert not any(name.startswith(("buckets_", "parts_")) for name in tables)
        return sealing._post(path, body)

    sealing.server._post = lambda path, body, media="": 201 if "manifest" in path else post(path, body)
    assert sealing.server.send_waiting() and len(sealing.pieces()) >= 12
    sealing.server.stop()


# --- what a receiver takes --------------------------------------------------------------------


class Receiving:
    """An analyzer, and one full batch for it in pieces."""

    def __init__(self, address: str) -> None:
        self.key = PrivateKey.generate()
        self.store = open_analyzer_store(address)
        self.server = AnalyzerServer(self.store, key=self.key, opener=OpenerHere(self.key))
        self.task = small_task(self.key.public, users=24, shufflers=3)
        self.server.add_task(self.task.text)
        bits = RandomBits.secure()
        seats = [self.task.routing.batches_of(position) for position in range(24)]
        self.batch = max(seats[0], key=lambda batch: batch.size)
        mine = [seat for seat in seats if self.batch.batch_id in {batch.batch_id for batch in seat}]
        made = [made_report(self.task, seat, bits=bits) for seat in mine]
        assert len(made) == self.batch.size
        self.sealed = [one for report in made for one in report.pieces[self.batch.batch_id]]
        self.ones = sum(report.ones[self.batch.batch_id] for report in made)

    def cut(self, most: int = 5) -> list[bytes]:
        return [b"".join(self.sealed[at : at + most]) for at in range(0, len(self.sealed), most)]

    def give(self, number: int, body: bytes) -> bool:
        return self.server.take_piece(self.task.id, self.batch.batch_id, number, body)

    def declare(self, manifest: Manifest) -> bool:
        return self.server.take_manifest(self.task.id, self.batch.batch_id, manifest)

    def take_all(self) -> list[bytes]:
        """The whole batch in pieces of four messages, and its manifest."""
        pieces = self.cut(4)
        for number, piece in enumerate(pieces):
            assert self.give(number, piece)
        assert self.declare(manifest_of(pieces))
        return pieces

    def whole(self) -> bool:
        return self.server.deliver(self.task.id, self.batch.batch_id, b"".join(self.sealed))

    def total(self) -> Any:
        key = (self.task.id, [self.batch.batch_id])
        return self.store.read(lambda records: records.totals(*key)).get(self.batch.batch_id)


def manifest_of(pieces: list[bytes]) -> Manifest:
    sending = Sending()
    for piece in pieces:
        sending.add(piece)
    return sending.manifest()


@pytest.fixture
def receiving(store_address: Callable[[str], str]) -> Iterator[Receiving]:
    made = Receiving(store_address("analyzer"))
    yield made
    made.server.stop()


def refused(act: Callable[[], Any]) -> str:
    with pytest.raises(RefusedError) as found:
        act()
    return found.value.kind.name


def test_pieces_become_a_batch_when_the_manifest_fits(receiving: Receiving) -> None:
    pieces = receiving.cut()
    manifest = manifest_of(pieces)
    # In any order, each again and again; and the manifest too early.
    for number in reversed(range(1, len(pieces))):
        assert receiving.give(number, pieces[number]) and not receiving.give(number, pieces[number])
    assert refused(lambda: receiving.declare(manifest)) == "pieces-missing"
    assert receiving.server.read_all() == 0 and receiving.server.progress(receiving.task.id).batches_received == 0
    assert receiving.give(0, pieces[0])
    other = manifest_of([*pieces[:-1], pieces[-1][::-1]])
    assert refused(lambda: receiving.declare(other)) == "batch-differs"
    assert receiving.declare(manifest) and not receiving.declare(manifest) and not receiving.give(0, pieces[0])
    assert refused(lambda: receiving.declare(other)) == "batch-differs"
    # However it travels, it is known by its bytes.
    assert not receiving.whole()
    progress = receiving.server.progress(receiving.task.id)
    assert (progress.batches_received, progress.batches_read) == (1, 0)
    assert receiving.server.read_all() == 1
    total = receiving.total()
    coins = getattr(receiving.task.plan.mechanism(receiving.batch.size), "coins", 0)
    assert (total.total, total.void, total.dropped) == (receiving.ones - coins // 2, False, 0)
    progress = receiving.server.progress(receiving.task.id)
    assert (progress.batches_received, progress.batches_read) == (1, 1)
    assert not receiving.declare(manifest) and not receiving.whole() and receiving.server.read_all() == 0


def test_a_batch_that_was_delivered_whole_is_not_taken_again_in_pieces(receiving: Receiving) -> None:
    pieces = receiving.cut()
    assert receiving.whole() and not receiving.give(0, pieces[0]) and not receiving.declare(manifest_of(pieces))


def test_wrong_pieces_are_refused_and_change_nothing(receiving: Receiving) -> None:
    pieces = receiving.cut()
    assert receiving.give(0, pieces[0])
    assert refused(lambda: receiving.give(0, pieces[1])) == "batch-differs"
    assert refused(lambda: receiving.give(1, pieces[1][:-1])) == "report-length"
    assert refused(lambda: receiving.give(1, b"")) == "report-length"
    assert refused(lambda: receiving.give(10**9, pieces[1])) == "report-length"
    too_much = b"".join(receiving.sealed)
    assert refused(lambda: receiving.give(1, too_much)) == "report-length"
    short = manifest_of(pieces[:1])
    assert refused(lambda: receiving.declare(short)) == "report-length"
    assert refused(lambda: receiving.server.take_piece(receiving.task.id, "7.0.1", 0, pieces[0])) == "batch-unknown"
    for number, piece in enumerate(pieces):
        receiving.give(number, piece)
    assert receiving.declare(manifest_of(pieces)) and receiving.server.read_all() == 1


def test_a_manifest_of_very_many_pieces_is_refused_without_counting_to_them(receiving: Receiving) -> None:
    """A sender that lies about one number must not take the receiver's memory."""
    pieces = receiving.cut()
    for number, piece in enumerate(pieces):
        receiving.give(number, piece)
    manifest = manifest_of(pieces)
    assert refused(lambda: receiving.declare(replace(manifest, pieces=1 << 49))) == "pieces-missing"
    assert receiving.declare(manifest)


def test_a_batch_has_only_so_many_pieces(receiving: Receiving, monkeypatch: pytest.MonkeyPatch) -> None:
    """A batch that is cut into single messages would be a list of all of them in memory."""
    sizes = BatchSizes()
    largest = -(-LARGEST_BATCH_BYTES // sizes.bucket) * (sizes.bucket // sizes.piece + 2)
    assert largest <= delivery.MOST_PIECES, "the largest batch of a shuffler of ours must have fewer"
    monkeypatch.setattr(delivery, "MOST_PIECES", 3)
    pieces = receiving.cut(1)
    assert all(receiving.give(number, piece) for number, piece in enumerate(pieces[:3]))
    assert refused(lambda: receiving.give(3, pieces[3])) == "report-length"


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"version": 2}', '{"version": 1, "pieces": 1, "bytes": true}'])
def test_what_is_no_manifest_is_refused(text: str) -> None:
    with pytest.raises(RefusedError, match=r"manifest.*: (use|send) "):
        Manifest.from_text(text)


def test_pieces_of_bodies_that_were_cut_elsewhere_are_whole_ciphertexts() -> None:
    whole = bytes(range(256)) * 50
    for step in (1, 7, 100, 5000):
        cut = list(recut([whole[at : at + step] for at in range(0, len(whole), step)], 100))
        assert b"".join(cut) == whole and all(len(piece) % 100 == 0 for piece in cut)


def test_sizes_that_the_next_hop_refuses_are_refused() -> None:
    with pytest.raises(ParameterError, match=r"piece must lie in 77\.\.1048576"):
        BatchSizes(piece=LARGEST_PIECE_BYTES + 1)


# --- opening ----------------------------------------------------------------------------------


def test_a_piece_is_given_to_one_at_a_time_and_counted_once() -> None:
    now = [0.0]
    openings = Openings(bits=RandomBits.secure(), clock=lambda: now[0], seconds=10)
    written: list[str] = []
    openings.begin("t", "b", 3, {0: b"", 1: b""})
    first, second = openings.take(), openings.take()
    assert first and second and openings.take() is None and {first.piece, second.piece} == {0, 1}
    openings.count(second.lease, lambda: written.append("second"))
    assert refused(lambda: openings.count(second.lease, lambda: written.append("again"))) == "lease-lost"
    now[0] = 10.0
    # The first was too slow: another has its piece, and its answer is refused.
    other = openings.take(is_local=True)
    assert other and other.piece == first.piece and other.lease != first.lease
    assert refused(lambda: openings.count(first.lease, lambda: written.append("late"))) == "lease-lost"
    assert not openings.give_back(first.lease) and openings.give_back(other.lease) and not openings.is_done
    last = openings.take(is_local=True)
    now[0] = 1e9
    assert last and openings.take() is None
    openings.count(last.lease, lambda: written.append("first"))
    assert openings.is_done and written == ["second", "first"]


def test_a_result_that_was_not_written_is_not_counted() -> None:
    openings = Openings(bits=RandomBits.secure())
    openings.begin("t", "b", 3, {0: b""})
    lease = openings.take()
    assert lease

    def full() -> None:
        raise OSError("no room")

    with pytest.raises(OSError, match="no room"):
        openings.count(lease.lease, full)
    assert not openings.is_done and openings.held(lease.lease) is lease


@pytest.mark.parametrize("together", [2 << 20, 3])
def test_copies_are_found_whatever_part_of_the_ids_is_in_memory(together: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(results, "IDS_TOGETHER", together)
    bits, choice = RandomBits.secure(), np.random.default_rng(53)
    names = [bits.unsigned(16, 8).tobytes() for _ in range(40)]
    # Two that begin alike are two.
    names += [names[0][:8] + bytes(8), bytes(8) + names[0][8:]]
    for _ in range(20):
        pieces = [list(dict.fromkeys(choice.choice(len(names), 12).tolist())) for _ in range(6)]
        ids = [(number, b"".join(names[at] for at in piece)) for number, piece in enumerate(pieces)]
        found = copies_among(partial(iter, ids), sum(map(len, pieces)), bits=bits)
        expected: dict[int, set[bytes]] = {}
        seen: set[int] = set()
        for number, piece in enumerate(pieces):
            if again := {names[at] for at in piece if at in seen}:
                expected[number] = again
            seen |= set(piece)
        got = {number: {each[at : at + 16] for at in range(0, len(each), 16)} for number, each in found.items()}
        assert got == expected


def test_a_result_is_the_same_after_a_journey_and_nonsense_is_refused(receiving: Receiving) -> None:
    plan, size = receiving.task.plan, receiving.batch.size
    plain, unopened = (
        OpenerHere(receiving.key).start(receiving.cut(7)[0], receiving.task.id, receiving.batch.batch_id).result()
    )
    result = PieceResult.of(plan, size, plain, unopened, is_first=True)
    again = PieceResult.from_bytes(result.to_bytes())
    assert again.to_bytes() == result.to_bytes() and again.tally is not None and result.tally is not None
    assert again.tally.counts.dtype == result.tally.counts.dtype
    again.check(plan, size, 7, is_first=True)
    for wrong in (b"", b"x", result.to_bytes()[:-1], result.to_bytes().replace(b'"version": 1', b'"version": 9')):
        with pytest.raises(DataError, match="result"):
            PieceResult.from_bytes(wrong)
    for others, is_first in ((8, True), (7, False)):
        with pytest.raises(DataError, match="result"):
            again.check(plan, size, others, is_first=is_first)
    with pytest.raises(DataError, match="left out"):
        again.check_without(again.ids[16:32])


def test_a_result_of_impossible_numbers_is_refused(receiving: Receiving) -> None:
    """Kept, they would spoil the sum of all pieces whenever the batch is read: too large for a store or for a bound."""
    plan, size, key = receiving.task.plan, receiving.batch.size, (receiving.task.id, receiving.batch.batch_id)
    plain, _ = OpenerHere(receiving.key).start(receiving.cut(7)[0], *key).result()
    result = PieceResult.of(plan, size, plain, 0, is_first=True)
    assert result.tally is not None and result.malformed == 0
    result.check(plan, size, 7, is_first=True)
    lost = PieceResult.of(plan, size, plain[MESSAGE_BYTES:], 1, is_first=True)
    lost.check(plan, size, 7, is_first=True)
    assert lost.tally is not None
    for wrong in (
        replace(result, malformed=1 << 61),
        replace(result, malformed=1 << 61, tally=None),
        replace(result, tally=replace(result.tally, malformed=1 << 61)),
        replace(lost, tally=replace(lost.tally, messages=7)),
        replace(lost, tally=replace(lost.tally, malformed=0)),
    ):
        with pytest.raises(DataError, match=r"result.*: open the piece again"):
            PieceResult.from_bytes(wrong.to_bytes()).check(plan, size, 7, is_first=True)
    shape = json.dumps(list(result.tally.counts.shape)).encode()
    body = result.to_bytes()[4:].replace(b'"shape": ' + shape, b'"shape": [1e999]')
    with pytest.raises(DataError, match="result"):
        PieceResult.from_bytes((body.index(b"}}") + 2).to_bytes(4) + body)


def test_results_survive_a_restart_and_only_the_rest_is_opened(
    receiving: Receiving, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An analyzer that dies between two pieces opens the others, and none of them twice."""
    pieces = receiving.take_all()
    opened: Counter[bytes] = Counter()
    start = OpenerHere.start

    def watched(self: OpenerHere, body: bytes, *given: str) -> Any:
        opened[body] += 1
        if len(opened) == 3 and opened[body] == 1:
            raise MemoryError("as good as a kill")
        return start(self, body, *given)

    monkeypatch.setattr(OpenerHere, "start", watched)
    with pytest.raises(MemoryError):
        receiving.server.read_all()
    assert receiving.total() is None
    assert receiving.server.read_all() == 1 and sorted(opened.values()) == [1] * (len(pieces) - 1) + [2]
    assert receiving.total().dropped == 0


def test_copies_in_other_pieces_are_dropped_as_in_the_whole(receiving: Receiving) -> None:
    """The first of each id stays, in whichever pieces its copies are; pieces that have none are opened once."""
    receiving.sealed[-1], receiving.sealed[8], receiving.sealed[9] = (receiving.sealed[at] for at in (0, 1, 2))
    receiving.take_all()
    assert receiving.server.read_all() == 1
    whole = open_here(receiving.key, b"".join(receiving.sealed), receiving.task.id, receiving.batch.batch_id)
    size = receiving.batch.size
    expected = receiving.task.plan.mechanism(size).read(tally_of(receiving.task.plan, size, whole, size))
    assert whole.malformed == 3 and (receiving.total().total, receiving.total().dropped) == expected


def test_on_postgresql_nothing_of_a_large_batch_is_left(postgresql: Server, tmp_path: Path) -> None:
    """When its first piece leaves, the keys of parts and buckets are destroyed; when it has left, so is the last."""
    schema, keys = postgresql.new_schema(), tmp_path / "batch keys"
    sealing = Sealing(postgresql.address(keys, schema))
    sealing.fill(users=30, messages=20, uploads=3)
    kept: list[int] = []

    def post(path: str, body: bytes, media: str = "") -> int:
        kept.append(len(list(keys.iterdir())))
        return 201

    sealing.server._post = post
    sealing.server._seal_and_send()
    # The store's own key, and while it is sent the key of its pieces.
    assert set(kept) == {2} and len(kept) > 10 and len(list(keys.iterdir())) == 1
    sealing.server.stop()


def test_pieces_that_are_read_are_deleted_also_after_a_kill(
    receiving: Receiving, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A process that dies after the total and before the pieces are gone leaves them to the next one."""
    receiving.take_all()

    def dies(*_: Any) -> None:
        raise MemoryError("as good as a kill")

    drop = receiving.server._drop_pieces
    monkeypatch.setattr(receiving.server, "_drop_pieces", dies)
    with pytest.raises(MemoryError):
        receiving.server.read_all()
    total = receiving.total()
    assert total is not None
    monkeypatch.setattr(receiving.server, "_drop_pieces", drop)
    assert receiving.server.read_all() == 0 and receiving.total() == total
    counts = [f"SELECT COUNT(*) FROM {name}" for name in ("pieces", "incoming")]
    left = receiving.store.read(lambda records: [records.db.execute(query).fetchone()[0] for query in counts])
    assert left == [0, 0]


# --- a full disk ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("role", "statement"),
    [
        ("shuffler", "INSERT INTO buckets_"),
        ("shuffler", "INSERT INTO pieces_"),
        ("analyzer", "INSERT INTO pieces"),
        ("analyzer", "INSERT OR REPLACE INTO results"),
        ("analyzer", "INSERT INTO batches"),
        ("analyzer", "UPDATE incoming"),
    ],
)
def test_a_disk_that_is_full_in_the_middle_loses_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, role: str, statement: str
) -> None:
    unit = CIPHERTEXT_BYTES
    world = World(tmp_path / "world", sizes=BatchSizes(whole=0, piece=4 * unit, dealt=9 * unit, bucket=7 * unit))
    task = small_task(world.key.public, users=24)
    world.add_task(task)
    seats = world.shuffler.take_seats(task.id, 24).result(timeout=10)
    made = [made_report(task, seat.batches, bits=world.bits) for seat in seats]
    reports = [SentReport(world.new_id(), seat.seat, each.body) for seat, each in zip(seats, made, strict=True)]
    assert all(answer.new for answer in accept_reports(world.shuffler, task.id, reports).result(timeout=10))
    writer, seen = world.writers[role], [0]
    execute = writer.execute

    def full(words: str, *given: Any) -> Any:
        seen[0] += words.startswith(statement)
        if words.startswith(statement) and seen[0] > 1:
            raise sqlite3.OperationalError("database or disk is full")
        return execute(words, *given)

    monkeypatch.setattr(writer, "execute", full)
    with suppress(RefusedError):
        world.shuffler.seal_full()
    with suppress(RefusedError):
        world.shuffler.send_waiting()
    with suppress(RefusedError):
        world.analyzer.read_all()
    assert seen[0] > 1
    monkeypatch.undo()
    assert world.shuffler.seal_full() and world.shuffler.send_waiting()
    world.analyzer.read_all()
    totals = {row[1]: row[4:] for row in SqliteLook().read(world.stores["analyzer"])}
    for batch_id, (total, dropped, void) in totals.items():
        coins = getattr(task.plan.mechanism(_size(task, batch_id)), "coins", 0)
        ones = sum(each.ones.get(batch_id, 0) for each in made)
        assert (json.loads(total), dropped, void) == (ones - coins // 2, 0, 0)
    assert len(totals) == world.shuffler.counts(task.id)["batches_sent"] > 5
    world.close()


def _size(task: Task, batch_id: str) -> int:
    place = task.routing.find(batch_id)
    assert place is not None
    return task.routing.schedule.batch_users(place[1], place[2])


# --- older stores -----------------------------------------------------------------------------


_BEFORE = {
    "shuffler": "ALTER TABLE batches DROP COLUMN buckets_shelf, DROP COLUMN buckets_key; "
    "DROP TABLE received, incoming, redeemed, held",
    "analyzer": "DROP TABLE incoming, pieces",
}


@pytest.mark.parametrize("role", _BEFORE)
def test_a_store_of_the_version_before_is_migrated_with_what_waits_in_it(
    postgresql: Server, tmp_path: Path, role: str
) -> None:
    schema = postgresql.new_schema()
    address = postgresql.address(tmp_path / "keys", schema)
    opened = {"shuffler": open_shuffler_store, "analyzer": open_analyzer_store}[role]
    body = bytes(CIPHERTEXT_BYTES)
    with closing(opened(address)) as store:
        store.write(lambda records: records.add_task("t", "{}"))
        if role == "analyzer":
            store.write(lambda records: records.add_batch("t", "1.0.1", "d" * 64, body))
        else:
            store.write(lambda records: records.keep("t", [], [], [BatchPart("1.0.1", 0, 1, 1, body)]))
    with postgresql.connect(schema) as db:
        db.execute(_BEFORE[role])
        db.execute("DELETE FROM migrations WHERE number >= 2")
    with pytest.raises(DataError, match="store migrate"):
        opened(address)
    assert migrate_store(address) == (role, 1, max(files_of(role)))
    with closing(opened(address)) as store:
        if role == "analyzer":
            assert store.read(lambda records: records.unread(10)) == [("t", "1.0.1")]
            assert store.read(lambda records: records.body("t", "1.0.1")) == body
        else:
            assert store.read(lambda records: records.full_bytes("t", "1.0.1")) == len(body)
            assert store.read(lambda records: records.parts("t", "1.0.1")) == [body]


def test_an_analyzers_file_of_the_version_before_goes_on(tmp_path: Path) -> None:
    """It has no tables for pieces: they are made when a server opens it, beside a batch that waits to be read."""
    path = tmp_path / "analyzer.db"
    with closing(open_analyzer_store(path)) as store:
        store.write(lambda records: records.add_batch("t", "1.0.1", "d" * 64, bytes(CIPHERTEXT_BYTES)))
        for table in ("incoming", "pieces", "results"):
            store.write(lambda records, table=table: records.db.execute(f"DROP TABLE {table}"))
    with closing(open_analyzer_store(path)) as store:
        assert store.read(lambda records: records.unread(10)) == [("t", "1.0.1")]
        assert store.read(lambda records: records.pieces("t", "1.0.1")) is None
