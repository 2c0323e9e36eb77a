"""Coins with any rational probability, exactly."""

import math
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from shuffledp.errors import ParameterError
from shuffledp.randomness import RandomBits

Probability = Fraction | float | int


def exact_probability(p: Probability) -> Fraction:
    """The rational number meant: a float is the dyadic rational that it is.

    >>> exact_probability(0.75)
    Fraction(3, 4)
    """
    if isinstance(p, float) and not math.isfinite(p):
        raise ParameterError("p", p, "must lie in [0, 1]", "pass a probability")
    fraction = Fraction(p)
    if not 0 <= fraction <= 1:
        raise ParameterError("p", p, "must lie in [0, 1]", "pass a probability")
    return fraction


def bernoulli(p: Probability, count: int, *, bits: RandomBits) -> NDArray[np.bool_]:
    """`count` independent coins that are True with probability exactly p.

    A uniform number U is compared with p digit by digit, 16 binary digits first, then 64 at a time
    where all digits so far are equal: U < p has probability p for every rational p.

    >>> from fractions import Fraction
    >>> bernoulli(Fraction(1, 3), 30_000, bits=RandomBits.seeded(0)).mean().round(2)
    np.float64(0.33)
    """
    rest = exact_probability(p)
    if rest == 1:
        return np.ones(count, dtype=np.bool_)
    # rest is the part of p not yet compared, scaled so that its next digits are the integer part.
    rest *= 1 << 16
    digits = int(rest)
    first = bits.unsigned(count, 16)
    below: NDArray[np.bool_] = first < np.uint16(digits)
    tied = np.flatnonzero(first == np.uint16(digits))
    rest -= digits
    # With no digits left U >= p for certain, so that a tie means False, which `below` says already.
    while tied.size and rest:
        rest *= 1 << 64
        digits = int(rest)
        words = bits.words(tied.size)
        below[tied] = words < np.uint64(digits)
        tied = tied[words == np.uint64(digits)]
        rest -= digits
    return below
