"""A number of fair coins that everybody sees, and bins whose noise are so many coins each.

Given the number N the curve is that of fair coins, so the whole curve is its mean over N. More coins are a
post-processing of fewer, so a group of numbers may be counted as the smallest of it: that is how outcomes are laid on a
grid for composition, where there would be too many of them. Of very many coins each group is a Gaussian pair that
dominates them (see `wide_bins`).
"""

import math
from dataclasses import dataclass
from functools import cached_property, lru_cache

import numpy as np

from shuffledp.accounting.laws import Binomial, Floats, IntegerLaw
from shuffledp.accounting.pairs import RELATIVE_ERROR, WINDOW_TAIL, Atoms, DominatingPair, bounded_exp
from shuffledp.accounting.split_coins import BallsPair, group_weights
from shuffledp.accounting.wide_bins import WideBinsPair

# Groups of numbers of coins, about; grid steps in one bin's loss's standard deviation.
_GROUPS = 256
_STEPS = 32
# The most coins for which a curve is summed, outcome by outcome; beyond, the grid is faster.
_MOST_COINS = 1 << 9
# From so many coins on a Gaussian pair stands for them, in so many groups; from the second on the fewest stand for all:
# there are half a percent fewer of them than on average, or less.
MANY_COINS, _VERY_MANY_COINS, _FEW_GROUPS = 1 << 18, 1 << 22, 32


@dataclass(frozen=True, eq=False)
class OptInPair(DominatingPair):
    """(N, 1 + A, B) against (N, A, 1 + B), N ~ Bin(users, probability), A and B ~ Bin(N, 1/2) independently given N.

    A user moves from one bin to another; both have N coins of noise, and N is seen. P/Q is
    a (N - b + 1) / ((N - a + 1) b): for every b a tail in a. Swapping the bins swaps P and Q.

    Reference: [004] appendix B.2.1, where only one bin is argued for.

    >>> OptInPair(10_000, 0.0153).delta(1.0) < 1e-6 < OptInPair(10_000, 0.0151).delta(1.0)
    True
    """

    users: int
    probability: float

    @property
    def total_law(self) -> Binomial | int:
        """The law of N, or N itself."""
        return self.users if self.probability == 1 else Binomial(self.users, self.probability)

    @cached_property
    def _totals(self) -> tuple[Floats, Floats, float]:
        return _totals(self.total_law)

    def forward(self, epsilon: float) -> float:
        if fewest_coins(self.total_law) >= MANY_COINS:
            return min(1.0, self.atoms().hockey_stick(epsilon))
        totals, weights, outside = self._totals
        if totals[-1] > _MOST_COINS:
            return min(1.0, self.atoms().hockey_stick(epsilon))
        curve = _two_bins_of_coins(epsilon, 1 << int(totals[-1]).bit_length())[totals.astype(np.int64)]
        return min(1.0, float(weights @ curve) * (1 + RELATIVE_ERROR) + outside)

    def reverse(self, epsilon: float) -> float:
        return self.forward(epsilon)

    def delta(self, epsilon: float) -> float:
        return self.forward(epsilon)

    @cached_property
    def _atoms(self) -> Atoms:
        return grid_atoms(self.total_law, bins=2)

    def atoms(self) -> Atoms:
        """The atoms of a pair that dominates this one by very little: see the module."""
        return self._atoms

    def describe(self) -> str:
        return (
            f"P = (N, 1 + A, B), Q = (N, A, 1 + B), where N ~ Binomial({self.users:,}, {self.probability:.8g}) and "
            "A, B ~ Binomial(N, 1/2)"
        )


@dataclass(frozen=True, eq=False)
class GridBallsPair(BallsPair):
    """Balls in two bins, its outcomes laid on a grid: for compositions.

    >>> GridBallsPair(427_000, 1e-4).atoms().hockey_stick(1.0) / BallsPair(427_000, 1e-4).delta(1.0) < 1.05
    True
    """

    @cached_property
    def _atoms(self) -> Atoms:
        return grid_atoms(self.total_law, bins=1)

    def atoms(self) -> Atoms:
        """The atoms of a pair that dominates this one by very little: see the module."""
        return self._atoms


def _totals(law: IntegerLaw | int) -> tuple[Floats, Floats, float]:
    """Numbers of coins, their weights, and the weight below; what lies above is counted as the largest."""
    if isinstance(law, int):
        return np.array([float(law)]), np.ones(1), 0.0
    low, high = law.window(WINDOW_TAIL)
    totals = np.arange(low, high + 1, dtype=np.float64)
    weights = np.exp(law.log_pmf(totals))
    weights[-1] += law.sf(high)
    return totals, weights, law.cdf(low - 1)


@lru_cache(maxsize=8)
def _coin_tables(most: int) -> tuple[Floats, Floats]:
    """P[Bin(N, 1/2) = k] and P[Bin(N, 1/2) >= k] for N up to `most`, a line each; k goes one further."""
    k = np.arange(most + 2, dtype=np.float64)
    masses = np.stack([np.exp(Binomial(n, 0.5).log_pmf(k)) if n else (k == 0).astype(float) for n in range(most + 1)])
    return masses, np.cumsum(masses[:, ::-1], axis=1)[:, ::-1]


