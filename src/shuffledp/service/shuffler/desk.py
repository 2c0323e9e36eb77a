"""Which report goes into which batch, and when a batch is sealed: no network, no database, no meaning of a message.

Every method runs inside one transaction of the records it is given, so that it happens whole or not at all. A
seat's lease that ran out is deleted before its position is given to somebody else; a report is kept in all its
batches, its seat is gone and its id remembered, in one step. A large batch is permuted and written down piece by piece
while others report; it becomes the batch that is sent in one step, and is sent when nothing else of it is left.

A later hop of a cascade has no seats: it takes whole batches from the hop before it, each of the right length and once,
and does with them what the first hop does with a batch that is full. A hop takes its layer off when it permutes: until
then its store has what it was sent, in the order in which it came, and from then on what leaves it, in random order;
without its key nothing matches the one to the other.
"""

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial

import numpy as np

from shuffledp.randomness import RandomBits
from shuffledp.sampling.permutation import uniform_permutation
from shuffledp.service.problems import (
    BUSY,
    NO_PASS,
    NO_ROOM,
    SEAT_GONE,
    SEATS_LATER,
    TASK_FULL,
    WRONG_HOP,
    WRONG_LENGTH,
    RefusedError,
)
from shuffledp.service.rounds import owner_of
from shuffledp.service.routing import Routing, Seat
from shuffledp.service.shuffler.layers import Layer, Peeled, Suspects
from shuffledp.service.shuffler.redeeming import redeem
from shuffledp.service.store.contract import BatchPart, Lease, ShufflerRecords
from shuffledp.service.wire import CIPHERTEXT_BYTES, SentReport, new_seat

LEASE_SECONDS = 60.0
# New reports are refused while more than this waits to be sent on.
MOST_WAITING_BYTES = 1 << 30
# Of a sealed batch in one commit: nobody waits longer than for this.
PIECE_BYTES = 1 << 20


@dataclass(frozen=True, slots=True)
class Accepted:
    """Whether a report was new; its answer was lost if it was not."""

    new: bool


_Kept = tuple[SentReport, int, int]
"""A report, the number of its slot, and its place in the slot."""

_NEW, _KNOWN = Accepted(new=True), Accepted(new=False)


