"""Running estimates (`plan.learner().run`) at any times, and the true running sums beside them."""

from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

# Numbers held at a time: a histogram of many categories has many after every user.
_AT_A_TIME = 1 << 20


def estimates_at(estimates: Any, times: NDArray[np.int64]) -> NDArray[np.float64]:
    """The estimates after so many users, in the values' own unit, a row a time.

    >>> from shuffledp import Counter, Privacy, RandomBits
    >>> counter = Counter.of(users=2000, shufflers=2, privacy=Privacy(1, 1e-6))
    >>> run = counter.run(np.ones(2000), bits=RandomBits.seeded(1))
    >>> bool(estimates_at(run, np.array([999]))[0] == run.at(999).value)
    True
    """
    return np.asarray(estimates.at_times(times))


@dataclass(frozen=True, slots=True, eq=False)
class RunningTruth:
    """The true sums when slots closed and at the end, and the largest error of any coordinate at any time."""

    at_closing: NDArray[Any]
    at_the_end: NDArray[Any]
    largest_error: float

    @classmethod
    def of(cls, estimates: Any, values: NDArray[Any]) -> Self:
        """Beside these estimates, of values that were checked."""
        truth = TruthSoFar(estimates.plan)
        truth.take(estimates, values)
        return cls(np.concatenate(truth.at_closing), truth.total, truth.largest_error)


class TruthSoFar:
    """The true sums beside estimates that come a stretch at a time.

    Args:
        plan: the running sum's.
        keeps: whether what was true when slots closed is kept.

    Attributes:
        users: how many have come.
        total: their true sum.
        largest_error: of any coordinate at any time so far.
        at_closing: the true sums when slots closed, in blocks, where they are kept.
    """

    def __init__(self, plan: Any, *, keeps: bool = True) -> None:
        self._plan, self._keeps = plan, keeps
        self.users, self.largest_error = 0, 0.0
        self.total: Any = None
        self.at_closing: list[NDArray[Any]] = []

    def take(self, estimates: Any, values: NDArray[Any]) -> None:
        """Some more users.

        Args:
            estimates: those of the stretch that they are in.
            values: theirs, checked.
        """
        plan = self._plan
        domain = plan.domain
        rows = max(1, _AT_A_TIME // (plan.slot_users * domain.coordinates)) * plan.slot_users
        if self.total is None:
            self.total = domain.numbers(values[:1]).sum(axis=0) * 0
            self.at_closing.append(self.total[np.newaxis])
        for first in range(0, len(values), rows):
            sums = self.total + np.cumsum(domain.numbers(values[first : first + rows]), axis=0)
            times = np.arange(self.users + 1, self.users + len(sums) + 1)
            off = np.abs(estimates_at(estimates, times) - sums).max()
            self.largest_error = max(self.largest_error, float(off))
            if self._keeps:
                # A copy, as an index makes: a view would keep the whole block.
                self.at_closing.append(sums[np.asarray(plan.course.place_of(times)[1]) == 0])
            self.total = sums[-1]
            self.users += len(sums)