@lru_cache(maxsize=256)
def _two_bins_of_coins(epsilon: float, most: int) -> Floats:
    """The curve of two bins of N fair coins each, for every N up to `most`."""
    masses, at_least = _coin_tables(most)
    n, b = np.arange(most + 1)[:, np.newaxis], np.arange(1, most + 1)
    # For 1 <= b <= N: a/(N - a + 1) above e^epsilon b/(N - b + 1), exactly for the a above this.
    with np.errstate(divide="ignore"):
        bar = (n + 1) / (1 + np.maximum(n - b + 1, 0) / (bounded_exp(epsilon) * b))
    # a = N + 1 never happens under Q, however large epsilon: rounding must not lift the bar to it.
    first = np.minimum(np.floor(bar).astype(np.int64), n)
    p = masses[:, 1:-1] * np.take_along_axis(at_least, first, axis=1)
    q = bounded_exp(epsilon) * masses[:, :-2] * np.take_along_axis(at_least, first + 1, axis=1)
    terms = np.where(b <= n, np.maximum(p - q, 0.0) + RELATIVE_ERROR * (p + q), 0.0)
    # b = 0 never happens under Q.
    return np.asarray(np.minimum(1.0, terms.sum(axis=1) + masses[:, 0]))


def grid_atoms(law: IntegerLaw | int, *, bins: int) -> Atoms:
    """Outcomes of one or two bins of a visible number of fair coins, dominated by those on a grid."""
    if fewest_coins(law) >= MANY_COINS:
        return gaussian_atoms(law, bins)
    totals, weights, outside = _totals(law)
    width = 1 << max(0, (totals.size // _GROUPS).bit_length())
    groups = np.maximum(totals // width * width, totals[0])
    starts = np.flatnonzero(np.diff(groups, prepend=-1.0))
    sums = np.add.reduceat(weights, starts)
    # One bin's loss deviates by about 2/sqrt(N): steps are a power of two, so that neighbours share them.
    grid = 2.0 ** math.floor(math.log2(2 / math.sqrt(max(1.0, float(totals[-1]))) / _STEPS))
    masses, missing = np.zeros(1), outside
    for total, weight in zip(groups[starts].astype(int).tolist(), sums.tolist(), strict=True):
        one, lost = _coins_on_grid(total, grid, bins)
        if one.size > masses.size:
            masses = np.pad(masses, (one.size - masses.size) // 2)
        middle = (masses.size - one.size) // 2
        masses[middle : middle + one.size] += weight * one
        missing += weight * lost
    losses = grid * np.arange(-(masses.size // 2), masses.size // 2 + 1, dtype=np.float64)
    kept = masses > 0
    log_p = np.log(masses[kept])
    return Atoms(log_p, log_p - losses[kept], missing, missing)


def fewest_coins(law: IntegerLaw | int) -> int:
    """The smallest number of coins but for the weight that a window leaves out."""
    return law if isinstance(law, int) else law.window(WINDOW_TAIL)[0]


def gaussian_atoms(law: IntegerLaw | int, bins: int) -> Atoms:
    """Outcomes of one or two bins of very many coins, dominated by Gaussian pairs, one for each group of numbers."""
    starts, weights, missing = [fewest_coins(law)], np.ones(1), 0.0
    if not isinstance(law, int):
        low, high = law.window(WINDOW_TAIL)
        missing = law.cdf(low - 1)
        if low < _VERY_MANY_COINS:
            # Groups begin at multiples of a power of two, so that neighbours share them.
            width = 1 << ((high - low) // _FEW_GROUPS).bit_length()
            starts = [low, *range((low // width + 1) * width, high + 1, width)]
            weights, missing = group_weights(law, starts, high), missing + law.sf(high)
    log_p, log_q = [], []
    for start, weight in zip(starts, weights.tolist(), strict=True):
        if weight > 0:
            one = WideBinsPair(Binomial(start, 0.5), bins).atoms()
            log_p.append(one.log_p + math.log(weight))
            log_q.append(one.log_q + math.log(weight))
            missing += weight * one.p_outside
    return Atoms(np.concatenate(log_p), np.concatenate(log_q), missing, missing)


@lru_cache(maxsize=2048)
def _coins_on_grid(total: int, grid: float, bins: int) -> tuple[Floats, float]:
    """P's masses on the grid -K..K of losses, and the mass with infinite loss; Q's are the mirror image.

    Connect-the-dots: an outcome is split between the two grid points around its loss, P and Q at once.
    """
    if total == 0:
        return np.zeros(1), 1.0
    law = Binomial(total, 0.5)
    low, high = law.window(WINDOW_TAIL)
    # P = 1 + A at k = 1..N, where Q = A has a mass too; the loss is log k/(N - k + 1).
    k = np.arange(max(1, low), min(total, high) + 1, dtype=np.float64)
    k = k[(total + 1 - k >= k[0]) & (total + 1 - k <= k[-1])]  # symmetric, as the pair is
    p = np.exp(law.log_pmf(k - 1))
    losses = np.log(k) - np.log(total - k + 1)
    lost = law.cdf(k[0] - 2) + law.sf(k[-1] - 1)
    size = math.ceil(float(np.abs(losses).max()) / grid) + 1
    below = np.floor(losses / grid)
    lower = np.clip(np.expm1((below + 1) * grid - losses) / math.expm1(grid), 0.0, 1.0)
    index = below.astype(np.int64) + size
    shares = ((index, p * lower), (index + 1, p * (1 - lower)))
    masses: Floats = np.sum([np.bincount(where, part, 2 * size + 1) for where, part in shares], axis=0)
    if bins == 1:
        return masses, lost
    # The second bin is the first reversed: its P is the first's Q, at minus its losses.
    points = grid * np.arange(-size, size + 1, dtype=np.float64)
    mirrored = (masses * np.exp(-points))[::-1]
    return np.convolve(masses, mirrored), lost * (2 - lost)
