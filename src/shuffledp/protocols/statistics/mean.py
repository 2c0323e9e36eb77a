"""The mean of reals in a range: a bounded sum over a public number of users."""

from dataclasses import dataclass, replace
from typing import Any, ClassVar

from numpy.typing import ArrayLike

from shuffledp.estimates import Estimate
from shuffledp.protocols.bounded_sum import BoundedSum
from shuffledp.protocols.derived import DerivedPlan
from shuffledp.protocols.fields import domain


@dataclass(frozen=True, slots=True, kw_only=True)
class Mean(DerivedPlan):
    """The users' mean value: what a bounded sum answers, over its users.

    The adversary sees what it sees of the sum. The estimate is unbiased, so it is not clipped to the range.

    Attributes:
        low: no value is smaller.
        high: no value is larger.

    >>> from shuffledp import Privacy, RandomBits, simulate
    >>> mean = Mean.plan(users=10_000, privacy=Privacy(1, 1e-6), low=0, high=1)
    >>> round(mean.standard_error, 6)
    0.000143
    >>> abs(simulate(mean, [0.25] * 10_000, bits=RandomBits.secure()).value - 0.25) < 0.01
    True
    """

    protocol: ClassVar[str] = "mean"
    file_command: ClassVar[str] = "mean"
    title: ClassVar[str] = "A private mean"
    summed = BoundedSum

    low: float = domain(read=float)
    high: float = domain(read=float)

    @classmethod
    def sum_domain(cls, **domain: Any) -> dict[str, Any]:
        return domain

    @property
    def standard_error(self) -> float:
        return float(self.sum_plan.standard_error / self.users)

    @property
    def error_bound(self) -> float:
        return float(self.sum_plan.error_bound / self.users)

    def _moved(self, by: float) -> float:
        return by / self.users

    def reference(self) -> dict[str, float | None]:
        return {name: each if each is None else each / self.users for name, each in self.sum_plan.reference().items()}

    def from_estimate(self, estimate: Estimate) -> Estimate:
        """The mean that this estimate of the sum says."""
        return replace(
            estimate,
            value=estimate.value / self.users,
            standard_error=estimate.standard_error / self.users,
            bound=estimate.bound / self.users,
        )

    answer = from_estimate

    def true_value(self, values: ArrayLike) -> float:
        return float(self.sum_plan.true_value(values) / self.users)

    @property
    def question(self) -> str:
        return f"find the mean number of {self.users:,} users, each in [{self.low:g}, {self.high:g}]"
