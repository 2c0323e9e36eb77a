"""The exact curve of Gaussian noise: a yardstick for every other noise."""

import math

from scipy import special

from shuffledp.accounting.curves import smallest_real
from shuffledp.privacy import Privacy


def gaussian_delta(epsilon: float, standard_deviation: float, sensitivity: float = 1.0) -> float:
    """The smallest delta of N(0, sd^2) against its shift by the sensitivity."""
    shift = sensitivity / standard_deviation
    upper = special.log_ndtr(shift / 2 - epsilon / shift)
    lower = epsilon + special.log_ndtr(-shift / 2 - epsilon / shift)
    return float(math.exp(upper) * -math.expm1(lower - upper)) if lower < upper else 0.0


def gaussian_standard_deviation(privacy: Privacy, sensitivity: float = 1.0) -> float:
    """The smallest standard deviation of Gaussian noise that meets the target.

    >>> round(gaussian_standard_deviation(Privacy(1, 1e-6)), 3)
    4.225
    """
    return sensitivity * smallest_real(lambda sd: gaussian_delta(privacy.epsilon, sd) <= privacy.delta, 1e-9, 1.0)
