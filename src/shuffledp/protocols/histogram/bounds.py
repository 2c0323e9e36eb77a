"""How far off the worst of many bins can be, with a stated probability: exact tails, and a union over the bins."""

import math
from collections.abc import Callable
from typing import Any

import numpy as np
from scipy import special

from shuffledp.accounting.curves import smallest_meeting
from shuffledp.accounting.laws import Binomial, IntegerLaw
from shuffledp.accounting.split_coins import group_weights
from shuffledp.protocols.domains.domain import Floats
from shuffledp.protocols.error_bounds import CONFIDENCE

# Of the failure probability, what a window may leave out.
_LEFT_OUT = 1e-6
# Of a wide binomial so many groups are enough: each is a part of its deviation.
_MOST_GROUPS = 1 << 12
# Of a binomial with more values than this on its window each group is weighed by its tails, and there are fewer groups.
_MOST_MASSES, _FEW_GROUPS = 1 << 18, 1 << 9


def binomial_above(k: Floats, trials: Floats, p: float) -> Floats:
    """P[Bin(trials, p) > k], elementwise.

    >>> binomial_above(np.array([-1.0, 0.0, 1.0, 2.0]), np.array([2.0, 2.0, 2.0, 2.0]), 0.5).tolist()
    [1.0, 0.75, 0.25, 0.0]
    """
    return _binomial_tail(np.floor(k), trials, p, special.betainc, (1.0, 0.0))


def binomial_below(k: Floats, trials: Floats, p: float) -> Floats:
    """P[Bin(trials, p) < k], elementwise."""
    return _binomial_tail(np.ceil(k) - 1, trials, p, special.betaincc, (0.0, 1.0))


def _binomial_tail(j: Floats, trials: Floats, p: float, incomplete: Any, beyond: tuple[float, float]) -> Floats:
    """An incomplete beta function at j + 1 and trials - j, or what lies `beyond`: below 0, and from the trials on."""
    inside = (j >= 0) & (j < trials)
    at = np.where(inside, j, 0.0)
    tail = incomplete(at + 1, np.where(inside, trials - at, 1.0), p)
    return np.where(inside, tail, np.where(j < 0, *beyond))


class SharedTails:
    """Tails of several binomials, each computed once however often it is asked for: many sums share them.

    Args:
        tail: `binomial_above` or `binomial_below`.
        trials: of each binomial.
        p: the probability of all.

    >>> SharedTails(binomial_above, np.array([2.0, 1.0]), 0.5)(np.array([[0.0, 1.5], [0.0, -3.0]])).tolist()
    [[0.75, 0.25], [0.5, 1.0]]
    """

    def __init__(self, tail: Callable[[Floats, Floats, float], Floats], trials: Floats, p: float) -> None:
        self._tail, self._trials, self._p = tail, trials, p
        # Each binomial's columns begin near its mean, where limits are.
        self._round: Any = np.floor if tail is binomial_above else np.ceil
        self._means = np.floor(trials * p).astype(np.int64)
        self._known, self._first = np.zeros((trials.size, 0)), 0

    def __call__(self, limits: Floats) -> Floats:
        """The tails at a row of limits for each binomial."""
        places = self._round(limits).astype(np.int64) - self._means[:, np.newaxis]
        least, most = int(places.min()), int(places.max())
        if not self._known.shape[1]:
            self._first = least
        end = self._first + self._known.shape[1]
        before, after = self._columns(least, self._first), self._columns(end, most + 1)
        if before.size or after.size:
            self._known, self._first = np.hstack((before, self._known, after)), min(least, self._first)
        return np.take_along_axis(self._known, places - self._first, axis=1)

    def _columns(self, first: int, end: int) -> Floats:
        limits = self._means[:, np.newaxis] + np.arange(first, max(first, end), dtype=np.float64)
        return self._tail(limits, np.broadcast_to(self._trials[:, np.newaxis], limits.shape), self._p)


