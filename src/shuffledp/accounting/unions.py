"""The bound that none of many Gaussians passes, but for a probability: by a union, of millions in stretches."""

from collections.abc import Callable, Iterable, Iterator

import numpy as np
from numpy.typing import NDArray
from scipy import special

Floats = NDArray[np.float64]

# Deviations below this part of the largest hardly count.
_SMALL = 0.5
# Deviations that are looked at together; their tails are added up in this order, so that it decides the last bits.
_TOGETHER = 1 << 18
# Deviations are counted in so many bins, which decide most steps of the search; fewer of them are added up one by one.
_BINS = 1 << 13
# What rounding may do to a deviation's bin, and to a sum over bins: far more than it does.
_ROUNDED = 1e-9


def gaussian_union(deviations: Floats, failure: float) -> float:
    """The least bound that centred Gaussians of these deviations pass, any of them, with at most this probability.

    By a union, rounded up by a ten-thousandth.

    Args:
        deviations: of each of them.
        failure: the probability.

    >>> round(gaussian_union(np.ones(1), 0.05), 2), round(gaussian_union(np.ones(1000), 0.05), 2)
    (1.96, 4.06)
    """
    return gaussian_union_of(lambda first, end: deviations[first:end], deviations.size, failure)


def gaussian_union_of(deviations: Callable[[int, int], Floats], count: int, failure: float) -> float:
    """As `gaussian_union`, where deviations are computed a stretch at a time, again and again.

    Args:
        deviations: those from one on and before another.
        count: how many there are.
        failure: the probability.
    """

    def stretches() -> Iterator[Floats]:
        for first in range(0, count, _TOGETHER):
            yield deviations(first, min(count, first + _TOGETHER))

    largest = max(float(each.max()) for each in stretches())
    low = largest * -float(special.ndtri(failure / 2))
    high = largest * -float(special.ndtri(failure / 4 / count))
    if not low < high:
        return high
    tails = _TailsOfMany(stretches, count, largest)
    while high - low > 1e-4 * high:
        middle = (low + high) / 2
        low, high = (low, middle) if tails.are_within(middle, failure) else (middle, high)
    return high


class _TailsOfMany:
    """How often a bound is passed, by any of them."""

    def __init__(self, stretches: Callable[[], Iterable[Floats]], count: int, largest: float) -> None:
        self._stretches, self._largest = stretches, largest
        self._bins = np.zeros(_BINS + 1, dtype=np.int64)
        for tried in self._tried():
            # From half of the largest, bin 0, to the largest, the last one.
            places = (tried * (_BINS / (largest * (1 - _SMALL))) - _BINS * _SMALL / (1 - _SMALL)).astype(np.int64)
            self._bins += np.bincount(places, minlength=_BINS + 1)
        self._count = int(self._bins.sum())
        self._others = count - self._count
        self._edges = largest * (_SMALL + (1 - _SMALL) * np.arange(_BINS + 2) / _BINS)

    def _tried(self) -> Iterator[Floats]:
        for each in self._stretches():
            yield each[each > _SMALL * self._largest]

    def are_within(self, bound: float, failure: float) -> bool:
        """Whether the bound is passed with at most this probability, by the sum of all tails."""
        # Those that were left out pass it less often than one of _SMALL times the largest deviation.
        rest = self._others * float(special.ndtr(-bound / (_SMALL * self._largest)))
        if self._count > _BINS:
            # As if all of a bin were as large as its upper edge, then as small as its lower one.
            for edges, sure in ((self._edges[1:] * (1 + _ROUNDED), True), (self._edges[:-1] * (1 - _ROUNDED), False)):
                passed = 2 * (float(special.ndtr(-bound / edges) @ self._bins) + rest)
                if (passed * (1 + _ROUNDED) <= failure) if sure else (passed * (1 - _ROUNDED) > failure):
                    return sure
        return 2 * (sum(float(special.ndtr(-bound / tried).sum()) for tried in self._tried()) + rest) <= failure
