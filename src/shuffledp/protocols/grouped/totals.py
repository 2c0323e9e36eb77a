"""Sums of every group by shares, one number a group: a person's rows lie in whatever groups they do."""

import math
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from shuffledp.accounting.groups import GroupPair
from shuffledp.accounting.mixing import robust_messages
from shuffledp.accounting.pairs import DominatingPair
from shuffledp.errors import ParameterError
from shuffledp.protocols.bounded_sum.shares import laplace_grid
from shuffledp.protocols.domains.categories import Names
from shuffledp.protocols.domains.domain import Categories
from shuffledp.protocols.domains.grouped import as_groups
from shuffledp.protocols.domains.grouped_rows import GroupedRowBits, GroupedRows
from shuffledp.protocols.domains.repeated import check_at_most
from shuffledp.protocols.domains.summed import check_range
from shuffledp.protocols.fields import domain, noise, only_exact
from shuffledp.protocols.grouped.coordinates import CoordinateShares
from shuffledp.protocols.polya import pure_ratio
from shuffledp.protocols.request import Request
from shuffledp.protocols.sums.noise import shift_pair
from shuffledp.references.curator_sums import curator_errors
from shuffledp.sampling.rounding import LARGEST


def _rows(given: Any) -> int:
    """How many rows of one person count: one where nothing is said."""
    return 1 if given is None else check_at_most(given)


