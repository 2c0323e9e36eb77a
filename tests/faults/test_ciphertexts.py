"""Ciphertexts that were altered, or are for another key, task or batch; and clients that lie. None blocks a batch."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from harness.world import MadeReport, World, accept_one, made_report, report_of, rows, small_task
from shuffledp.continual.plan import CounterPlan
from shuffledp.errors import ParameterError
from shuffledp.privacy import Privacy
from shuffledp.protocols.binary_sum import BinarySum
from shuffledp.protocols.bounded_sum import BoundedSum
from shuffledp.protocols.domains.summed import OneHot
from shuffledp.protocols.vector_sum import VectorSum
from shuffledp.randomness import RandomBits
from shuffledp.service.crypto import PrivateKey, binding
from shuffledp.service.routing import SeatInBatch
from shuffledp.service.task import Task
from shuffledp.service.wire import CIPHERTEXT_BYTES, ID_BYTES, MESSAGE_BYTES, SentReport, pack_messages

Alter = Callable[[int, tuple[SeatInBatch, ...], MadeReport], bytes]


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    made = World(tmp_path / "world")
    yield made
    made.close()


def fill(world: World, task: Task, alter: Alter, make: Callable[..., MadeReport] = made_report) -> list[MadeReport]:
    """Every seat of a task is taken and reported from; then everything is sealed, sent and read."""
    made = []
    for number, seat in enumerate(world.shuffler.take_seats(task.id, task.routing.users).result()):
        made.append(make(task, seat.batches, bits=world.bits))
        body = alter(number, seat.batches, made[-1])
        accept_one(world.shuffler, task.id, SentReport(world.new_id(), seat.seat, body)).result()
    world.shuffler.seal_full()
    assert world.shuffler.send_waiting()
    world.analyzer.read_all()
    assert world.analyzer.progress(task.id).batches_read == world.shuffler.counts(task.id)["batches_sent"] > 0
    return made


def by_the_client(task: Task, batches: tuple[SeatInBatch, ...], *, bits: RandomBits) -> MadeReport:
    """A report as clients make them."""
    return MadeReport(report_of(task, 1, batches, bits=bits), {}, {})


def said(world: World, task: Task) -> dict[str, tuple[int, int, int]]:
    """What each batch said: its total, how many messages were missing, whether it is void."""
    query = "SELECT batch_id, total, dropped, void FROM batches WHERE task_id = ?"
    found = rows(world.stores["analyzer"], query, task.id)
    return {batch_id: (int(total), dropped, void) for batch_id, total, dropped, void in found}


def expected(task: Task, made: list[MadeReport]) -> dict[str, int]:
    """The totals of what was made."""
    sums: dict[str, int] = {}
    for report in made:
        for batch_id, ones in report.ones.items():
            sums[batch_id] = sums.get(batch_id, 0) + ones
    totals = {}
    for batch_id, ones in sums.items():
        place, plan = task.routing.find(batch_id), task.plan
        if place is not None and isinstance(plan, CounterPlan):
            mechanism: Any = plan.mechanism((place[2] - place[1]) * plan.slot_users)
            totals[batch_id] = ones - mechanism.coins // 2
    return totals


def flipped(body: bytes, at: int) -> bytes:
    return body[:at] + bytes([body[at] ^ 1]) + body[at + 1 :]


@pytest.mark.parametrize("at", [0, 31, 32, 50, CIPHERTEXT_BYTES - 1], ids=["key", "key's end", "id", "text", "tag"])
def test_a_flipped_bit_drops_one_message_and_says_so(world: World, at: int) -> None:
    task = small_task(world.key.public)
    world.add_task(task)
    made = fill(world, task, lambda number, _, report: flipped(report.body, at) if number == 4 else report.body)
    totals = expected(task, made)
    hit = next(iter(made[4].pieces))
    for batch_id, (total, dropped, void) in said(world, task).items():
        assert void == 0
        if batch_id == hit:
            assert dropped == 1 and totals[batch_id] - total in (0, 1)
        else:
            assert (total, dropped) == (totals[batch_id], 0)
    releases = world.analyzer.history(task.id, 0, 100)
    assert releases[0]["dropped"] == 0 and releases[-1]["dropped"] == 1
    calm = World(world.folder / "calm", key=world.key)
    calm.add_task(task)
    fill(calm, task, lambda number, _, report: report.body)
    # The error that is published has room for what is missing.
    assert releases[-1]["bound"] > calm.analyzer.history(task.id, 0, 100)[-1]["bound"]
    calm.close()


def test_a_flipped_bit_in_a_share_voids_its_batches_and_no_others(world: World) -> None:
    task = small_task(world.key.public, noise="laplace")
    world.add_task(task)
    assert task.warnings

    def alter(number: int, batches: tuple[SeatInBatch, ...], report: MadeReport) -> bytes:
        return flipped(report.body, 40) if number == 4 else report.body

    fill(world, task, alter, by_the_client)
    void = [batch_id for batch_id, (_, _, is_void) in said(world, task).items() if is_void]
    assert void == [task.routing.batches_of(4)[0].batch_id]
    releases = world.analyzer.history(task.id, 0, 100)
    # Nothing is void until the slot of that user closes, and from then on something is.
    slot = 4 // task.routing.slot_users
    assert slot >= 1 and [release["void"] for release in releases][: slot + 1] == [0] * slot + [1]
    assert releases[slot]["bound"] > releases[slot - 1]["bound"]


def test_messages_to_another_key_are_dropped(world: World) -> None:
    task = small_task(world.key.public)
    world.add_task(task)
    other = small_task(PrivateKey.generate().public)

    def alter(number: int, batches: tuple[SeatInBatch, ...], report: MadeReport) -> bytes:
        messages = [bytes(MESSAGE_BYTES)] * sum(batch.messages for batch in batches)
        return b"".join(other.public_key.seal(messages, binding(task.id, batches[0].batch_id))) if batches else b""

    fill(world, task, alter)
    for batch_id, (_, dropped, void) in said(world, task).items():
        place = task.routing.find(batch_id)
        assert place is not None and void == 0
        assert dropped >= (place[2] - place[1]) * task.routing.slot_users
    with pytest.raises(ParameterError, match="must be this analyzer's"):
        world.analyzer.add_task(other.text)


def test_messages_of_another_task_or_another_batch_are_dropped(world: World) -> None:
    task, other = small_task(world.key.public), small_task(world.key.public)
    world.add_task(task)
    routing = task.routing
    mine = routing.batches_of(5)
    # A place whose report has the same length, in other batches.
    elsewhere = next(
        position
        for position in range(routing.users)
        if routing.report_bytes(position) == routing.report_bytes(5)
        and routing.batches_of(position)[0].batch_id != mine[0].batch_id
    )

    def alter(number: int, batches: tuple[SeatInBatch, ...], report: MadeReport) -> bytes:
        if number == 0:
            return made_report(other, batches, bits=world.bits).body
        if number == 5:
            return made_report(task, task.routing.batches_of(elsewhere), bits=world.bits).body
        return report.body

    fill(world, task, alter)
    found = said(world, task)
    for position in (0, 5):
        batch = task.routing.batches_of(position)[0]
        assert found[batch.batch_id][1] > 0 and found[batch.batch_id][2] == 0
    others = set(found) - {batch.batch_id for position in (0, 5) for batch in task.routing.batches_of(position)}
    assert others and all(found[batch_id][1:] == (0, 0) for batch_id in others)


def test_ones_own_messages_sent_twice_count_once(world: World) -> None:
    task = small_task(world.key.public)
    world.add_task(task)
    first: list[bytes] = []

    def alter(number: int, batches: tuple[SeatInBatch, ...], report: MadeReport) -> bytes:
        first.append(report.body)
        # Positions 0 and 1 are in the same batches.
        return first[0] if number == 1 else report.body

    made = fill(world, task, alter)
    totals = expected(task, [report for number, report in enumerate(made) if number != 1])
    for batch_id in made[0].pieces:
        total, dropped, void = said(world, task)[batch_id]
        assert total == totals[batch_id] and dropped > 0 and not void


def test_a_batch_under_anothers_id_says_nothing(world: World) -> None:
    task = small_task(world.key.public)
    world.add_task(task)
    for seat in world.shuffler.take_seats(task.id, 9).result():
        report = made_report(task, seat.batches, bits=world.bits)
        accept_one(world.shuffler, task.id, SentReport(world.new_id(), seat.seat, report.body)).result()
    world.shuffler.seal_full()
    world.network.fate = lambda: "lost"
    world.shuffler.send_waiting()
    _, batch_id, body = world.network.sent[0]
    twin = next(
        batch.batch_id
        for position in range(task.routing.users)
        for batch in task.routing.batches_of(position)
        if batch.batch_id != batch_id and task.routing.batch_bytes(batch.size) == len(body)
    )
    world.analyzer.deliver(task.id, twin, body)
    world.analyzer.read_all()
    assert said(world, task)[twin][1] > 0


def test_a_client_that_counts_what_should_fill_up_does_not_void_the_batch(world: World) -> None:
    """Coins are dealt out by seat: somebody whose seat has fewer of them says that it has as many as any."""
    task = small_task(world.key.public)
    world.add_task(task)
    liar: list[int] = []

    def alter(number: int, batches: tuple[SeatInBatch, ...], report: MadeReport) -> bytes:
        if not batches or liar:
            return report.body
        sealed = []
        for batch in batches:
            packed = pack_messages(np.ones(batch.messages, dtype=np.uint8), None, batch.messages, bits=world.bits)
            sealed += task.public_key.seal(packed, binding(task.id, batch.batch_id))
        liar.append(number)
        return b"".join(sealed)

    made = fill(world, task, alter)
    totals = expected(task, made)
    for batch in task.routing.batches_of(liar[0]):
        total, dropped, void = said(world, task)[batch.batch_id]
        assert not void, f"one client voided a batch of {batch.size}"
        assert abs(total - totals[batch.batch_id]) <= batch.messages and dropped <= batch.messages


PLANS: dict[str, Callable[[], Any]] = {
    "binary": lambda: BinarySum.plan(users=40, privacy=Privacy(2, 1e-3), method="rr"),
    "coins": lambda: BinarySum.plan(users=40, privacy=Privacy(2, 1e-3), method="coins"),
    "sum": lambda: BoundedSum.plan(users=40, privacy=Privacy(2, 1e-3), low=0.0, high=1.0),
    "vector": lambda: VectorSum.plan(users=40, privacy=Privacy(2, 1e-3), dimension=3, radius=1.0),
    "counter": lambda: CounterPlan.plan(users=24, shufflers=3, privacy=Privacy(8, 0.1), noise="coins"),
    "counter of shares": lambda: CounterPlan.plan(users=24, shufflers=1, privacy=Privacy(8, 0.1), noise="laplace"),
    "histogram": lambda: CounterPlan.plan(
        users=24, shufflers=1, privacy=Privacy(8, 0.1), noise="coins", domain=OneHot(3)
    ),
    "vectors": lambda: CounterPlan.plan_vectors(
        users=24, dimension=3, radius=1.0, shufflers=1, privacy=Privacy(8, 0.1), noise="skellam"
    ),
}


@pytest.mark.parametrize("name", PLANS)
def test_no_message_however_malformed_blocks_the_batches_after_it(world: World, name: str) -> None:
    task = Task.create(PLANS[name](), world.key.public, bits=world.bits, allow_unbounded=True)
    world.add_task(task)
    routing = task.routing
    places = {batch.batch_id: batch for position in range(routing.users) for batch in routing.batches_of(position)}
    draws = np.random.default_rng(5)
    for number, (batch_id, batch) in enumerate(places.items()):
        rows = draws.integers(0, 256, (batch.size * batch.messages, MESSAGE_BYTES), dtype=np.uint8)
        # All numbers; all as large as can be; labels that do not exist; nothing that counts; any kind.
        if number % 5 != 4:
            rows[:, ID_BYTES] = number % 5 != 3
        if number % 5 == 1:
            rows[:, ID_BYTES + 1 :] = 255
        if number % 5 == 2:
            rows[:, ID_BYTES + 5 : -1] = 0
        sealed = world.key.public.seal([row.tobytes() for row in rows], binding(task.id, batch_id))
        world.analyzer.deliver(task.id, batch_id, b"".join(sealed))
    world.analyzer.read_all()
    assert world.analyzer.progress(task.id).batches_read == len(places)
