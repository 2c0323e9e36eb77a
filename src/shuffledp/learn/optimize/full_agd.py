"""Acceleration with all users in every round, composed exactly: far fewer rounds than P_GD. For linear models' losses.

It is not in the paper. Noise that grows with the rounds costs acceleration hardly more than one round's, so that

    excess <= 2 beta distance^2 / (T (T+1)) + 2 distance sqrt(v (2T+1) / (6 T (T+1))) + 2 L max|theta| / sqrt(n)

[with 2 L distance / sqrt(T (T+1)) for the first term if smoothed], v the exact variance of one of T rounds' noise. The
last term is what any solver may overfit, by the Rademacher complexity of linear models: the theory page has the proof.
"""

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from shuffledp.learn.optimize.agd import AgdStage, noise_part, noise_weight
from shuffledp.learn.optimize.problem import Problem
from shuffledp.learn.optimize.repeated_sums import plan_sum
from shuffledp.learn.optimize.sets import Floats
from shuffledp.learn.optimize.stages import FEWER_ROUNDS, NOTHING, Method, Sketch, noise_of


@dataclass(frozen=True, slots=True, kw_only=True)
class FullAgdStage(AgdStage):
    """The steps of P_AGD on the same users in every round."""

    kind: ClassVar[str] = "full-agd"
    repeats: ClassVar[bool] = True


class FullAgd(Method):
    """Rounds and steps of acceleration on all users."""

    name: ClassVar[str] = "full-agd"
    reference: ClassVar[str] = "docs/theory/001-convex-optimization.md"
    asks_once: ClassVar[bool] = False

    def refusal(self, problem: Problem) -> str | None:
        if not problem.linear:
            return "needs the loss of a linear model"
        if problem.visits_allowed < 2:
            return "asks every user in every round, and users may be asked only once"
        if problem.smoothness is None and not problem.has_prox:
            return "needs a smooth loss, or the loss's proximal map"
        return None

    def sketch(self, problem: Problem, users: int, distance: float, rounds: int) -> Sketch:
        if users < problem.smallest_batch:
            return NOTHING
        most = min(rounds, problem.visits_allowed)
        times = np.unique(np.geomspace(1, most, 120).astype(np.int64)).astype(np.float64)
        noise = noise_part(times, problem.unit_noise**2 * times / users**2, distance)
        bounds = _smooth(problem, times, distance) + noise + _overfit(problem, users)
        fewest = int(np.argmax(bounds <= FEWER_ROUNDS * bounds.min()))
        return Sketch(int(times[fewest]), users, float(bounds[fewest]))

    def stage(self, problem: Problem, sketch: Sketch, distance: float) -> FullAgdStage:
        rounds, plan = sketch.rounds, plan_sum(problem, sketch.users, sketch.rounds)
        variance = noise_of(problem, plan) / sketch.users**2
        smoothing = None if problem.smoothness is not None else _envelope(problem, rounds, distance)
        smooth = float(_smooth(problem, np.array(float(rounds)), distance))
        weight = (problem.smoothness or smoothing or 0.0) + problem.ridge
        return FullAgdStage(
            rounds=rounds,
            users=sketch.users,
            plan=plan,
            smoothing=smoothing,
            bound=smooth + float(noise_part(rounds, variance, distance)) + _overfit(problem, sketch.users),
            weight=weight + noise_weight(rounds, variance, distance),
        )


def _envelope(problem: Problem, rounds: int, distance: float) -> float:
    return problem.lipschitz * math.sqrt(rounds * (rounds + 1)) / (2 * distance)


def _smooth(problem: Problem, rounds: Floats, distance: float) -> Floats:
    """What is left without noise."""
    both = rounds * (rounds + 1)
    if problem.smoothness is None:
        return np.asarray(2 * problem.lipschitz * distance / np.sqrt(both) + 2 * problem.ridge * distance**2 / both)
    return np.asarray(2 * (problem.smoothness + problem.ridge) * distance**2 / both)


def _overfit(problem: Problem, users: int) -> float:
    """How much smaller these users' loss may be than the population's, on average, anywhere on the domain."""
    return 2 * problem.lipschitz * problem.domain.largest_norm / math.sqrt(users)
