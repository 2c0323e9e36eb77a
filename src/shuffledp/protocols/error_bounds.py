"""How far off a noisy sum of randomly rounded numbers can be, with a stated probability."""

import math
from collections.abc import Callable
from functools import lru_cache
from typing import Any

import numpy as np
import scipy

from shuffledp.accounting.laws import IntegerLaw
from shuffledp.accounting.rounded_noise import rounded_noise_bound
from shuffledp.estimates import Estimate, VectorEstimate

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
    """In grid units, for all coordinates at once: by the tails of both together, at most the sum of both bounds."""
    failure = (1 - CONFIDENCE) / coordinates
    apart = min(
        noise.deviation_quantile(failure * (1 - part)) + rounding_deviation(users, failure * part) for part in _PARTS
    )
    return rounded_noise_bound(noise, users, failure, apart)


@lru_cache(maxsize=256)
def _errors(plan: Any) -> tuple[float, float]:
    """The standard error and the error bound, which every estimate repeats."""
    return plan.standard_error, plan.error_bound


def with_errors(plan: Any, value: Any, *, dropped: int = 0, simulated: bool = False) -> Any:
    """A number or a vector as the estimate of a plan whose errors are known before there are any data.

    Args:
        plan: has the standard error, the bound, and how far one message that is missing may move a number.
        value: what was found.
        dropped: how many messages were missing or malformed: the bound is wider by them.
        simulated: whether seeded bits made it.
    """
    kind: Any = VectorEstimate if np.ndim(value) else Estimate
    standard_error, bound = _errors(plan)
    return kind(
        value=value,
        standard_error=standard_error,
        bound=bound + dropped * plan.message_influence,
        confidence=CONFIDENCE,
        dropped=dropped,
        simulated=simulated,
    )


def chernoff_bound(log_moment: Callable[[float], float], users: int, coordinates: int, scale: float) -> float:
    """A bound for sums of many coordinates' noise with small weights, whose law has no table.

    `log_moment` is log E[e^(theta X)] of a symmetric X; rounding adds users theta^2 / 8 (Hoeffding's lemma).
    """
    needed = math.log(2 * coordinates / (1 - CONFIDENCE))

    def bound(log_theta: float) -> float:
        theta = math.exp(log_theta) / scale
        return float((log_moment(theta) + users * theta**2 / 8 + needed) / theta)

    return float(scipy.optimize.minimize_scalar(bound, bounds=(-6.0, 6.0), method="bounded").fun)
