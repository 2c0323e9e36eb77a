"""The area under the ROC curve from a band around all prefixes of the cells: what it is at least, and at most.

With m people of label 0 of whom A_j have a score in the first j intervals, and T_j of the n - m others one beyond them,
the area is the part of all pairs in which the other has the larger score. Pairs in one interval may go either way:

    sum over j of (A_j+1 - A_j) T_j+1  <=  area m (n - m)  <=  sum over j of (A_j+1 - A_j) T_j .

Both sums rise with every A_j and every T_j (as T falls, and A rises, with j), so that the ends of the band give the
ends of the interval for every m in its own; the largest and the smallest over all m are taken.
"""

import math

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]


def prefix_band(prefixes: Floats, bound: float, users: int) -> tuple[Floats, Floats]:
    """The whole numbers that all prefixes lie between, where none of the estimates is off by more than the bound.

    Args:
        prefixes: estimates of how many people are in the first 1, 2, ... cells.
        bound: none of them is further off.
        users: how many people there are in all.

    Returns:
        The least and the most of how many are in the first 0, 1, 2, ... cells: both rise from 0 to all.

    >>> low, high = prefix_band(np.array([2.5, 2.0, 6.0]), 1.2, 6)
    >>> low.tolist(), high.tolist()
    ([0.0, 2.0, 2.0, 6.0], [0.0, 3.0, 3.0, 6.0])
    """
    # The same hair on both sides: estimates are floats, counts are whole.
    low = np.concatenate([[0.0], np.ceil(np.maximum(prefixes - bound, 0.0) - 1e-9)])
    high = np.concatenate([[0.0], np.floor(np.minimum(prefixes + bound, users) + 1e-9)])
    low[-1], high[-1] = users, users
    return np.maximum.accumulate(low), np.minimum.accumulate(high[::-1])[::-1]


def rising(prefixes: Floats, users: int) -> Floats:
    """Estimates of prefixes made to rise from 0 to all: midway between the largest so far and the least to come."""
    fitted = (np.maximum.accumulate(prefixes) + np.minimum.accumulate(prefixes[::-1])[::-1]) / 2
    fitted = np.concatenate([[0.0], np.clip(fitted, 0.0, users)])
    fitted[-1] = users
    return np.asarray(fitted)


def area(prefixes: Floats, ties: float = 0.5) -> float | None:
    """The area under the ROC curve of these counts, with this part of pairs in one interval; None without any pair.

    >>> area(np.array([0.0, 3.0, 4.0, 5.0, 8.0]))
    0.75
    """
    bins, users = len(prefixes) // 2, prefixes[-1]
    below, above = np.diff(prefixes[: bins + 1]), users - prefixes[bins:]
    pairs = float(prefixes[bins] * (users - prefixes[bins]))
    if pairs <= 0:
        return None
    return float(below @ (ties * above[:-1] + (1 - ties) * above[1:])) / pairs


def area_interval(low: Floats, high: Floats) -> tuple[float, float]:
    """What the area is at least and at most where every prefix lies in this band.

    >>> exact = np.array([0.0, 3.0, 4.0, 5.0, 8.0])
    >>> area_interval(exact, exact)
    (0.5625, 0.9375)
    """
    bins, users = len(low) // 2, float(low[-1])
    if not 1 <= low[bins] <= high[bins] <= users - 1:
        return 0.0, 1.0
    few = np.arange(math.ceil(low[bins]), math.floor(high[bins]) + 1, dtype=np.float64)[:, np.newaxis]
    ends = []
    for below, beyond, ties in ((low, high, 0.0), (high, low, 1.0)):
        smaller = np.minimum(below[: bins + 1], few)
        smaller[:, -1:] = few
        larger = np.minimum(users - beyond[bins:], users - few)
        larger[:, :1] = users - few
        counted = ties * larger[:, :-1] + (1 - ties) * larger[:, 1:]
        ends.append((np.diff(smaller, axis=1) * counted).sum(axis=1) / (few * (users - few))[:, 0])
    return float(max(0.0, ends[0].min())), float(min(1.0, ends[1].max()))
