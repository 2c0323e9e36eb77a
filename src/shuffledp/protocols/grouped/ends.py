"""Parts of people at the two ends of every group's range, by shares: what sums and means by group are made of."""

import math
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from shuffledp.accounting.groups import GroupPair
from shuffledp.accounting.mixing import robust_messages
from shuffledp.accounting.pairs import DominatingPair
from shuffledp.protocols.bounded_sum.shares import laplace_grid
from shuffledp.protocols.domains.categories import Names
from shuffledp.protocols.domains.domain import Categories
from shuffledp.protocols.domains.grouped import GroupedReals, as_groups
from shuffledp.protocols.domains.summed import check_range
from shuffledp.protocols.fields import domain, noise, only_exact
from shuffledp.protocols.grouped.coordinates import CoordinateShares
from shuffledp.protocols.polya import pure_ratio
from shuffledp.protocols.request import Request
from shuffledp.protocols.sums.noise import shift_pair
from shuffledp.references.curator_sums import curator_errors
from shuffledp.sampling.rounding import LARGEST


@dataclass(frozen=True, slots=True, kw_only=True)
class EndsShares(CoordinateShares):
    """Each user adds its part of Laplace noise to all coordinates, two a group, and sends each in random shares.

    The adversary sees, up to a stated distance, every coordinate's sum modulo 2^modulus_bits: the parts of people at
    the low and the high end of every group, plus discrete Laplace noise. A person's own coordinates add up to one,
    whatever its group and value: a replaced one moves at most two in all, as in a histogram.

    >>> from shuffledp import Privacy
    >>> plan = EndsShares.plan(users=10_000, privacy=Privacy(1, 1e-6), groups=["A", "B"], low=0, high=5)
    >>> round(plan.standard_error, 2), plan.coordinates
    (2.86, 4)
    """

    protocol: ClassVar[str] = "group-ends"
    title: ClassVar[str] = "Private parts at the ends of groups"

    groups: Names = domain(read=as_groups, write=Categories.document)
    low: float = domain(read=float)
    high: float = domain(read=float)
    grid: int = noise(f"[1, {LARGEST}]")

    @classmethod
    def for_request(cls, request: Request, *, groups: Any, low: float, high: float) -> Self:
        """The honest users' noise alone hides two in all; the shares mix every coordinate to within delta."""
        only_exact(request.constants)
        check_range(low, high)
        named = as_groups(groups)
        grid = laplace_grid(request.users, request.privacy.epsilon / 2)
        ratio = pure_ratio(request.privacy.epsilon, 2 * grid)
        found = cls.calibrated(request, ratio, grid, robust_messages, "decoys of a histogram", 2 * named.size)
        return cls(**request.common, groups=named, low=low, high=high, grid=grid, **found)

    def _check_domain(self) -> None:
        check_range(self.low, self.high)

    @property
    def domain(self) -> GroupedReals:
        return GroupedReals(self.groups, self.low, self.high, self.grid)

    @property
    def weights(self) -> tuple[float, ...]:
        """What each number of a group counts in its sum."""
        return self.low, self.high

    @property
    def sum_error(self) -> float:
        """The standard error of a group's sum."""
        # Noise is independent at the two ends; what rounding takes from one it gives to the other.
        rounding = (self.high - self.low) * self.step * math.sqrt(self.users) / 2
        return math.hypot(self.noise_error * math.hypot(self.low, self.high), rounding)

    def pair(self, honest: int) -> DominatingPair:
        return GroupPair(shift_pair(self.batch.law(honest), 1), 2 * self.grid)

    @property
    def dominates_because(self) -> str:
        return (
            "Up to the transport term, permuted shares can be simulated from every coordinate's sum; with all others "
            "known these are the user's steps plus the honest users' independent Polya shares. A user's steps add up "
            "to the grid, so that two users' are at most twice the grid single steps apart, in whatever coordinates: "
            "group privacy, and for Laplace noise no delta."
        )

    def reference(self) -> dict[str, float | None]:
        return curator_errors(self.privacy, apart=math.sqrt(2), moved=2)

    def true_value(self, values: ArrayLike) -> NDArray[np.float64]:
        """Parts of people at the low and the high end of each group, one after another."""
        points = self.check_values(values)
        group, part = points[:, 0].astype(np.int64), (points[:, 1] - self.low) / (self.high - self.low)
        ends = np.stack([np.bincount(group, weights, self.groups.size) for weights in (1 - part, part)], axis=1)
        return np.asarray(ends.reshape(-1))

    @property
    def question(self) -> str:
        each = f"each with a number in [{self.low:g}, {self.high:g}]"
        return f"find the people and their numbers in {self.groups.size:,} groups among {self.users:,} users, {each}"

    @property
    def neighbours(self) -> tuple[Any, Any, Any]:
        """One user at the low end of the first group or at its high end, all others in the last group."""
        low, high = np.array([[0.0, self.low]]), np.array([[0.0, self.high]])
        return low, high, np.array([[self.groups.size - 1.0, self.low]])

    @property
    def _audited_range(self) -> tuple[int, int]:
        return 0, self.grid
