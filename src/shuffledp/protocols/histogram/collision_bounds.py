"""How far off the worst bin can be where other people's messages fall into it too: exact tails for every count.

A bin's error depends on how many have its category, which nobody knows. Counts are taken in groups so narrow that
the binomials of a group's two ends, one stochastically larger and one smaller than all between, are hardly apart.
"""

import math
from collections.abc import Callable

import numpy as np

from shuffledp.accounting.curves import smallest_meeting
from shuffledp.protocols.domains.domain import Floats
from shuffledp.protocols.error_bounds import CONFIDENCE
from shuffledp.protocols.histogram.bounds import (
    SharedTails,
    binomial_above,
    binomial_below,
    in_groups,
    on_window,
)

# Of columns of flipped bits, where more would be looked at moments bound them.
_MOST_TERMS_FLIPPED = 1 << 19
Failure = Callable[[int, int, float], float]
"""First and last count of a group, and a bound: how likely a bin with such a count is further off."""

# Of the failure probability, what windows may leave out.
_LEFT_OUT = 1e-6
# How far the mean may move inside a group: in people, or as a part of the error's deviation where that is more.
_GROUP, _PART = 0.25, 0.05
_STEP = 1.002
# Terms of all groups' sums together; where there would be more, moments bound the error instead.
_MOST_TERMS = 1e6


def _count_groups(users: int, step: float, deviation: float) -> list[tuple[int, int]]:
    """The counts 0..users in runs over which a mean that falls by `step` each moves little."""
    length = max(1, int(max(_GROUP, _PART * deviation) / step))
    starts = range(0, users + 1, length)
    return [(start, min(start + length - 1, users)) for start in starts]


def thrown_bound(throws: int, probability: float, hit: float, users: int, collision: float, allowed: float) -> float:
    """A bin is further off with this probability at most, before the estimate's scale: for blankets whose sets overlap.

    A bin that c users are in has the error X - F hit + Y - (users - c) collision, where F ~ Bin(throws, probability)
    is seen, X ~ Bin(F, hit) and Y ~ Bin(users - c, collision): averaged over F in groups, the largest over groups of
    c.

    >>> 3 * math.sqrt(47) < thrown_bound(10_000, 0.427, 0.01, 430, 0.01, 5e-5) < 6 * math.sqrt(47)
    True
    """
    tail = _LEFT_OUT * allowed / (1 - CONFIDENCE)
    deviation = math.sqrt(throws * probability * hit + users * collision)
    width = max(1, int(max(_GROUP, _PART * deviation) / hit))
    groups = _count_groups(users, collision, deviation)
    windows = 12 * math.sqrt(throws * probability * (1 - probability)) / width, 12 * math.sqrt(users * collision)
    if len(groups) * math.prod(1 + window for window in windows) > _MOST_TERMS:
        return _chernoff_bound(throws, probability, hit, users, collision, allowed)
    starts, ends, weights, outside = in_groups(throws, probability, tail, width)
    too_many, too_few = SharedTails(binomial_above, ends, hit), SharedTails(binomial_below, starts, hit)

    def failure(first: int, last: int, a: float) -> float:
        """For counts first..last: the most collisions are those of the first, the fewest those of the last."""
        (most, likely, out), (fewest, rare, beyond) = (
            on_window(users - count, collision, tail) for count in (first, last)
        )
        limit = a + starts[:, np.newaxis] * hit + (users - last) * collision - most
        above = too_many(limit) @ likely
        limit = ends[:, np.newaxis] * hit + (users - first) * collision - a - fewest
        below = too_few(limit) @ rare
        return float(weights @ (above + below)) + outside + out + beyond

    return _worst_of(groups, failure, allowed, deviation)


