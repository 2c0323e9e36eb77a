"""Shuffled randomized response: the number of ones, whatever the other users' bits are."""

import heapq
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from shuffledp.accounting.laws import Binomial, Floats
from shuffledp.accounting.pairs import RELATIVE_ERROR, Atoms, DominatingPair, bounded_exp

_TAIL = 1e-25
# The maximum over the others' inputs is found to within this, and rounded up.
_TOLERANCE = 1e-3


@dataclass(frozen=True, eq=False)
class ShuffledResponsePair(DominatingPair):
    """The number of ones when each of `honest` users flips its bit with probability `lie`.

    The other users' bits are an input: k of them are 1. They add Bin(n-1-k, lie) - Bin(k, lie) to a
    constant; the target adds a coin of bias lie or 1 - lie. Which k is worst depends on n (not always
    0), so delta is the maximum over all k, by branch and bound: for k in [k1, k2] the noise of
    n-1-k2 zeros and k1 ones is part of everybody's, and more noise is a post-processing. By reflection
    k and n-1-k, and the two directions, are the same.

    Composition needs one pair for all k: `atoms` are those of the blanket, which shows who flipped a
    fair coin and is worse than every k.
    """

    honest: int
    lie: float

    def forward(self, epsilon: float) -> float:
        return self._worst(epsilon)[0]

    def reverse(self, epsilon: float) -> float:
        return self._worst(epsilon)[0]

    def delta(self, epsilon: float) -> float:
        return min(1.0, self._worst(epsilon)[0])

    def delta_for(self, ones: int, epsilon: float) -> float:
        """The curve when exactly this many of the others have a 1."""
        return self._curve(self.honest - 1 - ones, ones, epsilon)

    def _worst(self, epsilon: float) -> tuple[float, int]:
        """The largest delta over all inputs, rounded up, and an input close to it."""
        last = (self.honest - 1) // 2
        best, worst_ones = max((self.delta_for(k, epsilon), k) for k in {0, last})
        heap = [(-self._bound(0, last, epsilon), 0, last)]
        while heap:
            bound, low, high = heapq.heappop(heap)
            if -bound <= best * (1 + _TOLERANCE):
                return best * (1 + _TOLERANCE), worst_ones
            middle = (low + high) // 2
            at_middle = self.delta_for(middle, epsilon)
            if at_middle > best:
                best, worst_ones = at_middle, middle
            for part in ((low, middle - 1), (middle + 1, high)):
                if part[0] <= part[1]:
                    heapq.heappush(heap, (-self._bound(*part, epsilon), *part))
        return best * (1 + _TOLERANCE), worst_ones

    def _bound(self, low: int, high: int, epsilon: float) -> float:
        return self._curve(self.honest - 1 - high, low, epsilon)

    def _curve(self, zeros: int, ones: int, epsilon: float) -> float:
        lie = self.lie
        others = np.convolve(self._flips(zeros), self._flips(ones)[::-1])
        without, with_one = np.append(others, 0.0), np.append(0.0, others)
        p, q = (1 - lie) * without + lie * with_one, lie * without + (1 - lie) * with_one
        factor = bounded_exp(epsilon - 3 * RELATIVE_ERROR)
        outside = 4 * _TAIL
        forward, reverse = np.maximum(p - factor * q, 0.0).sum(), np.maximum(q - factor * p, 0.0).sum()
        return float(max(forward, reverse)) * (1 + RELATIVE_ERROR) + outside

    def _flips(self, users: int) -> Floats:
        """Masses of Bin(users, lie) on a window that leaves out _TAIL on each side."""
        if users == 0:
            return np.ones(1)
        law = Binomial(users, self.lie)
        start, end = law.window(_TAIL)
        return np.exp(law.log_pmf(np.arange(start, end + 1, dtype=np.float64)))

    @cached_property
    def _blanket(self) -> Atoms:
        lie = self.lie
        if self.honest == 1:
            return Atoms(np.log([1 - lie, lie]), np.log([lie, 1 - lie]), 0.0, 0.0)
        blanket = Binomial(self.honest - 1, 2 * lie)
        start, end = blanket.window(1e-30)
        log_p, log_q = [], []
        for coins in range(start, end + 1):
            log_weight = float(blanket.log_pmf(np.array([float(coins)]))[0])
            k = np.arange(coins + 2, dtype=np.float64)
            masses = np.exp(Binomial(coins, 0.5).log_pmf(k)) if coins else np.array([1.0, 0.0])
            shifted = np.append(0.0, masses[:-1])
            with np.errstate(divide="ignore"):
                log_p.append(log_weight + np.log((1 - lie) * masses + lie * shifted))
                log_q.append(log_weight + np.log(lie * masses + (1 - lie) * shifted))
        outside = blanket.cdf(start - 1) + blanket.sf(end)
        return Atoms(np.concatenate(log_p), np.concatenate(log_q), outside, outside)

    def atoms(self) -> Atoms:
        return self._blanket

    def describe(self) -> str:
        return (
            f"P = N + Bernoulli({self.lie:.8g}), Q = N + Bernoulli({1 - self.lie:.8g}), where N = Bin(n-1-k, lie) - "
            f"Bin(k, lie), n = {self.honest:,}, for the worst number k of ones among the others"
        )
