"""Rounding real numbers to whole ones at random, without bias."""

import numpy as np
from numpy.typing import NDArray

from shuffledp.errors import ParameterError
from shuffledp.randomness import RandomBits

# Numbers are taken to the nearest multiple of 2^-32, which then is rounded exactly.
FRACTION_BITS = 32
LARGEST = 1 << 30
# Added to a number below 2^51 it leaves the nearest whole number in the lowest bits of the double.
_WHOLE = 1.5 * 2.0**52


def round_randomly(values: NDArray[np.float64], *, bits: RandomBits) -> NDArray[np.int64]:
    """Each value's floor or ceiling, with the value as its mean: floor(value + u), u uniform on [0, 1).

    >>> round_randomly(np.array([2.25] * 40_000), bits=RandomBits.seeded(0)).mean().round(2)
    np.float64(2.25)
    """
    fixed = np.multiply(values, float(1 << FRACTION_BITS))
    largest = max(float(fixed.max(initial=0.0)), -float(fixed.min(initial=0.0)))
    if not largest <= LARGEST << FRACTION_BITS:
        raise ParameterError(
            "values", largest / 2**FRACTION_BITS, f"must be at most {LARGEST}", "choose a coarser grid"
        )
    if largest < 2.0**51:
        whole = np.add(fixed, _WHOLE, out=fixed).view(np.int64)
        whole -= np.float64(_WHOLE).view(np.int64)
    else:
        whole = np.rint(fixed, out=fixed).astype(np.int64)
    whole += bits.unsigned(values.size, FRACTION_BITS).reshape(values.shape)
    whole >>= FRACTION_BITS
    return whole
