"""The mean of reals in a range: a bounded sum over a public number of users."""

from dataclasses import dataclass, replace
from typing import Self

from shuffledp.estimates import Estimate
from shuffledp.privacy import Privacy
from shuffledp.protocols.bounded_sum import BoundedSum
from shuffledp.protocols.bounded_sum.base import BoundedSumPlan


@dataclass(frozen=True, slots=True, kw_only=True)
class Mean:
    """The users' mean value: what `sum_plan` answers, over its users.

    The adversary sees what it sees of the sum. The estimate is unbiased, so it is not clipped to the range.

    >>> mean = Mean.plan(users=10_000, privacy=Privacy(1, 1e-6), low=0, high=1)
    >>> round(mean.standard_error, 6)
    0.000143
    >>> from shuffledp import RandomBits, simulate
    >>> total = simulate(mean.sum_plan, [0.25] * 10_000, bits=RandomBits.secure())
    >>> abs(mean.from_estimate(total).value - 0.25) < 0.01
    True
    """

    sum_plan: BoundedSumPlan

    @classmethod
    def plan(
        cls,
        *,
        users: int,
        privacy: Privacy,
        low: float,
        high: float,
        method: str = "auto",
        honest_fraction: float = 1.0,
        max_messages: int | None = None,
    ) -> Self:
        """The mean from the best bounded sum for these limits, or from the named method's."""
        return cls(
            sum_plan=BoundedSum.plan(
                users=users,
                privacy=privacy,
                low=low,
                high=high,
                method=method,
                honest_fraction=honest_fraction,
                max_messages=max_messages,
            )
        )

    @property
    def standard_error(self) -> float:
        """Of the mean when all users follow the protocol."""
        return self.sum_plan.standard_error / self.sum_plan.users

    @property
    def error_bound(self) -> float:
        """The error is at most this with the sum's confidence, whatever the data."""
        return self.sum_plan.error_bound / self.sum_plan.users

    def from_estimate(self, estimate: Estimate) -> Estimate:
        """The mean that this estimate of the sum says."""
        users = self.sum_plan.users
        return replace(
            estimate,
            value=estimate.value / users,
            standard_error=estimate.standard_error / users,
            bound=estimate.bound / users,
        )
