"""A random number of fair coins, seen by the adversary: the pair of symmetric Poisson bits."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy import special

from shuffledp.accounting.laws import Binomial, Floats, Poisson
from shuffledp.accounting.pairs import RELATIVE_ERROR, WINDOW_TAIL, Atoms, DominatingPair, bounded_exp


@dataclass(frozen=True, eq=False)
class SplitCoinsPair(DominatingPair):
    """(1 + A, B) against (A, 1 + B) with A, B ~ Poisson(rate/2) independent.

    The two counts show T = A + B ~ Poisson(rate), whatever the bit; given T, A ~ Bin(T, 1/2). So the
    curve is the mean over T of the curve of T fair coins, a tail in each. Swapping the two counts
    swaps the two distributions: both directions are equal.

    Reference: [004] footnote 5 (Balcer, Cheu, Joseph, Mao 2020).

    >>> SplitCoinsPair(85.3).delta(1.0) < 1.01e-6
    True
    """

    rate: float

    @cached_property
    def _totals(self) -> tuple[Floats, Floats, float]:
        """Numbers of coins, their weights, and the weight left out."""
        law = Poisson(self.rate)
        low, high = law.window(WINDOW_TAIL)
        totals = np.arange(low, high + 1, dtype=np.float64)
        return totals, np.exp(law.log_pmf(totals)), law.cdf(low - 1) + law.sf(high)

    def forward(self, epsilon: float) -> float:
        totals, weights, outside = self._totals
        # Bin(T, 1/2) at k over its shift is (T - k + 1) / k: above e^eps exactly below this k.
        last = np.ceil((totals + 1) / (1 + bounded_exp(epsilon))) - 1
        p = _fair_cdf(last, totals)
        q = bounded_exp(epsilon) * _fair_cdf(last - 1, totals)
        terms = np.maximum(p - q, 0.0) + RELATIVE_ERROR * (p + q)
        return float(weights @ terms) * (1 + RELATIVE_ERROR) + outside

    def reverse(self, epsilon: float) -> float:
        return self.forward(epsilon)

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

    def describe(self) -> str:
        return f"P = (1 + A, B), Q = (A, 1 + B), where A, B ~ Poisson({self.rate / 2:.8g})"


def _fair_cdf(k: Floats, totals: Floats) -> Floats:
    """P[Bin(T, 1/2) <= k]."""
    inside = (k >= 0) & (k < totals)
    at = np.where(inside, k, 0.0)
    return np.where(
        inside, special.betaincc(at + 1, np.where(inside, totals - at, 1.0), 0.5), np.where(k < 0, 0.0, 1.0)
    )
