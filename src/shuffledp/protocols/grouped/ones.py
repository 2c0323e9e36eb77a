"""Counts by group by shares: a number for every group, or for every pair of a group and a bit; all are whole."""

from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from shuffledp.accounting.mixing import robust_messages
from shuffledp.accounting.pairs import DominatingPair
from shuffledp.accounting.repeated import RepeatedPair
from shuffledp.protocols.domains.categories import as_categories
from shuffledp.protocols.domains.domain import Categories
from shuffledp.protocols.domains.grouped import GroupedBits
from shuffledp.protocols.domains.summed import OneHot, SummedDomain
from shuffledp.protocols.fields import domain, only_exact
from shuffledp.protocols.grouped.coordinates import CoordinateShares
from shuffledp.protocols.polya import pure_ratio
from shuffledp.protocols.request import Request
from shuffledp.protocols.sums.noise import shift_pair
from shuffledp.references.curator_histogram import CuratorHistogram
from shuffledp.references.local_histograms import best_local_histogram

# A replaced person leaves one coordinate and comes to another.
_MOVED = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class PairShares(CoordinateShares):
    """A person adds one to the coordinate of its group and bit: two a group, which a rate is made of.

    A replaced person moves at most two coordinates by one each. Values are codes of pairs.

    >>> from shuffledp import Privacy
    >>> from shuffledp.protocols.domains.grouped import ByGroup
    >>> pairs = ByGroup(["A", "B"], range(2))
    >>> plan = PairShares.plan(users=3000, privacy=Privacy(1, 1e-6), categories=pairs)
    >>> round(plan.standard_error, 2), plan.coordinates, plan.messages_per_user_max
    (2.8, 4, 48)
    """

    protocol: ClassVar[str] = "group-pairs"
    title: ClassVar[str] = "Private counts of groups and bits"

    categories: Categories = domain(read=as_categories, write=Categories.document)

    @classmethod
    def numbers(cls, categories: Any) -> SummedDomain:
        """The coordinates that people add to."""
        return OneHot(categories.size)

    @classmethod
    def for_request(cls, request: Request, *, categories: Any) -> Self:
        """The honest users' noise alone hides a one in each of two coordinates; the shares mix all of them."""
        only_exact(request.constants)
        ratio = pure_ratio(request.privacy.epsilon, _MOVED)
        coordinates = cls.numbers(categories).coordinates
        found = cls.calibrated(request, ratio, 1, robust_messages, "decoys", coordinates)
        return cls(**request.common, categories=categories, **found)

    @property
    def domain(self) -> SummedDomain:
        return self.numbers(self.categories)

    def pair(self, honest: int) -> DominatingPair:
        return RepeatedPair.of(shift_pair(self.batch.law(honest), 1), _MOVED)

    @property
    def dominates_because(self) -> str:
        return (
            "Up to the transport term, permuted shares can be simulated from every coordinate's sum; with all others "
            "known these are the user's own ones plus the honest users' independent Polya shares. A replaced user "
            "leaves one coordinate and comes to another: two independent noises, each shifted by one, are all that "
            "differs, and their composition is exact."
        )

    def reference(self) -> dict[str, float | None]:
        bins = self.categories.size
        local = best_local_histogram(users=self.users, privacy=self.privacy, bins=bins)
        return {
            "paper_standard_error": None,
            "central_standard_error": CuratorHistogram(privacy=self.privacy, bins=bins).standard_error,
            "local_standard_error": local.standard_error,
        }

    def true_value(self, values: ArrayLike) -> NDArray[np.float64]:
        counts = np.bincount(self.check_values(values), minlength=self.categories.size)
        return counts.astype(np.float64)

    @property
    def question(self) -> str:
        return f"count {self.users:,} users in {self.coordinates:,} coordinates"

    @property
    def neighbours(self) -> tuple[Any, Any, Any]:
        """One user in the first coordinate or in the second, all others in the last."""
        return np.array([0]), np.array([1]), np.array([self.categories.size - 1])

    @property
    def _audited_range(self) -> tuple[int, int]:
        return 0, 1


@dataclass(frozen=True, slots=True, kw_only=True)
class OnesShares(PairShares):
    """A person with a 1 adds one to the coordinate of its group, a person with a 0 adds nothing: one a group.

    >>> from shuffledp import Privacy
    >>> from shuffledp.protocols.domains.grouped import ByGroup
    >>> pairs = ByGroup(["A", "B"], range(2))
    >>> plan = OnesShares.plan(users=3000, privacy=Privacy(1, 1e-6), categories=pairs)
    >>> round(plan.standard_error, 2), plan.coordinates, plan.messages_per_user_max
    (2.8, 2, 22)
    """

    protocol: ClassVar[str] = "group-ones"
    title: ClassVar[str] = "Private counts of groups"

    @classmethod
    def numbers(cls, categories: Any) -> SummedDomain:
        return GroupedBits(categories.groups)

    def true_value(self, values: ArrayLike) -> NDArray[np.float64]:
        codes = self.check_values(values)
        return np.bincount(codes[codes % 2 == 1] // 2, minlength=self.coordinates).astype(np.float64)

    @property
    def neighbours(self) -> tuple[Any, Any, Any]:
        """One user with a 1 in the first group or in the second, all others without a 1 in the last."""
        return np.array([1]), np.array([3]), np.array([self.categories.size - 2])
