"""The noise laws of the protocols as certified tables, each with rational parameters."""

import math
from fractions import Fraction
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from shuffledp.errors import ParameterError
from shuffledp.randomness import RandomBits
from shuffledp.sampling.bernoulli import Probability, exact_probability
from shuffledp.sampling.table import TableLaw

Rational = Fraction | float | int

# A table of this mean has about 430,000 entries.
_LARGEST_POISSON = 1 << 28


def ratio_parameter(p: Probability) -> Fraction:
    """The ratio of a law's masses, exactly: a probability that is neither 0 nor 1."""
    ratio = exact_probability(p)
    if not 0 < ratio < 1:
        raise ParameterError("p", p, "must lie strictly between 0 and 1", "pass for instance exp(-epsilon)")
    return ratio


def _positive(name: str, value: Rational) -> Fraction:
    fraction = Fraction(value) if math.isfinite(value) else Fraction(0)
    if fraction <= 0:
        raise ParameterError(name, value, "must be > 0", "pass a positive number")
    return fraction


@lru_cache(maxsize=256)
def poisson(mean: Rational) -> TableLaw:
    """Poisson(mean): P[k] proportional to mean^k / k!.

    >>> poisson(85).distance < 1e-35
    True
    """
    rate = _positive("mean", mean)
    mode = int(rate)
    top, bottom = rate.numerator, rate.denominator
    return TableLaw.from_ratios(
        mode,
        up=lambda j: (top, bottom * (mode + j)),
        down=lambda j: ((mode - j + 1) * bottom, top),
        up_limit=Fraction(0),
    )


@lru_cache(maxsize=256)
def negative_binomial(shape: Rational, p: Probability) -> TableLaw:
    """NB(shape, p): P[k] = C(k+shape-1, k) p^k (1-p)^shape, for any rational shape > 0.

    With shape 1/n it is a Polya share: n of them add up to a geometric law.
    """
    size = _positive("shape", shape)
    ratio = ratio_parameter(p)
    mode = int((size - 1) * ratio / (1 - ratio)) if size > 1 else 0
    top, bottom = ratio.numerator, ratio.denominator
    shape_top, shape_bottom = size.numerator, size.denominator

    def up(j: int) -> tuple[int, int]:
        k = mode + j  # P[k] / P[k-1] = p (k-1+shape) / k
        return top * ((k - 1) * shape_bottom + shape_top), bottom * shape_bottom * k

    def down(j: int) -> tuple[int, int]:
        k = mode - j + 1  # P[k-1] / P[k]
        return bottom * shape_bottom * k, top * ((k - 1) * shape_bottom + shape_top)

    return TableLaw.from_ratios(mode, up=up, down=down, up_limit=ratio)


def geometric(p: Probability) -> TableLaw:
    """Geometric: P[k] = (1-p) p^k for k >= 0."""
    return negative_binomial(1, p)


@lru_cache(maxsize=256)
def discrete_laplace(p: Probability) -> TableLaw:
    """Discrete Laplace: P[k] proportional to p^|k|, on all integers; p = exp(-epsilon) for a count."""
    ratio = ratio_parameter(p)

    def step(j: int) -> tuple[int, int]:
        return ratio.numerator, ratio.denominator

    return TableLaw.from_ratios(0, up=step, down=step, up_limit=ratio, down_limit=ratio)


def sample_polya_difference(shape: Rational, p: Probability, count: int, *, bits: RandomBits) -> NDArray[np.int64]:
    """`count` draws of NB(shape, p) - NB(shape, p): n of shape 1/n add up to a discrete Laplace."""
    law = negative_binomial(shape, p)
    return np.subtract(law.sample(count, bits=bits), law.sample(count, bits=bits))


def poisson_parts(mean: Rational) -> int:
    """In how many equal parts a Poisson variable of this mean is drawn."""
    return max(1, math.ceil(Fraction(mean) / _LARGEST_POISSON))


def sample_skellam(variance: Rational, count: int, *, bits: RandomBits) -> NDArray[np.int64]:
    """`count` draws of Skellam: the difference of two Poisson variables with half the variance each.

    A large variance is drawn in several parts, each of which has a table of reasonable size.
    """
    half = _positive("variance", variance) / 2
    parts = poisson_parts(half)
    law = poisson(half / parts)
    total = np.zeros(count, dtype=np.int64)
    for _ in range(parts):
        total += law.sample(count, bits=bits)
        total -= law.sample(count, bits=bits)
    return total


@lru_cache(maxsize=256)
def truncated_discrete_laplace(bits: int, p: Probability) -> TableLaw:
    """P[k] proportional to p^|k - bits/2| on 0..bits, for an odd number of bits."""
    ratio = ratio_parameter(p)
    if bits < 1 or bits % 2 == 0:
        raise ParameterError("bits", bits, "must be odd", "add one")
    mode = (bits + 1) // 2

    def up(j: int) -> tuple[int, int]:
        return (ratio.numerator, ratio.denominator) if mode + j <= bits else (0, 1)

    def down(j: int) -> tuple[int, int]:
        if j == 1:
            return 1, 1  # the two values beside the centre are equally likely
        return (ratio.numerator, ratio.denominator) if mode - j >= 0 else (0, 1)

    return TableLaw.from_ratios(mode, up=up, down=down, up_limit=Fraction(0))
