"""Second opinions: two batches that close together are combined, the noisier one with the smaller weight.

When a batch of level l >= 2 closes, its last slot is covered by no batch of level 1, whose shuffler is idle. Let it
open one. Then the new prefix has two estimates, which share the old one: old + batch, and the prefix one slot ago
plus the last slot's batch. With V the second one's variance in units of a batch's, their best combination is

    first + (second - first) / (1 + V).

Here 1 + V is replaced by the odd whole number q next to it that leaves the least variance, and the quotient is
rounded to a whole number. With q odd there are no ties, so errors stay symmetric; the true counts cancel in the
difference, so errors do not depend on the data; and estimates stay whole numbers, whose law is exact.
"""

from dataclasses import dataclass
from functools import lru_cache
from itertools import accumulate
from typing import Any

import numpy as np
from numpy.typing import NDArray

from shuffledp.schedules.combinatorial import slots
from shuffledp.schedules.prefixes import PrefixSchedule

Whole = NDArray[np.int64]


@lru_cache(maxsize=64)
def divisors(budget: int, shufflers: int) -> tuple[tuple[int, ...], ...]:
    """The second opinion on a batch weighs one part in so many: by level from 2 on, and what is left from 1 on.

    A batch with `left` of the budget holds batches of the next level with left, ..., 2, 1 left.

    >>> divisors(4, 3)
    ((3, 5, 5, 7), (3, 3, 5, 5))
    """
    table: list[tuple[int, ...]] = []
    inner = [1.0] * budget
    for _ in range(2, shufflers + 1):
        found = [_best_divisor(second) for second in accumulate(inner, initial=1.0)][1:]
        table.append(tuple(divisor for divisor, _ in found))
        inner = [variance for _, variance in found]
    return tuple(table)


def _best_divisor(second: float) -> tuple[int, float]:
    """The odd q for which (1 - 1/q)^2 + second / q^2 is least, and that."""
    near = 2 * int((1 + second) / 2) + 1
    variances = {q: ((q - 1) ** 2 + second) / q**2 for q in (near - 2, near, near + 2) if q >= 3}
    best = min(variances, key=lambda q: variances[q])
    return best, variances[best]


def combine(first: Any, second: Any, divisor: Any) -> Any:
    """The first opinion, moved by the nearest whole part of the difference; the divisor is odd.

    >>> combine(10, 17, 5), combine(10, 3, 5)
    (11, 9)
    """
    return first + (second - first + divisor // 2) // divisor


@dataclass(frozen=True, slots=True)
class _Level:
    """The batches of one level from 2 on: ends, divisors, and which batches of the level below lie inside."""

    ends: Whole
    left: Whole
    divisors: Whole
    first_inside: Whole
    behind_inside: Whole


@dataclass(frozen=True, slots=True, eq=False)
class SecondOpinions:
    """Which batches of a combinatorial schedule have a second opinion, and how it is weighed."""

    schedule: PrefixSchedule
    levels: tuple[_Level, ...]
    places: Whole

    @classmethod
    def of(cls, schedule: PrefixSchedule, budget: int, shufflers: int) -> "SecondOpinions":
        """For the schedule with this budget and so many shufflers."""
        table = divisors(budget, shufflers)
        ends_by_level = schedule.ends_by_level
        levels = []
        for level in range(2, shufflers + 1):
            ends, inside = ends_by_level[level - 1], ends_by_level[level - 2]
            firsts = schedule.parents[ends]
            sizes = np.array([slots(left, level - 1) for left in range(1, budget + 1)])
            left = np.searchsorted(sizes, ends - firsts) + 1
            weights = np.array(table[level - 2], dtype=np.int64)[left - 1]
            bounds = (np.searchsorted(inside, edge, side="right") for edge in (firsts, ends))
            levels.append(_Level(ends, left, weights, *bounds))
        return cls(schedule, tuple(levels), np.flatnonzero(schedule.levels > 1))

    @property
    def count(self) -> int:
        """How many second opinions there are: one for each batch of level 2 or more."""
        return int(self.places.size)

    def divisor_at(self, end: int) -> int:
        """The divisor of the batch of level 2 or more that closes at the end of this slot."""
        level = self.levels[int(self.schedule.levels[end]) - 2]
        return int(level.divisors[np.searchsorted(level.ends, end)])

    def by_batch(self, values: NDArray[np.float64]) -> NDArray[np.float64]:
        """For every batch its entry of a table by level and by what is left, both from 1 on."""
        out = np.full(self.schedule.batches, values[0, 0])
        for row, level in zip(values[1:], self.levels, strict=True):
            out[level.ends - 1] = row[level.left - 1]
        return out

    def combined(self, batches: NDArray[Any], last_slots: NDArray[Any]) -> NDArray[Any]:
        """Every batch's value after its second opinion: what `schedule.prefix_sums` then adds up.

        `batches` close at slots 1, 2, ...; `last_slots` belong to the batches at `places`. Lower levels come first,
        as the second opinion on a batch is the sum of the combined batches inside, and its last slot's.
        """
        values = batches.copy()
        opinions = np.zeros_like(batches)
        opinions[self.places - 1] = last_slots
        for below, level in zip(self.schedule.ends_by_level, self.levels, strict=False):
            along = np.zeros((below.size + 1, *values.shape[1:]), dtype=values.dtype)
            np.cumsum(values[below - 1], axis=0, out=along[1:])
            second = along[level.behind_inside] - along[level.first_inside] + opinions[level.ends - 1]
            divisors = level.divisors.reshape((-1,) + (1,) * (values.ndim - 1))
            values[level.ends - 1] = combine(batches[level.ends - 1], second, divisors)
        return values
