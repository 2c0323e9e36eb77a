"""The shuffler's rules on its real store, one at a time: full batches only, one report a seat, retries are known."""

import json
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from harness.world import accept_reports, batch_rows
from shuffledp.randomness import RandomBits
from shuffledp.service.problems import RefusedError
from shuffledp.service.routing import Routing
from shuffledp.service.shuffler.desk import Accepted
from shuffledp.service.shuffler.server import ShufflerServer
from shuffledp.service.store import open_shuffler_store
from shuffledp.service.wire import CIPHERTEXT_BYTES, SentReport, new_id

BITS = RandomBits.seeded(61)
USERS = 12


class Shuffling:
    """A shuffler with one task of one batch, a message a user."""

    def __init__(self, address: str) -> None:
        self.sent: list[bytes] = []
        store = open_shuffler_store(address)
        self.server = ShufflerServer(store, post=lambda path, body: self.sent.append(body) or 201)
        routing = Routing(users=USERS, budget=1, shufflers=1, slot_users=USERS, every_slot=False, messages={USERS: 1})
        self.task_id, _ = self.server.add_task(json.dumps({"routing": routing.document()}))
        self.batch_id = routing.batches_of(0)[0].batch_id

    def reports(self, count: int) -> list[SentReport]:
        seats = self.server.take_seats(self.task_id, count).result(timeout=30)
        assert len(seats) == count
        return [SentReport(new_id(bits=BITS), seat.seat, body_of(place)) for place, seat in enumerate(seats)]

    def accept(self, *reports: SentReport) -> list[Accepted | str]:
        answers = accept_reports(self.server, self.task_id, list(reports)).result(timeout=30)
        return [answer.kind.name if isinstance(answer, RefusedError) else answer for answer in answers]


def body_of(place: int) -> bytes:
    return bytes([place]) * CIPHERTEXT_BYTES


@pytest.fixture
def shuffling(store_address: Callable[[str], str]) -> Iterator[Shuffling]:
    made = Shuffling(store_address("shuffler"))
    yield made
    made.server.stop()


NEW, KNOWN = Accepted(new=True), Accepted(new=False)


def test_a_batch_that_misses_one_report_stays(shuffling: Shuffling) -> None:
    """However often the chores come by, and though it is asked for by its name."""
    reports = shuffling.reports(USERS)
    assert shuffling.accept(*reports[:-1]) == [NEW] * (USERS - 1)
    server = shuffling.server
    key = (shuffling.task_id, shuffling.batch_id)
    assert server._store.read(lambda records: server.desk.full_batch(records, *key)) == b""
    assert server._store.write(lambda records: server.desk.seal(records, *key, [memoryview(b"")]))
    assert server.seal_full() and server.send_waiting() and shuffling.sent == []
    assert server.counts(shuffling.task_id)["batches_open"] == 1
    assert shuffling.accept(reports[-1]) == [NEW]
    assert server.seal_full() and server.send_waiting()
    [body] = shuffling.sent
    assert sorted(body[::CIPHERTEXT_BYTES]) == list(range(USERS))


def test_one_seat_is_used_once_in_an_upload(shuffling: Shuffling) -> None:
    """Two reports for one seat, under two ids, in one upload and in the next: the first is kept."""
    [report] = shuffling.reports(1)
    other = replace(report, report_id=new_id(bits=BITS), body=body_of(99))
    assert shuffling.accept(report, other) == [NEW, "seat-gone"]
    assert shuffling.accept(other) == ["seat-gone"]
    assert shuffling.server.counts(shuffling.task_id)["reports"] == 1


def test_one_report_twice_in_an_upload_is_kept_once(shuffling: Shuffling) -> None:
    [report] = shuffling.reports(1)
    assert shuffling.accept(report, report) == [NEW, KNOWN] and shuffling.accept(report) == [KNOWN]
    assert shuffling.server.counts(shuffling.task_id)["reports"] == 1


def test_a_seat_is_known_by_all_of_its_id(shuffling: Shuffling) -> None:
    """Its position is no secret; the rest of it is, and must be right."""
    [report] = shuffling.reports(1)
    for place in range(12, 32):
        wrong = report.seat[:place] + f"{int(report.seat[place], 16) ^ 1:x}" + report.seat[place + 1 :]
        assert shuffling.accept(replace(report, seat=wrong)) == ["seat-gone"]
    assert shuffling.accept(report) == [NEW]


