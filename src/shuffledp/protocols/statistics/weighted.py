"""A weighted mean from one vector sum: every user sends its weighted value and its weight.

With the value scaled to u in [-1, 1] and the weight to v in [0, 1], (v u, s v) lies in the triangle of (0, 0),
(-1, s) and (1, s), whose smallest ball is that of the parabola in moments.py: c = (1 + s^2) / 2s for s >= 1,
around (0, c). The ratio R of the sums has a variance in proportion to c^2 (1 + R^2 / s^2); its worst case, a mean
at an end of the range, is least at s^2 = 2 again. One user can move the sum by 2, the triangle's diameter;
VectorSum hides the ball's diameter 3/sqrt(2) = 2.12.
"""

import math
from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy.typing import ArrayLike

from shuffledp.errors import DataError, ParameterError
from shuffledp.estimates import Estimate, VectorEstimate
from shuffledp.privacy import Privacy
from shuffledp.protocols.statistics.moments import (
    HEIGHT,
    LARGEST,
    RADIUS,
    SMALLEST,
    Floats,
    check_vector_plan,
    check_width,
    checked_column,
    farther,
    like,
    scaled,
    two_sums,
)
from shuffledp.protocols.vector_sum import VectorSum
from shuffledp.protocols.vector_sum.base import VectorSumPlan


@dataclass(frozen=True, slots=True, kw_only=True)
class WeightedMeanEstimate:
    """sum(w x) / sum(w) with both sums; with the vector's confidence all bounds hold at once.

    `mean_interval` is what is proved; `mean.bound` is the distance to its farther end.
    """

    mean: Estimate
    mean_interval: tuple[float, float]
    weighted_sum: Estimate
    total_weight: Estimate


@dataclass(frozen=True, slots=True, kw_only=True)
class WeightedMean:
    """The mean of private values with private weights in 0..largest_weight.

    Send `encode(values, weights)` through `vector_plan`; the adversary sees what it sees of that sum. Both sums
    are unbiased; their ratio is, up to the square of the noise over the total weight.

    >>> weighted = WeightedMean.plan(users=10_000, privacy=Privacy(1, 1e-6), low=0, high=1, largest_weight=2)
    >>> round(weighted.standard_error(0.5, total_weight=10_000), 5)
    0.0009
    >>> from shuffledp import RandomBits, simulate
    >>> points = weighted.encode([0.2, 0.6] * 5000, [2, 1] * 5000)
    >>> answer = weighted.from_estimate(simulate(weighted.vector_plan, points, bits=RandomBits.secure()))
    >>> abs(answer.mean.value - 1 / 3) < 0.02, abs(answer.total_weight.value - 15_000) < 200
    (True, True)
    """

    low: float
    high: float
    largest_weight: float
    vector_plan: VectorSumPlan

    def __post_init__(self) -> None:
        check_width(self.low, self.high)
        check_weight(self.largest_weight)
        check_vector_plan(self.vector_plan)

    @classmethod
    def plan(
        cls,
        *,
        users: int,
        privacy: Privacy,
        low: float,
        high: float,
        largest_weight: float,
        method: str = "auto",
        honest_fraction: float = 1.0,
        max_messages: int | None = None,
    ) -> Self:
        """The weighted mean from the best vector sum for these limits, or from the named method's."""
        check_width(low, high)
        check_weight(largest_weight)
        plan = VectorSum.plan(
            users=users,
            privacy=privacy,
            dimension=2,
            radius=RADIUS,
            method=method,
            honest_fraction=honest_fraction,
            max_messages=max_messages,
        )
        return cls(low=float(low), high=float(high), largest_weight=float(largest_weight), vector_plan=plan)

    def standard_error(self, mean: float, total_weight: float) -> float:
        """Of such a weighted mean, by the delta method, and at most the range's width."""
        width, weight = self.high - self.low, max(0.0, total_weight / self.largest_weight)
        noise = self.vector_plan.standard_error * math.hypot(1.0, float(scaled(mean, self.low, self.high)) / HEIGHT)
        return width / 2 * noise / weight if noise < 2 * weight else width

    def encode(self, values: ArrayLike, weights: ArrayLike, *, clip: bool = False) -> Floats:
        """The users' points, a row a user; what is outside its range is refused, or clipped into it."""
        u = scaled(checked_column("values", values, self.low, self.high, clip=clip), self.low, self.high)
        v = checked_column("weights", weights, 0.0, self.largest_weight, clip=clip) / self.largest_weight
        if u.shape != v.shape:
            raise DataError("weights", f"{v.size} rows", f"must be as many as the {u.size} values", "pass one a user")
        return np.column_stack((u * v, HEIGHT * v - RADIUS))

    def from_estimate(self, estimate: VectorEstimate) -> WeightedMeanEstimate:
        """The weighted mean that this estimate of the points' sum says.

        As in Fieller's interval, the mean's is every ratio of two sums within the vector's simultaneous bound, and
        the whole range if the total weight's part of it touches 0: it holds whenever that bound does. The mean's
        value is brought into the range; without a positive total weight it is the range's middle.
        """
        half, unit = (self.high - self.low) / 2, self.largest_weight
        middle = self.low + half
        first, second = two_sums(estimate)
        weight, bound, error = (
            (second + self.vector_plan.users * RADIUS) / HEIGHT,
            estimate.bound,
            estimate.standard_error,
        )
        lightest, heaviest = weight - bound / HEIGHT, weight + bound / HEIGHT
        ends = (-1.0, 1.0)
        if lightest > 0:
            least, most = first - bound, first + bound
            ends = (min(least / lightest, least / heaviest), max(most / lightest, most / heaviest))
        ratio = min(1.0, max(-1.0, first / weight)) if weight > 0 else 0.0
        mean = middle + half * ratio
        lower, upper = (middle + half * min(1.0, max(-1.0, end)) for end in ends)
        return WeightedMeanEstimate(
            mean=like(estimate, mean, self.standard_error(mean, unit * weight), farther(mean, (lower, upper))),
            mean_interval=(lower, upper),
            weighted_sum=like(
                estimate,
                unit * (middle * weight + half * first),
                unit * error * math.hypot(middle / HEIGHT, half),
                unit * bound * (abs(middle) / HEIGHT + half),
            ),
            total_weight=like(estimate, unit * weight, unit * error / HEIGHT, unit * bound / HEIGHT),
        )


def check_weight(largest: float) -> None:
    """Refuse what cannot be the largest weight."""
    if isinstance(largest, bool) or not isinstance(largest, int | float) or not SMALLEST < largest < LARGEST:
        raise ParameterError("largest_weight", largest, "must be a positive number", "say how much one user may weigh")
