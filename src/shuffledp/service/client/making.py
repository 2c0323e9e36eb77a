"""Many users' reports at once: randomized together, array by array, and encrypted message by message.

The law is `Task.report`'s: every user's value is randomized for exactly the batches of its own seat. Only the calls
are fewer: one a batch instead of one a user.
"""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from shuffledp.continual.plan import CounterPlan
from shuffledp.errors import RandomnessError
from shuffledp.messages import Payloads, Reports
from shuffledp.randomness import RandomBits
from shuffledp.service.crypto import binding
from shuffledp.service.routing import SeatInBatch
from shuffledp.service.task import Task
from shuffledp.service.wire import pack_messages

Piece = tuple[Payloads, Payloads | None]


def make_reports(task: Task, values: Any, seats: Sequence[tuple[SeatInBatch, ...]], *, bits: RandomBits) -> list[bytes]:
    """A report for each value and the batches of its seat.

    >>> from shuffledp.privacy import Privacy
    >>> from shuffledp.protocols.binary_sum import BinarySum
    >>> from shuffledp.service.crypto import PrivateKey
    >>> plan = BinarySum.plan(users=100, privacy=Privacy(1, 1e-6), method="coins")
    >>> task = Task.create(plan, PrivateKey.generate().public, bits=RandomBits.secure())
    >>> seats = [task.routing.batches_of(position) for position in (0, 1)]
    >>> made = make_reports(task, np.array([0, 1]), seats, bits=RandomBits.secure())
    >>> [len(report) == task.routing.report_bytes(0) for report in made]
    [True, True]
    """
    if not bits.is_secure:
        raise RandomnessError("A client draws its noise from secure bits only: seeded ones protect nobody.")
    pieces = _counter_pieces if isinstance(task.plan, CounterPlan) else _round_pieces
    key = task.public_key
    bodies: list[dict[str, bytes]] = [{} for _ in seats]
    for place, batch, (payloads, labels) in pieces(task, values, seats, bits):
        packed = pack_messages(payloads, labels, batch.messages, bits=bits)
        bodies[place][batch.batch_id] = b"".join(key.seal(packed, binding(task.id, batch.batch_id)))
    return [b"".join(body[batch.batch_id] for batch in seat) for body, seat in zip(bodies, seats, strict=True)]


def _round_pieces(
    task: Task, values: Any, seats: Sequence[tuple[SeatInBatch, ...]], bits: RandomBits
) -> Iterator[tuple[int, SeatInBatch, Piece]]:
    assert not isinstance(task.plan, CounterPlan)
    reports = task.plan.randomize(values, bits=bits)
    for place, ((batch,), piece) in enumerate(zip(seats, _split(reports), strict=True)):
        yield place, batch, piece


def _counter_pieces(
    task: Task, values: Any, seats: Sequence[tuple[SeatInBatch, ...]], bits: RandomBits
) -> Iterator[tuple[int, SeatInBatch, Piece]]:
    plan = task.plan
    assert isinstance(plan, CounterPlan)
    # Rounded once: all of a user's batches get the same steps.
    steps = plan.domain.to_steps(plan.domain.check_values(values), bits=bits)
    members: defaultdict[str, list[tuple[int, SeatInBatch]]] = defaultdict(list)
    for place, seat in enumerate(seats):
        for batch in seat:
            members[batch.batch_id].append((place, batch))
    for of_one_batch in members.values():
        for run in _runs(sorted(of_one_batch, key=lambda member: member[1].seat)):
            first = run[0][1]
            places = [place for place, _ in run]
            reports = plan.mechanism(first.size).randomize(steps[places], first.seat, bits=bits)
            for (place, batch), piece in zip(run, _split(reports), strict=True):
                yield place, batch, piece


def _runs(members: list[tuple[int, SeatInBatch]]) -> Iterator[list[tuple[int, SeatInBatch]]]:
    """Parts in which seats follow each other."""
    start = 0
    for end in range(1, len(members) + 1):
        if end == len(members) or members[end][1].seat != members[end - 1][1].seat + 1:
            yield members[start:end]
            start = end


def _split(reports: Reports) -> Iterator[Piece]:
    ends = np.cumsum(reports.sizes)
    for start, end in zip((ends - reports.sizes).tolist(), ends.tolist(), strict=True):
        yield reports.payloads[start:end], None if reports.labels is None else reports.labels[start:end]
