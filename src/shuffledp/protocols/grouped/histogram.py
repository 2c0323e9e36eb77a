"""A histogram by group: a histogram over pairs of a group and a category."""

from dataclasses import dataclass
from typing import Any, ClassVar

from numpy.typing import ArrayLike

from shuffledp.protocols.derived import DerivedPlan
from shuffledp.protocols.domains.categories import Names, as_categories
from shuffledp.protocols.domains.domain import Categories
from shuffledp.protocols.domains.grouped import ByGroup, as_groups
from shuffledp.protocols.fields import domain, forwarded
from shuffledp.protocols.histogram import Histogram


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupedHistogram(DerivedPlan):
    """How many people of each group have each category. The group is as private as the category.

    >>> from shuffledp import Privacy
    >>> asked = {"users": 10_000, "privacy": Privacy(1, 1e-6), "method": "decoys"}
    >>> plan = GroupedHistogram.plan(groups=["A", "B"], categories=["red", "green", "blue"], **asked)
    >>> plan.domain.size, plan.encode([("A", "green"), ("B", "red")]).tolist()
    (6, [1, 3])
    """

    protocol: ClassVar[str] = "grouped-histogram"
    title: ClassVar[str] = "A private histogram by group"
    unit: ClassVar[str] = " users in every category"
    file_command: ClassVar[str] = "histogram"
    summed = Histogram

    groups: Names = domain(read=as_groups, write=Categories.document)
    categories: Categories = domain(read=as_categories, write=Categories.document)

    @classmethod
    def sum_domain(cls, *, groups: Any, categories: Any) -> dict[str, Any]:  # type: ignore[override]
        return {"categories": ByGroup(as_groups(groups), as_categories(categories))}

    standard_error = forwarded("sum_plan.standard_error")
    error_bound = forwarded("sum_plan.error_bound")
    is_unbiased = forwarded("sum_plan.is_unbiased")
    keeps_zero = forwarded("sum_plan.keeps_zero")
    standard_errors_for = forwarded("sum_plan.standard_errors_for")
    further_numbers = forwarded("sum_plan.further_numbers")
    reference = forwarded("sum_plan.reference")
    true_value = forwarded("sum_plan.true_value")

    def encode(self, values: ArrayLike) -> Any:
        return self.domain.encode(values)

    def answer(self, estimate: Any) -> Any:
        """The counts of all pairs."""
        return estimate

    def _moved(self, by: float) -> float:
        return by

    @property
    def question(self) -> str:
        size, groups = self.categories.size, self.groups.size
        return f"count {self.users:,} users in {size:,} categories of {groups:,} groups each"
