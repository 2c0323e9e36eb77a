"""P_GD: gradient steps on all users in every round, composed exactly. For smooth losses, or envelopes of others.

With steps below 1/beta the mean of the points after each step satisfies (docs/theory/001-convex-optimization.md)

    excess <= distance^2 / (2 eta T) + eta v / (2 (1 - eta beta)) + L^2 eta (T+1) / n   [+ L^2 / (2 beta) if smoothed]

where v is the exact variance of one round's noise, which grows with T as composition demands. The third term is what
T steps on the same users may overfit; what they may overfit to their own rounding is added to it.

Reference: [001] Algorithm 5, Theorem 4.9, for t = 0..T-1, with theta - eta g, and noise from the accountant.
"""

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from shuffledp.learn.optimize.problem import Problem
from shuffledp.learn.optimize.repeated_sums import plan_sum
from shuffledp.learn.optimize.sets import Floats
from shuffledp.learn.optimize.sgd import SgdStage
from shuffledp.learn.optimize.stages import FEWER_ROUNDS, NOTHING, GradientSum, StageSketch, SteppedMethod, asks_often

# Steps and envelopes are looked for on grids: bounds are flat around their least value.
_COARSE, _FINE = 40, 4000
# Steps to the radius that most plans' grids have.
_USUAL_GRID = 500


@dataclass(frozen=True, slots=True, kw_only=True)
class GdStage(SgdStage):
    """theta <- projection of theta - step gradient; the model is the mean of the points after each step."""

    kind: ClassVar[str] = "gd"
    repeats: ClassVar[bool] = True
    averages_steps: ClassVar[bool] = True


class Gd(SteppedMethod):
    """Rounds and steps of P_GD, which asks every user in every round."""

    name: ClassVar[str] = "gd"
    reference: ClassVar[str] = "[001] Theorem 4.9"
    asks_once: ClassVar[bool] = False

    def refusal(self, problem: Problem) -> str | None:
        return asks_often(problem)

    def sketch(self, problem: Problem, users: int, distance: float, rounds: int) -> StageSketch:
        most = min(rounds, problem.visits_allowed)
        if users < problem.smallest_batch:
            return NOTHING
        times = np.unique(np.geomspace(1, most, _COARSE).astype(np.int64)).astype(np.float64)[:, None, None]
        # An envelope that costs as much as all the rest does: L distance / sqrt(n) at least, L distance at most.
        scale = problem.lipschitz / distance
        envelopes = scale * np.geomspace(0.1, 10 * np.sqrt(float(users)), _COARSE)[None, :, None]
        smoothing = envelopes if problem.smoothness is None else None
        parts = np.geomspace(1e-4, 0.98, _COARSE)[None, None, :]
        noise = problem.unit_noise**2 * times
        _, bounds = _bounds(problem, users, distance, times, smoothing, parts, noise, _grid(problem, None))
        enough = bounds.min(axis=(1, 2)) <= FEWER_ROUNDS * bounds.min()
        fewest = int(np.argmax(enough))
        best = None if smoothing is None else float(smoothing[0, int(np.argmin(bounds[fewest].min(axis=1))), 0])
        return StageSketch(int(times[fewest, 0, 0]), users, float(bounds[fewest].min()), best)

    def plan_noise(self, problem: Problem, users: int, rounds: int) -> GradientSum | None:
        return plan_sum(problem, users, rounds)

    def expected_noise(self, problem: Problem, rounds: int) -> float:
        return problem.unit_noise**2 * rounds

    def steps(
        self, problem: Problem, sketch: StageSketch, distance: float, noise: float, plan: GradientSum | None
    ) -> GdStage:
        rounds, users, smoothing = sketch.rounds, sketch.users, sketch.smoothing
        parts, grid = np.geomspace(1e-5, 0.999, _FINE), _grid(problem, plan)
        steps, bounds = _bounds(problem, users, distance, rounds, smoothing, parts, noise, grid)
        best = int(np.argmin(bounds))
        bound, step_size = float(bounds[best]), float(steps[best])
        return GdStage(rounds=rounds, users=users, plan=plan, smoothing=smoothing, bound=bound, step_size=step_size)

    def proved_bound(self, problem: Problem, stage: GdStage, noise: float) -> float:
        smooth = (stage.smoothing or problem.smoothness or 0.0) + problem.ridge
        part, reach = np.array([stage.step_size * smooth]), problem.domain.reach
        grid = _grid(problem, stage.plan)
        return float(_bounds(problem, stage.users, reach, stage.rounds, stage.smoothing, part, noise, grid)[1][0])


def _grid(problem: Problem, plan: GradientSum | None) -> float:
    """How far apart numbers are that users round to, or are likely to be as long as nothing is planned."""
    if problem.privacy is None:
        return 0.0
    return problem.lipschitz / _USUAL_GRID if plan is None else plan.step


def _bounds(
    problem: Problem, users: int, distance: float, rounds: Any, smoothing: Any, parts: Floats, noise: Any, grid: float
) -> tuple[Floats, Floats]:
    """Steps, which are these parts of 1/beta, and their bounds; beta is the loss's, or its envelope's if smoothed."""
    smooth: Any = problem.smoothness if smoothing is None else smoothing
    squares = problem.lipschitz**2
    steps = parts / (smooth + problem.ridge)
    optimization = distance**2 / (2 * steps * rounds)
    # Below: 1 - step beta > 0.
    disturbed = steps * noise / users**2 / (2 * (1 - steps * (smooth + problem.ridge)))
    generalization = squares * steps * (rounds + 1) / users
    rounding = problem.lipschitz * steps * grid * np.sqrt(problem.dimension * rounds / (4 * users))
    envelope = 0.0 if smoothing is None else squares / (2 * smoothing)
    return steps, np.asarray(optimization + disturbed + generalization + rounding + envelope)
