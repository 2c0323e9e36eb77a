"""Counts, rates, sums and means by group: what is computed from the two ends of every group."""

import math
from abc import abstractmethod
from dataclasses import dataclass
from operator import attrgetter
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike

from shuffledp.protocols.derived import DerivedPlan
from shuffledp.protocols.domains.categories import Integers, Names
from shuffledp.protocols.domains.domain import Categories, Domain, Floats
from shuffledp.protocols.domains.grouped import ByGroup, GroupedBits, GroupedReals, as_groups
from shuffledp.protocols.domains.summed import check_range
from shuffledp.protocols.family import DomainParameter, Family, few_a_user
from shuffledp.protocols.fields import domain
from shuffledp.protocols.grouped.difference import Difference, difference
from shuffledp.protocols.grouped.ends import EndsShares
from shuffledp.protocols.grouped.estimates import (
    GroupsEstimate,
    groups_estimate,
    means_in_range,
    places_of,
    present_groups,
)
from shuffledp.protocols.grouped.ones import OnesShares, PairShares
from shuffledp.protocols.grouped.totals import TotalsShares
from shuffledp.protocols.histogram import Histogram
from shuffledp.protocols.presentation import ALONE, APART, CURATOR, Listing, Presentation, View, beside_others
from shuffledp.references.curator_sums import curator_errors

