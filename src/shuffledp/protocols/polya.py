"""Discrete Laplace noise in Polya shares: its ratio, its pair, and what sampling it costs."""

import math
from fractions import Fraction
from functools import lru_cache

from shuffledp.accounting.curves import smallest_real
from shuffledp.accounting.differences import PolyaDifference
from shuffledp.accounting.guarantee import DeltaTerm, delta_of_distance
from shuffledp.accounting.laws import DiscreteLaplace, IntegerLaw
from shuffledp.accounting.pairs import ShiftPair
from shuffledp.sampling.laws import negative_binomial


def pure_ratio(epsilon: float, shift: int = 1) -> float:
    """The smallest usable p >= e^(-epsilon/shift): noise with masses p^|k| is then pure for this shift.

    Rounded up until the logarithm, itself off by less than an ulp, shows it.
    """
    p = math.exp(-epsilon / shift)
    while -math.log(p) * shift * (1 + 2e-14) > epsilon:
        p = math.nextafter(p, 1.0)
    return p


def ratio_with(variance: float) -> float:
    """The ratio of discrete Laplace noise of this variance, for a quieter twin."""
    return smallest_real(
        lambda ratio: ratio >= 1 or DiscreteLaplace(ratio).variance >= variance, 0.0, 0.01, relative=1e-9
    )


@lru_cache(maxsize=64)
def polya_law(shape: float, ratio: float) -> IntegerLaw:
    """What shares add up to, as a multiple `shape` of what is counted on; cached for its table of masses."""
    return DiscreteLaplace(ratio) if shape == 1 else PolyaDifference(shape, ratio)


@lru_cache(maxsize=64)
def polya_pair(shape: float, ratio: float, shift: int = 1) -> ShiftPair:
    """The noise against itself shifted; cached for its masses."""
    return ShiftPair(polya_law(shape, ratio), shift)


def polya_sampling_term(users: int, honest: int, ratio: float, epsilon: float) -> DeltaTerm:
    """Two draws a user, each within the table's distance of its law."""
    table = negative_binomial(Fraction(1, honest), ratio)
    return DeltaTerm(
        "sampling",
        delta_of_distance(math.exp(epsilon), 2 * users * table.distance),
        "(1 + e^epsilon) times what the users' noise tables cut off and round",
    )
