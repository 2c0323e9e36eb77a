"""The sum of people's rows: each device adds up its own, and a bounded sum adds up the people."""

from dataclasses import dataclass
from typing import Any, ClassVar

from numpy.typing import ArrayLike

from shuffledp.estimates import Estimate
from shuffledp.protocols.bounded_sum import BoundedSum
from shuffledp.protocols.domains.repeated import RowSums, check_at_most, ends_of_sum
from shuffledp.protocols.domains.summed import check_range
from shuffledp.protocols.fields import forwarded
from shuffledp.protocols.people.numbers import RowNumbersPlan


@dataclass(frozen=True, slots=True, kw_only=True)
class RepeatedSumPlan(RowNumbersPlan):
    """The sum over all rows, where a person has many and at most `at_most` of them count.

    Each device adds up its own rows; one that is missing is a 0. A person's sum lies between at_most * min(low, 0) and
    at_most * max(high, 0), and the neighbour replaces all of it: a bounded sum over that range.

    >>> from shuffledp import Privacy, RandomBits, simulate
    >>> plan = RepeatedSumPlan.plan(users=10_000, privacy=Privacy(1, 1e-6), low=0, high=1, at_most=3)
    >>> round(plan.standard_error, 2)
    4.28
    >>> people = [[0.5, 1.0, 0.25], []] * 5000
    >>> abs(simulate(plan, plan.encode(people), bits=RandomBits.secure()).value - 8750) < 100
    True
    """

    protocol: ClassVar[str] = "repeated-sum"
    title: ClassVar[str] = "A private sum of rows"
    asks: ClassVar[str] = "add up"
    summed = BoundedSum

    @classmethod
    def sum_domain(cls, *, low: float, high: float, at_most: int) -> dict[str, Any]:  # type: ignore[override]
        check_range(low, high)
        check_at_most(at_most)
        return dict(zip(("low", "high"), ends_of_sum(low, high, at_most), strict=True))

    @property
    def domain(self) -> RowSums:
        return RowSums(self.low, self.high, self.at_most)

    standard_error = forwarded("sum_plan.standard_error")
    error_bound = forwarded("sum_plan.error_bound")

    def _moved(self, by: float) -> float:
        return by

    def reference(self) -> dict[str, float | None]:
        found: dict[str, float | None] = self.sum_plan.reference()
        return found

    def answer(self, estimate: Estimate) -> Estimate:
        """The sum itself."""
        return estimate

    def true_value(self, values: ArrayLike) -> float:
        return float(self.sum_plan.true_value(values))
