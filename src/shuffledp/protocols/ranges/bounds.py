"""How far off weighted sums of centred decoys can be: exact moments for one sum, Bennett's inequality for many.

A sum's error is that of independent coins: one in level l is thrown with that level's probability and then adds the
weight of a uniformly drawn node, less the level's mean weight. So its mean is 0, and with (coins, probability, nodes)

    log E[e^(theta error)] = sum over levels of coins log(1 + probability (mean over nodes of e^(theta w) - 1)).
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import scipy

from shuffledp.accounting.curves import smallest_meeting
from shuffledp.protocols.domains.domain import Floats
from shuffledp.protocols.error_bounds import CONFIDENCE


@dataclass(frozen=True, slots=True, eq=False)
class DecoyWeights:
    """One level of a weighted sum: so many coins, how likely each is thrown, and what a node weighs.

    `weights` are distinct ones, `shares` the fractions of the level's nodes that have them.
    """

    coins: int
    probability: float
    weights: Floats
    shares: Floats

    @property
    def centred(self) -> Floats:
        """The weights less their mean over the nodes."""
        return self.weights - float(self.shares @ self.weights)

    @property
    def variance(self) -> float:
        """The variance of this level's part of the error."""
        return self.coins * self.probability * float(self.shares @ self.centred**2)

    def log_moment(self, theta: float) -> float:
        """Log E[e^(theta error)]."""
        change = float(self.shares @ np.expm1(np.minimum(theta * self.centred, 600.0)))
        return self.coins * math.log1p(self.probability * change)


def one_sum_bound(levels: Sequence[DecoyWeights], failure: float = 1 - CONFIDENCE) -> float:
    """Chernoff's bound with the exact moments, half of the failure probability for each side."""
    deviation = math.sqrt(sum(level.variance for level in levels))
    if deviation == 0:
        return 0.0
    needed = math.log(2 / failure)

    def reached(log_theta: float, sign: float) -> float:
        theta = math.exp(log_theta) / deviation
        return (sum(level.log_moment(sign * theta) for level in levels) + needed) / theta

    # Any theta proves a bound; the search only makes it small.
    sides = [
        scipy.optimize.minimize_scalar(reached, bounds=(-4.0, 4.0), method="bounded", args=(sign,)).fun
        for sign in (1.0, -1.0)
    ]
    return float(max(sides))


def every_sum_bound(variances: Floats, spans: Floats, failure: float = 1 - CONFIDENCE) -> float:
    """What none of many sums is off by more than, but for the failure probability: Bennett, and a union.

    Terms are independent, have mean 0 and lie within `span` of 0; with V their variances added up,
    P[|error| >= a] <= 2 exp(-(V / span^2) h(a span / V)) where h(u) = (1 + u) log(1 + u) - u.

    >>> round(every_sum_bound(np.array([100.0]), np.array([1.0])), 1)
    28.4
    """
    moving = variances > 0
    if not moving.any():
        return 0.0
    pairs, times = np.unique(np.stack((variances[moving], spans[moving])), axis=1, return_counts=True)
    variance, span = pairs

    def passed(a: float) -> float:
        u = a * span / variance
        exponents = -(variance / span**2) * ((1 + u) * np.log1p(u) - u)
        return float(2 * times @ np.exp(exponents))

    return smallest_meeting(passed, failure, 0.0, math.sqrt(float(variance.max())), relative=1e-6)
