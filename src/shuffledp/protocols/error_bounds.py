"""How far off a noisy sum of randomly rounded numbers can be, with a stated probability."""

import math
from collections.abc import Callable
from functools import lru_cache
from typing import Any

from scipy import optimize

from shuffledp.accounting.laws import IntegerLaw

CONFIDENCE = 0.95
# Parts of the failure probability that may go to the rounding.
_PARTS = (0.001, 0.01, 0.05, 0.2, 0.5)


def remembered(compute: Callable[[Any], Any]) -> Any:
    """A property that is computed once for all plans that are equal; plans are frozen."""
    return property(lru_cache(maxsize=256)(compute))


def rounding_deviation(users: int, failure: float) -> float:
    """Hoeffding: so many independent roundings, each within 1 of its mean, are off by at most this."""
    return math.sqrt(users * math.log(2 / failure) / 2)


def noise_and_rounding_bound(noise: IntegerLaw, users: int, coordinates: int = 1) -> float:
    """In grid units, for all coordinates at once: the exact quantile of the noise plus the rounding's bound."""
    failure = (1 - CONFIDENCE) / coordinates
    return min(
        noise.deviation_quantile(failure * (1 - part)) + rounding_deviation(users, failure * part) for part in _PARTS
    )


def chernoff_bound(log_moment: Callable[[float], float], users: int, coordinates: int, scale: float) -> float:
    """The same for sums of many coordinates' noise with small weights, whose law has no table.

    `log_moment` is log E[e^(theta X)] of a symmetric X; rounding adds users theta^2 / 8 (Hoeffding's lemma).
    """
    needed = math.log(2 * coordinates / (1 - CONFIDENCE))

    def bound(log_theta: float) -> float:
        theta = math.exp(log_theta) / scale
        return float((log_moment(theta) + users * theta**2 / 8 + needed) / theta)

    return float(optimize.minimize_scalar(bound, bounds=(-6.0, 6.0), method="bounded").fun)
