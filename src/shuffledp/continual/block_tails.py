"""Tails of sums of wide noise in blocks of values: a short transform, as the spectrum of such a sum is narrow.

With P the spectrum of a law on N values, N = s N', the mass of the block m s + 1, ..., m s + s is

    (1/N) sum_f P_f (e^(i t) + ... + e^(i s t)) e^(2 pi i f m / N'),    t = 2 pi f / N,

a transform of N' numbers if P is 0 from N'/2 on. What is left out there, and the rounding of what is not, are added up
as in docs/theory/running-sums.md.
"""

import math
from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy.typing import NDArray
from scipy import fft

Floats = NDArray[np.float64]

# Powers of a spectrum below this count as 0: a sum of a million of them is nothing beside rounding.
_NOTHING = 1e-30
# Powers up to here are quicker by multiplying.
_FEW = 8


@dataclass(frozen=True, eq=False)
class BlockTails:
    """The spectrum of one noise, symmetric about its mean, and what every sum of several is made of.

    Attributes:
        spectrum: real, at the frequencies 0, 1, ... of a transform of `size` numbers.
        size: a multiple of `stride`.
        stride: how many values a block has.
        rounding: what each number of the spectrum may be off by.
    """

    spectrum: Floats
    size: int
    stride: int
    rounding: float
    low: Floats
    kernel: NDArray[np.complex128]
    beyond: float

    @classmethod
    def of(cls, spectrum: Floats, size: int, stride: int, rounding: float) -> Self:
        """What all numbers of summands share."""
        half = size // stride // 2
        angles = np.pi * np.arange(half) / size
        # The mean of e^(2 i a), ..., e^(2 i s a).
        kernel = np.exp(1j * (stride + 1) * angles)
        kernel[1:] *= np.sin(stride * angles[1:]) / (stride * np.sin(angles[1:]))
        beyond = float(np.abs(spectrum[half:]).max())
        return cls(spectrum, size, stride, rounding, np.abs(spectrum[:half]), kernel, beyond)

    @property
    def least_count(self) -> float:
        """From how many summands on the spectrum of their sum is narrow enough."""
        return math.log(_NOTHING) / math.log(self.beyond) if 0 < self.beyond < 1 else math.inf

    def tails(self, count: int, reach: int) -> tuple[Floats, float]:
        """P[|S| > a] of the sum of so many, for the multiples a of the stride up to `reach`, and their largest error.

        Args:
            count: the summands, `least_count` at least.
            reach: the law beyond it is counted as nothing.
        """
        within = np.flatnonzero(self.low > _NOTHING ** (1 / count))
        end = int(within[-1]) + 1
        power = np.zeros(self.low.size + 1, dtype=np.complex128)
        power[:end] = whole_power(self.spectrum[:end], count) * self.kernel[:end]
        rows = reach // self.stride + 1
        # Both sides are alike, as the spectrum is real.
        blocks = np.maximum(2 * fft.irfft(power, self.size // self.stride)[:rows], 0.0)
        return np.cumsum(blocks[::-1])[::-1], self._error(count, end)

    def _error(self, count: int, end: int) -> float:
        """What a tail may be off by: both sides are one side twice, and so are their errors."""
        largest = max(self.beyond, _NOTHING ** (1 / count)) + self.rounding
        squares = whole_power((self.low[:end] + self.rounding) ** 2, count - 1).sum()
        squares += self.spectrum.size * largest ** (2 * (count - 1))
        rounded = (count + 2) * self.rounding * math.sqrt(4 * float(squares))
        return rounded + self.size * _NOTHING


def whole_power(numbers: Floats, count: int) -> Floats:
    """The numbers to the power of `count`, signs included."""
    if count > _FEW:
        signs = np.where(numbers < 0, -1.0, 1.0) if count % 2 else 1.0
        return np.asarray(signs * np.abs(numbers) ** count)
    found = np.ones_like(numbers)
    for _ in range(count):
        found *= numbers
    return found