def on_window(trials: int, p: float, tail: float) -> tuple[Floats, Floats, float]:
    """Values of a binomial but for its tails, their weights, and the weight left out.

    >>> [part.tolist() for part in on_window(3, 1.0, 1e-9)[:2]]
    [[3.0], [1.0]]
    """
    if trials == 0 or p in (0, 1):
        return np.array([trials * p]), np.ones(1), 0.0
    law = Binomial(trials, p)
    low, high = law.window(tail)
    values = np.arange(low, high + 1, dtype=np.float64)
    return values, np.exp(law.log_pmf(values)), law.cdf(low - 1) + law.sf(high)


def in_groups(
    trials: int, p: float, tail: float, width: int, *, many: int = 0, most: int = _MOST_GROUPS
) -> tuple[Floats, Floats, Floats, float]:
    """A binomial's values in groups of so many: first and last, weights, weight left out.

    Groups are wider where there are more than `many` values, so that there are hardly more than `most` of them. Weights
    are rounded up where they come from tails.
    """
    if 0 < p < 1 and trials > _MOST_MASSES:
        law = Binomial(trials, p)
        low, high = law.window(tail)
        if high - low >= _MOST_MASSES:
            starts = np.arange(low, high + 1, max(width, (high - low) // min(most, _FEW_GROUPS)))
            ends = np.append(starts[1:] - 1, high)
            weights = group_weights(law, starts.tolist(), high)
            return starts.astype(np.float64), ends.astype(np.float64), weights, law.cdf(low - 1) + law.sf(high)
    values, weights, outside = on_window(trials, p, tail)
    if values.size > many:
        width = max(width, values.size // most)
    firsts = np.arange(0, values.size, width)
    lasts = np.append(firsts[1:], values.size) - 1
    return values[firsts], values[lasts], np.add.reduceat(weights, firsts), outside


def balls_bound(
    throws: int,
    probability: float,
    bins: int,
    *,
    above: int | None = None,
    below: int | None = None,
    allowed: float = 1 - CONFIDENCE,
) -> float:
    """No bin is further from its share, with CONFIDENCE, when F ~ Bin(throws, probability) balls fall into equal bins.

    Seen is F, so a bin's error is X - F/bins with X ~ Bin(F, 1/bins): averaged over F in groups, each counted as the
    worst of its members (X grows with F). A union over the bins, or over so many as may be too large, `above`, and too
    small, `below`.

    >>> balls_bound(427, 1.0, 2) < 3.5 * math.sqrt(427 / 4)
    True
    """
    starts, ends, weights, outside = in_groups(throws, probability, _LEFT_OUT / bins, max(1, bins // 20))
    many, few = bins if above is None else above, bins if below is None else below

    def failure(a: float) -> float:
        too_many = many * binomial_above(a + starts / bins, ends, 1 / bins)
        too_few = few * binomial_below(ends / bins - a, starts, 1 / bins)
        return float(weights @ (too_many + too_few)) + max(many, few) * outside

    deviation = math.sqrt(throws * probability / bins)
    return smallest_meeting(failure, allowed, 0.0, max(1.0, deviation), relative=1e-4)


def failure_of_each(bins: int) -> float:
    """How often one of so many independent bins may fail if all are to hold with CONFIDENCE."""
    return -math.expm1(math.log(CONFIDENCE) / bins)


def largest_deviation(law: IntegerLaw, bins: int, *, independent: bool) -> float:
    """No bin's noise is further from its mean, with CONFIDENCE: exactly if they are independent, else by a union.

    >>> from shuffledp.accounting.laws import DiscreteLaplace
    >>> largest_deviation(DiscreteLaplace(math.exp(-0.5)), 1000, independent=True)
    20.0
    """
    each = failure_of_each(bins) if independent else (1 - CONFIDENCE) / bins
    return float(law.deviation_quantile(each))
