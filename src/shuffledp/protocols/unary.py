"""Noise bits of a given variance, for quieter twins."""

import math


def probability_with(variance: float) -> float:
    """The p <= 1/2 with p (1 - p) = variance: a coin's, for a quieter twin.

    >>> probability_with(0.25)
    0.5
    """
    return (1 - math.sqrt(1 - 4 * variance)) / 2
