"""Parts of rows at places of every group's range, by shares: what means and variances by group are made of."""

import math
from dataclasses import dataclass
from typing import ClassVar

from shuffledp.protocols.domains.row_parts import RowEnds, RowMoments, RowPairs
from shuffledp.protocols.grouped.totals import RowOnesShares, TotalsShares
from shuffledp.references.curator_sums import curator_errors


class PartsShares(TotalsShares):
    """Each row adds its parts, one in all, to its group's coordinates; a person has `at_most` rows.

    A person's steps are not below 0 and at most at_most whole grids in all, whatever the groups of its rows: a replaced
    one moves twice as many.
    """

    __slots__ = ()
    people_have: ClassVar[type[RowEnds]]

    def reference(self) -> dict[str, float | None]:
        """A trusted curator who adds noise to each part: all of a person's rows go from one to another."""
        return curator_errors(self.privacy, apart=math.sqrt(2) * self.at_most, moved=2 * self.at_most)

    @property
    def question(self) -> str:
        each = f"each row in [{self.low:g}, {self.high:g}], at most {self.at_most:,} of each user"
        return f"find the parts of rows in {self.groups.size:,} groups among {self.users:,} users, {each}"

    def _corners(self, largest: float) -> list[tuple[float, float]]:
        return [(0.0, self.low), (0.0, self.high), (float(self.groups.size), 0.0)]

    @property
    def audited_pair(self) -> tuple[int, int]:  # type: ignore[override]
        """The low and the high end of the first group."""
        return 0, self.people_have.parts - 1

    @property
    def _audited_range(self) -> tuple[int, int]:
        return 0, self.at_most * self.grid


@dataclass(frozen=True, slots=True, kw_only=True)
class RowEndsShares(PartsShares):
    """Two parts a group, its ends: for means.

    >>> from shuffledp import Privacy
    >>> asked = {"users": 10_000, "privacy": Privacy(1, 1e-6), "groups": ["A", "B"]}
    >>> plan = RowEndsShares.plan(**asked, low=0, high=5, at_most=3)
    >>> round(plan.standard_error, 2), plan.coordinates
    (8.57, 4)
    """

    protocol: ClassVar[str] = "group-row-ends"
    method: ClassVar[str] = "shares"
    title: ClassVar[str] = "Private parts of rows at the ends of groups"
    people_have: ClassVar[type[RowEnds]] = RowEnds


@dataclass(frozen=True, slots=True, kw_only=True)
class RowMomentsShares(PartsShares):
    """Three parts a group, by squares: for means with their variances, at the noise of two.

    >>> from shuffledp import Privacy
    >>> asked = {"users": 10_000, "privacy": Privacy(1, 1e-6), "groups": ["A", "B"]}
    >>> plan = RowMomentsShares.plan(**asked, low=0, high=5, at_most=1)
    >>> round(plan.standard_error, 2), plan.coordinates
    (2.86, 6)
    """

    protocol: ClassVar[str] = "group-row-moments"
    method: ClassVar[str] = "shares"
    title: ClassVar[str] = "Private moments of rows by group"
    people_have: ClassVar[type[RowEnds]] = RowMoments


@dataclass(frozen=True, slots=True, kw_only=True)
class RowPairShares(PartsShares, RowOnesShares):
    """Two parts a group, the zeros and the ones: whole rows, of which nothing is rounded.

    >>> from shuffledp import Privacy
    >>> asked = {"users": 10_000, "privacy": Privacy(1, 1e-6), "groups": ["A", "B"]}
    >>> plan = RowPairShares.plan(**asked, low=0, high=1, at_most=3)
    >>> round(plan.standard_error, 2), plan.coordinates
    (8.48, 4)
    """

    protocol: ClassVar[str] = "group-row-pairs"
    method: ClassVar[str] = "shares"
    title: ClassVar[str] = "Private counts of rows by group and bit"
    people_have: ClassVar[type[RowEnds]] = RowPairs
