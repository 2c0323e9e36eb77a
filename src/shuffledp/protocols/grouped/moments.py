"""Means by group with their variances, and means and rates of people who have several rows: for A/B tests."""

from dataclasses import dataclass
from typing import Any, ClassVar

from shuffledp.protocols.derived import DerivedFamily
from shuffledp.protocols.domains.grouped import as_groups
from shuffledp.protocols.domains.summed import check_range
from shuffledp.protocols.family import AT_MOST, Family
from shuffledp.protocols.grouped.parts import RowEndsShares, RowMomentsShares, RowPairShares
from shuffledp.protocols.grouped.rows import GroupedRowsCount, GroupedRowsPlan, GroupedRowsSum
from shuffledp.protocols.grouped.statistics import GROUPS, RANGE, GroupedMean, RatioPlan

_ROWS = (GROUPS, *RANGE, AT_MOST)
RowEndsFamily: Family[Any] = Family.of(
    "group-row-ends", "Parts of rows at the ends of every group's range.", RowEndsShares, domain=_ROWS
)
RowMomentsFamily: Family[Any] = Family.of(
    "group-row-moments", "Parts of rows that know every group's squares.", RowMomentsShares, domain=_ROWS
)
RowPairsFamily: Family[Any] = Family.of(
    "group-row-pairs", "How many rows of every group are a yes and a no.", RowPairShares, domain=_ROWS
)


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupedMoments(GroupedMean):
    """The mean of the numbers of each group's people, with their variance: what an A/B test of means needs.

    >>> from shuffledp import Privacy, RandomBits, simulate
    >>> plan = GroupedMoments.plan(users=10_000, privacy=Privacy(1, 1e-6), groups=["A", "B"], low=0, high=2)
    >>> estimate = simulate(plan, plan.encode([("A", 0.5), ("B", 1.75)] * 5000), bits=RandomBits.secure())
    >>> found = plan.difference(estimate, "A", "B")
    >>> bool(abs(found.estimate.value - 1.25) < 0.02), bool(max(found.deviations) < 0.2)
    (True, True)
    """

    protocol: ClassVar[str] = "grouped-moments"
    title: ClassVar[str] = "A private mean and variance by group"
    knows_variance: ClassVar[bool] = True
    summed = RowMomentsFamily

    @classmethod
    def sum_domain(cls, *, groups: Any, low: float, high: float) -> dict[str, Any]:  # type: ignore[override]
        check_range(low, high)
        return {"groups": as_groups(groups), "low": float(low), "high": float(high), "at_most": 1}


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupedRowsMean(RatioPlan, GroupedRowsSum):
    """The mean of the rows of each group, where a person has several in whatever groups.

    >>> from shuffledp import Privacy, RandomBits, simulate
    >>> asked = {"groups": ["A", "B"], "low": 0, "high": 2, "at_most": 2}
    >>> plan = GroupedRowsMean.plan(users=3000, privacy=Privacy(1, 1e-6), **asked)
    >>> people = plan.encode([[("A", 0.5), ("B", 1.75)], [("B", 1.75)], []] * 1000)
    >>> bool(abs(simulate(plan, people, bits=RandomBits.secure()).value[1] - 1.75) < 0.1)
    True
    """

    protocol: ClassVar[str] = "grouped-rows-mean"
    title: ClassVar[str] = "A private mean of rows by group"
    what: ClassVar[str] = "mean"
    counted: ClassVar[str] = "rows"
    summed = RowEndsFamily

    def facts(self) -> list[tuple[str, str]]:
        return [*GroupedRowsPlan.facts(self)[:1], *RatioPlan.facts(self)]

    @property
    def question(self) -> str:
        return f"find the {self.what} of the rows of each of {self.groups.size:,} groups {self.rows_of_users}"


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupedRowsMoments(GroupedRowsMean):
    """The mean of the rows of each group, with their variance.

    >>> from shuffledp import Privacy
    >>> asked = {"groups": ["A", "B"], "low": 0, "high": 2, "at_most": 2}
    >>> GroupedRowsMoments.plan(users=3000, privacy=Privacy(1, 1e-6), **asked).knows_variance
    True
    """

    protocol: ClassVar[str] = "grouped-rows-moments"
    title: ClassVar[str] = "A private mean and variance of rows by group"
    knows_variance: ClassVar[bool] = True
    summed = RowMomentsFamily


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupedRowsRate(RatioPlan, GroupedRowsCount):
    """Which part of each group's rows is a yes, where a person has several in whatever groups.

    >>> from shuffledp import Privacy, RandomBits, simulate
    >>> plan = GroupedRowsRate.plan(users=3000, privacy=Privacy(1, 1e-6), groups=["A", "B"], at_most=2)
    >>> people = plan.encode([[("A", 0), ("B", 1)], [("A", 1), ("B", 1)], []] * 1000)
    >>> bool(abs(simulate(plan, people, bits=RandomBits.secure()).value[0] - 0.5) < 0.1)
    True
    """

    protocol: ClassVar[str] = "grouped-rows-rate"
    title: ClassVar[str] = "A private rate of rows by group"
    what: ClassVar[str] = "rate"
    counted: ClassVar[str] = "rows"
    knows_variance: ClassVar[bool] = True
    summed = RowPairsFamily

    facts = GroupedRowsMean.facts

    @property
    def question(self) -> str:
        return f"find the part of ones among the rows of {self.groups.size:,} groups, {self.rows_of_users}"


_LISTED = "for groups of a public list, --groups"
_MOST = "at most --at-most rows of one person count"
GroupedMomentsFamily = DerivedFamily.by(
    GroupedMoments, f"The mean of the numbers of each group's people with their variance, {_LISTED}.", GROUPS, *RANGE
)
GroupedRowsMeanFamily = DerivedFamily.by(
    GroupedRowsMean, f"The mean of the rows of each group, {_LISTED}; {_MOST}.", *_ROWS
)
GroupedRowsMomentsFamily = DerivedFamily.by(
    GroupedRowsMoments, f"The mean of the rows of each group with their variance, {_LISTED}; {_MOST}.", *_ROWS
)
GroupedRowsRateFamily = DerivedFamily.by(
    GroupedRowsRate, f"Which part of each group's rows is a yes, {_LISTED}; {_MOST}.", GROUPS, AT_MOST
)
