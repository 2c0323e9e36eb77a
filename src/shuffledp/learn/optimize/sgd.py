"""P_SGD: plain stochastic gradient steps, a fresh cohort a step. For any convex loss.

Reference: [001] Algorithm 3, Theorem 4.1, with the step's sign and size of docs/theory/001-convex-optimization.md.
"""

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from shuffledp.learn.optimize.problem import Problem
from shuffledp.learn.optimize.repeated_sums import plan_sum
from shuffledp.learn.optimize.sets import Floats
from shuffledp.learn.optimize.stages import GradientSum, Nearest, Stage, StageSketch, SteppedMethod, batches, least


@dataclass(frozen=True, slots=True, kw_only=True)
class SgdStage(Stage):
    """theta <- projection of theta - step gradient; the model is the mean of the points asked about."""

    kind: ClassVar[str] = "sgd"
    averages_steps: ClassVar[bool] = False
    """Whether the model is the mean of the points after each step, and not of those asked about."""
    step_size: float

    def query(self, time: int, point: Floats, average: Floats) -> Floats:
        return point

    def step(
        self, time: int, point: Floats, average: Floats, gradient: Floats, nearest: Nearest
    ) -> tuple[Floats, Floats]:
        moved = nearest(point - self.step_size * gradient)
        return moved, average + ((moved if self.averages_steps else point) - average) / time


class Sgd(SteppedMethod):
    """Rounds and steps of P_SGD: the excess loss is at most distance sqrt((L^2 + noise) / rounds) on average."""

    name: ClassVar[str] = "sgd"
    reference: ClassVar[str] = "[001] Theorem 4.1"

    def refusal(self, problem: Problem) -> str | None:
        return None

    def sketch(self, problem: Problem, users: int, distance: float, rounds: int) -> StageSketch:
        times, sizes = batches(problem, users, rounds)
        squares = _longest(problem) ** 2 + (problem.unit_noise / sizes) ** 2
        return least(times, sizes, distance * np.sqrt(squares / times))

    def plan_noise(self, problem: Problem, users: int, rounds: int) -> GradientSum | None:
        return plan_sum(problem, users, 1)

    def expected_noise(self, problem: Problem, rounds: int) -> float:
        return problem.unit_noise**2

    def steps(
        self, problem: Problem, sketch: StageSketch, distance: float, noise: float, plan: GradientSum | None
    ) -> SgdStage:
        length = math.sqrt(_longest(problem) ** 2 + noise / sketch.users**2)
        return SgdStage(
            rounds=sketch.rounds,
            users=sketch.users,
            plan=plan,
            bound=distance * length / math.sqrt(sketch.rounds),
            step_size=distance / (length * math.sqrt(sketch.rounds)),
        )

    def proved_bound(self, problem: Problem, stage: SgdStage, noise: float) -> float:
        squares = _longest(problem) ** 2 + noise / stage.users**2
        return problem.domain.reach**2 / (2 * stage.step_size * stage.rounds) + stage.step_size * squares / 2


def _longest(problem: Problem) -> float:
    """No gradient of the whole loss, ridge included, is longer on the domain."""
    return problem.lipschitz + problem.ridge * problem.domain.largest_norm
