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
from shuffledp.learn.optimize.stages import FEWER_ROUNDS, NOTHING, Method, StageSketch, asks_often, noise_of

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


class Gd(Method):
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
        smoothed = problem.smoothness is None
        if problem.smoothness is None:
            # An envelope that costs as much as all the rest does: L distance / sqrt(n) at least, L distance at most.
            scale = problem.lipschitz / distance
            smooth = scale * np.geomspace(0.1, 10 * np.sqrt(float(users)), _COARSE)[None, :, None]
        else:
            smooth = np.array([problem.smoothness])[None, :, None]
        parts = np.geomspace(1e-4, 0.98, _COARSE)[None, None, :]
        noise = problem.unit_noise**2 * times
        grid = 0.0 if problem.privacy is None else problem.lipschitz / _USUAL_GRID
        steps = parts / (smooth + problem.ridge)
        bounds = _bound(problem, users, distance, times, steps, smooth, noise, smoothed, grid)
        enough = bounds.min(axis=(1, 2)) <= FEWER_ROUNDS * bounds.min()
        fewest = int(np.argmax(enough))
        envelope = int(np.argmin(bounds[fewest].min(axis=1)))
        smoothing = float(smooth[0, envelope, 0]) if smoothed else None
        return StageSketch(int(times[fewest, 0, 0]), users, float(bounds[fewest].min()), smoothing)

    def stage(self, problem: Problem, sketch: StageSketch, distance: float) -> GdStage:
        plan = plan_sum(problem, sketch.users, sketch.rounds)
        smooth = problem.smoothness if sketch.smoothing is None else sketch.smoothing
        steps = np.geomspace(1e-5, 0.999, _FINE) / ((smooth or 0.0) + problem.ridge)
        bounds = _bound(
            problem,
            sketch.users,
            distance,
            sketch.rounds,
            steps,
            smooth,
            noise_of(problem, plan),
            sketch.smoothing is not None,
            0.0 if plan is None else plan.step,
        )
        best = int(np.argmin(bounds))
        return GdStage(
            rounds=sketch.rounds,
            users=sketch.users,
            plan=plan,
            smoothing=sketch.smoothing,
            bound=float(bounds[best]),
            step_size=float(steps[best]),
        )


def _bound(
    problem: Problem,
    users: int,
    distance: float,
    rounds: Any,
    steps: Floats,
    smooth: Any,
    noise: Any,
    smoothed: bool,
    grid: float,
) -> Floats:
    squares = problem.lipschitz**2
    optimization = distance**2 / (2 * steps * rounds)
    # Below: 1 - step beta > 0.
    disturbed = steps * noise / users**2 / (2 * (1 - steps * (smooth + problem.ridge)))
    generalization = squares * steps * (rounds + 1) / users
    rounding = problem.lipschitz * steps * grid * np.sqrt(problem.dimension * rounds / (4 * users))
    envelope = squares / (2 * smooth) if smoothed else 0.0
    return np.asarray(optimization + disturbed + generalization + rounding + envelope)