GROUPS = DomainParameter("groups", as_groups, "add --groups a,b,c, all groups there may be")
RANGE = (
    DomainParameter("low", way_out="add --low, the lowest value there is"),
    DomainParameter("high", way_out="add --high, the highest value there is"),
)
GroupEnds: Family[EndsShares] = Family.of(
    "group-ends",
    "Parts of people at the low and the high end of every group's range.",
    EndsShares,
    domain=(GROUPS, *RANGE),
)
GroupTotals: Family[Any] = Family.of(
    "group-totals",
    "The sums of every group, one number a group or two.",
    EndsShares,
    TotalsShares,
    domain=(GROUPS, *RANGE),
    error=attrgetter("sum_error"),
    few_messages=few_a_user,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupedPlan(DerivedPlan):
    """A number for every group of a public list. Which group a person belongs to is as private as its value."""

    what: ClassVar[str]
    """What is found of each group, in a word."""
    is_rate: ClassVar[bool] = False
    """Whether it is a mean or a rate, so that two groups can be compared."""

    groups: Names = domain(read=as_groups, write=Categories.document)

    @property
    def ends_of_range(self) -> tuple[float, float]:
        """The smallest and the largest value of a person."""
        return 0.0, 1.0

    @property
    def group_names(self) -> tuple[str, ...]:
        """The groups in the order of the numbers."""
        return tuple(self.groups.names())

    @abstractmethod
    def _numbers(self, ends: Floats, error: float, bound: float) -> tuple[Floats, tuple[Floats, Floats], Floats]:
        """The groups' numbers, the ends of their intervals and their standard errors, from a row a group.

        A row has both ends of its group, or the one number that is asked for.
        """

    def answer(self, estimate: Any) -> GroupsEstimate:
        """The groups' numbers that this estimate of all ends says."""
        ends = np.asarray(estimate.value).reshape(self.groups.size, -1)
        value, intervals, errors = self._numbers(ends, estimate.standard_error, estimate.bound)
        combined = self._combined(estimate.standard_error)
        return groups_estimate(self.group_names, estimate, ends, value, intervals, errors, combined)

    def _combined(self, error: float) -> float:
        """What counts as the error of each end where several are combined: its own, as their noises are independent."""
        return error

    def true_value(self, values: ArrayLike) -> Floats:
        ends = np.asarray(self.sum_plan.true_value(values)).reshape(self.groups.size, -1)
        return self._numbers(ends, 0.0, 0.0)[0]

    def present(self, estimate: Any, truth: Any = None, view: View | None = None) -> Presentation:
        title = f"{self.title}, {self.users:,} users: {self.method}, epsilon {self.privacy.epsilon:g}"
        return present_groups(estimate, self.what, title, truth)


class RatioPlan(GroupedPlan):
    """A mean by group: a ratio, which may be anywhere in its range where a group has few people."""

    __slots__ = ()
    what: ClassVar[str] = "mean"
    is_rate: ClassVar[bool] = True
    is_unbiased: ClassVar[bool] = False
    knows_variance: ClassVar[bool] = False
    """Whether people's own variance is known: it is asked for, or their mean says it, as that of bits does."""
    counted: ClassVar[str] = "people"
    """What a mean is of, in a word."""

    @property
    def standard_error(self) -> float:
        """The whole range: a group may have nobody. An estimate knows its own."""
        low, high = self.ends_of_range
        return high - low

    # Plans of sums and counts, which this one is mixed with, have others: those are not of a ratio.
    error_bound = standard_error
    reference = GroupedPlan.reference
    true_value = GroupedPlan.true_value

    def difference(self, estimate: GroupsEstimate, first: str, second: str) -> Difference:
        """The mean of the second group less that of the first, for these people and for the population.

        Args:
            estimate: an answer of this plan.
            first: the group that is compared with.
            second: the group that is compared.
        """
        low, high = self.ends_of_range
        known, rows = self.knows_variance, self.domain.most_rows or 1
        return difference(estimate, first, second, low=low, high=high, knows_variance=known, rows=rows)

    def error_among(self, people: float, error: float | None = None) -> float:
        """The standard error of the mean of a group of so many people, in the middle of the range.

        Args:
            people: how many the group has.
            error: of each end; the plan's if left out.
        """
        low, high = self.ends_of_range
        ends = self._combined(self.sum_plan.standard_error) if error is None else error
        return min(1.0, ends * math.sqrt(0.5) / people) * (high - low)

    def facts(self) -> list[tuple[str, str]]:
        share = self.users / self.groups.size
        told = (
            f"{self.error_among(share):.4g} where all groups are equal, {share:,.0f} {self.counted} each; "
            "more in smaller ones"
        )
        return [(name, told if name == "standard error" else text) for name, text in GroupedPlan.facts(self)]

    def compared(self) -> Listing:
        """The error of a group with an equal share of the people, beside a trusted curator's and the local model's."""
        share, found = self.users / self.groups.size, self.sum_plan.reference()

        def of(name: str) -> float | None:
            error = found.get(name)
            return None if error is None else self.error_among(share, error)

        curator = "central_laplace_standard_error" if "central_laplace_standard_error" in found else None
        rows = [
            ("trusted curator", of(curator or "central_standard_error"), CURATOR),
            (f"this plan ({self.method})", self.error_among(share), APART),
            ("local model", of("local_standard_error"), ALONE),
        ]
        heading = ("who adds it", "standard error")
        return beside_others(f"A group of {share:,.0f} {self.counted}", heading, self.error_among(share), rows)

    def _moved(self, by: float) -> float:
        return self.standard_error

    def _numbers(self, ends: Floats, error: float, bound: float) -> tuple[Floats, tuple[Floats, Floats], Floats]:
        start, end = self.ends_of_range
        part, lower, upper = means_in_range(ends, bound)
        people = np.maximum(ends.sum(axis=1), 0.0)
        # The delta method: noise at a place of the range counts by how far that is from the mean.
        spread = self._combined(error) * np.hypot.reduce(places_of(ends.shape[1]) - part[:, np.newaxis], axis=1)
        errors = np.minimum(1.0, np.divide(spread, people, out=np.ones_like(people), where=people > 0))
        value, least, most = (start + (end - start) * each for each in (part, lower, upper))
        return value, (least, most), (end - start) * errors


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupedCount(GroupedPlan):
    """How many people of each group have a 1: a histogram over pairs of a group and a bit, or the ones in shares.

    >>> from shuffledp import Privacy, RandomBits, simulate
    >>> plan = GroupedCount.plan(users=10_000, privacy=Privacy(1, 1e-6), groups=["A", "B"], method="decoys")
    >>> people = [("A", 1), ("A", 0), ("B", 1), ("B", 1)] * 2500
    >>> estimate = simulate(plan, plan.encode(people), bits=RandomBits.secure())
    >>> estimate.names, bool(abs(estimate.value[1] - 5000) < 100)
    (('A', 'B'), True)
    """

    protocol: ClassVar[str] = "grouped-count"
    title: ClassVar[str] = "A private count by group"
    what: ClassVar[str] = "count"
    summed = Histogram.with_method(OnesShares)

    @classmethod
    def sum_domain(cls, *, groups: Any) -> dict[str, Any]:  # type: ignore[override]
        return {"categories": ByGroup(as_groups(groups), Integers(0, 1))}

    @property
    def domain(self) -> Domain:
        return GroupedBits(self.groups)

    @property
    def standard_error(self) -> float:
        return float(self.sum_plan.standard_error)

    @property
    def is_unbiased(self) -> bool:  # type: ignore[override]
        """Whether the histogram's counts are."""
        return bool(self.sum_plan.is_unbiased)

    def standard_errors_for(self, values: ArrayLike) -> Any:
        found = self.sum_plan.standard_errors_for(values)
        return found[1::2] if np.ndim(found) else found

    @property
    def error_bound(self) -> float:
        return float(self.sum_plan.error_bound)

    def _combined(self, error: float) -> float:
        return float(error * self.sum_plan.combined_factor)

    def _moved(self, by: float) -> float:
        return by

    def _numbers(self, ends: Floats, error: float, bound: float) -> tuple[Floats, tuple[Floats, Floats], Floats]:
        ones = ends[:, -1]
        interval = np.maximum(ones - bound, np.minimum(ones, 0.0)), ones + bound
        return ones, interval, np.full(ones.size, error)

    def reference(self) -> dict[str, float | None]:
        found = self.sum_plan.reference()
        return {name: found[name] for name in found if name.endswith("standard_error")}

    @property
    def question(self) -> str:
        return f"count the ones in each of {self.groups.size:,} groups among {self.users:,} users"


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupedRate(RatioPlan, GroupedCount):
    """Which part of each group's people has a 1: the rate that an A/B test compares.

    >>> from shuffledp import Privacy
    >>> GroupedRate.plan(users=500, privacy=Privacy(1, 1e-6), groups=["A", "B"], method="decoys").what
    'rate'
    """

    protocol: ClassVar[str] = "grouped-rate"
    title: ClassVar[str] = "A private rate by group"
    summed = Histogram.with_method(PairShares)
    what: ClassVar[str] = "rate"
    is_unbiased: ClassVar[bool] = False
    knows_variance: ClassVar[bool] = True

    @property
    def question(self) -> str:
        return f"find the part of ones in each of {self.groups.size:,} groups among {self.users:,} users"


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupedSum(GroupedPlan):
    """The sum of the numbers of each group's people.

    >>> from shuffledp import Privacy, RandomBits, simulate
    >>> plan = GroupedSum.plan(users=10_000, privacy=Privacy(1, 1e-6), groups=["A", "B"], low=0, high=2)
    >>> round(plan.standard_error, 2)
    5.71
    >>> estimate = simulate(plan, plan.encode([("A", 0.5), ("B", 2.0)] * 5000), bits=RandomBits.secure())
    >>> bool(abs(estimate.value[1] - 10_000) < 100)
    True
    """

    protocol: ClassVar[str] = "grouped-sum"
    title: ClassVar[str] = "A private sum by group"
    what: ClassVar[str] = "sum"
    summed = GroupTotals

    low: float = domain(read=float)
    high: float = domain(read=float)

    @classmethod
    def sum_domain(cls, *, groups: Any, low: float, high: float) -> dict[str, Any]:  # type: ignore[override]
        check_range(low, high)
        return {"groups": as_groups(groups), "low": float(low), "high": float(high)}

    @property
    def domain(self) -> GroupedReals:
        return GroupedReals(self.groups, self.low, self.high, self.sum_plan.grid)

    @property
    def ends_of_range(self) -> tuple[float, float]:
        return self.low, self.high

    @property
    def standard_error(self) -> float:
        return float(self.sum_plan.sum_error)

    @property
    def error_bound(self) -> float:
        return self._moved(self.sum_plan.error_bound)

    def _moved(self, by: float) -> float:
        return float(by * sum(map(abs, self.sum_plan.weights)))

    def _numbers(self, ends: Floats, error: float, bound: float) -> tuple[Floats, tuple[Floats, Floats], Floats]:
        sums = ends @ np.array(self.sum_plan.weights)
        reach = self._moved(bound)
        return sums, (sums - reach, sums + reach), np.full(sums.size, self.standard_error)

    def reference(self) -> dict[str, float | None]:
        """A trusted curator who adds noise to each group's sum: one person takes its number from one to another."""
        largest = max(abs(self.low), abs(self.high))
        apart = max(math.sqrt(2) * largest, self.high - self.low)
        return curator_errors(self.privacy, apart=apart, moved=2 * largest)

    @property
    def question(self) -> str:
        among = f"among {self.users:,} users, each in [{self.low:g}, {self.high:g}]"
        return f"find the {self.what} of each of {self.groups.size:,} groups' numbers {among}"


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupedMean(RatioPlan, GroupedSum):
    """The mean of the numbers of each group's people.

    >>> from shuffledp import Privacy, RandomBits, simulate
    >>> plan = GroupedMean.plan(users=10_000, privacy=Privacy(1, 1e-6), groups=["A", "B"], low=0, high=2)
    >>> estimate = simulate(plan, plan.encode([("A", 0.5), ("B", 1.75)] * 5000), bits=RandomBits.secure())
    >>> bool(abs(estimate.value[1] - 1.75) < 0.02)
    True
    """

    protocol: ClassVar[str] = "grouped-mean"
    title: ClassVar[str] = "A private mean by group"
    what: ClassVar[str] = "mean"
    summed = GroupEnds
