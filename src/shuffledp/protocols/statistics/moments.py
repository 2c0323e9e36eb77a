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
from abc import abstractmethod
from dataclasses import dataclass, fields
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike

from shuffledp.errors import DataError, ParameterError
from shuffledp.estimates import Estimate, NamedEstimate, VectorEstimate
from shuffledp.protocols.derived import DerivedPlan
from shuffledp.protocols.domains.ball import Ball
from shuffledp.protocols.domains.domain import Domain, Floats, Generator
from shuffledp.protocols.domains.summed import Reals, check_range
from shuffledp.protocols.fields import domain, forwarded
from shuffledp.protocols.vector_sum import VectorSum
from shuffledp.protocols.vector_sum.base import VectorSumPlan

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

    Attributes:
        mean: of the users' values.
        variance: of the users' values, unbiased.
        variance_interval: what is proved about the variance, never below 0.
    """

    mean: Estimate
    variance: Estimate
    variance_interval: tuple[float, float]


@dataclass(frozen=True)
class Parabola(Domain):
    """Numbers in [low, high], each encoded as a point (u, s u^2 - c) of a parabola in a ball."""

    kind: ClassVar[str] = "parabola"
    low: float
    high: float

    @property
    def options(self) -> str:
        return f"--low {self.low!r} --high {self.high!r}"

    def encode(self, values: ArrayLike, *, clip: bool = False) -> Floats:
        """The users' points, a row a user; a value outside the range is refused, or clipped into it."""
        u = scaled(checked_column("values", values, self.low, self.high, clip=clip), self.low, self.high)
        return np.column_stack((u, HEIGHT * u**2 - RADIUS))

    def check_values(self, values: ArrayLike) -> Floats:
        """Points in the ball."""
        return Ball(2, RADIUS).check_values(values)

    def clip_own_values(self, values: ArrayLike) -> tuple[Floats, int]:
        return Reals(1, self.low, self.high).clip_values(values)

    def synthesize(self, users: int, generator: Generator) -> Floats:
        return self.encode(self.low + (self.high - self.low) * generator.beta(2, 5, users), clip=True)


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanePlan(DerivedPlan):
    """A statistic of numbers in [low, high] that are sent as points of a ball in the plane.

    Attributes:
        low: no value is smaller.
        high: no value is larger.
    """

    summed = VectorSum

    low: float = domain(read=float)
    high: float = domain(read=float)

    @classmethod
    def sum_domain(cls, *, low: float, high: float) -> dict[str, Any]:  # type: ignore[override]
        check_width(low, high)
        return {"dimension": 2, "radius": RADIUS}

    vector_plan: ClassVar[VectorSumPlan] = forwarded("sum_plan")
    """The plan of the points' sum."""

    encode = forwarded("domain.encode")

    @abstractmethod
    def from_estimate(self, estimate: VectorEstimate) -> Any:
        """The statistic's numbers, each an estimate by its name, and what is proved about them."""

    def answer(self, estimate: VectorEstimate) -> NamedEstimate:
        found = self.from_estimate(estimate)
        numbers = {field.name: getattr(found, field.name) for field in fields(found) if field.type is Estimate}
        return NamedEstimate.together(**numbers)

    @property
    def half(self) -> float:
        """Half of the range's width."""
        return (self.high - self.low) / 2


