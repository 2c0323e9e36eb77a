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
        plan = estimates.plan
        domain = plan.domain
        rows = max(1, _AT_A_TIME // (plan.slot_users * domain.coordinates)) * plan.slot_users
        total = domain.numbers(values[:1]).sum(axis=0) * 0
        closes = estimates.times
        closing, largest = [total[np.newaxis]], 0.0
        for first in range(0, len(values), rows):
            sums = total + np.cumsum(domain.numbers(values[first : first + rows]), axis=0)
            times = np.arange(first + 1, first + len(sums) + 1)
            largest = max(largest, float(np.abs(estimates_at(estimates, times) - sums).max()))
            # A copy, as an index makes: a view would keep the whole block.
            closing.append(sums[np.isin(times, closes)])
            total = sums[-1]
        return cls(np.concatenate(closing), total, largest)
