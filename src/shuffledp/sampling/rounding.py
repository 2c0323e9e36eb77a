"""Rounding real numbers to whole ones at random, without bias."""

import math

import numpy as np
from numpy.typing import NDArray

from shuffledp.errors import ParameterError
from shuffledp.randomness import RandomBits

# Numbers are taken to the nearest multiple of 2^-32, which then is rounded exactly.
FRACTION_BITS = 32
LARGEST = 1 << 30
# Added to a number below 2^51 it leaves the nearest whole number in the lowest bits of the double.
_WHOLE = 1.5 * 2.0**52


_WHOLE_BITS = int(np.float64(_WHOLE).view(np.int64))


def round_randomly(values: NDArray[np.float64], *, bits: RandomBits, together: bool = False) -> NDArray[np.int64]:
    """Each value's floor or ceiling, with the value as its mean: floor(value + u), u uniform on [0, 1).

    Args:
        values: numbers, or rows of numbers.
        bits: the randomness.
        together: whether all numbers of a row are rounded with one u: what is in order stays so.

    >>> round_randomly(np.array([2.25] * 40_000), bits=RandomBits.seeded(0)).mean().round(2)
    np.float64(2.25)
    >>> rows = round_randomly(np.array([[1.5, 1.7]] * 1000), bits=RandomBits.seeded(0), together=True)
    >>> bool((rows[:, 0] <= rows[:, 1]).all())
    True
    """
    fixed = np.multiply(values, float(1 << FRACTION_BITS))
    largest = max(float(fixed.max(initial=0.0)), -float(fixed.min(initial=0.0)))
    if not largest <= LARGEST << FRACTION_BITS:
        size = largest / 2**FRACTION_BITS
        raise ParameterError("values", size, f"must be at most {LARGEST}", "choose a coarser grid")
    if largest < 2.0**51:
        whole = np.add(fixed, _WHOLE, out=fixed).view(np.int64)
        whole -= _WHOLE_BITS
    else:
        whole = np.rint(fixed, out=fixed).astype(np.int64)
    drawn = (len(values), 1) if together else values.shape
    whole += bits.unsigned(math.prod(drawn), FRACTION_BITS).reshape(drawn)
    whole >>= FRACTION_BITS
    return whole


class ColumnSums:
    """Adds up randomly rounded rows, column by column: `round_randomly(values * scale + offset).sum(axis=0)`, faster.

    Works in buffers of its own, and leaves the constant that makes numbers whole in them until the end.

    >>> sums = ColumnSums(2, scale=10.0, rows=100)
    >>> sums.add(np.array([[0.1, 0.25], [0.2, -0.3]]), bits=RandomBits.seeded(0))
    >>> sums.totals[0], int(sums.totals[1]) in (-1, 0)
    (np.int64(3), True)
    """

    LARGEST = (1 << 51 - FRACTION_BITS) - 1

    def __init__(self, columns: int, *, scale: float, rows: int, offset: float = 0.0) -> None:
        self._factor = scale * float(1 << FRACTION_BITS)
        self._constant = _WHOLE + offset * float(1 << FRACTION_BITS)
        self._fixed = np.empty((rows, columns))
        self._random = np.empty((rows, columns), dtype=f"u{FRACTION_BITS // 8}")
        self._sums = np.zeros(columns, dtype=np.int64)
        self._rows = 0

    def add(self, values: NDArray[np.float64], *, bits: RandomBits) -> None:
        """Round and add at most `rows` rows, none of whose numbers is larger than LARGEST when scaled."""
        rows = len(values)
        fixed = np.multiply(values, self._factor, out=self._fixed[:rows])
        fixed += self._constant
        whole = fixed.view(np.int64)
        random = self._random[:rows]
        bits.fill(random.view(np.uint8).reshape(-1))
        whole += random
        whole >>= FRACTION_BITS
        self._sums += whole.sum(axis=0)
        self._rows += rows

    def clear(self) -> None:
        """Start again from 0, in the same buffers."""
        self._sums[:] = 0
        self._rows = 0

    @property
    def totals(self) -> NDArray[np.int64]:
        """The sums so far."""
        return np.asarray(self._sums - self._rows * (_WHOLE_BITS >> FRACTION_BITS))
