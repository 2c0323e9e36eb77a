"""Run a learner in one process: randomize, shuffle, tally, tell."""

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any, Protocol, TypeVar

from shuffledp.protocols.learner import Cohort, Learner, OpenBatch
from shuffledp.protocols.tallies import Tally
from shuffledp.randomness import RandomBits
from shuffledp.shuffle.pool import ShufflerPool
from shuffledp.shuffle.shuffler import BatchSpec, Shuffler

Progress = Callable[[int], None]
"""Called with the number of users who have reported so far."""


class CountsUsers(Protocol):
    """A learner's state that says how many users have come."""

    @property
    def users(self) -> int:
        """How many users have come."""
        ...


S = TypeVar("S", bound=CountsUsers)

# Users randomized at a time: their messages stay in the cache.
_AT_A_TIME = 1 << 16
# Messages that a shuffler of a streamed simulation holds at a time, and messages randomized at a time then.
_MESSAGES_AT_A_TIME, _STREAMED = 1 << 20, 1 << 18


def ask_and_tell(
    learner: Learner[S],
    shufflers: int,
    prepared: Callable[[Cohort, int, int, RandomBits], Any],
    users: int,
    *,
    bits: RandomBits,
    progress: Progress | None = None,
) -> Iterator[S]:
    """Run a learner in one process, with every message made, permuted and read.

    Args:
        learner: any learner whose cohorts join batches and whose state counts users.
        shufflers: how many shufflers work side by side.
        prepared: what some users of a cohort send through their batches' mechanisms: called with the cohort, the users
            before them, how many they are, and the clients' bits.
        users: how many users come.
        bits: where all randomness comes from.
        progress: called with the number of users who have reported so far.

    Returns:
        The state after every cohort: full batches are permuted, read and told.
    """
    clients, shuffling = bits.spawn(2)
    pool = ShufflerPool(shufflers, bits=shuffling)
    state, told = learner.start(), 0

    def came(more: int) -> None:
        nonlocal told
        if progress is not None and state.users + more > told:
            told = state.users + more
            progress(told)

    while state.users < users and (cohort := learner.ask(state)) is not None:
        count = min(cohort.users, users - state.users)
        sent = prepared(cohort, state.users, count, clients)
        closed = {}
        for batch in cohort.batches:
            tally = _joined(pool, batch, sent, clients, came)
            if tally is not None:
                closed[batch.level] = batch.mechanism.read(tally)[0]
        state = learner.tell(state, count, closed)
        came(0)
        yield state


def _joined(pool: ShufflerPool, batch: OpenBatch, prepared: Any, bits: RandomBits, came: Progress) -> Tally | None:
    """The tally of a batch that the cohort fills, or None where more users are missing."""
    mechanism, users = batch.mechanism, len(prepared)
    if not batch.opens or users < mechanism.users:
        if batch.opens:
            pool.open(batch.level - 1, BatchSpec(mechanism.users, mechanism.messages_max))
        released = pool.accept(batch.level - 1, mechanism.randomize(prepared, batch.first_seat, bits=bits))
        return None if released is None else mechanism.tally(released)
    shuffler = Shuffler(bits=pool.bits)
    tallies: list[Tally] = []
    before = 0
    at_once = users * mechanism.messages_max <= _MESSAGES_AT_A_TIME
    for part in mechanism.parts(prepared, 0, users * mechanism.messages_max if at_once else _MESSAGES_AT_A_TIME):
        rows = _AT_A_TIME if at_once or part.messages == mechanism.messages_max else max(1, _STREAMED // part.messages)
        shuffler.open(BatchSpec(users, part.messages))
        for start in range(0, users, rows):
            shuffler.accept(part.make(slice(start, min(start + rows, users)), bits))
            came((users * before + min(start + rows, users) * part.messages) // mechanism.messages_max)
        before += part.messages
        # Every part holds a message of each user: the reports are counted once.
        tally = mechanism.tally(shuffler.close())
        tallies.append(replace(tally, reports=0) if tallies else tally)
    return tallies[0] if len(tallies) == 1 else Tally.merge(tallies)
