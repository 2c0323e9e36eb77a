"""A seat for a token: the same one until its lease ends, another when that is nobody's any more, none after a report.

All of it happens in the transaction that gives the seat. A person takes part once because of two things that the store
has: a seat whose lease ran out is deleted before its token gets another, so that no report is taken for it whatever any
clock says; and a report spends the token of its seat in the commit that keeps it.
"""

from collections.abc import Callable

from shuffledp.service.problems import PASS_SPENT, RefusedError
from shuffledp.service.rounds import owner_of
from shuffledp.service.routing import Routing, Seat
from shuffledp.service.store.contract import Lease, ShufflerRecords
from shuffledp.service.store.redeeming import MOST_SEATS

Retire = Callable[[ShufflerRecords, str, Lease], None]
"""Ends a lease: its seat is nobody's for good, and its place is free."""


def redeem(
    records: ShufflerRecords,
    task_id: str,
    token: str,
    routing: Routing,
    now: float,
    *,
    retire: Retire,
    give: Callable[[], Seat],
) -> Seat:
    """The seat of a token.

    Args:
        records: of the transaction.
        task_id: the task, or the round of a campaign.
        token: the digest of a token that its issuer has signed for this task or campaign.
        routing: of the task.
        now: the seconds since the epoch, which leases run by.
        retire: ends a lease.
        give: takes the next seat of the task.

    Raises:
        RefusedError: a report came for one of its seats, or it has had as many as a token gets (`pass-spent`); or what
            `give` is refused with.
    """
    owner = owner_of(task_id)
    known = records.redeemed(owner, token, task_id)
    if known.task_id is not None and known.seat is not None:
        lease = records.leases(known.task_id, [known.seat]).get(known.seat)
        if lease is not None and lease.ends > now and known.task_id == task_id:
            # Its client was killed, or the answer was lost.
            return Seat(lease.seat, lease.ends - now, routing.batches_of(lease.position))
        if lease is not None and known.seats < MOST_SEATS:
            # First the old seat is nobody's, for good; then its token has another.
            retire(records, known.task_id, lease)
    if known.seats >= MOST_SEATS:
        words = f"a report came for it, or the leases of its {MOST_SEATS} seats ran out: it cannot report again."
        raise RefusedError(PASS_SPENT, f"this token gets no other seat: {words}")
    seat = give()
    records.seat_token(owner, token, known.seats + 1, task_id, seat.seat)
    return seat
