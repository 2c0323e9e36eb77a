"""Many users' reports at once: randomized together, array by array, and encrypted message by message.

The law is `Task.report`'s: every user's value is randomized for exactly the batches of its own seat. Only the calls
are fewer: one a batch instead of one a user.
"""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from itertools import islice
from typing import Any

import numpy as np

from shuffledp.continual.plan import CounterPlan
from shuffledp.errors import DataError, RandomnessError
from shuffledp.messages import Reports
from shuffledp.randomness import RandomBits
from shuffledp.sampling.permutation import uniform_permutation
from shuffledp.service.crypto import binding
from shuffledp.service.routing import SeatInBatch
from shuffledp.service.task import Task
from shuffledp.service.wire import pack_messages


def make_reports(task: Task, values: Any, seats: Sequence[tuple[SeatInBatch, ...]], *, bits: RandomBits) -> list[bytes]:
    """A report for each value, as `Task.encode` gives them, and the batches of its seat.

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
    bodies: list[dict[str, bytes]] = [{} for _ in seats]
    plan = task.plan
    if isinstance(plan, CounterPlan):
        runs = _counter_runs(plan, values, seats, bits)
    else:
        runs = iter([(range(len(seats)), seats[0][0], plan.mechanism(plan.users).randomize(values, 0, bits=bits))])
    for places, batch, reports in runs:
        for place, sealed in zip(places, _sealed(task, batch, reports, bits), strict=True):
            bodies[place][batch.batch_id] = sealed
    return [b"".join(body[batch.batch_id] for batch in seat) for body, seat in zip(bodies, seats, strict=True)]


def _counter_runs(
    plan: CounterPlan, values: Any, seats: Sequence[tuple[SeatInBatch, ...]], bits: RandomBits
) -> Iterator[tuple[Sequence[int], SeatInBatch, Reports]]:
    # Rounded once: all of a user's batches get the same steps.
    steps = plan.domain.to_steps(plan.domain.check_values(values), bits=bits)
    members: defaultdict[str, list[tuple[int, SeatInBatch]]] = defaultdict(list)
    for place, seat in enumerate(seats):
        for batch in seat:
            members[batch.batch_id].append((place, batch))
    for of_one_batch in members.values():
        for run in _runs(sorted(of_one_batch, key=lambda member: member[1].seat)):
            places, first = [place for place, _ in run], run[0][1]
            yield places, first, plan.mechanism(first.size).randomize(steps[places], first.seat, bits=bits)


def _runs(members: list[tuple[int, SeatInBatch]]) -> Iterator[list[tuple[int, SeatInBatch]]]:
    """Parts in which seats follow each other."""
    start = 0
    for end in range(1, len(members) + 1):
        if end == len(members) or members[end][1].seat != members[end - 1][1].seat + 1:
            yield members[start:end]
            start = end


def _sealed(task: Task, batch: SeatInBatch, reports: Reports, bits: RandomBits) -> Iterator[bytes]:
    """Each user's ciphertexts for one batch: its messages, and as many that only fill up as are missing."""
    sizes = reports.sizes.tolist()
    if max(sizes) > batch.messages:
        problem = f"must be at most {batch.messages}"
        raise DataError("messages", max(sizes), problem, "the plan and the routing disagree")
    made, total = reports.payloads.size, len(sizes) * batch.messages
    if made:
        packed_together = pack_messages(reports.payloads, reports.labels, total, bits=bits)
    else:
        # Where messages are as many as ones, users may have none; something must be packed, and is left out again.
        packed_together = pack_messages(np.zeros(1, dtype=np.uint8), None, total + 1, bits=bits)[1:]
    counted, fillers = iter(packed_together[:made]), iter(packed_together[made:])
    packed = [
        message for size in sizes for message in (*islice(counted, size), *islice(fillers, batch.messages - size))
    ]
    # Each user's in random order: a message's place must not say whether it is a value, a coin or a filler.
    mixed = uniform_permutation(total, bits=bits)
    packed = [packed[place] for place in mixed[np.argsort(mixed // batch.messages, kind="stable")]]
    sealed = task.public_key.seal(packed, binding(task.id, batch.batch_id))
    for start in range(0, len(sealed), batch.messages):
        yield b"".join(sealed[start : start + batch.messages])
