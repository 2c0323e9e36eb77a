"""What all vector sums share: vectors in a ball, on a grid of whole numbers, and one Gaussian pair."""

import math
from abc import abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import lru_cache, partial
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from shuffledp.accounting.gaussian import gaussian_standard_deviation
from shuffledp.accounting.guarantee import DeltaTerm
from shuffledp.accounting.pairs import DominatingPair
from shuffledp.accounting.rounding import TOLERANCE, RoundedDifference, rounded_difference
from shuffledp.errors import ParameterError
from shuffledp.estimates import VectorEstimate
from shuffledp.messages import Reports
from shuffledp.protocols.domains.ball import check_ball
from shuffledp.protocols.domains.summed import Vectors
from shuffledp.protocols.error_bounds import chernoff_bound, noise_and_rounding_bound, with_errors
from shuffledp.protocols.fields import domain, noise
from shuffledp.protocols.learner import Part
from shuffledp.protocols.request import Request
from shuffledp.protocols.streaming import summed
from shuffledp.protocols.sums.plan import SumPlan
from shuffledp.protocols.tallies import Tally
from shuffledp.protocols.vector_sum.calibration import gaussian_pair
from shuffledp.protocols.vector_sum.paper import paper_standard_error
from shuffledp.protocols.vector_sum.rotation import likely_range, padded_dimension, rotate, rotate_back
from shuffledp.randomness import RandomBits
from shuffledp.references.local_vector import local_vector_standard_error
from shuffledp.sampling.rounding import LARGEST, ColumnSums, round_randomly

Floats = NDArray[np.float64]
Whole = NDArray[np.int64]

# A rotation's clipping touches anybody with at most this probability over its signs.
CLIPPING = 1e-6
# Parts of delta for rounding too long, and for what the window of normal scores leaves out.
ROUNDING_PART, WINDOW_PART = 0.01, 0.001


@lru_cache(maxsize=64)
def _bound_in_steps(plan: "VectorSumPlan") -> float:
    if plan.rotation is None:
        return noise_and_rounding_bound(plan.noise_law, plan.users, plan.dimension)
    weight = 1 / math.sqrt(plan.coordinates)
    scale = math.sqrt(plan.noise_law.variance + plan.users / 4)
    return chernoff_bound(
        lambda theta: plan.coordinates * plan.log_moment(theta * weight), plan.users, plan.dimension, scale
    )


class Scale(NamedTuple):
    """One step of the grid, where 0 lies in steps, and how many steps from there coordinates reach."""

    step: float
    origin: float
    span: float


