"""Shuffled randomized response: the number of ones, whatever the other users' bits are."""

import heapq
import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy import special

from shuffledp.accounting.laws import Binomial, Floats
from shuffledp.accounting.pairs import RELATIVE_ERROR, Atoms, DominatingPair, bounded_exp

_TAIL = 1e-25
# The maximum over the others' inputs is found to within this, and rounded up.
_TOLERANCE = 1e-3
# Where noise is wider than so many masses, inputs are taken in so many groups, which costs 1/64 of noise.
_WIDE, _GROUPS = 900, 32
# Noise that is wider takes too long.
_WIDEST = 1 << 13


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

    @property
    def takes_groups(self) -> bool:
        """Whether so much noise is added that the others' inputs are taken in groups."""
        return self._spread(self.honest) > _WIDE

    @property
    def is_wide(self) -> bool:
        """Whether so much noise is added that the curve takes too long."""
        return self._spread(self.honest) > _WIDEST

    def meets(self, epsilon: float, delta: float) -> bool:
        """Whether `delta(epsilon)` is at most this, found as soon as that is sure."""
        # That all others have a 0 is one input.
        if self.delta_below(epsilon) > delta:
            return False
        return self._worst(epsilon, delta)[0] <= delta

    def delta_below(self, epsilon: float) -> float:
        """The curve where all others have a 0, by tails alone and rounded down: delta is at least this."""
        if self.honest == 1:
            return max(0.0, 1 - self.lie * (1 + bounded_exp(epsilon)))
        law, lie, factor = Binomial(self.honest - 1, self.lie), self.lie, bounded_exp(epsilon)

        def above(last: int) -> float:
            """P - e^eps Q of so few ones: the event that is best where it ends there."""
            return difference(law.cdf(last), law.cdf(last - 1))

        def beyond(first: int) -> float:
            """Q - e^eps P of so many ones."""
            return difference(law.sf(first - 2), law.sf(first - 1))

        def difference(joined: float, apart: float) -> float:
            more, less = (1 - lie) * joined + lie * apart, lie * joined + (1 - lie) * apart
            return more - factor * less - RELATIVE_ERROR * (more + factor * less)

        # With j ones Q/P = (j r + (n-j)/r)/n, r = (1-lie)/lie: it rises in j.
        ratio = (1 - lie) / lie
        if ratio <= factor:
            return 0.0

        def ones_at(likelihood: float) -> float:
            return self.honest * (likelihood - 1 / ratio) / (ratio - 1 / ratio)

        low, high = math.ceil(ones_at(1 / factor)) - 1, math.floor(ones_at(factor)) + 1
        return max(0.0, above(low), beyond(high))

    def delta_for(self, ones: int, epsilon: float) -> float:
        """The curve when exactly this many of the others have a 1."""
        return self._curve(self.honest - 1 - ones, ones, epsilon)

    def _worst(self, epsilon: float, target: float | None = None) -> tuple[float, int]:
        """The largest delta over all inputs, rounded up, and an input close to it.

        With a target, some number on the same side of it.
        """
        last, slack = (self.honest - 1) // 2, 1 + _TOLERANCE
        if self.takes_groups:
            return self._worst_group(epsilon, last, math.inf if target is None else target)
        best, worst_ones = max((self.delta_for(k, epsilon), k) for k in {0, last})
        heap = [(-self._bound(0, last, epsilon), 0, last)]
        while heap:
            bound, low, high = heapq.heappop(heap)
            if target is not None and not best * slack <= target < -bound * slack:
                return max(best, 0.0 if best * slack > target else -bound) * slack, worst_ones
            if -bound <= best * slack:
                return best * slack, worst_ones
            middle = (low + high) // 2
            at_middle = self.delta_for(middle, epsilon)
            if at_middle > best:
                best, worst_ones = at_middle, middle
            for part in ((low, middle - 1), (middle + 1, high)):
                if part[0] <= part[1]:
                    heapq.heappush(heap, (-self._bound(*part, epsilon), *part))
        return best * slack, worst_ones

    def _worst_group(self, epsilon: float, last: int, target: float) -> tuple[float, int]:
        """The largest bound of a group of inputs, or the first one above the target, and the group's middle."""
        edges = [last * part // _GROUPS for part in range(_GROUPS + 1)]
        worst = (0.0, 0)
        # The first and the last inputs are the worst in practice.
        for part in sorted(range(_GROUPS), key=lambda part: min(part, _GROUPS - 1 - part)):
            worst = max(
                worst, (self._bound(edges[part], edges[part + 1], epsilon), (edges[part] + edges[part + 1]) // 2)
            )
            if worst[0] > target:
                break
        return worst

    def _bound(self, low: int, high: int, epsilon: float) -> float:
        return self._curve(self.honest - 1 - high, low, epsilon)

    def _curve(self, zeros: int, ones: int, epsilon: float) -> float:
        lie = self.lie
        if ones > 0 and self.takes_groups:
            return self._tails_apart(zeros, ones, epsilon)
        others = np.convolve(self._flips(zeros), self._flips(ones)[::-1])
        without, with_one = np.append(others, 0.0), np.append(0.0, others)
        p, q = (1 - lie) * without + lie * with_one, lie * without + (1 - lie) * with_one
        factor = bounded_exp(epsilon - 3 * RELATIVE_ERROR)
        outside = 4 * _TAIL
        forward, reverse = np.maximum(p - factor * q, 0.0).sum(), np.maximum(q - factor * p, 0.0).sum()
        return float(max(forward, reverse)) * (1 + RELATIVE_ERROR) + outside

    def _spread(self, users: int) -> float:
        """How many masses, about, a window of Bin(users, lie) has."""
        return 1 + 22 * math.sqrt(users * self.lie * (1 - self.lie))

    def _tails_apart(self, zeros: int, ones: int, epsilon: float) -> float:
        """The curve by tails: N = Bin(zeros, lie) - Bin(ones, lie) is log-concave, so that P/Q falls along the counts.

        {P > e^eps Q} is a lower tail and {Q > e^eps P} an upper one. A tail of N is the mean, over the ones that flip,
        of a tail of the zeros that do.
        """
        lie, factor = self.lie, bounded_exp(epsilon)
        ratio = (1 - lie) / lie
        if ratio <= factor:
            return 4 * _TAIL
        start, end = Binomial(ones, lie).window(_TAIL)
        flipped = np.arange(start, end + 1, dtype=np.float64)
        weights = np.exp(Binomial(ones, lie).log_pmf(flipped))
        law = Binomial(zeros, lie)
        # P/Q = (r + x)/(1 + r x) with x = P[N = j-1]/P[N = j]: above e^eps where x is below this, and the other way.
        edge = (ratio - factor) / (factor * ratio - 1)

        def rises(j: int, least: float) -> bool:
            """Whether P[N = j-1] is below this part of P[N = j]."""
            here, before = (float(weights @ np.exp(law.log_pmf(j - shift + flipped))) for shift in (0, 1))
            return before < least * here

        def last(least: float) -> int:
            """The last j at which that is so; beyond twelve deviations there is nothing to tell."""
            middle, variance = (zeros - ones) * lie, (zeros + ones) * lie * (1 - lie)
            reach = 12 * math.sqrt(variance) + 2
            first, end = math.floor(middle - reach), math.ceil(middle + reach)
            guess, step = round(max(-reach, min(variance * math.log(least), reach)) + middle), 4
            low, high = max(guess - step, first), min(guess + step, end)
            while low > first and not rises(low, least):
                low, high, step = max(low - 2 * step, first), low, 2 * step
            while high < end and rises(high, least):
                low, high, step = high, min(high + 2 * step, end), 2 * step
            while high - low > 1:
                half = (low + high) // 2
                low, high = (half, high) if rises(half, least) else (low, half)
            return low

        def lost(joined: float, apart: float) -> float:
            more, less = (1 - lie) * joined + lie * apart, lie * joined + (1 - lie) * apart
            return max(0.0, more - factor * less) + RELATIVE_ERROR * (more + factor * less)

        lower, upper = last(edge), last(1 / edge) + 1
        forward = lost(*(float(weights @ _cdf(law, j + flipped)) for j in (lower, lower - 1)))
        reverse = lost(*(float(weights @ _sf(law, j + flipped)) for j in (upper - 2, upper - 1)))
        return max(forward, reverse) * (1 + RELATIVE_ERROR) + 4 * _TAIL

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


def _cdf(law: Binomial, k: Floats) -> Floats:
    """P[X <= k] for each k."""
    inside = (k >= 0) & (k < law.trials)
    at = np.where(inside, k, 0.0)
    return np.where(inside, special.betaincc(at + 1, law.trials - at, law.p), np.where(k < 0, 0.0, 1.0))


def _sf(law: Binomial, k: Floats) -> Floats:
    """P[X > k] for each k."""
    inside = (k >= 0) & (k < law.trials)
    at = np.where(inside, k, 0.0)
    return np.where(inside, special.betainc(at + 1, law.trials - at, law.p), np.where(k < 0, 1.0, 0.0))
