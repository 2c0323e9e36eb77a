"""Shuffled randomized response: its own upper bound, and what real data sets prove from below."""

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from shuffledp.accounting.amplification import check_run, mass_of_fair_coins, upper_tail_of_fair_coins
from shuffledp.accounting.blanket import BlanketCurve
from shuffledp.accounting.curves import Curve, epsilon_at
from shuffledp.accounting.laws import Binomial, Floats
from shuffledp.accounting.pairs import WINDOW_TAIL
from shuffledp.errors import ParameterError

# The curves below are good to this fraction of delta: tails to 1e-11, of which at most 1e4 cancel.
_CURVE_ERROR = 1e-6


def response_matrix(local_epsilon: float, symbols: int) -> Floats:
    """k-randomized response: the truth with probability e^eps0/(e^eps0+k-1), each other symbol 1/(e^eps0+k-1).

    >>> response_matrix(math.log(3), 2).round(12).tolist()
    [[0.75, 0.25], [0.25, 0.75]]
    """
    check_run(local_epsilon, 2)
    if symbols < 2:
        raise ParameterError("symbols", symbols, "must be >= 2", "a single symbol says nothing")
    ratio = math.exp(local_epsilon)
    matrix = np.full((symbols, symbols), 1 / (ratio + symbols - 1))
    np.fill_diagonal(matrix, ratio / (ratio + symbols - 1))
    return matrix


def shuffled_response(local_epsilon: float, users: int, symbols: int) -> BlanketCurve:
    """An upper bound for n shuffled k-randomized responses: their blanket. For k = 2 the stronger clones' curve.

    All symbols but the two in question act alike, so three columns and two rows do for every k.

    Args:
        local_epsilon: what one user's response satisfies alone.
        users: how many responses are shuffled.
        symbols: how many answers there are, the k of k-randomized response.

    Returns:
        A curve: its delta at every epsilon, and through `epsilon_at` its epsilon.

    >>> round(shuffled_response(1.0, 20, 5).delta(0.5), 5)
    0.00056
    """
    check_run(local_epsilon, users)
    truth, lie = response_matrix(local_epsilon, symbols)[0, :2]
    rest = (symbols - 2) * lie
    return BlanketCurve([[truth, lie, rest], [lie, truth, rest]], users)


@dataclass(frozen=True)
class OthersAllZero:
    """Binary randomized response where all others hold 0: the view is the number of ones, and exact.

    One data set of one randomizer: whatever holds for every local_epsilon-private one is at least this.

    >>> round(smallest_provable(OthersAllZero(1.0, 10_000), 1e-6), 6)
    0.035659
    """

    local_epsilon: float
    users: int

    def __post_init__(self) -> None:
        check_run(self.local_epsilon, self.users)

    def delta(self, epsilon: float) -> float:
        """The larger direction."""
        ratio, scale, n = math.exp(self.local_epsilon), math.exp(epsilon), self.users
        lie = 1 / (ratio + 1)
        others = Binomial(n - 1, lie)

        # P: the target holds 0, Q: it holds 1. With j ones Q/P = (j ratio + (n-j)/ratio)/n rises in j.
        def cut(likelihood: float) -> int:
            return math.floor(n * (likelihood - 1 / ratio) / (ratio - 1 / ratio))

        up, down = cut(scale), cut(1 / scale)
        joined, apart = others.sf(up - 1), others.sf(up)
        reverse = (1 - lie) * joined + lie * apart - scale * (lie * joined + (1 - lie) * apart)
        joined, apart = others.cdf(down - 1), others.cdf(down)
        forward = lie * joined + (1 - lie) * apart - scale * ((1 - lie) * joined + lie * apart)
        return max(0.0, forward, reverse)


@dataclass(frozen=True)
class OthersHoldAThird:
    """k-randomized response, k >= 3, where all others hold a third symbol, seen by who counts two symbols only.

    This is the pair that the variation-ratio reduction (Wang et al. 2024) gives for k-randomized response.
    As a real data set has it as a post-processing of its view, it bounds from below: for k >= 4 the
    whole view of that data set is strictly easier to tell apart.

    Attributes:
        local_epsilon: what one user's response satisfies alone.
        users: how many responses are shuffled.
        symbols: how many answers there are, at least three.

    >>> round(OthersHoldAThird(2.0, 6, 4).delta(1.0), 6)
    0.185187
    """

    local_epsilon: float
    users: int
    symbols: int

    def __post_init__(self) -> None:
        check_run(self.local_epsilon, self.users)
        if self.symbols < 3:
            raise ParameterError("symbols", self.symbols, "must be >= 3", "with 2 there is no third symbol")

    @cached_property
    def _share(self) -> float:
        return 1 / (math.exp(self.local_epsilon) + self.symbols - 1)

    @cached_property
    def _totals(self) -> tuple[Floats, Floats, Floats]:
        """Totals of the two symbols, and how likely the others have that many, and one fewer."""
        law = Binomial(self.users - 1, 2 * self._share)
        start, end = law.window(WINDOW_TAIL)
        totals = np.arange(start, end + 2, dtype=np.float64)
        return totals, np.exp(law.log_pmf(totals)), np.exp(law.log_pmf(totals - 1))

    def delta(self, epsilon: float) -> float:
        """Either direction: swapping the two symbols swaps them. What lies outside the window is left out."""
        ratio, scale, share, n = math.exp(self.local_epsilon), math.exp(epsilon), self._share, self.users
        if epsilon >= self.local_epsilon:
            return 0.0
        totals, same, fewer = self._totals
        elsewhere = (self.symbols - 2) * share
        # P/Q = (ratio a + b + t)/(a + ratio b + t) with t = (n-a-b) elsewhere/(1 - 2 share): an upper tail in a.
        other = (n - totals) * (elsewhere / (1 - 2 * share))
        last = np.floor(((scale * ratio - 1) * totals + (scale - 1) * other) / ((ratio - 1) * (1 + scale)))
        apart = upper_tail_of_fair_coins(last, np.maximum(totals - 1, 0))
        joined = apart + mass_of_fair_coins(last, np.maximum(totals - 1, 0))
        hit = share * ((ratio - scale) * joined - (scale * ratio - 1) * apart)
        missed = elsewhere * (1 - scale) * upper_tail_of_fair_coins(last, totals)
        return float(np.maximum(fewer * hit + same * missed, 0.0).sum())


def smallest_provable(exact: Curve, delta: float) -> float:
    """An epsilon, rounded down, below which a data set refutes (epsilon, delta)-privacy.

    Args:
        exact: the exact curve of a real data set, such as `OthersHoldAThird`.
        delta: the delta of the claim.

    Returns:
        The largest epsilon that the data set refutes.

    >>> round(smallest_provable(OthersHoldAThird(1.0, 10_000, 5), 1e-6), 4)
    0.0314
    """
    return epsilon_at(exact, delta * (1 + _CURVE_ERROR))