@dataclass(frozen=True, slots=True, kw_only=True)
class VectorSumPlan(SumPlan):
    """A sum of vectors of length at most `radius`: scaled to a grid, rounded at random, noisy in every coordinate.

    With a `rotation` (the seed of its public signs) vectors are rotated first, which spreads them evenly.

    Attributes:
        dimension: how many numbers a vector has.
        radius: no vector is longer.
        grid: into how many steps the range of a coordinate is cut.
        rotation: the seed of public signs with which vectors are rotated first; None for none.
        rounding_failure: the part of delta for rounding that moves a sum too far.
        outside: the probability left out at either end of a coordinate's noise.
    """

    protocol: ClassVar[str] = "vector-sum"
    file_command: ClassVar[str] = "sum"
    theory_page: ClassVar[str] = "docs/theory/vector-sums.md"
    is_labelled: ClassVar[bool] = True
    title = "A private vector sum"
    unit = " in every coordinate"

    dimension: int = domain()
    radius: float = domain(read=float)
    grid: int = noise(f"[1, {LARGEST}]")
    rotation: int | None = noise(default=None)
    rounding_failure: float = noise("(0, 1/2)")
    outside: float = noise("(0, 1/2)")

    @staticmethod
    def shape_of(
        request: Request, dimension: int, radius: float, rotation: int | None
    ) -> tuple[int, float, dict[str, Any]]:
        """The coordinates that are sent, the part of the ball's diameter that one spans, and a plan's own fields.

        Among the fields are the parts of delta for rounding too long and outside of a window.
        """
        check_ball(dimension, radius)
        coordinates = dimension if rotation is None else padded_dimension(dimension)
        span = 1.0 if rotation is None else likely_range(request.users, coordinates, CLIPPING)
        fields = {
            **request.common,
            "dimension": dimension,
            "radius": radius,
            "rotation": rotation,
            "rounding_failure": ROUNDING_PART * request.privacy.delta,
            "outside": WINDOW_PART * request.privacy.delta / coordinates,
        }
        return coordinates, span, fields

    @abstractmethod
    def log_moment(self, theta: float) -> float:
        """Log E[e^(theta Z)] of all users' centred noise in one coordinate."""

    @property
    @abstractmethod
    def scale(self) -> Scale:
        """How coordinates become steps."""

    @property
    def step(self) -> float:
        return self.scale.step

    @property
    def coordinates(self) -> int:
        """Numbers that a user sends: the dimension, or the next power of two if rotated."""
        return self.dimension if self.rotation is None else padded_dimension(self.dimension)

    @property
    def reach(self) -> float:
        """No coordinate is larger; a rotated one that is gets clipped, which hardly ever happens."""
        if self.rotation is None:
            return self.radius
        return self.radius * likely_range(self.users, self.coordinates, CLIPPING)

    def _check_domain(self) -> None:
        check_ball(self.dimension, self.radius)
        if self.rotation is not None and not 0 <= self.rotation < 1 << 63:
            raise ParameterError("rotation", self.rotation, "must be a seed in 0..2^63", "any number will do")

    @property
    def domain(self) -> Vectors:
        return Vectors(self.dimension, self.radius, self.grid)

    @property
    def options(self) -> str:
        return self.domain.options + ("" if self.rotation is None else f" --rotation {self.rotation}")

    @property
    def error_bound(self) -> float:
        return self.step * _bound_in_steps(self)

    def reference(self) -> dict[str, float | None]:
        return {
            "paper_standard_error": paper_standard_error(self.users, self.privacy, self.dimension, self.radius),
            "central_standard_error": gaussian_standard_deviation(self.privacy, 2 * self.radius),
            "local_standard_error": local_vector_standard_error(self.users, self.privacy, self.dimension, self.radius),
        }

    @property
    def question(self) -> str:
        return (
            f"add up the vectors of {self.users:,} users, {self.dimension:,} numbers each, "
            f"of length at most {self.radius:g}"
        )

    @property
    def rounded_difference(self) -> RoundedDifference:
        """How far apart the rounded vectors of two neighbours are."""
        return rounded_difference(2 * self.radius / self.step, self.coordinates, self.rounding_failure)

    @property
    def largest_shift(self) -> int:
        """How far apart they are in one coordinate."""
        return math.ceil(min(2 * self.reach / self.step * (1 + TOLERANCE) + TOLERANCE, self.rounded_difference.length))

    def pair(self, honest: int) -> DominatingPair:
        return self.gaussian(honest)

    def noise_terms(self, epsilon: float, honest: int) -> tuple[DeltaTerm, ...]:
        return self.gaussian_terms(epsilon, honest)

    def gaussian(self, honest: int) -> DominatingPair:
        """The Gaussian pair that dominates one round's view: it composes over rounds in closed form."""
        length = self.rounded_difference.length
        return gaussian_pair(self.batch.law(honest), length, self.largest_shift, self.outside)

    def gaussian_terms(self, epsilon: float, honest: int) -> tuple[DeltaTerm, ...]:
        """What the noise leaves of delta by that pair: its curve, what its window leaves out, and rounding."""
        difference = self.rounded_difference
        return (
            DeltaTerm(
                "noise",
                self.gaussian(honest).delta(epsilon),
                f"the curve of the Gaussian pair that dominates every shift of length {difference.length:.6g}",
            ),
            DeltaTerm(
                "cut-off",
                self.coordinates * self.outside,
                f"{self.coordinates:,} coordinates' noise outside the window of its normal scores",
            ),
            DeltaTerm("rounding", difference.failure, "two neighbours' rounded vectors are further apart than that"),
        )

    def repeated_terms(self, epsilon: float, honest: int) -> tuple[DeltaTerm, ...]:
        """Every summand of delta of one round by the Gaussian pair, as several rounds compose it."""
        return (*self.gaussian_terms(epsilon, honest), *self.batch.transport_terms(honest, epsilon))

    @property
    def dominates_because(self) -> str:
        return (
            "With all others known the view is the user's rounded vector plus independent log-concave noise in every "
            "coordinate. Its normal score climbs by at most L a step, so each coordinate, whatever its shift, is "
            "dominated by a Gaussian pair, and their product by the one with shift L times the vector's length."
        )

    def true_value(self, values: ArrayLike) -> Floats:
        return np.asarray(self.check_values(values).sum(axis=0), dtype=np.float64)

    def scaled(self, block: Floats) -> Floats:
        """Coordinates in steps of the grid, brought into its range."""
        # Floats may be longer than the radius by a hair, and a rotated coordinate larger than its reach.
        step, origin, span = self.scale
        scaled = np.multiply(block, 1 / step)
        scaled += origin
        return np.clip(scaled, origin - span, origin + span, out=scaled)

    def to_steps(self, values: Floats, *, bits: RandomBits) -> Whole:
        return round_randomly(self.scaled(self.rotated(values)), bits=bits)

    def rotated(self, vectors: Floats) -> Floats:
        """Checked vectors, rotated if the plan says so: what is scaled and rounded."""
        return vectors if self.rotation is None else rotate(vectors, self.rotation)

    def parts(self, values: Floats, messages: int) -> Iterator[Part]:
        """A few coordinates at a time."""
        rotated, batch = self.rotated(values), self.batch
        width = max(1, min(self.coordinates, messages // (len(values) * batch.each)))
        for first in range(0, self.coordinates, width):
            columns = np.ascontiguousarray(rotated[:, first : first + width])
            yield Part(partial(self._part, columns, first), columns.shape[1] * batch.each)

    @property
    def user_bytes(self) -> int:
        # Its numbers, and the messages of a few of them at a time.
        return 32 * (self.coordinates + min(int(self.messages_per_user_max), 1 << 18))

    @property
    def tally_bytes(self) -> int:
        return 8 * self.coordinates

    def _part(self, columns: Floats, first: int, rows: slice, bits: RandomBits) -> Reports:
        """Reports about some rotated coordinates only, from `first` on."""
        rounded = round_randomly(self.scaled(columns[rows]), bits=bits)
        return self.batch.randomize(rounded, 0, bits=bits, first=first)

    def from_steps(self, steps: Whole, *, dropped: int = 0, simulated: bool = False) -> VectorEstimate:
        """The estimate from every coordinate's noisy sum in steps."""
        found: VectorEstimate = with_errors(self, self._value(steps), dropped=dropped, simulated=simulated)
        return found

    def _value(self, steps: Whole) -> Floats:
        step, origin, _ = self.scale
        sums = step * np.asarray(steps - (self.batch.mean + self.users * origin))
        if self.rotation is not None:
            sums = rotate_back(sums.reshape(1, -1), self.rotation)[0]
        return sums[: self.dimension]

    def sampled(self, *, bits: RandomBits, ahead: int = 1) -> "SampledSums":
        """Estimates by their law, one after another; the noise of `ahead` of them is drawn at a time."""
        return SampledSums(self, bits=bits, ahead=ahead)

    def summary(self, values: ArrayLike, *, bits: RandomBits) -> Tally:
        array = self.domain.ball.matrix(values)
        sampled = SampledSums(self, bits=bits)
        for _, block in self.domain.ball.blocks(array):
            sampled.add(block)
        return summed(sampled.totals, len(array))

    def sample_from(self, summary: Tally, *, bits: RandomBits) -> VectorEstimate:
        self.check_reports(summary.reports)
        steps = self.batch.checked(summary.counts + self.batch.sample(self.coordinates, bits=bits))
        return self.from_steps(steps, simulated=not bits.is_secure)

    @property
    def neighbours(self) -> tuple[Floats, Floats, Floats]:
        axis = np.zeros((1, self.dimension))
        axis[0, 0] = self.radius
        return -axis, axis, np.zeros((1, self.dimension))

    @property
    def audited_line(self) -> Whole:
        count = 1 if self.rotation is None else self.coordinates
        return np.sign(self.rotated(self.neighbours[1])[0, :count]).astype(np.int64)

    def audited_reports(self, values: ArrayLike, *, bits: RandomBits) -> Reports:
        prepared = self.rotated(self.check_values(values))[:, : self.audited_line.size]
        return self._part(prepared, 0, slice(None), bits)


class SampledSums:
    """Estimates drawn from their law without making messages, vectors coming in blocks, one sum after another.

    The noise of `ahead` sums is drawn at a time: it does not depend on the vectors.

    >>> from shuffledp import Privacy, VectorSum
    >>> plan = VectorSum.plan(users=3, privacy=Privacy(1, 1e-6), dimension=2, radius=1)
    >>> sampled = SampledSums(plan, bits=RandomBits.seeded(1))
    >>> sampled.add(np.array([[0.6, 0.8], [1.0, 0.0]]))
    >>> sampled.add(np.array([[0.0, 0.5]]))
    >>> sampled.estimate().value.size
    2
    """

    def __init__(self, plan: VectorSumPlan, *, bits: RandomBits, ahead: int = 1) -> None:
        self._plan, self._bits, self._ahead = plan, bits, ahead
        self._ball, self._batch = plan.domain.ball, plan.batch
        self._fast = plan.rotation is None and plan.grid < ColumnSums.LARGEST
        rows = min(self._ball.rows_at_a_time, plan.users) if self._fast else 1
        self._sums = ColumnSums(plan.coordinates, scale=1 / plan.step, offset=plan.scale.origin, rows=rows)
        self._others = np.zeros(plan.coordinates, dtype=np.int64)
        self._noise: list[Whole] = []
        self._last: VectorEstimate | None = None
        self._rows = 0

    @property
    def rows_at_a_time(self) -> int:
        """At most so many vectors in a block."""
        return self._ball.rows_at_a_time

    def add(self, block: Floats, *, is_clipped: bool = False) -> None:
        """Round some vectors and add them up; one that is too long is refused, unless the caller has clipped all."""
        longest = self._plan.radius if is_clipped else self._ball.check_block(self._rows, block)
        # Nothing to clip unless a vector is longer than the radius by what floats may be off.
        if longest <= self._plan.radius and self._fast:
            self._sums.add(block, bits=self._bits)
        else:
            self._others += self._plan.to_steps(block, bits=self._bits).sum(axis=0)
        self._rows += len(block)

    @property
    def totals(self) -> Whole:
        """What the rounded vectors since the last estimate add up to."""
        return np.asarray(self._sums.totals + self._others, dtype=np.int64)

    def estimate(self) -> VectorEstimate:
        """The estimate over all vectors since the last one."""
        self._plan.check_reports(self._rows)
        if not self._noise:
            width = self._plan.coordinates
            noise = self._batch.sample(width * self._ahead, bits=self._bits)
            self._noise = list(noise.reshape(self._ahead, width))
        totals = self.totals + self._noise.pop()
        self._sums.clear()
        self._others[:] = 0
        self._rows = 0
        steps = self._batch.checked(totals)
        if self._last is None:
            self._last = self._plan.from_steps(steps, simulated=not self._bits.is_secure)
        else:  # all but the value is the plan's
            self._last = replace(self._last, value=self._plan._value(steps))
        return self._last
