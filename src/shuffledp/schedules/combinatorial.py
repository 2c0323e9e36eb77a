"""The combinatorial schedule: C(c + k, k) slots for k shufflers and estimates of at most c batches.

While the first batch of the top level is open, the k - 1 levels below it serve with the whole budget c; once
it has closed it costs one, and the rest of the horizon has budget c - 1:

    slots(c, k) = slots(c, k - 1) + slots(c - 1, k),        slots(0, k) = slots(c, 0) = 1.

So batches shrink as time goes on. At most k batches are open, one a level; exactly C(j + k - 1, k - 1) slots
have an estimate of j batches. A batch that would close together with a larger one is not opened.
"""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from shuffledp.errors import ParameterError
from shuffledp.schedules.prefixes import PrefixSchedule

Whole = NDArray[np.int64]


def slots(budget: int, shufflers: int) -> int:
    """How many slots a schedule with c batches an estimate and k shufflers has: C(c + k, k).

    Args:
        budget: how many batches an estimate is a sum of at most.
        shufflers: how many work concurrently.

    Returns:
        The number of slots.

    >>> slots(24, 4)
    20475
    """
    return math.comb(budget + shufflers, shufflers)


def batch_counts(budget: int, shufflers: int) -> list[dict[int, int]]:
    """For each level from 1 on: how many batches hold slots(left, level - 1) slots, by what is left of the budget.

    >>> batch_counts(2, 2)
    [{2: 1, 1: 2}, {2: 1, 1: 1}]
    """
    levels = []
    # Parts of the schedule in which so many levels serve with so much left.
    parts = {budget: 1}
    for _ in range(shufflers):
        counts, seen = {}, 0
        for left in range(budget, 0, -1):
            seen += parts.get(left, 0)
            counts[left] = seen
        levels.append(counts)
        parts = counts
    return levels[::-1]


@dataclass(frozen=True, slots=True)
class WholeSlots:
    """Slots that end with the last user.

    Attributes:
        count: how many there are.
        users: of a slot.
        short: so many slots, the first ones, have a user less.
    """

    count: int
    users: int
    short: int


def whole_slots(budget: int, shufflers: int, users: int) -> WholeSlots:
    """The smallest slots with which a batch ends with the last user: all of one size, or some with a user less.

    The schedule's last slot has no batch that ends with it, so there are fewer than it has.

    >>> whole_slots(budget=2, shufflers=2, users=47)
    WholeSlots(count=5, users=10, short=3)
    """
    least = -(-users // (slots(budget, shufflers) - 1))
    count = -(-users // least)
    each = -(-users // count)
    return WholeSlots(count, each, count * each - users)


def ending_schedule(budget: int, shufflers: int, users: int) -> PrefixSchedule:
    """The schedule with this budget whose last batch ends with the last of so many users; later ones are not opened.

    >>> schedule = ending_schedule(budget=2, shufflers=2, users=47)
    >>> schedule.parents.tolist(), schedule.users_by(np.arange(6)).tolist(), schedule.place_of(47)
    ([0, 0, 1, 0, 3, 3], [0, 9, 18, 27, 37, 47], (5, 0))
    """
    found = whole_slots(budget, shufflers, users)
    whole = combinatorial_schedule(budget, shufflers, found.users)
    kept = slice(found.count + 1)
    return PrefixSchedule(whole.parents[kept], whole.levels[kept], found.users, found.short)


def combinatorial_schedule(budget: int, shufflers: int, slot_users: int) -> PrefixSchedule:
    """The schedule with this budget of batches an estimate.

    Args:
        budget: how many batches an estimate is a sum of at most.
        shufflers: how many work concurrently.
        slot_users: how many users a slot has.

    Returns:
        The schedule: the parent and the level of every slot.

    Raises:
        ParameterError: a negative budget, no shuffler, no user, or more than 2^31 slots.

    >>> schedule = combinatorial_schedule(budget=2, shufflers=2, slot_users=10)
    >>> schedule.slots, schedule.parents.tolist(), schedule.overlap()
    (6, [0, 0, 1, 0, 3, 3], 2)
    """
    if budget < 0 or shufflers < 1 or slot_users < 1:
        raise ParameterError("budget", budget, "must be >= 0, with at least one shuffler and user", "check all three")
    if shufflers > 64 or slots(budget, shufflers) > 1 << 31:
        raise ParameterError("budget", budget, "must give at most 2^31 slots", "choose a smaller one")
    # parents and levels of every budget 0..budget, one level of shufflers after the other.
    below: list[tuple[Whole, Whole]] = [(np.zeros(1, dtype=np.int64),) * 2 for _ in range(budget + 1)]
    for level in range(1, shufflers):
        here: list[tuple[Whole, Whole]] = [below[0]]
        for spent in range(1, budget + 1):
            here.append(_joined(below[spent], here[spent - 1], level))
        below = here
    parents, levels = _top(below, budget, shufflers)
    return PrefixSchedule(parents, levels, slot_users)


def _joined(first: tuple[Whole, Whole], rest: tuple[Whole, Whole], level: int) -> tuple[Whole, Whole]:
    """A first batch of this level over `first`, then `rest` after it."""
    span = first[0].size
    parents = np.concatenate((first[0], rest[0] + span))
    levels = np.concatenate((first[1], rest[1]))
    parents[span], levels[span] = 0, level
    return parents, levels


def _top(below: list[tuple[Whole, Whole]], budget: int, level: int) -> tuple[Whole, Whole]:
    """Batches of the top level one after the other, each over what the levels below do with what is left."""
    if level == 1:
        # Every slot but the last is a batch.
        times = np.arange(budget + 1)
        return np.maximum(times - 1, 0), (times > 0).astype(np.int64)
    parts = [below[left] for left in range(budget, -1, -1)]
    starts = np.concatenate(([0], np.cumsum([parents.size for parents, _ in parts])))
    parents = np.concatenate([part[0] + start for part, start in zip(parts, starts[:-1], strict=True)])
    levels = np.concatenate([part[1] for part in parts])
    parents[starts[1:-1]] = starts[:-2]
    levels[starts[1:-1]] = level
    return parents, levels
