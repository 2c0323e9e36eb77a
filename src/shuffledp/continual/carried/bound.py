"""How far off any estimate is: Gaussian tails of whole noise, and a union over all slots.

The noise of all running sums together is, at whole points, a Gaussian density but for a factor of 1e-20 (smoothing).
Add independent Gaussian noise of variance 4 to every running sum, in thought: then their law is Gaussian, again but for
such a factor. That noise moves an estimate by at most 4 of its deviations to either side but for 3e-5, so

    P[error > x]  <=  P[Gaussian of both > x - 4 deviations] / Phi(4).

Where norms of several coordinates are asked for, the noise that is only thought of is bounded in each of them instead,
by a union, and what is left is Gaussian with independent coordinates.

Proof: docs/theory/carried-noise.md; for norms: docs/theory/002-linear-bandits.md.
"""

import math

import numpy as np
from numpy.typing import NDArray
from scipy import special

from shuffledp.accounting.unions import gaussian_union_of
from shuffledp.continual.carried.weights import CarriedWeights

Floats = NDArray[np.float64]

# Deviations of the noise that is only thought of, and what the law of sums is off by, far above what it is.
_THOUGHT, _LAW = 4.0, 1e-9
_ALLOWED = float(special.ndtr(_THOUGHT)) * (1 - _LAW)
# What is kept back of a failure for the law of sums being off by that part, of any event up to a million failures.
_KEPT_BACK = 1e6 * _LAW


def horizon_noise_bound(weights: CarriedWeights, variances: Floats, failure: float) -> float:
    """No estimate's noise is larger, in steps, over the whole horizon, but for this probability.

    Args:
        weights: of all slots.
        variances: of the estimates' noise after 1, 2, ... slots, in steps squared.
        failure: the probability.
    """
    return _union(weights, variances, 0.0, failure) + _slack(weights)


def noise_bound_after(weights: CarriedWeights, variances: Floats, before: float, failure: float) -> float:
    """As `horizon_noise_bound`, where every estimate has more noise from before, of the same kind, of this variance."""
    # What is only thought of, of the noise before, too.
    slack = _THOUGHT * math.sqrt(weights.rounding_part * (float(weights.prefix_variances.max()) + before))
    return _union(weights, variances, (1 + weights.rounding_part) * before, failure) + slack


def _union(weights: CarriedWeights, variances: Floats, before: float, failure: float) -> float:
    """What no estimate's noise passes, that which is only thought of included, and noise from before."""

    def deviations(first: int, end: int) -> Floats:
        own = _deviations(weights, variances, first, end)
        return np.sqrt(own**2 + before) if before else own

    return gaussian_union_of(deviations, variances.size, failure * _ALLOWED)


def bounds_at(weights: CarriedWeights, variances: Floats, failure: float) -> Floats:
    """As `horizon_noise_bound`, in proportion to each estimate's own deviation: all hold together, too."""
    deviations = _deviations(weights, variances)
    each = failure * _ALLOWED / deviations.size
    return np.asarray(deviations * -special.ndtri(each / 2) + _slack(weights))


def coupled_noise(
    weights: CarriedWeights, variances: Floats, failure: float, coordinates: int
) -> tuple[Floats, Floats]:
    """The deviation of every estimate's Gaussian noise, and how far its own is off in any coordinate, in steps.

    Args:
        weights: of all slots.
        variances: of the estimates' noise after 1, 2, ... slots, in steps squared.
        failure: the probability with which any estimate may be further off in any coordinate.
        coordinates: of a value.
    """
    each = failure * (1 - _KEPT_BACK) / (coordinates * weights.slots)
    thought = np.sqrt(weights.rounding_part * weights.prefix_variances)
    return _deviations(weights, variances), np.asarray(thought * -special.ndtri(each / 2))


def _deviations(weights: CarriedWeights, variances: Floats, first: int = 0, end: int | None = None) -> Floats:
    """The standard deviation of estimates' noise, that which is only thought of included, in steps."""
    here = slice(first, end)
    return np.asarray(np.sqrt(variances[here] + weights.rounding_part * weights.prefix_variances[here]))


def _slack(weights: CarriedWeights) -> float:
    return _THOUGHT * math.sqrt(weights.rounding_part * float(weights.prefix_variances.max()))
