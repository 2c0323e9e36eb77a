"""P_AGD: accelerated stochastic gradient steps (AC-SA of Lan 2012), a fresh cohort a step. For smooth losses.

The steps printed in the paper diverge; these are proved in docs/theory/001-convex-optimization.md:

    alpha_t = 2/(t+1),   L_t = 2 (beta + s)/t,   s = sigma sqrt(T (T+1) (2T+1) / 24) / distance
    excess <= 2 beta distance^2 / (T (T+1)) + 2 distance sigma sqrt((2T+1) / (6 T (T+1)))

Reference: [001] Algorithm 4, Theorem 4.3.
"""

import math
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from shuffledp.learn.optimize.problem import Problem
from shuffledp.learn.optimize.repeated_sums import plan_sum
from shuffledp.learn.optimize.sets import ConvexSet, Floats
from shuffledp.learn.optimize.stages import GradientSum, Method, Sketch, Stage, batches, least, noise_of


@dataclass(frozen=True, slots=True, kw_only=True)
class AgdStage(Stage):
    """Gradients are asked for between the point and the model; the point takes steps of t / (2 weight)."""

    kind: ClassVar[str] = "agd"
    weight: float

    def query(self, time: int, point: Floats, average: Floats) -> Floats:
        part = 2 / (time + 1)
        return part * point + (1 - part) * average

    def step(
        self, time: int, point: Floats, average: Floats, gradient: Floats, domain: ConvexSet
    ) -> tuple[Floats, Floats]:
        part = 2 / (time + 1)
        moved = domain.project(point - gradient * (time / (2 * self.weight)))
        return moved, part * moved + (1 - part) * average

    def _decides(self) -> tuple[str, ...]:
        return ("weight",)


def noise_part(rounds: Any, variance: Any, distance: float) -> Any:
    """What noise of this variance adds to the excess loss; numbers or arrays."""
    return 2 * distance * np.sqrt(variance * (2 * rounds + 1) / (6 * rounds * (rounds + 1)))


def noise_weight(rounds: int, variance: float, distance: float) -> float:
    """How much shorter steps should be for the noise."""
    return math.sqrt(variance * rounds * (rounds + 1) * (2 * rounds + 1) / 24) / distance


def variance_of(problem: Problem, users: Any, noise: float) -> Any:
    """Of a cohort's mean gradient: of sampling, at most L^2 a user, and of noise."""
    return problem.lipschitz**2 / users + noise / (np.asarray(users, dtype=np.float64) ** 2)


class Agd(Method):
    """Rounds and steps of P_AGD."""

    name: ClassVar[str] = "agd"
    reference: ClassVar[str] = "[001] Theorem 4.3"

    def refusal(self, problem: Problem) -> str | None:
        return None if problem.smoothness is not None else "needs a smooth loss"

    def plan_noise(self, problem: Problem, users: int) -> GradientSum | None:
        """What adds up a cohort's gradients."""
        return plan_sum(problem, users, 1)

    def expected_noise(self, problem: Problem) -> float:
        """About the length of its noise."""
        return problem.unit_noise

    def sketch(self, problem: Problem, users: int, distance: float, rounds: int) -> Sketch:
        times, sizes = batches(problem, users, rounds)
        variances = variance_of(problem, sizes, self.expected_noise(problem) ** 2)
        smooth = 2 * _smoothness(problem) * distance**2 / (times * (times + 1.0))
        return least(times, sizes, smooth + noise_part(times.astype(np.float64), variances, distance))

    def stage(self, problem: Problem, sketch: Sketch, distance: float) -> AgdStage:
        rounds, plan = sketch.rounds, self.plan_noise(problem, sketch.users)
        variance = float(variance_of(problem, sketch.users, noise_of(problem, plan)))
        smooth = 2 * _smoothness(problem) * distance**2 / (rounds * (rounds + 1))
        return AgdStage(
            rounds=rounds,
            users=sketch.users,
            plan=plan,
            bound=smooth + float(noise_part(rounds, variance, distance)),
            weight=_smoothness(problem) + noise_weight(rounds, variance, distance),
        )


def _smoothness(problem: Problem) -> float:
    """Of the whole loss."""
    return (problem.smoothness or 0.0) + problem.ridge
