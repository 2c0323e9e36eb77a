"""Domain compression: categories thrown together by public coins into fewer groups, with a proved loss.

Reference: [004] Lemma 15, whose constants (a 477 sqrt(10)-fold loss, with probability 1/954) are theory only. What is
used here is the sum of squares itself: its mean and variance over random balanced groups are known exactly.
"""

import math
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from shuffledp.errors import ParameterError
from shuffledp.protocols.distribution_test.moments import ScoreMoments
from shuffledp.protocols.domains.domain import Codes
from shuffledp.randomness import RandomBits
from shuffledp.sampling.permutation import uniform_permutation
from shuffledp.sampling.uniform import uniform_below

LARGEST_PARTS = 1 << 20
_PARTS = tuple(step / 50 for step in range(1, 50))


@lru_cache(maxsize=16)
def _places(parts: int, seed: int) -> NDArray[np.int64]:
    # Public coins: everybody must draw the same partition, and nobody is protected by it.
    return uniform_permutation(parts, bits=RandomBits.seeded(seed)).astype(np.int64)


@dataclass(frozen=True, slots=True, kw_only=True)
class Groups:
    """`cells` categories in `groups` groups of equal weight, drawn by the public `seed` before there are any data.

    Where the groups do not divide the cells each cell is split into equal parts first, one of which a user picks by
    private coins: uniform users stay exactly uniform.

    >>> groups = Groups(cells=10, groups=4, seed=1)
    >>> groups.parts, groups.parts_per_group
    (20, 5)
    """

    cells: int
    groups: int
    seed: int

    def __post_init__(self) -> None:
        if not 2 <= self.groups <= self.cells:
            raise ParameterError("groups", self.groups, f"must lie in 2..{self.cells}", "auto chooses the number")
        if isinstance(self.seed, bool) or not isinstance(self.seed, int) or self.seed < 0:
            raise ParameterError("public_seed", self.seed, "must be a whole number >= 0", "draw one before the data")
        if self.parts > LARGEST_PARTS:
            raise ParameterError(
                "groups", self.groups, f"would need {self.parts} parts of cells", "take a divisor of the categories"
            )

    @property
    def splits(self) -> int:
        """How many equal parts each cell is split into."""
        return self.groups // math.gcd(self.cells, self.groups)

    @property
    def parts(self) -> int:
        """How many parts all cells are split into."""
        return self.cells * self.splits

    @property
    def parts_per_group(self) -> int:
        """How many parts of cells each group has."""
        return self.parts // self.groups

    def assign(self, cells: Codes, *, bits: RandomBits) -> Codes:
        """The group of each user's cell; `bits` choose the part."""
        part = cells * self.splits
        if self.splits > 1:
            part = part + uniform_below(self.splits, cells.size, bits=bits).astype(np.int64)
        return _places(self.parts, self.seed)[part] // self.parts_per_group

    def law(self, law: NDArray[np.float64]) -> NDArray[np.float64]:
        """The law over the groups of users with this law over the cells."""
        parts = np.repeat(law / self.splits, self.splits)
        groups = _places(self.parts, self.seed) // self.parts_per_group
        return np.asarray(np.bincount(groups, parts, self.groups), dtype=np.float64)

    @property
    def mean_kept(self) -> float:
        """The mean of D over the groups, over D over the parts: (M - s) / (M - 1), for any users."""
        return (self.parts - self.parts_per_group) / (self.parts - 1)

    @property
    def variance_kept(self) -> float:
        """The variance of that ratio over the public coins, at most.

        Of D over the groups = D + S, S = sum over pairs in one group of q_j q_k. E[S^2] is linear in the sum of
        q_j^4, which lies between D^2/M and D^2.
        """
        m, s, k = self.parts, self.parts_per_group, self.groups
        two = (s - 1) / (m - 1)
        three = two * (s - 2) / (m - 2) if m > 2 else 0.0
        inside = (s - 2) * (s - 3) + (k - 1) * s * (s - 1)
        four = two * inside / ((m - 2) * (m - 3)) if m > 3 else 0.0

        def variance(fourth: float) -> float:
            squares = 2 * two * (1 - fourth) + 4 * three * (2 * fourth - 1) + four * (3 - 6 * fourth)
            return squares - two**2

        return max(0.0, variance(1 / m), variance(1.0))

    def shortfall(self, part: float) -> float:
        """The probability that D over the groups is at most `part` of its mean, at most: Cantelli's inequality."""
        if self.variance_kept == 0:
            return 0.0
        gap = (1 - part) * self.mean_kept
        return self.variance_kept / (self.variance_kept + gap**2)

    def miss(self, moments: ScoreMoments, score: float, least: float) -> float:
        """The probability to miss, at most: D falls short of a part of its mean, or the statistic of its mean there.

        `least` is D over the cells for the nearest law that must be seen.
        """
        parts = (1.0,) if self.variance_kept == 0 else _PARTS
        mean = least / self.splits * self.mean_kept
        return min(self.shortfall(part) + moments.miss(score, part * mean) for part in parts)
