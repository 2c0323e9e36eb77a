"""Acceleration on all users in the metric of their rows' second moments, which are asked for once, at the start.

Where features hang together, a loss is thousands of times steeper in some directions than in others: plain steps must
be short enough for the steepest, so that they need hundreds of rounds, each with its noise, for the others. The mean of
x x^T, released once for a part of the budget, says which directions are steep: with phi'' <= h, no Hessian of a linear
model's loss is more than h times that mean. Steps in the metric h M + floor need about as many rounds as if all
directions were alike.

Privacy is composition and nothing else. Nothing is proved about the error: steps are chosen by rehearsals, and longer
than the worst case allows. Reference: docs/theory/conditioning.md.
"""

import math
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from shuffledp.accounting.dropouts import honest_users
from shuffledp.accounting.gaussian import gaussian_standard_deviation
from shuffledp.learn.optimize.agd import AgdStage
from shuffledp.learn.optimize.moments import Conditioner
from shuffledp.learn.optimize.problem import ROOM, Problem
from shuffledp.learn.optimize.repeated_sums import AskedSum, plan_sums
from shuffledp.learn.optimize.sets import ConvexSet, Floats
from shuffledp.learn.optimize.stages import NOTHING, GradientSum, Nearest, StageSketch, SteppedMethod, asks_often
from shuffledp.protocols.vector_sum.base import VectorSumPlan
from shuffledp.protocols.vector_sum.matrices import packed_dimension, unpack_symmetric

MOST_MOMENTS = 1 << 12
"""More numbers of moments are too many to ask of anybody."""

# The moments' part of all squared shifts: less than half a tenth is lost in gradients' noise.
_PART = 0.1
# Where nobody rehearses: so many gradient rounds, and steps as long as the metric's own smoothness allows.
_ROUNDS = 96


@dataclass(frozen=True, slots=True, kw_only=True)
class ConditionedStage(AgdStage):
    """The first round asks for moments, the others for gradients; steps are P_AGD's in the moments' metric.

    Attributes:
        moments: the plan of the moments' sum.
        moments_clip: no user's moments are longer.
        moments_noise: the standard deviation of every number of their sum.
        width: features of a row.
        link: how much a slope grows with its score at most.
        floor: what is added to every eigenvalue of the curvature.
        ridge: the curvature that depends on nobody.
    """

    kind: ClassVar[str] = "conditioned"
    repeats: ClassVar[bool] = True
    plans: ClassVar[tuple[str, ...]] = ("plan", "moments")
    moments: GradientSum | None
    moments_clip: float
    moments_noise: float
    width: int
    link: float
    floor: float
    ridge: float

    @property
    def sums(self) -> tuple[tuple[GradientSum, int], ...]:
        if self.plan is None or self.moments is None:
            return ()
        return (self.plan, self.rounds - 1), (self.moments, 1)

    def asks_moments(self, time: int) -> bool:
        return time == 1

    def plan_at(self, time: int) -> GradientSum | None:
        return self.moments if self.asks_moments(time) else self.plan

    def query(self, time: int, point: Floats, average: Floats) -> Floats:
        # Slots make another class of this one, so that super() would not find it.
        return AgdStage.query(self, time - 1, point, average)

    def step(
        self, time: int, point: Floats, average: Floats, gradient: Floats, nearest: Nearest
    ) -> tuple[Floats, Floats]:
        return AgdStage.step(self, time - 1, point, average, gradient, nearest)

    def document(self) -> dict[str, Any]:
        plan = None if self.moments is None else self.moments.fingerprint
        return {**AgdStage.document(self), "moments": plan}

    def conditioner(self, moments: Floats | None, domain: ConvexSet) -> Conditioner:
        """The metric of released moments; without any, as their round was lost, all directions are alike."""
        penalized = self.ridge * domain.penalized(np.ones(domain.dimension))[: self.width]
        if moments is None:
            return Conditioner.of(np.diag(np.full(self.width, self.link * self.moments_clip) + penalized), 0.0)
        noise = _spectral(self.moments_noise, self.width) / self.users
        curvature = self.link * unpack_symmetric(moments) + np.diag(penalized)
        return Conditioner.of(curvature, max(self.floor, self.link * noise))


