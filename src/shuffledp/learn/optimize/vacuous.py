"""From where on a bound on the excess loss proves nothing: a model that says nothing is as good."""

import numpy as np

from shuffledp.learn.optimize.choosing import rehearsable
from shuffledp.learn.optimize.losses import Loss
from shuffledp.learn.optimize.problem import Problem
from shuffledp.learn.optimize.worlds import SPECS, world_of

PROVES_NOTHING = "which proves nothing at this size: a model that says nothing is no worse"
"""What is said of such a bound, wherever it is printed."""


def excess_of_nothing(problem: Problem) -> float:
    """What the centre of the domain loses above the least at most, before anybody is asked.

    A gradient's longest length times the way to the furthest model; where the loss is known and not below 0, also what
    it is at the centre, of the targets that there are: ln 2 of two classes, half of a squared unit of numbers.

    >>> from shuffledp import Privacy
    >>> from shuffledp.learn.optimize import L2Ball, LogisticLoss
    >>> asked = {"users": 10_000, "privacy": Privacy(1, 1e-6)}
    >>> balls = [L2Ball(dimension=3, radius=radius) for radius in (0.5, 9)]
    >>> [round(excess_of_nothing(Problem.of(LogisticLoss(), ball, **asked)), 4) for ball in balls]
    [0.5, 0.6931]
    """
    furthest, loss = problem.lipschitz * problem.domain.reach, rehearsable(problem)
    if not isinstance(loss, Loss):
        return furthest
    world = world_of(SPECS[0], loss, problem.domain, seed=0)
    assert world is not None
    own = loss.values(problem.domain.centre, world.features, world.targets)
    return min(furthest, float(np.max(own))) if own.min() >= 0 else furthest


def proves_nothing(problem: Problem, bound: float | None) -> bool:
    """Whether a bound on the excess loss says no more than is known of a model that says nothing.

    Args:
        problem: what is minimized.
        bound: on the expected excess loss; None where there is none, which proves nothing either but claims nothing.
    """
    return bound is not None and bound >= excess_of_nothing(problem)