def test_a_retry_is_known_though_there_is_no_room(shuffling: Shuffling) -> None:
    """Its client would randomize again, or wait for ever, for a report that is kept."""
    first, second = shuffling.reports(2)
    assert shuffling.accept(first) == [NEW]
    shuffling.server.desk = replace(shuffling.server.desk, has_room=lambda: False)
    assert shuffling.accept(first, second) == [KNOWN, "no-room"]
    shuffling.server.desk = replace(shuffling.server.desk, has_room=lambda: True)
    assert shuffling.accept(first, second) == [KNOWN, NEW]


@pytest.mark.parametrize("change", [-CIPHERTEXT_BYTES, -1, 1, CIPHERTEXT_BYTES])
def test_a_report_of_another_length_is_refused_alone(shuffling: Shuffling, change: int) -> None:
    """Longer or shorter by a byte or by a message: beside it others are kept, and no message is torn apart."""
    reports = shuffling.reports(USERS)
    wrong = replace(reports[3], body=(reports[3].body * 2)[: CIPHERTEXT_BYTES + change])
    answers = shuffling.accept(*reports[:3], wrong, *reports[4:])
    assert answers == [NEW] * 3 + ["report-length"] + [NEW] * (USERS - 4)
    assert shuffling.accept(reports[3]) == [NEW]
    assert shuffling.server.seal_full() and shuffling.server.send_waiting()
    [body] = shuffling.sent
    assert sorted(body[at : at + CIPHERTEXT_BYTES] for at in range(0, len(body), CIPHERTEXT_BYTES)) == [
        body_of(place) for place in range(USERS)
    ]


def test_nothing_is_left_of_a_batch_that_was_sent(tmp_path: Path) -> None:
    """Neither its parts nor its pieces: not in the tables, and not in the file."""
    shuffling = Shuffling(str(tmp_path / "shuffler.db"))
    assert shuffling.accept(*shuffling.reports(USERS)) == [NEW] * USERS
    server = shuffling.server
    assert server.seal_full() and server.send_waiting() and len(shuffling.sent) == 1
    for kind in ("parts", "pieces"):
        assert batch_rows(server._store, kind) == []
    files = [file.read_bytes() for file in server._store.path.parent.iterdir()]
    assert not any(body_of(place) in file for place in range(1, USERS) for file in files)
    server.stop()


def test_each_level_of_a_report_goes_into_its_own_batch(store_address: Callable[[str], str]) -> None:
    """Two levels, every message marked with its batch: a batch holds its own, and all of it."""
    messages = {10: 3, 20: 2, 30: 2}
    routing = Routing(users=60, budget=2, shufflers=2, slot_users=10, every_slot=False, messages=messages)
    sent: dict[str, bytes] = {}
    server = ShufflerServer(
        open_shuffler_store(store_address("levels")),
        post=lambda path, body: sent.update({path.rpartition("/")[2]: body}) or 201,
    )
    task_id, _ = server.add_task(json.dumps({"routing": routing.document()}))
    names = sorted({batch.batch_id for position in range(60) for batch in routing.batches_of(position)})
    expected: dict[str, list[bytes]] = {name: [] for name in names}
    for start in range(0, 60, 20):
        reports = []
        for position, seat in enumerate(server.take_seats(task_id, 20).result(timeout=30), start):
            assert seat.batches == routing.batches_of(position)
            pieces = [
                bytes([position, names.index(batch.batch_id), number]) + bytes(CIPHERTEXT_BYTES - 3)
                for batch in seat.batches
                for number in range(batch.messages)
            ]
            for piece in pieces:
                expected[names[piece[1]]].append(piece)
            reports.append(SentReport(new_id(bits=BITS), seat.seat, b"".join(pieces)))
        accept_reports(server, task_id, reports).result(timeout=30)
    assert server.seal_full() and server.send_waiting()
    server.stop()
    got = {
        name: sorted(body[at : at + CIPHERTEXT_BYTES] for at in range(0, len(body), CIPHERTEXT_BYTES))
        for name, body in sent.items()
    }
    assert got == {name: sorted(pieces) for name, pieces in expected.items()}
