"""Users' reports: randomized together, batch by batch, and encrypted message by message.

Every user's value is randomized for exactly the batches of its own seat, in one call for all users of a batch whose
seats follow each other: one user is the case of one.
"""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from itertools import islice
from typing import Any

import numpy as np
from numpy.typing import NDArray

from shuffledp.errors import DataError, RandomnessError
from shuffledp.messages import Reports
from shuffledp.randomness import RandomBits
from shuffledp.sampling.permutation import uniform_permutation
from shuffledp.service.expiry import check_not_expired
from shuffledp.service.onion import wrap
from shuffledp.service.routing import SeatInBatch
from shuffledp.service.task import RoundTask, Task
from shuffledp.service.wire import pack_messages


def make_reports(
    task: Task | RoundTask, values: Any, seats: Sequence[tuple[SeatInBatch, ...]], *, bits: RandomBits
) -> list[bytes]:
    """A report for each value: what its device sends.

    Args:
        task: what is asked, and the key to encrypt to.
        values: an entry or a row a user, encoded (`plan.encode`).
        seats: for each user the batches that its seat belongs to.
        bits: where noise, fillers and orders come from.

    Returns:
        The ciphertexts of each user, batch after batch in the seat's order.

    Raises:
        RandomnessError: the bits are not secure.
        ParameterError: a value lies outside the plan's domain, the task has no such seat, or its key has expired.

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
    check_not_expired(task.expires)
    # Drawn once: whatever a user's batches get is of the same draw.
    prepared = task.plan.prepare(values, bits=bits, positions=_positions(task, seats))
    members: defaultdict[str, list[tuple[int, SeatInBatch]]] = defaultdict(list)
    for place, seat in enumerate(seats):
        for batch in seat:
            members[batch.batch_id].append((place, batch))
    bodies: list[dict[str, bytes]] = [{} for _ in seats]
    for of_one_batch in members.values():
        for run in _runs(sorted(of_one_batch, key=lambda member: member[1].seat)):
            places, first = [place for place, _ in run], run[0][1]
            reports = task.plan.mechanism(first.size).randomize(prepared[places], first.seat, bits=bits)
            for place, sealed in zip(places, _sealed(task, first, reports, bits), strict=True):
                bodies[place][first.batch_id] = sealed
    return [b"".join(body[batch.batch_id] for batch in seat) for body, seat in zip(bodies, seats, strict=True)]


def _positions(task: Task | RoundTask, seats: Sequence[tuple[SeatInBatch, ...]]) -> NDArray[np.int64]:
    """Which of the task's users each seat's is."""
    found = [task.routing.position_of(seat) for seat in seats]
    if None in found:
        names = " ".join(batch.batch_id for batch in seats[found.index(None)])
        raise DataError("seat", names or "none", "must be one that the task has", "take a seat of this task")
    return np.array(found, dtype=np.int64)


def _runs(members: list[tuple[int, SeatInBatch]]) -> Iterator[list[tuple[int, SeatInBatch]]]:
    """Parts in which seats follow each other."""
    start = 0
    for end in range(1, len(members) + 1):
        if end == len(members) or members[end][1].seat != members[end - 1][1].seat + 1:
            yield members[start:end]
            start = end


def _sealed(task: Task | RoundTask, batch: SeatInBatch, reports: Reports, bits: RandomBits) -> Iterator[bytes]:
    """Each user's ciphertexts for one batch: its messages, and as many that only fill up as are missing."""
    sizes = reports.sizes.tolist()
    if max(sizes) > batch.messages:
        problem = f"must be at most {batch.messages}"
        raise DataError("messages", max(sizes), problem, "the plan and the routing disagree")
    made, total = reports.payloads.size, len(sizes) * batch.messages
    packed_together = pack_messages(reports.payloads, reports.labels, total, bits=bits)
    counted, fillers = iter(packed_together[:made]), iter(packed_together[made:])
    packed = [
        message for size in sizes for message in (*islice(counted, size), *islice(fillers, batch.messages - size))
    ]
    # Each user's in random order: a message's place must not say whether it is a value, a coin or a filler.
    mixed = uniform_permutation(total, bits=bits)
    packed = [packed[place] for place in mixed[np.argsort(mixed // batch.messages, kind="stable")]]
    sealed = wrap(packed, task.public_key, task.hops, task.id, batch.batch_id)
    for start in range(0, len(sealed), batch.messages):
        yield b"".join(sealed[start : start + batch.messages])