class Conditioned(SteppedMethod):
    """Rounds and steps of acceleration in the metric of released moments."""

    name: ClassVar[str] = "conditioned"
    reference: ClassVar[str] = "docs/theory/conditioning.md"
    asks_once: ClassVar[bool] = False
    tuned: ClassVar[bool] = True
    fewest_rounds: ClassVar[int] = 2
    # Longer steps than the metric's smoothness allows diverge where targets hardly follow from features: there losses
    # are as steep as they can be. Rehearsals, of which most have signals, would not notice.
    longest_scale: ClassVar[float] = 1.0

    def refusal(self, problem: Problem) -> str | None:
        if not problem.linear or problem.row_bound is None:
            return "needs the loss of a linear model, by name or with a row bound"
        if problem.smoothness is None:
            return "needs a smooth loss"
        if problem.dimension % problem.outputs:
            return f"needs models of {problem.outputs} scores with as many numbers each"
        if packed_dimension(_width(problem)) > MOST_MOMENTS:
            return f"asks for products of all features, and {_width(problem):,} have more than {MOST_MOMENTS:,}"
        noise = _spectral(self._moments_noise(problem), _width(problem)) / problem.users
        if noise * _width(problem) > _clip(problem):
            return "needs more people: their moments would be hidden by the noise"
        return asks_often(problem)

    def predicted_bound(self, problem: Problem) -> None:
        return None

    def sketch(self, problem: Problem, users: int, distance: float, rounds: int) -> StageSketch:
        if users < problem.smallest_batch:
            return NOTHING
        return StageSketch(min(1 + _ROUNDS, rounds, problem.visits_allowed), users, math.inf)

    def _plans(self, problem: Problem, users: int, rounds: int) -> tuple[VectorSumPlan, ...] | None:
        gradients = AskedSum(problem.dimension, problem.lipschitz, rounds - 1, 1 - _PART)
        moments = AskedSum(packed_dimension(_width(problem)), _clip(problem), 1, _PART)
        return plan_sums(problem, users, (gradients, moments))

    def plan_noise(self, problem: Problem, users: int, rounds: int) -> GradientSum | None:
        plans = self._plans(problem, users, rounds)
        return None if plans is None else plans[0]

    def expected_noise(self, problem: Problem, rounds: int) -> float:
        return problem.unit_noise**2 * (rounds - 1) / (1 - _PART)

    def _moments_noise(self, problem: Problem, surplus: float = 1.0) -> float:
        """The standard deviation to be expected of the moments' sum, where all noise is so many times the usual."""
        if problem.privacy is None:
            return 0.0
        missing = problem.users / honest_users(problem.users, problem.honest_fraction)
        usual = gaussian_standard_deviation(problem.privacy, 2 * _clip(problem))
        return surplus * ROOM * usual * math.sqrt(missing / _PART)

    def steps(
        self, problem: Problem, sketch: StageSketch, distance: float, noise: float, plan: GradientSum | None
    ) -> ConditionedStage:
        plans = None if plan is None else self._plans(problem, sketch.users, sketch.rounds)
        moments = None if plans is None else plans[1]
        surplus = math.sqrt(noise / self.expected_noise(problem, sketch.rounds)) if noise else 0.0
        spread = moments.standard_error if moments else self._moments_noise(problem, surplus)
        assert problem.smoothness is not None
        link, width = problem.smoothness / _clip(problem), _width(problem)
        return ConditionedStage(
            rounds=sketch.rounds,
            users=sketch.users,
            plan=plan,
            bound=None,
            weight=problem.domain.reach / distance,
            moments=moments,
            moments_clip=_clip(problem),
            moments_noise=spread,
            width=width,
            link=link,
            # The mean eigenvalue of rows of full length: directions far below it are mostly noise.
            floor=problem.smoothness / width,
            ridge=problem.ridge,
        )

    def proved_bound(self, problem: Problem, stage: ConditionedStage, noise: float) -> None:
        return None


def _spectral(deviation: float, width: int) -> float:
    """About the largest eigenvalue of moments of nothing but noise: off the diagonal it is 1/sqrt(2) of the packed."""
    return deviation * math.sqrt(2 * width)


def _width(problem: Problem) -> int:
    return problem.dimension // problem.outputs


def _clip(problem: Problem) -> float:
    """No user's moments are longer: the square of the longest row."""
    assert problem.row_bound is not None
    return problem.row_bound**2
