"""A weighted mean from one vector sum: every user sends its weighted value and its weight.

With the value scaled to u in [-1, 1] and the weight to v in [0, 1], (v u, s v) lies in the triangle of (0, 0),
(-1, s) and (1, s), whose smallest ball is that of the parabola in moments.py: c = (1 + s^2) / 2s for s >= 1,
around (0, c). The ratio R of the sums has a variance in proportion to c^2 (1 + R^2 / s^2); its worst case, a mean
at an end of the range, is least at s^2 = 2 again. One user can move the sum by 2, the triangle's diameter;
VectorSum hides the ball's diameter 3/sqrt(2) = 2.12.
"""

import math
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike

from shuffledp.errors import DataError, ParameterError
from shuffledp.estimates import Estimate, VectorEstimate
from shuffledp.protocols.domains.ball import Ball
from shuffledp.protocols.domains.domain import Domain, Floats, Generator
from shuffledp.protocols.fields import domain
from shuffledp.protocols.statistics.moments import (
    HEIGHT,
    LARGEST,
    RADIUS,
    SMALLEST,
    PlanePlan,
    check_width,
    checked_column,
    farther,
    like,
    scaled,
    two_sums,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class WeightedMeanEstimate:
    """sum(w x) / sum(w) with both sums; with the vector's confidence all bounds hold at once.

    `mean_interval` is what is proved; `mean.bound` is the distance to its farther end.

    Attributes:
        mean: the weighted mean.
        mean_interval: what is proved about it.
        weighted_sum: the sum of weights times values.
        total_weight: the sum of weights.
    """

    mean: Estimate
    mean_interval: tuple[float, float]
    weighted_sum: Estimate
    total_weight: Estimate


@dataclass(frozen=True)
class Triangle(Domain):
    """Numbers in [low, high] with weights in 0..largest_weight, encoded as points (v u, s v - c) of a triangle."""

    kind: ClassVar[str] = "triangle"
    columns = 2
    low: float
    high: float
    largest_weight: float

    @property
    def options(self) -> str:
        return f"--low {self.low!r} --high {self.high!r} --largest-weight {self.largest_weight!r}"

    def encode(self, values: ArrayLike, weights: ArrayLike | None = None, *, clip: bool = False) -> Floats:
        """The users' points, a row a user; what is outside its range is refused, or clipped into it.

        Args:
            values: a number a user; or, where no weights are given, a row a user with the number and its weight.
            weights: a weight a user.
            clip: whether what is out of range is brought into it.
        """
        if weights is None:
            rows = np.asarray(values)
            if rows.ndim != 2 or rows.shape[1] != 2:
                raise DataError("values", f"shape {rows.shape}", "must be a value and a weight a user", "pass both")
            values, weights = rows[:, 0], rows[:, 1]
        u = scaled(checked_column("values", values, self.low, self.high, clip=clip), self.low, self.high)
        v = checked_column("weights", weights, 0.0, self.largest_weight, clip=clip) / self.largest_weight
        if u.shape != v.shape:
            raise DataError("weights", f"{v.size} rows", f"must be as many as the {u.size} values", "pass one a user")
        return np.column_stack((u * v, HEIGHT * v - RADIUS))

    def check_values(self, values: ArrayLike) -> Floats:
        """Points in the ball."""
        return Ball(2, RADIUS).check_values(values)

    def clip_own_values(self, values: ArrayLike) -> tuple[Floats, int]:
        rows = np.asarray(values, dtype=np.float64)
        clipped = np.clip(rows, [self.low, 0.0], [self.high, self.largest_weight])
        return clipped, int((clipped != rows).any(axis=1).sum())

    def synthesize(self, users: int, generator: Generator) -> Floats:
        values = self.low + (self.high - self.low) * generator.beta(2, 5, users)
        return self.encode(values, self.largest_weight * generator.random(users), clip=True)


@dataclass(frozen=True, slots=True, kw_only=True)
class WeightedMean(PlanePlan):
    """The mean of private values with private weights in 0..largest_weight.

    Users send `encode(values, weights)`; the adversary sees what it sees of the points' sum. Both sums are unbiased;
    their ratio is, up to the square of the noise over the total weight.

    Attributes:
        largest_weight: no weight is larger.

    >>> from shuffledp import Privacy, RandomBits, simulate
    >>> weighted = WeightedMean.plan(users=10_000, privacy=Privacy(1, 1e-6), low=0, high=1, largest_weight=2)
    >>> round(weighted.mean_standard_error(0.5, total_weight=10_000), 5)
    0.0009
    >>> points = weighted.encode([0.2, 0.6] * 5000, [2, 1] * 5000)
    >>> answer = simulate(weighted, points, bits=RandomBits.secure())
    >>> abs(answer.of("mean").value - 1 / 3) < 0.02, abs(answer.of("total_weight").value - 15_000) < 200
    (True, True)
    """

    protocol: ClassVar[str] = "weighted-mean"
    file_command: ClassVar[str] = "mean"
    title: ClassVar[str] = "A private weighted mean"
    is_unbiased: ClassVar[bool] = False

    largest_weight: float = domain(read=float)

    @classmethod
    def sum_domain(cls, *, low: float, high: float, largest_weight: float) -> dict[str, Any]:  # type: ignore[override]
        check_width(low, high)
        check_weight(largest_weight)
        return {"dimension": 2, "radius": RADIUS}

    @property
    def domain(self) -> Triangle:
        return Triangle(self.low, self.high, self.largest_weight)

    @property
    def question(self) -> str:
        return (
            f"find the weighted mean of the numbers of {self.users:,} users, each in [{self.low:g}, {self.high:g}] "
            f"with a weight of at most {self.largest_weight:g}"
        )

    @property
    def standard_error(self) -> float:
        """The worst of the three numbers' standard errors: with light weights a mean may be anywhere in its range."""
        error, middle = self.largest_weight * self.vector_plan.standard_error, self.low + self.half
        return max(2 * self.half, error / HEIGHT, error * math.hypot(middle / HEIGHT, self.half))

    @property
    def error_bound(self) -> float:
        return self._moved(self.vector_plan.error_bound)

    def _moved(self, by: float) -> float:
        moved, middle = self.largest_weight * by, self.low + self.half
        return max(2 * self.half, moved / HEIGHT, moved * (abs(middle) / HEIGHT + self.half))

    def true_value(self, values: ArrayLike) -> Floats:
        first, second = self.check_values(values).sum(axis=0).tolist()
        weight = (second + self.users * RADIUS) / HEIGHT
        middle, unit = self.low + self.half, self.largest_weight
        mean = middle + self.half * (first / weight if weight > 0 else 0.0)
        return np.array([mean, unit * (middle * weight + self.half * first), unit * weight])

    def mean_standard_error(self, mean: float, total_weight: float) -> float:
        """The standard error of such a weighted mean, by the delta method, and at most the range's width."""
        width, weight = self.high - self.low, max(0.0, total_weight / self.largest_weight)
        noise = self.vector_plan.standard_error * math.hypot(1.0, float(scaled(mean, self.low, self.high)) / HEIGHT)
        return width / 2 * noise / weight if noise < 2 * weight else width

    def from_estimate(self, estimate: VectorEstimate) -> WeightedMeanEstimate:
        """The weighted mean that this estimate of the points' sum says.

        As in Fieller's interval, the mean's is every ratio of two sums within the vector's simultaneous bound, and
        the whole range if the total weight's part of it touches 0: it holds whenever that bound does. The mean's
        value is brought into the range; without a positive total weight it is the range's middle.
        """
        half, unit = self.half, self.largest_weight
        middle = self.low + half
        first, second = two_sums(estimate)
        weight, bound, error = (second + self.users * RADIUS) / HEIGHT, estimate.bound, estimate.standard_error
        lightest, heaviest = weight - bound / HEIGHT, weight + bound / HEIGHT
        ends = (-1.0, 1.0)
        if lightest > 0:
            least, most = first - bound, first + bound
            ends = (min(least / lightest, least / heaviest), max(most / lightest, most / heaviest))
        ratio = min(1.0, max(-1.0, first / weight)) if weight > 0 else 0.0
        mean = middle + half * ratio
        lower, upper = (middle + half * min(1.0, max(-1.0, end)) for end in ends)
        return WeightedMeanEstimate(
            mean=like(estimate, mean, self.mean_standard_error(mean, unit * weight), farther(mean, (lower, upper))),
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
