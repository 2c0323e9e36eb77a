"""The exact curve of Gaussian noise: a yardstick for every other noise, and a pair that dominates many."""

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy import special

from shuffledp.accounting.curves import smallest_meeting
from shuffledp.accounting.laws import Floats
from shuffledp.accounting.pairs import Atoms, DominatingPair
from shuffledp.errors import ParameterError
from shuffledp.privacy import Privacy

# Outcomes are cut into intervals of this length, this many deviations around both means.
_STEP, _REACH = 1 / 256, 13.0
# Both log_ndtr are good to 1e-14; what is computed from them is rounded up by more.
_ROUNDING = 1e-12


def gaussian_delta(epsilon: float, standard_deviation: float, sensitivity: float = 1.0) -> float:
    """The smallest delta of N(0, sd^2) against its shift by the sensitivity."""
    shift = sensitivity / standard_deviation
    upper = special.log_ndtr(shift / 2 - epsilon / shift)
    lower = epsilon + special.log_ndtr(-shift / 2 - epsilon / shift)
    return float(math.exp(upper) * -math.expm1(lower - upper)) if lower < upper else 0.0


def gaussian_standard_deviation(privacy: Privacy, sensitivity: float = 1.0) -> float:
    """The smallest standard deviation of Gaussian noise that meets the target.

    Args:
        privacy: the (epsilon, delta) that must hold.
        sensitivity: how far apart two neighbours' sums are.

    Returns:
        The standard deviation, in the units of the sensitivity.

    >>> round(gaussian_standard_deviation(Privacy(1, 1e-6)), 3)
    4.225
    """
    return sensitivity * smallest_meeting(lambda sd: gaussian_delta(privacy.epsilon, sd), privacy.delta, 1e-9, 1.0)


@dataclass(frozen=True)
class GaussianPair(DominatingPair):
    """N(0, 1) against N(shift, 1).

    >>> round(GaussianPair(1 / 4.225).delta(1.0) * 1e6, 2)
    1.0
    """

    shift: float

    def __post_init__(self) -> None:
        if not 0 < self.shift < math.inf:
            raise ParameterError("shift", self.shift, "must be a positive number", "swap the two distributions")

    def forward(self, epsilon: float) -> float:
        """The exact curve, rounded up."""
        exact = gaussian_delta(epsilon, 1.0, self.shift)
        # Where the two tails all but cancel, the difference keeps fewer digits than either.
        return exact * (1 + _ROUNDING) + _ROUNDING * float(special.ndtr(self.shift / 2 - epsilon / self.shift))

    def reverse(self, epsilon: float) -> float:
        """Delta of Q against P, which is that of P against Q: a reflection swaps the two."""
        return self.forward(epsilon)

    def atoms(self) -> Atoms:
        """A finite pair that dominates this one: every interval's masses are moved to its two ends.

        Of all pairs on an interval with given masses and a loss between those at its ends, the one with
        both end losses only is the easiest to tell apart (convexity).
        """
        return self._atoms

    @cached_property
    def _atoms(self) -> Atoms:
        ends = np.arange(-_REACH, _REACH + self.shift + _STEP, _STEP)
        log_p, log_q = _log_interval_masses(ends), _log_interval_masses(ends - self.shift)
        losses = self.shift * (self.shift / 2 - ends)
        high, low = losses[:-1], losses[1:]
        at_high = np.clip(np.expm1(log_q - log_p + low) / np.expm1(low - high), 0.0, 1.0)
        with np.errstate(divide="ignore"):
            p = np.concatenate((log_p + np.log(at_high), log_p + np.log1p(-at_high)))
        outside = float(special.ndtr(-_REACH)) + float(special.ndtr(-_REACH))
        return Atoms(p, p - np.concatenate((high, low)), outside, outside)

    def describe(self) -> str:
        return f"P = N(0, 1), Q = N({self.shift:.6g}, 1)"


def _log_interval_masses(ends: Floats) -> Floats:
    """Log of the standard normal mass between neighbours, from the nearer tail."""
    left, right = ends[:-1], ends[1:]
    mirrored = left + right > 0
    near, far = np.where(mirrored, -left, right), np.where(mirrored, -right, left)
    log_near, log_far = special.log_ndtr(near), special.log_ndtr(far)
    return np.asarray(log_near + np.log(-np.expm1(log_far - log_near)))
