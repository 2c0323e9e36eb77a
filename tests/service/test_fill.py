"""How full batches are: in tenths of a grid on the clock, never exactly, and only while somebody asks."""

import json
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import pairwise
from typing import Any

import pytest

from harness.world import accept_reports
from shuffledp.errors import DataError
from shuffledp.randomness import RandomBits
from shuffledp.service.fill import EVERY_SECONDS, Fill
from shuffledp.service.problems import RefusedError
from shuffledp.service.routing import Routing
from shuffledp.service.shuffler import filling
from shuffledp.service.shuffler.filling import LEAST_PEOPLE, Fills, tenths, tenths_by_level
from shuffledp.service.shuffler.server import ShufflerServer
from shuffledp.service.store import open_shuffler_store
from shuffledp.service.store.contract import BatchFill
from shuffledp.service.wire import CIPHERTEXT_BYTES, SentReport, new_id

BITS = RandomBits.seeded(23)
SLOT = 100
SIZES = dict.fromkeys((SLOT, 2 * SLOT, 3 * SLOT), 1)
ROUTING = Routing(users=6 * SLOT, budget=2, shufflers=2, slot_users=SLOT, every_slot=False, messages=SIZES)
START = 1_000_000_000.0


class Filling:
    """A shuffler with a task of two levels, on a clock that tests move."""

    def __init__(self, address: str) -> None:
        self.now = START + 3.7
        self.server = ShufflerServer(
            open_shuffler_store(address), post=lambda path, body: 201, clock=lambda: self.now, lease_seconds=1e6
        )
        self.task_id, _ = self.server.add_task(json.dumps({"routing": ROUTING.document()}))

    def come(self, people: int) -> None:
        """So many more people report."""
        seats = self.server.take_seats(self.task_id, people).result(timeout=30)
        sent = [SentReport(new_id(bits=BITS), seat.seat, bytes(len(seat.batches) * CIPHERTEXT_BYTES)) for seat in seats]
        answers = accept_reports(self.server, self.task_id, sent).result(timeout=30)
        assert len(answers) == people and all(getattr(answer, "new", False) for answer in answers)

    def at(self, seconds: float) -> tuple[int | None, ...]:
        """What is answered so long after the start, where the shuffler looks at its clock as often as it likes."""
        self.now = START + seconds
        self.server.fills.renew()
        return self.server.fills.of(self.task_id).tenths


@pytest.fixture
def shuffling(store_address: Callable[[str], str]) -> Iterator[Filling]:
    made = Filling(store_address("shuffler"))
    yield made
    made.server.stop()


def test_it_is_known_of_points_of_the_grid_only_whenever_somebody_asks(shuffling: Filling) -> None:
    """Between two points people come, somebody asks, and nothing moves."""
    shuffling.come(49)
    assert shuffling.at(3.7) == shuffling.at(9.9) == (None, None)
    assert shuffling.at(10.0) == (4, 1)
    shuffling.come(31)
    for seconds in (10.0, 10.001, 14.9, 19.999):
        assert shuffling.at(seconds) == (4, 1), seconds
    assert shuffling.at(20.0) == (8, 2)
    # The first batch of level 1 is full, and its next one begun: that is the newest.
    shuffling.come(25)
    assert shuffling.at(29.9) == (8, 2) and shuffling.at(30.0) == (0, 3)
    shuffling.come(94)
    assert shuffling.at(40.0) == (9, 6)
    shuffling.come(101)
    assert shuffling.at(50.0) == (10, 10)
    assert shuffling.server.seal_full()
    assert shuffling.at(60.0) == (0, 0)


def test_what_nobody_asks_about_is_not_looked_at_and_forgotten(shuffling: Filling) -> None:
    looks = []
    read = shuffling.server._store.read
    shuffling.server.fills._store = type("Seen", (), {"read": lambda _, work: looks.append(1) or read(work)})()
    for seconds in range(0, 100, 10):
        shuffling.now = START + seconds
        shuffling.server.fills.renew()
    assert not looks
    shuffling.come(50)
    assert shuffling.at(101) == (None, None) and shuffling.at(110) == (5, 1) and len(looks) == 1
    for seconds in range(120, 300, 10):
        shuffling.now = START + seconds
        shuffling.server.fills.renew()
    # Looked at for a minute more; what was known is nobody's answer later.
    assert len(looks) == 7 and shuffling.at(301) == (None, None)


def test_all_batches_that_are_not_sealed_are_open(shuffling: Filling) -> None:
    def found() -> list[BatchFill]:
        batches = shuffling.server._store.read(lambda records: records.open_batches(shuffling.task_id))
        return sorted(batches, key=lambda batch: batch.batch_id)

    assert found() == []
    shuffling.come(101)
    whole, begun, upper = found()
    assert (whole.reports, whole.size, begun.reports, begun.size) == (100, 100, 1, 100)
    assert (upper.batch_id, upper.reports, upper.size) == ("2.0.3", 101, 300)
    assert shuffling.server.seal_full() and found() == [begun, upper]
    assert shuffling.server.counts(shuffling.task_id)["batches_open"] == 2
    assert shuffling.server._store.read(lambda records: records.open_batches("another")) == []


