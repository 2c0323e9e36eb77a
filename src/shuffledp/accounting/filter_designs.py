"""Which filter is best for so many windows and slots: the outcome of a search, interpolated.

The search minimised the union bound of `continual.carried.bound` over zeros, poles and the shape of the variances,

    v_t = ((slots + c) / (slots - t + c))^(2 growth),

for slots in powers of 4. Nothing rests on these numbers but how small the bound is: privacy and error are computed
from whatever filter there is.
"""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from shuffledp.accounting.running_filters import RunningFilter

Floats = NDArray[np.float64]

# For each number of windows: log2 of the slots, then 1 - zero and 1 - pole by turns from fast to slow, then growth and
# c / slots.
_FOUND: dict[int, tuple[tuple[float, ...], ...]] = {
    2: (
        (4, 0.5437, 1.450, 0.141),
        (6, 0.3871, 2.770, 0.278),
        (8, 0.2642, 4.797, 0.353),
        (10, 0.1757, 7.847, 0.383),
        (12, 0.1036, 12.37, 0.484),
        (14, 0.0479, 19.68, 0.977),
        (16, 0.0224, 29.81, 1.69),
    ),
    3: (
        (4, 0.9106, 0.6124, 0.2783, 0.783, 0.0217),
        (6, 0.7309, 0.3156, 0.0998, 0.902, 0.0501),
        (8, 0.6146, 0.1918, 0.0437, 1.373, 0.131),
        (10, 0.5096, 0.1150, 0.0192, 2.164, 0.241),
        (12, 0.4117, 0.0665, 0.00823, 3.186, 0.331),
        (14, 0.3268, 0.0379, 0.00352, 4.469, 0.393),
        (16, 0.2563, 0.0215, 0.00151, 6.092, 0.433),
        (18, 0.1993, 0.0122, 0.00064, 8.177, 0.458),
    ),
    4: (
        (10, 0.7050, 0.2955, 0.0968, 0.0277, 0.00720, 0.990, 0.0668),
        (12, 0.6251, 0.2064, 0.0535, 0.01264, 0.00270, 1.388, 0.135),
        (14, 0.5494, 0.1433, 0.0298, 0.00578, 0.00101, 1.956, 0.220),
        (16, 0.4761, 0.0976, 0.01627, 0.00258, 0.000371, 2.630, 0.296),
    ),
    5: (
        (10, 0.8318, 0.5064, 0.2527, 0.1130, 0.0468, 0.01687, 0.00534, 0.823, 0.0405),
        (12, 0.7569, 0.3706, 0.1447, 0.0513, 0.0173, 0.00533, 0.00151, 0.888, 0.0506),
        (14, 0.6894, 0.2767, 0.0877, 0.0256, 0.00723, 0.00193, 0.000479, 1.060, 0.0792),
        (16, 0.6288, 0.2103, 0.0556, 0.01376, 0.00332, 0.00078, 0.0001665, 1.403, 0.138),
    ),
}
MOST_WINDOWS = max(_FOUND)
"""More windows gain nothing worth their messages."""
# Zeros are g / (p + g) with p at most this: small numbers keep sums short, and the bound is flat around the best.
_LARGEST_P, _CLOSE = 4, 0.03
# Of 1 - zero and 1 - pole, each is at most this part of the one before.
_APART = 0.9


@dataclass(frozen=True, slots=True)
class Design:
    """A filter and the shape of its variances."""

    gains: tuple[tuple[int, int], ...]
    poles: tuple[float, ...]
    growth: float
    offset: float
    """c, in slots."""

    def variances(self, slots: int) -> Floats:
        """The variances of the noise in each of so many slots, the first one's being 1."""
        return self.variances_of(slots, 0, slots)

    def variances_of(self, slots: int, first: int, end: int) -> Floats:
        """As `variances`, of the slots first..end-1."""
        left = slots - np.arange(first, end) + self.offset
        return np.asarray(((slots + self.offset) / left) ** (2 * self.growth))

    @property
    def filter(self) -> RunningFilter:
        """What the noise makes of a user's value."""
        return RunningFilter(tuple(g / (p + g) for p, g in self.gains), self.poles)

    def visits_length(self, slots: int, visits: int) -> float:
        """How far a user who comes so often, never twice in one slot, moves all that is released at most.

        Weighed so that one visit moves it by 1.

        >>> round(design_for(4, 256).visits_length(256, 1), 6), round(design_for(4, 256).visits_length(256, 4), 1)
        (1.0, 3.6)
        """
        variances = self.variances(slots)
        return self.filter.visits_length(variances, 1 / self.filter.column_lengths(variances), visits)

    def deviations(self, slots: int) -> Floats:
        """The deviations of sums of the first 1, 2, ... slots, where one user moves what is released by 1, and w has v.

        >>> design_for(3, 256).deviations(256).max().round(2)
        np.float64(2.66)
        """
        variances = self.variances(slots)
        weights = 1 / self.filter.column_lengths(variances)
        return np.asarray(np.sqrt(np.maximum(0.0, self.filter.prefix_variances(variances, weights))))


def design_for(windows: int, slots: int) -> Design:
    """The best filter that is known, between two that were searched for by their logarithms.

    >>> design = design_for(3, 4096)
    >>> design.gains, [round(pole, 4) for pole in design.poles]
    (((2, 3), (1, 121)), [0.9335])
    """
    rows = np.array(_FOUND[windows])
    numbers = np.concatenate((rows[:, :1], np.log(rows[:, 1:])), axis=1)
    place = math.log2(max(slots, 2))
    right = int(np.clip(np.searchsorted(numbers[:, 0], place), 1, len(numbers) - 1))
    low, high = numbers[right - 1], numbers[right]
    # Beyond both ends along the last line.
    part = (place - low[0]) / (high[0] - low[0])
    *rests, growth, offset = np.exp(low + part * (high - low))[1:].tolist()
    # Before the first line they may leave (0, 1) or meet: each stays clearly below the one before.
    most = 0.98
    for number, rest in enumerate(rests):
        rests[number] = min(rest, most)
        most = _APART * rests[number]
    gains: tuple[tuple[int, int], ...] = ()
    for p, g in map(_whole, rests[0::2]):
        # From fast to slow, and no two alike.
        while gains and g * gains[-1][0] <= gains[-1][1] * p:
            g += 1
        gains += ((p, g),)
    return Design(gains, tuple(1 - rest for rest in rests[1::2]), growth, offset * slots)


def _whole(rest: float) -> tuple[int, int]:
    """The smallest whole numbers (p, g) with p / (p + g) near this."""
    found = [(p, max(1, round(p * (1 - rest) / rest))) for p in range(1, _LARGEST_P + 1)]
    off = [abs(math.log(p / (p + g) / rest)) for p, g in found]
    return next(pair for pair, miss in zip(found, off, strict=True) if miss <= min(off) + _CLOSE)