@dataclass(frozen=True)
class ShufflerDesk:
    """The shuffler's rules.

    Attributes:
        routings: what is known of each task, by its id.
        bits: where seats' ids and the order of a batch come from.
        clock: the seconds since the epoch, which leases run by.
        lease_seconds: how long a seat waits for its report.
        most_waiting_bytes: new reports are refused while more than this waits to be sent on.
        has_room: whether the disk can take more.
        layer: what this hop of a cascade takes off; None at a shuffler that serves no cascade.
    """

    routings: Mapping[str, Routing]
    bits: RandomBits
    clock: Callable[[], float] = time.time
    lease_seconds: float = LEASE_SECONDS
    most_waiting_bytes: int = MOST_WAITING_BYTES
    has_room: Callable[[], bool] = lambda: True
    layer: Layer | None = None

    def take_seat(
        self, records: ShufflerRecords, task_id: str, slots: int | None = None, token: str | None = None
    ) -> Seat:
        """The lowest place that is free, in so many first slots if they are given: whose lease ran out, or the next.

        Args:
            records: of the transaction.
            task_id: the task, or the round of a campaign.
            slots: only in so many first slots; None for all.
            token: what is remembered of a token that the task's issuer has signed, where the task has one: the same
                token has the same seat until its lease ends.

        Raises:
            RefusedError: all are taken, those of these slots (`seats-later`) or of all (`task-full`); this is a later
                hop (`hop-wrong`); or the task takes tokens, and this one is spent (`pass-spent`) or missing.
        """
        routing = self.routings[task_id]
        _check_takes_reports(routing)
        if (routing.issuer is None) != (token is None):
            words = "this task takes tokens of its issuer, and" if routing.issuer else "this task has no issuer, but"
            raise RefusedError(NO_PASS, f"{words} {'none' if token is None else 'one'} came: see the task's document.")
        if token is None:
            return self._give(records, task_id, routing, slots)
        give = partial(self._give, records, task_id, routing, slots)
        return redeem(records, task_id, token, routing, self.clock(), retire=self._retire, give=give)

    def _give(self, records: ShufflerRecords, task_id: str, routing: Routing, slots: int | None) -> Seat:
        """The lowest place that is free, as `take_seat`, to whoever it is that has asked for it."""
        open_users = routing.users if slots is None else min(routing.users, routing.users_by(slots))
        if refused := self.refuse_without_room(records):
            raise refused
        now = self.clock()
        ended = records.ended_lease(task_id, now, open_users)
        if ended is not None:
            # First the old seat is nobody's, for good; then somebody else has the place.
            records.drop_lease(task_id, ended.seat)
            position = ended.position
        else:
            taken = records.take_position(task_id, open_users)
            if taken is None and open_users < routing.users:
                words = f"all seats of the first {slots} slots are taken: fetch the newest model and answer by it."
                raise RefusedError(SEATS_LATER, words)
            if taken is None:
                raise RefusedError(TASK_FULL, f"all {routing.users} seats are taken: the task needs no more reports.")
            position = taken
        seat = new_seat(position, bits=self.bits)
        records.add_lease(task_id, Lease(seat, position, now + self.lease_seconds))
        return Seat(seat, self.lease_seconds, routing.batches_of(position))

    def accept(
        self, records: ShufflerRecords, task_id: str, reports: list[SentReport]
    ) -> list[Accepted | RefusedError]:
        """Put reports' ciphertexts into their batches, unless that was done before; an answer for each.

        All are looked at before anything is written. Full batches wait for `seal`.
        """
        routing = self.routings[task_id]
        _check_takes_reports(routing)
        ids, seats = [report.report_id for report in reports], [report.seat for report in reports]
        records.expect(task_id, ids, seats)
        # First of all: a retry whose answer was lost must not be refused.
        known = records.accepted_among(task_id, ids)
        leases = records.leases(task_id, seats)
        room, now = self.refuse_without_room(records), self.clock()
        kept: list[_Kept] = []
        answers: list[Accepted | RefusedError] = []
        for report in reports:
            if report.report_id in known:
                answers.append(_KNOWN)
                continue
            lease = leases.get(report.seat)
            if lease is None:
                answers.append(room or _seat_gone())
                continue
            number, within = routing.schedule.place_of(lease.position)
            refused = room or _refuse(report, routing.slot(number).length, lease, now)
            if refused is not None:
                answers.append(refused)
                if lease.ends <= now and room is None:
                    self._retire(records, task_id, leases.pop(report.seat))
                continue
            # A second report of the same upload finds the first one's id known and its seat gone.
            known.add(report.report_id)
            del leases[report.seat]
            kept.append((report, number, within))
            answers.append(_NEW)
        if kept:
            ids, seats = [report.report_id for report, _, _ in kept], [report.seat for report, _, _ in kept]
            if routing.issuer is not None:
                records.spend(owner_of(task_id), task_id, seats)
            records.keep(task_id, ids, seats, _parts(routing, kept))
        return answers

    def _retire(self, records: ShufflerRecords, task_id: str, lease: Lease) -> None:
        """A clock that is set back must not let a refused report in later: its place waits under nobody's name."""
        records.drop_lease(task_id, lease.seat)
        records.add_lease(task_id, Lease(new_seat(lease.position, bits=self.bits), lease.position, 0.0))

    def full_batch(self, records: ShufflerRecords, task_id: str, batch_id: str) -> bytes:
        """A full batch as it came; nothing where it is not full, or was sealed before."""
        if records.full_bytes(task_id, batch_id) is None:
            return b""
        return b"".join(records.parts(task_id, batch_id))

    def peeled(self, task_id: str, batch_id: str, body: bytes, suspects: Suspects | None = None) -> Peeled:
        """Messages of a full batch without this hop's layer, as many as they were; as they came where there is none.

        Args:
            task_id: the task.
            batch_id: the batch.
            body: all its messages, or some.
            suspects: where they are some: which of all may be copies.
        """
        routing = self.routings[task_id]
        if not routing.layers or self.layer is None:
            return Peeled(body)
        return self.layer.peel(body, task_id, batch_id, routing.ciphertext_bytes, bits=self.bits, suspects=suspects)

    def permuted_batch(self, task_id: str, body: bytes) -> list[memoryview]:
        """A peeled batch in its final order, in pieces; nobody reads it before `seal` has said so."""
        mixed = memoryview(permuted([body], bits=self.bits, length=self.routings[task_id].left_bytes))
        return [mixed[start : start + PIECE_BYTES] for start in range(0, len(mixed), PIECE_BYTES)]

    def seal(self, records: ShufflerRecords, task_id: str, batch_id: str, pieces: list[memoryview]) -> bool:
        """These pieces are the batch, once and for all; all but the last are written. Answers whether it is tidy, too.

        Nothing happens if it is not full, or was sealed before.
        """
        return self.seal_with(records, task_id, batch_id, len(pieces) - 1, pieces[-1], sum(map(len, pieces)))

    def seal_with(
        self, records: ShufflerRecords, task_id: str, batch_id: str, number: int, last: bytes | memoryview, length: int
    ) -> bool:
        """The pieces that are written, and this last one of this number, are the batch of `length` bytes; as `seal`."""
        if records.full_bytes(task_id, batch_id) is None:
            return True
        records.add_piece(task_id, batch_id, number, last)
        records.seal(task_id, batch_id, length)
        return records.tidy(task_id, batch_id)

    def refuse_without_room(self, records: ShufflerRecords) -> RefusedError | None:
        """Why nothing new can be taken now, if it cannot."""
        if not self.has_room():
            return RefusedError(NO_ROOM, "the disk is almost full: try again later.", retry_after=10)
        if records.waiting_bytes() <= self.most_waiting_bytes:
            return None
        return RefusedError(BUSY, "too many batches wait to be sent on: try again later.", retry_after=10)


