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
from shuffledp.learn.optimize.sets import Floats
from shuffledp.learn.optimize.stages import GradientSum, Nearest, Stage, StageSketch, SteppedMethod, batches, least


@dataclass(frozen=True, slots=True, kw_only=True)
class AgdStage(Stage):
    """Gradients are asked for between the point and the model; the point takes steps of t / (2 weight)."""

    kind: ClassVar[str] = "agd"
    weight: float

    def query(self, time: int, point: Floats, average: Floats) -> Floats:
        part = 2 / (time + 1)
        return part * point + (1 - part) * average

    def step(
        self, time: int, point: Floats, average: Floats, gradient: Floats, nearest: Nearest
    ) -> tuple[Floats, Floats]:
        part = 2 / (time + 1)
        moved = nearest(point - gradient * (time / (2 * self.weight)))
        return moved, part * moved + (1 - part) * average


def noise_part(rounds: Any, variance: Any, distance: float) -> Any:
    """What noise of this variance adds to the excess loss; numbers or arrays."""
    return 2 * distance * np.sqrt(variance * (2 * rounds + 1) / (6 * rounds * (rounds + 1)))


def noise_weight(rounds: int, variance: float, distance: float) -> float:
    """How much shorter steps should be for the noise."""
    return math.sqrt(variance * rounds * (rounds + 1) * (2 * rounds + 1) / 24) / distance


def smooth_part(problem: Problem, rounds: Any, distance: float) -> Any:
    """The excess loss that is left without noise: acceleration's own, and the envelopes' distance where there are any.

    An envelope of smoothness beta lies below a loss that is not smooth by at most L^2 / (2 beta); `envelope` balances
    that against acceleration.
    """
    both = rounds * (rounds + 1.0)
    if problem.smoothness is not None:
        return 2 * (problem.smoothness + problem.ridge) * distance**2 / both
    return 2 * problem.lipschitz * distance / np.sqrt(both) + 2 * problem.ridge * distance**2 / both


def envelope(problem: Problem, rounds: int, distance: float) -> float | None:
    """The smoothness of the envelopes whose gradients users send; None where the loss itself is smooth."""
    if problem.smoothness is not None:
        return None
    return problem.lipschitz * math.sqrt(rounds * (rounds + 1)) / (2 * distance)


class Agd(SteppedMethod):
    """Rounds and steps of P_AGD."""

    name: ClassVar[str] = "agd"
    reference: ClassVar[str] = "[001] Theorem 4.3"
    kind: ClassVar[type[AgdStage]] = AgdStage
    tuned: ClassVar[bool] = True

    def refusal(self, problem: Problem) -> str | None:
        return None if problem.smoothness is not None else "needs a smooth loss"

    def plan_noise(self, problem: Problem, users: int, rounds: int) -> GradientSum | None:
        return plan_sum(problem, users, 1)

    def expected_noise(self, problem: Problem, rounds: int) -> float:
        return problem.unit_noise**2

    def variance(self, problem: Problem, users: Any, noise: float) -> Any:
        """The variance of a cohort's mean gradient: of sampling, at most L^2 a user, and of noise."""
        return problem.lipschitz**2 / users + noise / (np.asarray(users, dtype=np.float64) ** 2)

    def overfit(self, problem: Problem, users: int) -> float:
        """How much smaller these users' loss may be than the population's: nothing where each is asked once."""
        return 0.0

    def sketch(self, problem: Problem, users: int, distance: float, rounds: int) -> StageSketch:
        times, sizes = batches(problem, users, rounds)
        variances = self.variance(problem, sizes, self.expected_noise(problem, 1))
        steps = times.astype(np.float64)
        return least(times, sizes, smooth_part(problem, steps, distance) + noise_part(steps, variances, distance))

    def steps(
        self, problem: Problem, sketch: StageSketch, distance: float, noise: float, plan: GradientSum | None
    ) -> AgdStage:
        rounds = sketch.rounds
        variance = float(self.variance(problem, sketch.users, noise))
        smoothing = envelope(problem, rounds, distance)
        smooth = float(smooth_part(problem, float(rounds), distance))
        disturbed = float(noise_part(rounds, variance, distance))
        curved = (problem.smoothness or smoothing or 0.0) + problem.ridge
        return self.kind(
            rounds=rounds,
            users=sketch.users,
            plan=plan,
            smoothing=smoothing,
            bound=smooth + disturbed + self.overfit(problem, sketch.users),
            weight=curved + noise_weight(rounds, variance, distance),
        )

    def proved_bound(self, problem: Problem, stage: AgdStage, noise: float) -> float:
        rounds, reach, weight = stage.rounds, problem.domain.reach, stage.weight
        envelopes = 0.0 if stage.smoothing is None else problem.lipschitz**2 / (2 * stage.smoothing)
        room = weight - (problem.smoothness or stage.smoothing or 0.0) - problem.ridge
        variance = float(self.variance(problem, stage.users, noise))
        disturbed = variance * (2 * rounds + 1) / (12 * room) if variance > 0 else 0.0
        smooth = 2 * weight * reach**2 / (rounds * (rounds + 1))
        return smooth + disturbed + envelopes + self.overfit(problem, stage.users)
