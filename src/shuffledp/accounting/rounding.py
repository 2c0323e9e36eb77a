"""Rounding to whole numbers at random, and how far apart two neighbours' rounded vectors can be.

A user rounds y to floor(y + u), coordinate by coordinate, u uniform on [0, 1): unbiased. A neighbour's
vector y + t may be taken to be rounded with the same u, since u is the user's own secret and the
hockey-stick divergence is convex; then the two differ by R, floor(t_i) or ceil(t_i) in coordinate i, with
mean t_i and independent. So

    |R| <= |t| + sqrt(D)                                                        always, and
    |R|^2 <= |t|^2 + D/4 + (|t| + sqrt(D)/2) sqrt(2 ln(1/b))                    but for probability b,

by Hoeffding's inequality: R_i^2 has two values, 2 floor(t_i) + 1 apart, and mean at most t_i^2 + 1/4. The
probability b is a term of delta, so nothing is drawn again and the rounding stays unbiased.
"""

import math
from dataclasses import dataclass

# Vectors may be this much too long in floating point, and are held to 2^-33 before they are rounded.
TOLERANCE = 1e-9


@dataclass(frozen=True, slots=True)
class RoundedDifference:
    """How long the difference of two rounded vectors is, but for a probability that is a term of delta."""

    length: float
    failure: float


def rounded_difference(length: float, dimension: int, failure: float) -> RoundedDifference:
    """The smaller of the two bounds on the difference of two vectors that are at most `length` apart.

    >>> rounded_difference(200.0, 1000, 1e-9).length < 205 < 200 + 1000**0.5
    True
    """
    apart = length * (1 + TOLERANCE) + math.sqrt(dimension) * TOLERANCE
    if dimension == 1:
        return RoundedDifference(float(math.ceil(apart - TOLERANCE * (length + 2))), 0.0)
    always = apart + math.sqrt(dimension)
    spread = (apart + math.sqrt(dimension) / 2) * math.sqrt(-2 * math.log(failure))
    likely = math.sqrt(apart**2 + dimension / 4 + spread)
    return RoundedDifference(always, 0.0) if always <= likely else RoundedDifference(likely, failure)
