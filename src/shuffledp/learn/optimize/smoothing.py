"""Smoothing and acceleration: P_AGD on the Moreau envelopes of a loss that is not smooth.

An envelope of smoothness beta lies below the loss by at most L^2 / (2 beta), and its gradients are no longer than L:
with the beta that balances this against acceleration, 2 L distance / sqrt(T (T+1)) is all that smoothing costs.

Reference: [001] Theorem 4.7, with L instead of 2 L.
"""

import math
from typing import ClassVar

import numpy as np

from shuffledp.learn.optimize.agd import Agd, AgdStage, noise_part, noise_weight, variance_of
from shuffledp.learn.optimize.problem import Problem
from shuffledp.learn.optimize.sets import Floats
from shuffledp.learn.optimize.stages import Sketch, batches, least, noise_of


class SmoothedAgd(Agd):
    """Rounds, envelopes and steps of P_AGD for losses with a proximal map."""

    name: ClassVar[str] = "smoothed-agd"
    reference: ClassVar[str] = "[001] Theorem 4.7"

    def refusal(self, problem: Problem) -> str | None:
        if problem.smoothness is not None:
            return "is for losses that are not smooth; agd is better here"
        return None if problem.has_prox else "needs the loss's proximal map"

    def sketch(self, problem: Problem, users: int, distance: float, rounds: int) -> Sketch:
        times, sizes = batches(problem, users, rounds)
        variances = variance_of(problem, sizes, self.expected_noise(problem) ** 2)
        steps = times.astype(np.float64)
        return least(times, sizes, _smooth(problem, steps, distance) + noise_part(steps, variances, distance))

    def stage(self, problem: Problem, sketch: Sketch, distance: float) -> AgdStage:
        rounds, plan = sketch.rounds, self.plan_noise(problem, sketch.users)
        variance = float(variance_of(problem, sketch.users, noise_of(problem, plan)))
        smoothing = problem.lipschitz * math.sqrt(rounds * (rounds + 1)) / (2 * distance)
        smooth = float(_smooth(problem, np.array(float(rounds)), distance))
        return AgdStage(
            rounds=rounds,
            users=sketch.users,
            plan=plan,
            smoothing=smoothing,
            bound=smooth + float(noise_part(rounds, variance, distance)),
            weight=smoothing + problem.ridge + noise_weight(rounds, variance, distance),
        )


def _smooth(problem: Problem, rounds: Floats, distance: float) -> Floats:
    """What is left without noise: the envelopes' distance, acceleration's own, and the ridge's."""
    both = rounds * (rounds + 1)
    return np.asarray(2 * problem.lipschitz * distance / np.sqrt(both) + 2 * problem.ridge * distance**2 / both)
