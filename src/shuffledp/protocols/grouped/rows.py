"""Counts and sums by group where a person has several rows, in whatever groups: its neighbour replaces all of them."""

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike

from shuffledp.protocols.derived import DerivedFamily
from shuffledp.protocols.domains.domain import Floats
from shuffledp.protocols.domains.grouped import as_groups
from shuffledp.protocols.domains.grouped_rows import GroupedRows
from shuffledp.protocols.domains.repeated import check_at_most
from shuffledp.protocols.domains.summed import check_range
from shuffledp.protocols.family import AT_MOST, Family
from shuffledp.protocols.fields import domain, forwarded
from shuffledp.protocols.grouped.statistics import GROUPS, RANGE, GroupedPlan
from shuffledp.protocols.grouped.totals import RowOnesShares, RowTotalsShares

RowOnes: Family[Any] = Family.of(
    "group-row-ones", "How many rows of every group are a yes.", RowOnesShares, domain=(GROUPS, *RANGE, AT_MOST)
)
RowTotals: Family[Any] = Family.of(
    "group-row-totals", "The sum of every group's rows.", RowTotalsShares, domain=(GROUPS, *RANGE, AT_MOST)
)


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupedRowsPlan(GroupedPlan):
    """A number of every group, over the rows of people who have at most `at_most` each, in whatever groups.

    Everybody contributes exactly so many rows over all groups together, filled up with rows of no group.
    """

    what: ClassVar[str] = "sum"

    at_most: int = domain("[1, 1000]")

    @property
    def domain(self) -> GroupedRows:
        found: GroupedRows = self.sum_plan.domain
        return found

    standard_error = forwarded("sum_plan.standard_error")
    error_bound = forwarded("sum_plan.error_bound")
    reference = forwarded("sum_plan.reference")

    def _moved(self, by: float) -> float:
        return by

    def _numbers(self, ends: Floats, error: float, bound: float) -> tuple[Floats, tuple[Floats, Floats], Floats]:
        sums = ends[:, -1]
        return sums, (sums - bound, sums + bound), np.full(sums.size, error)

    def true_value(self, values: ArrayLike) -> Any:
        return self.sum_plan.true_value(values)

    def facts(self) -> list[tuple[str, str]]:
        each = f"exactly {self.at_most:,} rows of every user over all groups, filled up with rows of none"
        return [("what counts", each), *GroupedPlan.facts(self)]

    @property
    def rows_of_users(self) -> str:
        """Whose rows count, and how many of each, in words."""
        return f"of {self.users:,} users, at most {self.at_most:,} rows of each"


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupedRowsCount(GroupedRowsPlan):
    """How many rows of each group are a yes.

    >>> from shuffledp import Privacy, RandomBits, simulate
    >>> plan = GroupedRowsCount.plan(users=3000, privacy=Privacy(1, 1e-6), groups=["A", "B"], at_most=2)
    >>> people = [[("A", 1), ("B", 1)], [("B", 1)], []] * 1000
    >>> estimate = simulate(plan, plan.encode(people), bits=RandomBits.secure())
    >>> estimate.names, bool(abs(estimate.value[1] - 2000) < 100)
    (('A', 'B'), True)
    """

    protocol: ClassVar[str] = "grouped-rows-count"
    title: ClassVar[str] = "A private count of rows by group"
    what: ClassVar[str] = "count"
    unit: ClassVar[str] = " rows"
    summed = RowOnes

    @classmethod
    def sum_domain(cls, *, groups: Any, at_most: int) -> dict[str, Any]:  # type: ignore[override]
        return {"groups": as_groups(groups), "low": 0.0, "high": 1.0, "at_most": check_at_most(at_most)}

    @property
    def question(self) -> str:
        return f"count the ones among the rows of {self.groups.size:,} groups, {self.rows_of_users}"


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupedRowsSum(GroupedRowsPlan):
    """The sum of the rows of each group.

    >>> from shuffledp import Privacy
    >>> plan = GroupedRowsSum.plan(
    ...     users=3000, privacy=Privacy(1, 1e-6), groups=["A", "B"], low=0, high=5, at_most=2
    ... )
    >>> round(plan.standard_error, 1)
    28.6
    """

    protocol: ClassVar[str] = "grouped-rows-sum"
    title: ClassVar[str] = "A private sum of rows by group"
    summed = RowTotals

    low: float = domain(read=float)
    high: float = domain(read=float)

    @classmethod
    def sum_domain(cls, *, groups: Any, low: float, high: float, at_most: int) -> dict[str, Any]:  # type: ignore[override]
        check_range(low, high)
        named = {"groups": as_groups(groups), "at_most": check_at_most(at_most)}
        return {**named, "low": float(low), "high": float(high)}

    @property
    def ends_of_range(self) -> tuple[float, float]:
        return self.low, self.high

    @property
    def rows_of_users(self) -> str:
        return f"of {self.users:,} users, each in [{self.low:g}, {self.high:g}], at most {self.at_most:,} of each user"

    @property
    def question(self) -> str:
        return f"add up the rows of each of {self.groups.size:,} groups {self.rows_of_users}"


GroupedRowsCountFamily = DerivedFamily.by(
    GroupedRowsCount,
    "How many rows of each group of a public list, --groups, are a yes; at most --at-most rows of one person count.",
    GROUPS,
    AT_MOST,
)
GroupedRowsSumFamily = DerivedFamily.by(
    GroupedRowsSum,
    "The sum of the rows of each group of a public list, --groups; at most --at-most rows of one person count.",
    GROUPS,
    *RANGE,
    AT_MOST,
)
