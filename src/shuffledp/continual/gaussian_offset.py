"""How far whole noise is from Gaussian noise of its deviation, where each is drawn by the quantiles of the other."""

from functools import lru_cache

import numpy as np
from scipy import special

from shuffledp.errors import ParameterError
from shuffledp.protocols.sums.noise import BatchNoise

LEAST_OFFSET_FAILURE = 1e-28


@lru_cache(maxsize=64)
def gaussian_offset(noise: BatchNoise, failure: float) -> float:
    """How far, in steps, the noise is from Gaussian of its deviation, coupled by quantiles, but for `failure` a draw.

    With h(z) = Phi^-1(P[Z <= z]), a standard normal g with h(z - 1) < g <= h(z) goes with z. The distance is bounded
    at every z up to the least r with P[|Z| > r] <= failure.

    >>> from shuffledp.continual.noise import SkellamNoise
    >>> 0.5 < gaussian_offset(SkellamNoise(10_000.0), 3e-12) < 0.75
    True
    """
    if not LEAST_OFFSET_FAILURE <= failure < 1:
        limits = f"must lie in [{LEAST_OFFSET_FAILURE:g}, 1)"
        raise ParameterError("failure", failure, limits, "ask for less confidence, or fewer releases")
    law = noise.law()
    deviation = law.standard_deviation
    outside = failure * 1e-3
    start, _ = law.window(outside)
    numbers = np.arange(start - 1, 1)
    # By symmetry the left half is enough; its last score, at 0, is that of P[Z <= 0] > 1/2.
    below = np.cumsum(np.exp(law.log_pmf(numbers.astype(np.float64)))) + outside
    # What the window leaves out is at most that: the true score is between two. What is rarer than `first` has failed.
    first = int(np.searchsorted(below, 0.49 * failure, side="right"))
    scores, less = (deviation * special.ndtri(np.maximum(each, outside)) for each in (below, below - outside))
    # The one at `first` begins at the score before it.
    right = np.maximum(np.abs(numbers - scores), np.abs(numbers - less))[first:]
    left = np.maximum(np.abs(numbers[1:] - scores[:-1]), np.abs(numbers[1:] - less[:-1]))[first - 1 :]
    return float(max(right.max(), left.max(initial=0.0))) + 1e-6