def _check_takes_reports(routing: Routing) -> None:
    """Refuse what people send where only batches are taken."""
    if routing.hop > 1:
        words = f"this is hop {routing.hop} of {routing.hops}, which takes batches of hop {routing.hop - 1} only"
        raise RefusedError(WRONG_HOP, f"{words}: report to hop 1.")


def _refuse(report: SentReport, expected: int, lease: Lease, now: float) -> RefusedError | None:
    """Why a new report cannot be accepted, whose seat needs so many bytes; None if it can."""
    if lease.ends <= now:
        return _seat_gone()
    if len(report.body) == expected:
        return None
    words = f"the report has {len(report.body)} bytes, its seat needs {expected}: send it whole."
    return RefusedError(WRONG_LENGTH, words)


def _parts(routing: Routing, kept: list[_Kept]) -> list[BatchPart]:
    """What the reports have for each batch: in one slot all are cut at the same places."""
    by_slot: dict[int, list[tuple[int, bytes]]] = {}
    for report, number, within in kept:
        by_slot.setdefault(number, []).append((within, report.body))
    parts = []
    for number, some in by_slot.items():
        slot = routing.slot(number)
        if not slot.columns:
            continue
        first = min(within for within, _ in some)
        rows = np.frombuffer(b"".join(body for _, body in some), dtype=np.uint8).reshape(len(some), slot.length)
        for batch, start, end in slot.columns:
            body = rows[:, start:end].tobytes()
            parts.append(BatchPart(batch.batch_id, batch.seat + first, len(some), batch.size, body))
    return parts


def _seat_gone() -> RefusedError:
    """The one refusal after which a client may randomize again: it holds for good."""
    return RefusedError(SEAT_GONE, "the seat's lease ran out, and this report was not kept: take a new seat.")


def permuted(parts: list[bytes], *, bits: RandomBits, length: int = CIPHERTEXT_BYTES) -> bytes:
    """All ciphertexts of a batch, each so long, in a uniformly random order."""
    rows = np.frombuffer(b"".join(parts), dtype=np.uint8).reshape(-1, length)
    return rows[uniform_permutation(len(rows), bits=bits)].tobytes()