@dataclass(frozen=True, slots=True, kw_only=True)
class TotalsShares(CoordinateShares):
    """Each row adds its number to its group's coordinate; a person has `at_most` rows, of which some may be missing.

    A person's steps are at most at_most whole grids in all, whatever the groups of its rows: a replaced one moves
    twice as many.

    >>> from shuffledp import Privacy
    >>> asked = {"users": 10_000, "privacy": Privacy(1, 1e-6), "groups": ["A", "B"]}
    >>> plan = TotalsShares.plan(**asked, low=0, high=5, at_most=3)
    >>> round(plan.standard_error, 1), plan.coordinates
    (42.8, 2)
    """

    protocol: ClassVar[str] = "group-totals"
    method: ClassVar[str] = "totals"
    title: ClassVar[str] = "Private sums of groups"
    weights: ClassVar[tuple[float, ...]] = (1.0,)
    """What each number of a group counts in its sum."""
    people_have: ClassVar[type[GroupedRows]] = GroupedRows
    """What a person contributes, and the numbers that it adds to."""

    groups: Names = domain(read=as_groups, write=Categories.document)
    low: float = domain(read=float)
    high: float = domain(read=float)
    at_most: int = domain("[1, 1000]", read=_rows)
    grid: int = noise(f"[1, {LARGEST}]")

    @classmethod
    def grid_for(cls, request: Request, at_most: int) -> int:
        """Steps of a row's largest number, so that rounding everybody's rows adds little to the noise."""
        return laplace_grid(request.users * at_most, request.privacy.epsilon / (2 * at_most))

    @classmethod
    def for_request(cls, request: Request, *, groups: Any, low: float, high: float, at_most: int = 1) -> Self:
        """The honest users' noise alone hides all of a person's rows; the shares mix every coordinate."""
        only_exact(request.constants)
        check_range(low, high)
        check_at_most(at_most)
        named, grid = as_groups(groups), cls.grid_for(request, at_most)
        rows = cls.people_have(named, low, high, at_most, grid)
        ratio = pure_ratio(request.privacy.epsilon, rows.furthest)
        found = cls.calibrated(request, ratio, rows.largest_shift, robust_messages, "decoys", rows.coordinates)
        return cls(**request.common, groups=named, low=low, high=high, at_most=at_most, grid=grid, **found)

    def _check_domain(self) -> None:
        check_range(self.low, self.high)

    @property
    def domain(self) -> GroupedRows:
        return self.people_have(self.groups, self.low, self.high, self.at_most, self.grid)

    @property
    def roundings(self) -> int:
        return self.users * self.at_most if self.domain.rounds else 0

    @property
    def standard_error(self) -> float:
        # All rows of everybody may be in one group; rounding one has a variance of at most 1/4.
        return self.step * math.sqrt(self.noise_law.variance + self.roundings / 4)

    @property
    def sum_error(self) -> float:
        """The standard error of a group's sum."""
        return self.standard_error

    def pair(self, honest: int) -> DominatingPair:
        return GroupPair(shift_pair(self.batch.law(honest), 1), self.domain.furthest)

    @property
    def dominates_because(self) -> str:
        return (
            "Up to the transport term, permuted shares can be simulated from every coordinate's sum; with all others "
            "known these are the user's steps plus the honest users' independent Polya shares. Each of a user's rows "
            "is within a grid of 0, so that two users' steps are at most twice at_most grids apart, in whatever "
            "coordinates: group privacy, and for Laplace noise no delta."
        )

    def reference(self) -> dict[str, float | None]:
        """A trusted curator who adds noise to each group's sum: all of a person's rows go from one to another."""
        largest = self.at_most * max(abs(self.low), abs(self.high))
        return curator_errors(self.privacy, apart=self._apart, moved=2 * largest)

    @property
    def _apart(self) -> float:
        """The largest distance of two people's sums: in two groups, or at both ends of one."""
        largest = max(abs(self.low), abs(self.high))
        return self.at_most * max(math.sqrt(2) * largest, self.high - self.low)

    def true_value(self, values: ArrayLike) -> NDArray[np.float64]:
        return self.domain.sums(self.check_values(values))

    @property
    def question(self) -> str:
        each = f"each row in [{self.low:g}, {self.high:g}], at most {self.at_most:,} of each user"
        return f"find the sums of {self.groups.size:,} groups among {self.users:,} users, {each}"

    @property
    def neighbours(self) -> tuple[Any, Any, Any]:
        """All of one user's rows the largest in the first group, or in the second; the others have none."""
        largest = self.high if abs(self.high) >= abs(self.low) else self.low
        first, second, others = ([place, number] * self.at_most for place, number in self._corners(largest))
        return np.array([first]), np.array([second]), np.array([others])

    def _corners(self, largest: float) -> list[tuple[float, float]]:
        return [(0.0, largest), (1.0, largest), (float(self.groups.size), 0.0)]

    @property
    def _audited_range(self) -> tuple[int, int]:
        most = self.at_most * self.grid
        return (0, most) if abs(self.high) >= abs(self.low) else (-most, 0)


@dataclass(frozen=True, slots=True, kw_only=True)
class RowTotalsShares(TotalsShares):
    """Totals of groups by shares where people have several rows: there is no other method."""

    protocol: ClassVar[str] = "group-row-totals"
    method: ClassVar[str] = "shares"


@dataclass(frozen=True, slots=True, kw_only=True)
class RowOnesShares(TotalsShares):
    """Each row with a 1 adds one to its group's coordinate: whole numbers, of which nothing is rounded.

    >>> from shuffledp import Privacy
    >>> asked = {"users": 10_000, "privacy": Privacy(1, 1e-6), "groups": ["A", "B"]}
    >>> plan = RowOnesShares.plan(**asked, low=0, high=1, at_most=3)
    >>> round(plan.standard_error, 2), plan.messages_per_user_max
    (8.48, 20)
    """

    protocol: ClassVar[str] = "group-row-ones"
    method: ClassVar[str] = "shares"
    people_have: ClassVar[type[GroupedRows]] = GroupedRowBits

    @classmethod
    def grid_for(cls, request: Request, at_most: int) -> int:
        return 1

    def _check_domain(self) -> None:
        if (self.low, self.high, self.grid) != (0, 1, 1):
            raise ParameterError("grid", self.grid, "must be 1 for ones between 0 and 1", "make the plan again")