def _chernoff_bound(throws: int, probability: float, hit: float, users: int, collision: float, allowed: float) -> float:
    """As `thrown_bound`, by moments: a tenth larger or so, and as soon found for many users as for few.

    A centred binomial has E e^(t (X - n p)) = e^(n k(p, t)) with k(p, t) = log(1 - p + p e^t) - p t >= 0. So the error
    has the logarithm throws log(1 - q + q e^k(hit, t)) + (users - c) k(collision, t), q the probability of a throw,
    which no count c makes larger than 0 does.
    """
    variance = throws * probability * hit + users * collision
    scale = math.sqrt(2 * math.log(2 / allowed) / variance)
    sizes = np.minimum(scale * np.logspace(-2, 2, 801), 30.0)

    def side(t: Floats) -> float:
        """The smallest a that the error passes in one direction with at most half of what is allowed."""
        thrown = throws * np.log1p(probability * np.expm1(_log_moment(hit, t)))
        return float(np.min((thrown + users * _log_moment(collision, t) + math.log(2 / allowed)) / np.abs(t)))

    return max(side(sizes), side(-sizes)) * (1 + 1e-9)


def _log_moment(p: float, t: Floats) -> Floats:
    """Log E e^(t (B - p)) of a bit that is 1 with probability p, rounded up by more than its cancellation."""
    return np.asarray(np.maximum(np.log1p(p * np.expm1(t)) - p * t, 0.0) * (1 + 1e-9) + 1e-15 * np.abs(p * t))


def flipped_bound(cells: int, flip: float, users: int, bins: int) -> float:
    """No bin is further off, with CONFIDENCE, before the estimate's scale: for columns of bits that may be flipped.

    A bin that c users are in has the error U - V - (cells - 2c) flip with U ~ Bin(cells - c, flip), V ~ Bin(c, flip).

    >>> 3 * math.sqrt(84) < flipped_bound(20_000, 0.0042, 10_000, 1000) < 6 * math.sqrt(84)
    True
    """
    tail = _LEFT_OUT / bins

    def failure(first: int, last: int, a: float) -> float:
        (up, likely, out), (down, rare, beyond) = (on_window(count, flip, tail) for count in (first, last))
        limit = a + (cells - 2 * last) * flip + up
        above = float(binomial_above(limit, np.full(limit.shape, float(cells - first)), flip) @ likely)
        limit = (cells - 2 * first) * flip - a + down
        below = float(binomial_below(limit, np.full(limit.shape, float(cells - last)), flip) @ rare)
        return above + below + out + beyond

    deviation, allowed = math.sqrt(cells * flip), (1 - CONFIDENCE) / bins
    groups = _count_groups(users, 2 * flip, deviation)
    if len(groups) * (1 + 12 * math.sqrt(users * flip)) > _MOST_TERMS_FLIPPED:
        return _flipped_chernoff_bound(cells, flip, users, allowed)
    return _worst_of(groups, failure, allowed, deviation)


def _flipped_chernoff_bound(cells: int, flip: float, users: int, allowed: float) -> float:
    """As `flipped_bound` for one bin, by moments: (cells - c) k(flip, t) + c k(flip, -t) is linear in c."""
    scale = math.sqrt(2 * math.log(2 / allowed) / (cells * flip))
    sizes = np.minimum(scale * np.logspace(-2, 2, 801), 30.0)

    def side(t: Floats) -> float:
        """The smallest a that the error passes in one direction with at most half of what is allowed."""
        one, other = _log_moment(flip, t), _log_moment(flip, -t)
        moment = np.maximum(cells * one, (cells - users) * one + users * other)
        return float(np.min((moment + math.log(2 / allowed)) / np.abs(t)))

    return max(side(sizes), side(-sizes)) * (1 + 1e-9)


def _worst_of(groups: list[tuple[int, int]], failure: Failure, allowed: float, deviation: float) -> float:
    """An a at which every group fails rarely enough: the first one's, raised in small steps where others need more."""
    first = max(1.0, 4 * deviation)
    bound = smallest_meeting(lambda a: failure(*groups[0], a), allowed, 0.0, first, relative=1e-4)
    for first, last in groups[1:]:
        while failure(first, last, bound) > allowed:
            bound *= _STEP
    return bound