@dataclass(frozen=True, slots=True, kw_only=True)
class Moments(PlanePlan):
    """The mean and the variance of the users' values (over all users, not of a sample) from one vector sum.

    Users send `encode(values)`; the adversary sees what it sees of the points' sum. The square of a noisy mean is too
    large by the noise's variance on average: that is known and taken off. Of the rounding's variance,
    which depends on the data, half of the largest is: a bias of at most 1/(8 users) squared steps is left.

    >>> from shuffledp import Privacy, RandomBits, simulate
    >>> moments = Moments.plan(users=10_000, privacy=Privacy(1, 1e-6), low=0, high=1)
    >>> round(moments.mean_standard_error, 5), round(moments.variance_standard_error(0.5), 5)
    (0.00045, 0.00016)
    >>> answer = simulate(moments, moments.encode([0.25, 0.75] * 5000), bits=RandomBits.secure())
    >>> abs(answer.of("mean").value - 0.5) < 0.01, abs(answer.of("variance").value - 0.0625) < 0.005
    (True, True)
    """

    protocol: ClassVar[str] = "moments"
    file_command: ClassVar[str] = "variance"
    title: ClassVar[str] = "A private mean and variance"
    is_unbiased: ClassVar[bool] = False

    @property
    def domain(self) -> Parabola:
        return Parabola(self.low, self.high)

    @property
    def question(self) -> str:
        return f"find mean and variance of the numbers of {self.users:,} users, each in [{self.low:g}, {self.high:g}]"

    @property
    def standard_error(self) -> float:
        return max(self.mean_standard_error, self.variance_standard_error(self.high))

    @property
    def error_bound(self) -> float:
        off = self.vector_plan.error_bound / self.users
        squares = off / HEIGHT + off * (2 + off) + self._excess
        return max(self.half * off, self.half**2 * squares)

    def _moved(self, by: float) -> float:
        # The noisy mean of u lies as far outside -1..1 as the bound allows, at most.
        off, most = by / self.users, 1 + self.vector_plan.error_bound / self.users
        return max(self.half * off, self.half**2 * (off / HEIGHT + off * (2 * most + off)))

    @property
    def _excess(self) -> float:
        """What the square of a noisy mean of u is too large by, on average: the noise's variance and half of what
        rounding adds at most.
        """
        plan, rounding = self.vector_plan, self.users / 8
        return (plan.step / self.users) ** 2 * (plan.noise_law.variance + rounding)

    def true_value(self, values: ArrayLike) -> Floats:
        first, second = self.check_values(values).mean(axis=0).tolist()
        return np.array([self.low + self.half * (1 + first), self.half**2 * ((second + RADIUS) / HEIGHT - first**2)])

    @property
    def mean_standard_error(self) -> float:
        """The standard error of the mean when all users follow the protocol."""
        return self.half * self.vector_plan.standard_error / self.users

    def variance_standard_error(self, mean: float) -> float:
        """The standard error of the variance around this mean, by the delta method: smallest in mid-range."""
        slope = 2 * float(scaled(mean, self.low, self.high))
        return self.half * self.mean_standard_error * math.hypot(1 / HEIGHT, slope)

    def from_estimate(self, estimate: VectorEstimate) -> MomentsEstimate:
        """The mean and the variance that this estimate of the points' sum says.

        The interval is that of mean of squares less squared mean, over every pair of them within the vector's
        simultaneous bound and between -1 and 1, 0 and 1: it holds whenever that bound does.
        """
        half = self.half
        first, second = (total / self.users for total in two_sums(estimate))
        squares, bound = (second + RADIUS) / HEIGHT, estimate.bound / self.users
        mean_ends = [min(1.0, max(-1.0, first + side)) for side in (-bound, bound)]
        low, high = (min(1.0, max(0.0, squares + side / HEIGHT)) for side in (-bound, bound))
        smallest = 0.0 if mean_ends[0] <= 0 <= mean_ends[1] else min(abs(end) for end in mean_ends)
        largest = max(abs(end) for end in mean_ends)
        interval = (half**2 * max(0.0, low - largest**2), half**2 * max(0.0, high - smallest**2))
        mean, variance = self.low + half * (1 + first), half**2 * (squares - first**2 + self._excess)
        return MomentsEstimate(
            mean=like(estimate, mean, half * estimate.standard_error / self.users, half * bound),
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
        **{note: getattr(estimate, note) for note in ("confidence", "dropped", "clipped", "simulated")},
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


def checked_column(name: str, values: ArrayLike, low: float, high: float, *, clip: bool) -> Floats:
    """The values as floats in the range, or a DataError that names the first bad row."""
    column = Reals(1, low, high)
    try:
        return column.clip_values(values)[0] if clip else column.check_values(values)
    except DataError as refused:
        raise DataError(name, refused.value, refused.problem, refused.way_out) from None
