"""Which report goes into which batch, and when a batch is sealed: no network, no database, no meaning of a message.

Every method runs inside one transaction of the records it is given, so that it happens whole or not at all. A
seat's lease that ran out is deleted before its position is given to somebody else; a report is kept in all its
batches, its seat is gone and its id remembered, in one step; sealing permutes, keeps and deletes in one step.
"""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from shuffledp.randomness import RandomBits
from shuffledp.sampling.permutation import uniform_permutation
from shuffledp.service.clock import Clock
from shuffledp.service.problems import BUSY, SEAT_GONE, TASK_FULL, TASK_UNKNOWN, WRONG_LENGTH, RefusedError
from shuffledp.service.routing import Routing, SeatInBatch
from shuffledp.service.shuffler.records import Lease, Records, SealedBatch
from shuffledp.service.wire import CIPHERTEXT_BYTES, SentReport, new_id

LEASE_SECONDS = 60.0
# New reports are refused while more than this waits to be sent on.
MOST_WAITING_BYTES = 1 << 30


@dataclass(frozen=True, slots=True)
class Seat:
    """A place in one batch of every level, for a while."""

    seat: str
    lease_seconds: float
    batches: tuple[SeatInBatch, ...]


@dataclass(frozen=True, slots=True)
class Accepted:
    """Whether a report was new, and whether it filled a batch."""

    new: bool
    fills: bool


class SeatGoneError(RefusedError):
    """A refusal after which the client may randomize again: what it changed is kept, so that it holds for good."""

    is_kept = True

    def __init__(self) -> None:
        super().__init__(SEAT_GONE, "the seat's lease ran out, and this report was not kept: take a new seat.")


@dataclass(frozen=True)
class Desk:
    """The shuffler's rules."""

    routings: Mapping[str, Routing]
    clock: Clock
    bits: RandomBits
    lease_seconds: float = LEASE_SECONDS
    most_waiting_bytes: int = MOST_WAITING_BYTES

    def routing(self, task_id: str) -> Routing:
        """The task's routing, or a refusal."""
        found = self.routings.get(task_id)
        if found is None:
            raise RefusedError(TASK_UNKNOWN, f"task {task_id[:12]} is not served here: check the task's file.")
        return found

    def take_seat(self, records: Records, task_id: str) -> Seat:
        """The lowest place that is free: one whose lease ran out, or the next."""
        routing = self.routing(task_id)
        self._check_room(records)
        now = self.clock.now()
        ended = records.ended_lease(task_id, now)
        if ended is not None:
            # First the old seat is nobody's, for good; then somebody else has the place.
            records.drop_lease(task_id, ended.seat)
            position = ended.position
        elif records.next_position(task_id) < routing.users:
            position = records.take_position(task_id)
        else:
            raise RefusedError(TASK_FULL, f"all {routing.users} seats are taken: the task needs no more reports.")
        seat = new_id(bits=self.bits)
        records.add_lease(task_id, Lease(seat, position, now + self.lease_seconds))
        return Seat(seat, self.lease_seconds, routing.batches_of(position))

    def accept(self, records: Records, task_id: str, report: SentReport) -> Accepted:
        """Put a report's ciphertexts into its batches, unless that was done before. Full batches wait for `seal`."""
        routing = self.routing(task_id)
        # First of all: a retry whose answer was lost must not be refused.
        if records.was_accepted(task_id, report.report_id):
            return Accepted(new=False, fills=False)
        self._check_room(records)
        lease = records.lease(task_id, report.seat)
        if lease is None:
            raise SeatGoneError
        if lease.ends <= self.clock.now():
            # A clock that is set back must not let a copy in later: the place waits under a name that nobody has.
            records.drop_lease(task_id, lease.seat)
            records.add_lease(task_id, Lease(new_id(bits=self.bits), lease.position, 0.0))
            raise SeatGoneError
        batches = routing.batches_of(lease.position)
        expected = sum(batch.messages for batch in batches) * CIPHERTEXT_BYTES
        if len(report.body) != expected:
            raise RefusedError(
                WRONG_LENGTH,
                f"the report has {len(report.body)} bytes, its seat needs {expected}: send it whole.",
            )
        records.drop_lease(task_id, report.seat)
        records.accept(task_id, report.report_id)
        start, fills = 0, False
        for batch in batches:
            end = start + batch.messages * CIPHERTEXT_BYTES
            filled = records.add_part(task_id, batch.batch_id, batch.seat, batch.size, report.body[start:end])
            fills |= filled == batch.size
            start = end
        return Accepted(new=True, fills=fills)

    def seal(self, records: Records, task_id: str, batch_id: str) -> bool:
        """Permute a full batch, once and for all; False if it is not full, or was sealed before."""
        if (task_id, batch_id) not in records.full_batches():
            return False
        records.seal(SealedBatch(task_id, batch_id, permuted(records.parts(task_id, batch_id), bits=self.bits)))
        return True

    def _check_room(self, records: Records) -> None:
        if records.waiting_bytes() > self.most_waiting_bytes:
            raise RefusedError(BUSY, "too many batches wait to be sent on: try again later.", retry_after=10)


def permuted(parts: list[bytes], *, bits: RandomBits) -> bytes:
    """All ciphertexts of a batch in a uniformly random order."""
    rows = np.frombuffer(b"".join(parts), dtype=np.uint8).reshape(-1, CIPHERTEXT_BYTES)
    return rows[uniform_permutation(len(rows), bits=bits)].tobytes()
