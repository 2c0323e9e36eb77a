"""Mean and variance from one vector sum: every user sends a point of a parabola.

A value scaled to u in [-1, 1] is sent as (u, s u^2 - c). With t = u^2 the squared length t + (s t - c)^2 is
convex in t, so the farthest points are those of u = 0 and u = -1, 1: lengths c^2 and 1 + (s - c)^2. For s >= 1
the ball is smallest where both are equal, c = (1 + s^2) / 2s, and c is its radius. (Up to s = 1 the radius is
that of u alone, so u^2 would cost the mean nothing.) Both coordinates get noise in proportion to the radius; the
variances of the means of u and of u^2 add up to (1 + s^2)^3 / 4s^4 of it, least at s^2 = 2: against s = 1 the
mean's error is 6% larger, that of the mean of squares 25% smaller.

One user can move the sum by 2, the curve's diameter; VectorSum hides more, the ball's diameter 3/sqrt(2) = 2.12.
"""

import math
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from shuffledp.errors import DataError, ParameterError
from shuffledp.estimates import Estimate, VectorEstimate
from shuffledp.privacy import Privacy
from shuffledp.protocols.domains.summed import check_range
from shuffledp.protocols.vector_sum import VectorSum
from shuffledp.protocols.vector_sum.base import VectorSumPlan

Floats = NDArray[np.float64]

# s, and the smallest ball around (0, 0) and (-1, s), (1, s): its radius, and its centre's height.
HEIGHT = math.sqrt(2)
RADIUS = (1 + HEIGHT**2) / (2 * HEIGHT)
# Widths and weights whose products and squares are floats, with any number of users.
SMALLEST, LARGEST = 1e-100, 1e100


@dataclass(frozen=True, slots=True, kw_only=True)
class MomentsEstimate:
    """Mean and variance of the users' values; with the vector's confidence both bounds hold at once.

    `variance.value` is unbiased and may be a little below 0 where the variance is small. `variance_interval` is
    what is proved, never below 0; `variance.bound` is the distance to its farther end.
    """

    mean: Estimate
    variance: Estimate
    variance_interval: tuple[float, float]


@dataclass(frozen=True, slots=True, kw_only=True)
class Moments:
    """The mean and the variance of the users' values (over all users, not of a sample) from one vector sum.

    Send `encode(values)` through `vector_plan`; the adversary sees what it sees of that sum. The square of a noisy
    mean is too large by the noise's variance on average: that is known and taken off. Of the rounding's variance,
    which depends on the data, half of the largest is: a bias of at most 1/(8 users) squared steps is left.

    >>> moments = Moments.plan(users=10_000, privacy=Privacy(1, 1e-6), low=0, high=1)
    >>> round(moments.mean_standard_error, 5), round(moments.variance_standard_error(0.5), 5)
    (0.00045, 0.00016)
    >>> from shuffledp import RandomBits, simulate
    >>> points = moments.encode([0.25, 0.75] * 5000)
    >>> answer = moments.from_estimate(simulate(moments.vector_plan, points, bits=RandomBits.secure()))
    >>> abs(answer.mean.value - 0.5) < 0.01, abs(answer.variance.value - 0.0625) < 0.005
    (True, True)
    """

    low: float
    high: float
    vector_plan: VectorSumPlan

    def __post_init__(self) -> None:
        check_width(self.low, self.high)
        check_vector_plan(self.vector_plan)

    @classmethod
    def plan(
        cls,
        *,
        users: int,
        privacy: Privacy,
        low: float,
        high: float,
        method: str = "auto",
        honest_fraction: float = 1.0,
        max_messages: int | None = None,
    ) -> Self:
        """Mean and variance from the best vector sum for these limits, or from the named method's."""
        check_width(low, high)
        plan = VectorSum.plan(
            users=users,
            privacy=privacy,
            dimension=2,
            radius=RADIUS,
            method=method,
            honest_fraction=honest_fraction,
            max_messages=max_messages,
        )
        return cls(low=float(low), high=float(high), vector_plan=plan)

    @property
    def mean_standard_error(self) -> float:
        """Of the mean when all users follow the protocol."""
        return (self.high - self.low) / 2 * self.vector_plan.standard_error / self.vector_plan.users

    def variance_standard_error(self, mean: float) -> float:
        """Of the variance around this mean, by the delta method: smallest in the middle of the range."""
        slope = 2 * float(scaled(mean, self.low, self.high))
        return (self.high - self.low) / 2 * self.mean_standard_error * math.hypot(1 / HEIGHT, slope)

    def encode(self, values: ArrayLike, *, clip: bool = False) -> Floats:
        """The users' points, a row a user; a value outside the range is refused, or clipped into it."""
        u = scaled(checked_column("values", values, self.low, self.high, clip=clip), self.low, self.high)
        return np.column_stack((u, HEIGHT * u**2 - RADIUS))

    def from_estimate(self, estimate: VectorEstimate) -> MomentsEstimate:
        """The mean and the variance that this estimate of the points' sum says.

        The interval is that of mean of squares less squared mean, over every pair of them within the vector's
        simultaneous bound and between -1 and 1, 0 and 1: it holds whenever that bound does.
        """
        plan, half = self.vector_plan, (self.high - self.low) / 2
        first, second = (total / plan.users for total in two_sums(estimate))
        squares, bound = (second + RADIUS) / HEIGHT, estimate.bound / plan.users
        rounding = plan.users / 8
        excess = (plan.step / plan.users) ** 2 * (plan.noise_law.variance + rounding)
        mean_ends = [min(1.0, max(-1.0, first + side)) for side in (-bound, bound)]
        low, high = (min(1.0, max(0.0, squares + side / HEIGHT)) for side in (-bound, bound))
        smallest = 0.0 if mean_ends[0] <= 0 <= mean_ends[1] else min(abs(end) for end in mean_ends)
        largest = max(abs(end) for end in mean_ends)
        interval = (half**2 * max(0.0, low - largest**2), half**2 * max(0.0, high - smallest**2))
        mean, variance = self.low + half * (1 + first), half**2 * (squares - first**2 + excess)
        return MomentsEstimate(
            mean=like(estimate, mean, half * estimate.standard_error / plan.users, half * bound),
            variance=like(estimate, variance, self.variance_standard_error(mean), farther(variance, interval)),
            variance_interval=interval,
        )


