"""The local model's running count: everybody answers for itself, and the answers are added up."""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from shuffledp.privacy import Privacy
from shuffledp.references.continual.horizon import (
    Floats,
    bits_of,
    check_time,
    check_users,
    chernoff_bound,
    failure_of,
)
from shuffledp.references.local import LocalRandomizedResponse

# Beyond this rate e^rate would leave the floats.
_LARGEST_RATE = 700.0


@dataclass(frozen=True, slots=True, kw_only=True)
class LocalCounter:
    """The running sum of all users' randomized responses, each made unbiased.

    Law: with lies of probability p, the error after t users is a sum of t independent errors with mean 0 and
    deviation sqrt(p (1 - p)) / (1 - 2 p), whatever the values.

    Reference: [004] section 3.1 for the answers; Doob's inequality for the bound.

    >>> count = LocalCounter(users=1_000_000, privacy=Privacy(1, 1e-6))
    >>> round(count.standard_error), round(count.error_bound(0.95))
    (960, 2607)
    """

    users: int
    privacy: Privacy

    def __post_init__(self) -> None:
        check_users(self.users)

    @property
    def standard_error(self) -> float:
        """The largest of all times: the last one's."""
        return self.standard_error_at(self.users)

    def standard_error_at(self, time: int) -> float:
        """Of the estimate after so many users."""
        check_time(time, self.users)
        return LocalRandomizedResponse(users=time, privacy=self.privacy).standard_error

    def error_bound(self, confidence: float) -> float:
        """What no estimate of the whole horizon is off by more, but for 1 - confidence.

        Doob's maximal inequality, not a union over the times. Let S_t be the sum of the first t answers less
        their means. Its steps are independent with mean 0, so by Jensen e^(rate S_t) is a submartingale, and

            P[max_t S_t >= a]  <=  e^(-rate a) E[e^(rate S_n)]  <=  e^(-rate a + n psi(rate)),

        psi being the larger of the two values' log E[e^(rate step)]. The steps of the values 0 and 1 are each
        other's negatives in law, so the same bounds -S_t; both signs make the factor 2 in the cost.
        """
        failure = failure_of(confidence)
        lie = LocalRandomizedResponse(users=1, privacy=self.privacy).lie_probability

        def log_moment(rate: float) -> float:
            of_zero = math.log1p(lie * math.expm1(rate)) - rate * lie
            of_one = math.log1p(lie * math.expm1(-rate)) + rate * lie
            return self.users * max(of_zero, of_one)

        return chernoff_bound(log_moment, math.log(2 / failure), _LARGEST_RATE) / (1 - 2 * lie)

    def run(self, values: ArrayLike, *, generator: np.random.Generator) -> Floats:
        """The estimate after every user."""
        bits = bits_of(values, self.users)
        lie = LocalRandomizedResponse(users=1, privacy=self.privacy).lie_probability
        answers = np.cumsum(bits ^ (generator.random(self.users) < lie))
        return np.asarray((answers - lie * np.arange(1, self.users + 1)) / (1 - 2 * lie))
