"""A random number of fair coins, seen by the adversary: symmetric bits, and balls thrown into bins."""

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy import special

from shuffledp.accounting.laws import Binomial, Floats, IntegerLaw, Poisson
from shuffledp.accounting.pairs import RELATIVE_ERROR, WINDOW_TAIL, Atoms, DominatingPair, bounded_exp
from shuffledp.errors import ParameterError

# Numbers of coins that a curve is asked at; where there are more they are taken in groups.
_MOST_TOTALS = 1 << 12
# Where there are more than this, groups are weighed by two tails each: a group is a third of a deviation,
# 1/4000 of the coins at most.
_MOST_MASSES, _FEW_GROUPS = 1 << 15, 1 << 6


class MixedCoinsPair(DominatingPair):
    """(1 + A, B) against (A, 1 + B), where the total T = A + B has any law and A ~ Bin(T, 1/2) given T.

    The two counts show T, whatever the bit. So the curve is the mean over T of the curve of T fair coins,
    a tail in each. Swapping the two counts swaps the two distributions: both directions are equal.
    """

    @property
    @abstractmethod
    def total_law(self) -> IntegerLaw | int:
        """The law of the number of coins, or the number itself."""

    @cached_property
    def _totals(self) -> tuple[Floats, Floats, float]:
        """Numbers of coins, their weights, and the weight left out."""
        law = self.total_law
        if isinstance(law, int):
            return np.array([float(law)]), np.ones(1), 0.0
        low, high = law.window(WINDOW_TAIL)
        totals = np.arange(low, high + 1, dtype=np.float64)
        return totals, np.exp(law.log_pmf(totals)), law.cdf(low - 1) + law.sf(high)

    @cached_property
    def _grouped(self) -> tuple[Floats, Floats, float]:
        """The coins by few numbers: more are a post-processing of fewer, so the smallest stands for a group."""
        law = self.total_law
        if not isinstance(law, int):
            low, high = law.window(WINDOW_TAIL)
            if high - low >= _MOST_MASSES:
                return _weighed(law, low, high)
        totals, weights, outside = self._totals
        starts = np.arange(0, totals.size, -(-totals.size // _MOST_TOTALS))
        return totals[starts], np.add.reduceat(weights, starts), outside

    def forward(self, epsilon: float) -> float:
        totals, weights, outside = self._grouped
        # Bin(T, 1/2) at k over its shift is (T - k + 1) / k: above e^eps exactly below this k.
        last = np.ceil((totals + 1) / (1 + bounded_exp(epsilon))) - 1
        p = _fair_cdf(last, totals)
        q = bounded_exp(epsilon) * _fair_cdf(last - 1, totals)
        terms = np.maximum(p - q, 0.0) + RELATIVE_ERROR * (p + q)
        return float(weights @ terms) * (1 + RELATIVE_ERROR) + outside

    def reverse(self, epsilon: float) -> float:
        return self.forward(epsilon)

    def delta(self, epsilon: float) -> float:
        return min(1.0, self.forward(epsilon))

    def atoms(self) -> Atoms:
        totals, weights, outside = self._totals
        with np.errstate(divide="ignore"):
            log_weights = np.log(weights)
        log_p, log_q = [], []
        for total, log_weight in zip(totals.astype(int).tolist(), log_weights.tolist(), strict=True):
            k = np.arange(total + 2, dtype=np.float64)
            if total == 0:
                log_p.append(np.array([log_weight, -np.inf]))
                log_q.append(np.array([-np.inf, log_weight]))
                continue
            law = Binomial(total, 0.5)
            log_p.append(log_weight + law.log_pmf(k))
            log_q.append(log_weight + law.log_pmf(k - 1))
        return Atoms(np.concatenate(log_p), np.concatenate(log_q), outside, outside)


@dataclass(frozen=True, eq=False)
class SplitCoinsPair(MixedCoinsPair):
    """(1 + A, B) against (A, 1 + B) with A, B ~ Poisson(rate/2) independent.

    Reference: [004] footnote 5 (Balcer, Cheu, Joseph, Mao 2020).

    >>> SplitCoinsPair(85.3).delta(1.0) < 1.01e-6
    True
    """

    rate: float

    @property
    def total_law(self) -> Poisson:
        return Poisson(self.rate)

    def describe(self) -> str:
        return f"P = (1 + A, B), Q = (A, 1 + B), where A, B ~ Poisson({self.rate / 2:.8g})"


@dataclass(frozen=True, eq=False)
class BallsPair(MixedCoinsPair):
    """(1 + A, B) against (A, 1 + B), A and B the numbers of `balls` that fall into two bins of equal `probability`.

    A user moves from one bin to the other, and balls thrown at random hide both: this is the two-bin pair of a
    histogram, in one curve.

    >>> BallsPair(427_000, 1e-4).delta(1.0) < 1e-6 < BallsPair(341_000, 1e-4).delta(1.0)
    True
    """

    balls: int
    probability: float

    def __post_init__(self) -> None:
        if not 0 < self.probability <= 0.5:
            raise ParameterError("probability", self.probability, "must lie in (0, 1/2]", "two bins share all balls")

    @property
    def total_law(self) -> Binomial | int:
        return self.balls if self.probability == 0.5 else Binomial(self.balls, 2 * self.probability)

    def describe(self) -> str:
        return (
            f"P = (1 + A, B), Q = (A, 1 + B), where A and B of {self.balls:,} balls fall into two bins of probability "
            f"{self.probability:.8g}"
        )


def _weighed(law: IntegerLaw, low: int, high: int) -> tuple[Floats, Floats, float]:
    """The smallest number of each group of numbers of coins, the group's weight rounded up, and the weight left out."""
    starts = list(range(low, high + 1, -(-(high + 1 - low) // _FEW_GROUPS)))
    return np.array(starts, dtype=np.float64), group_weights(law, starts, high), law.cdf(low - 1) + law.sf(high)


def group_weights(law: IntegerLaw, starts: Sequence[int], high: int) -> Floats:
    """The weight of each group of numbers, from its start to the next one's or to `high`, rounded up."""
    ends = [*(start - 1 for start in starts[1:]), high]
    weights = []
    for start, end in zip(starts, ends, strict=True):
        # Of the two tails whose difference is the weight, the smaller ones: each is off by a part of itself.
        tails = (law.cdf(end), law.cdf(start - 1)) if end < law.mean else (law.sf(start - 1), law.sf(end))
        weights.append(max(0.0, tails[0] - tails[1]) + RELATIVE_ERROR * sum(tails))
    return np.array(weights)


def _fair_cdf(k: Floats, totals: Floats) -> Floats:
    """P[Bin(T, 1/2) <= k]."""
    inside = (k >= 0) & (k < totals)
    at = np.where(inside, k, 0.0)
    return np.where(
        inside, special.betaincc(at + 1, np.where(inside, totals - at, 1.0), 0.5), np.where(k < 0, 0.0, 1.0)
    )