def scaled(values: Any, low: float, high: float) -> Any:
    """Values of the range in -1..1; clipping keeps what floats round beyond it."""
    return np.clip(2 * ((values - low) / (high - low)) - 1, -1.0, 1.0)


def like(estimate: VectorEstimate, value: float, standard_error: float, bound: float) -> Estimate:
    """One number that was made of this vector."""
    return Estimate(
        value=value,
        standard_error=standard_error,
        bound=bound,
        confidence=estimate.confidence,
        dropped=estimate.dropped,
        clipped=estimate.clipped,
        simulated=estimate.simulated,
    )


def farther(value: float, interval: tuple[float, float]) -> float:
    """The bound around a value that holds wherever the interval does."""
    return max(abs(value - end) for end in interval)


def two_sums(estimate: VectorEstimate) -> tuple[float, float]:
    """Both coordinates of an estimate in the plane."""
    if estimate.value.shape != (2,):
        raise DataError("estimate", f"shape {estimate.value.shape}", "must have 2 numbers", "pass vector_plan's answer")
    return float(estimate.value[0]), float(estimate.value[1])


def check_width(low: float, high: float) -> None:
    """Refuse what is no range, or one whose squares are no floats."""
    check_range(low, high)
    if not SMALLEST < high - low < LARGEST:
        raise ParameterError("high", high, f"must be 1e-100 to 1e100 above low, {low:g}", "use another unit")


def check_vector_plan(plan: VectorSumPlan) -> None:
    """Refuse a plan for another ball."""
    if (plan.dimension, plan.radius) != (2, RADIUS):
        raise ParameterError(
            "vector_plan",
            f"dimension {plan.dimension}, radius {plan.radius:g}",
            "must be the one made here",
            "use plan",
        )


def checked_column(name: str, values: ArrayLike, low: float, high: float, *, clip: bool) -> Floats:
    """The values as floats in the range, or a DataError that names the first bad row."""
    array = np.asarray(values)
    if array.ndim != 1 or array.size == 0:
        raise DataError(name, f"shape {array.shape}", "must be a column of at least one value", "pass one a user")
    if array.dtype.kind not in "buif":
        raise DataError(name, f"dtype {array.dtype}", "must be numbers", "convert them, e.g. x.astype(float)")
    array = array.astype(np.float64, copy=False)
    for row in np.flatnonzero(~np.isfinite(array))[:1].tolist():
        raise DataError(name, f"{array[row]} in row {row + 1}", "must be finite", "drop or fill such values first")
    if clip:
        return np.asarray(np.clip(array, low, high))
    for row in np.flatnonzero((array < low) | (array > high))[:1].tolist():
        wanted = f"must lie in [{low:g}, {high:g}]"
        raise DataError(name, f"{array[row]:g} in row {row + 1}", wanted, "clip it (clip=True) or plan a wider range")
    return array
