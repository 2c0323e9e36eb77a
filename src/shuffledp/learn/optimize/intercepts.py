"""Models with intercepts: weights within a ball, intercepts within one of their own, and no ridge on intercepts."""

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from shuffledp.learn.optimize.sets import ConvexSet, Floats, L2Ball
from shuffledp.learn.spec import positive, whole
from shuffledp.protocols.domains.ball import LARGEST_DIMENSION


@dataclass(frozen=True, slots=True, kw_only=True)
class BallWithIntercepts(ConvexSet):
    """All models whose weights are no longer than `radius`, and whose intercepts together than `intercept_radius`.

    A model has one score or several; the last of the `every` numbers of each is its intercept. A ridge leaves
    intercepts alone, so that rare classes and targets far from 0 are not drawn to the middle, and the whole loss is not
    strongly convex by it.

    Attributes:
        radius: no model's weights are longer.
        intercept_radius: no model's intercepts are longer.
        every: how many numbers each score has, the last of which is its intercept.

    >>> models = BallWithIntercepts(dimension=3, radius=1.0, intercept_radius=2.0, every=3)
    >>> models.project(np.array([3.0, 4.0, -9.0])).round(6).tolist(), models.penalized(np.ones(3)).tolist()
    ([0.6, 0.8, -2.0], [1.0, 1.0, 0.0])
    """

    kind: ClassVar[str] = "ball-with-intercepts"
    is_penalized: ClassVar[bool] = False
    radius: float = positive("say how long a model may be")
    intercept_radius: float = positive("say how long its intercepts may be")
    every: int = whole(2, LARGEST_DIMENSION, "count the numbers of one score")

    def project(self, theta: Floats) -> Floats:
        rows = theta.reshape(-1, self.every)
        weights, intercepts = rows[:, :-1].ravel(), rows[:, -1]
        near = L2Ball(dimension=weights.size, radius=self.radius).project(weights)
        own = L2Ball(dimension=intercepts.size, radius=self.intercept_radius).project(intercepts)
        return np.column_stack((near.reshape(len(rows), -1), own)).ravel()

    def penalized(self, theta: Floats) -> Floats:
        """The model without its intercepts, which are 0 there."""
        found = theta.copy()
        found[self.every - 1 :: self.every] = 0.0
        return found

    @property
    def centre(self) -> Floats:
        return np.zeros(self.dimension)

    @property
    def reach(self) -> float:
        return math.hypot(self.radius, self.intercept_radius)

    @property
    def diameter(self) -> float:
        return 2 * self.reach

    @property
    def largest_norm(self) -> float:
        return self.reach
