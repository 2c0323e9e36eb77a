"""Uniform integers below a bound."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from shuffledp.errors import ParameterError
from shuffledp.randomness import RandomBits

LARGEST_MODULUS = 1 << 64


def smallest_width(bits: int) -> int:
    """The narrowest of 8, 16, 32 and 64 that holds this many bits."""
    return next(width for width in (8, 16, 32, 64) if bits <= width)


def uniform_below(modulus: int, count: int, *, bits: RandomBits) -> NDArray[Any]:
    """`count` integers uniform on {0, ..., modulus-1}, exactly, in the narrowest unsigned dtype.

    Draws as many bits as the largest value has and draws again where the value is too large; a power
    of two needs no second draw.

    >>> uniform_below(6, 1000, bits=RandomBits.seeded(0)).max()
    np.uint8(5)
    """
    if not 1 <= modulus <= LARGEST_MODULUS:
        raise ParameterError("modulus", modulus, "must lie in 1..2^64", "choose a smaller range")
    needed = (modulus - 1).bit_length()
    width = smallest_width(needed)
    mask = np.array((1 << needed) - 1, dtype=f"u{width // 8}")
    values: NDArray[Any] = bits.unsigned(count, width)
    np.bitwise_and(values, mask, out=values)
    if modulus & (modulus - 1) == 0:
        return values
    largest = np.array(modulus - 1, dtype=values.dtype)
    too_large = np.flatnonzero(values > largest)
    while too_large.size:
        values[too_large] = bits.unsigned(too_large.size, width) & mask
        too_large = too_large[values[too_large] > largest]
    return values