@pytest.mark.parametrize("size", [1, 2, 19, 20, 37, 49, 50, 99, 100, 101, 255, 10_000])
def test_a_step_is_ten_people_or_more(size: int) -> None:
    """Whatever the size: who watches a number move does not count along."""
    every = [tenths(reports, size) for reports in range(size + 1)]
    assert every == sorted(every) and every[0] == 0 and every[-1] == 10 and 10 not in every[:-1]
    moves = [place for place in range(1, size) if every[place] != every[place - 1]]
    assert all(later - earlier >= LEAST_PEOPLE for earlier, later in pairwise([0, *moves, size])) or not moves
    assert len(set(every)) == (11 if size >= 100 else 6 if size >= 50 else 3 if size >= 20 else 2)
    # Rounded down: it never says more than there is.
    assert all(10 * reports >= said * size for reports, said in enumerate(every))


def test_only_the_routings_own_batches_count() -> None:
    strange = [BatchFill("9.0.1", 50, 100), BatchFill("no batch", 50, 100)]
    assert tenths_by_level(ROUTING, [*strange, BatchFill("1.0.1", 50, 100)]) == (5, 0)


def test_a_later_hop_says_where_to_ask() -> None:
    later = replace(ROUTING, layers=3).at_hop(2)
    with pytest.raises(RefusedError, match="batches come when they are full: ask hop 1") as refused:
        Fills(None, {"a": later}).of("a")  # type: ignore[arg-type]
    assert refused.value.kind.name == "hop-wrong"


class Broken:
    """A store that cannot be read."""

    def read(self, work: Any) -> Any:
        raise OSError("no disk")


def test_a_store_that_cannot_be_read_makes_it_unknown_and_ends_nothing() -> None:
    now = [START]
    fills = Fills(Broken(), {"a": ROUTING}, lambda: now[0])  # type: ignore[arg-type]
    for _ in range(3):
        assert fills.of("a").tenths == (None, None)
        now[0] += EVERY_SECONDS
        fills.renew()


def test_only_so_many_tasks_are_looked_at(monkeypatch: pytest.MonkeyPatch) -> None:
    """Rounds have names that anybody with the token can make up."""
    monkeypatch.setattr(filling, "MOST_WATCHED", 3)
    fills = Fills(Broken(), {str(place): ROUTING for place in range(9)})  # type: ignore[arg-type]
    for place in (0, 1, 2, 3, 4, 2, 5):
        fills.of(str(place))
    assert list(fills._asked) == ["4", "2", "5"]


def test_a_running_shuffler_looks_at_its_grid_by_itself() -> None:
    started = time.monotonic()

    class Empty:
        def read(self, work: Any) -> list[BatchFill]:
            return [BatchFill("2.0.3", 200, 300)]

    # The next point is a twentieth of a second away.
    fills = Fills(Empty(), {"a": ROUTING}, lambda: START + EVERY_SECONDS - 0.05 + time.monotonic() - started)  # type: ignore[arg-type]
    assert fills.of("a").tenths == (None, None)
    fills.start()
    try:
        while fills.of("a").tenths == (None, None):
            assert time.monotonic() - started < EVERY_SECONDS, "nothing was looked at"
            time.sleep(0.01)
        assert fills.of("a").tenths == (0, 6)
    finally:
        fills.stop()


def test_people_and_readers_are_not_told_exact_counts(
    make_service: Callable[..., Any], make_task: Callable[..., Any]
) -> None:
    """A live count tells when people come, and everybody's device has the token for enrol."""
    service = make_service()
    task = service.add(make_task("binary coins"))
    path = f"/v1/tasks/{task.id}"
    service.send(task, [1] * 7)
    shown = {role: service.at("shuffler", role).get(path).json() for role in ("enrol", "read", "admin")}
    assert [role for role, found in shown.items() if "counts" in found] == ["admin"]
    assert shown["admin"]["counts"]["reports"] == 7
    assert shown["enrol"]["routing"] == shown["read"]["routing"] == task.routing.document()
    fill = service.at("shuffler", "read").get(f"{path}/fill").json()
    assert fill == {"version": 1, "task_id": task.id, "every_seconds": 10, "levels": [{"level": 1, "tenths": None}]}
    assert service.at("shuffler", "enrol").get(f"{path}/fill").status_code == 403


@pytest.mark.parametrize("wrong", [None, [], {}, {"version": 2, "levels": []}, {"version": 1, "levels": 3}])
def test_an_answer_of_another_kind_is_refused(wrong: Any) -> None:
    levels = [4, {}, {"tenths": 11}, {"tenths": True}, {"tenths": "4"}, {"tenths": 4.5}]
    for document in (wrong, *({"version": 1, "levels": [each]} for each in levels)):
        with pytest.raises(DataError, match="must be a task's fill in tenths"):
            Fill.from_document(document)
