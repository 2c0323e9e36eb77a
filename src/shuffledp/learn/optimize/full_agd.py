"""Acceleration with all users in every round, composed exactly: far fewer rounds than P_GD. For linear models' losses.

It is not in the paper. Noise that grows with the rounds costs acceleration hardly more than one round's, so that

    excess <= 2 beta distance^2 / (T (T+1)) + 2 distance sqrt(v (2T+1) / (6 T (T+1))) + 2 L max|theta| / sqrt(n)

[with 2 L distance / sqrt(T (T+1)) for the first term if smoothed], v the exact variance of one of T rounds' noise. The
last term is what any solver may overfit, by the Rademacher complexity of linear models: the theory page has the proof.
"""

import math
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from shuffledp.learn.optimize.agd import Agd, AgdStage, noise_part, smooth_part
from shuffledp.learn.optimize.problem import Problem
from shuffledp.learn.optimize.repeated_sums import plan_sum
from shuffledp.learn.optimize.stages import FEWER_ROUNDS, NOTHING, GradientSum, StageSketch, asks_often


@dataclass(frozen=True, slots=True, kw_only=True)
class FullAgdStage(AgdStage):
    """The steps of P_AGD on the same users in every round."""

    kind: ClassVar[str] = "full-agd"
    repeats: ClassVar[bool] = True


class FullAgd(Agd):
    """Rounds and steps of acceleration on all users."""

    name: ClassVar[str] = "full-agd"
    reference: ClassVar[str] = "docs/theory/001-convex-optimization.md"
    asks_once: ClassVar[bool] = False
    kind: ClassVar[type[AgdStage]] = FullAgdStage

    def refusal(self, problem: Problem) -> str | None:
        return asks_often(problem) if problem.linear else "needs the loss of a linear model"

    def plan_noise(self, problem: Problem, users: int, rounds: int) -> GradientSum | None:
        return plan_sum(problem, users, rounds)

    def expected_noise(self, problem: Problem, rounds: int) -> float:
        return problem.unit_noise**2 * rounds

    def variance(self, problem: Problem, users: Any, noise: float) -> Any:
        return noise / users**2

    def overfit(self, problem: Problem, users: int) -> float:
        """How much smaller these users' loss may be than the population's, on average, anywhere on the domain."""
        # Several scores are contracted as a vector (Maurer 2016): sqrt(2) for that, and sqrt(outputs) for their signs.
        vector = 1.0 if problem.outputs == 1 else math.sqrt(2 * problem.outputs)
        return 2 * vector * problem.lipschitz * problem.domain.largest_norm / math.sqrt(users)

    def sketch(self, problem: Problem, users: int, distance: float, rounds: int) -> StageSketch:
        if users < problem.smallest_batch:
            return NOTHING
        most = min(rounds, problem.visits_allowed)
        times = np.unique(np.geomspace(1, most, 120).astype(np.int64)).astype(np.float64)
        noise = noise_part(times, problem.unit_noise**2 * times / users**2, distance)
        bounds = smooth_part(problem, times, distance) + noise + self.overfit(problem, users)
        fewest = int(np.argmax(bounds <= FEWER_ROUNDS * bounds.min()))
        return StageSketch(int(times[fewest]), users, float(bounds[fewest]))
