"""Worlds for convex optimization whose population loss is known exactly, and whose users need not be listed.

A user holds independent signs, one a coordinate, and loses sum_j f_j(theta_j - spread sign_j). What a cohort's
gradients add up to depends on its signs' counts only, which are binomial: a million users cost as much as ten.

Rates are about the worst distribution, which depends on n. These worlds have coordinates of all sizes, a few a decade,
so that at every n some of them are the worst: much steeper ones are solved, much flatter ones do not matter.
"""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from shuffledp.learn.optimize.custom_loss import CustomLoss
from shuffledp.learn.optimize.row_shapes import RowShape
from shuffledp.learn.optimize.sets import L2Ball
from shuffledp.learn.optimize.solver import Solver

Floats = NDArray[np.float64]
Whole = NDArray[np.int64]

RADIUS = 1.0
PROBABILITY = 0.75
"""The probability of a sign that is 1."""


@dataclass(frozen=True, kw_only=True)
class SignWorld(ABC):
    """Coordinates from the largest down to `smallest` times it; gradients have length at most 1 on the unit ball."""

    smooth: ClassVar[bool]

    dimension: int = 40
    smallest: float = 1e-4
    ridge: float = 0.0

    @cached_property
    def spread(self) -> float:
        """Where users' own optima are: plus and minus this, in every coordinate."""
        return RADIUS / float(np.sqrt(self.dimension))

    @cached_property
    def shape(self) -> Floats:
        """Sizes of coordinates beside the largest."""
        return np.geomspace(1.0, self.smallest, self.dimension)

    @cached_property
    @abstractmethod
    def sizes(self) -> Floats:
        """The sizes of the coordinates."""

    @abstractmethod
    def values(self, off: Floats) -> Floats:
        """Every coordinate's loss, so far from a user's own optimum."""

    @abstractmethod
    def slopes(self, off: Floats, smoothing: float | None = None) -> Floats:
        """Its derivative, or its envelope's."""

    @cached_property
    @abstractmethod
    def optimum(self) -> Floats:
        """The model with the least loss for the whole population."""

    @property
    def domain(self) -> L2Ball:
        """Where models lie."""
        return L2Ball(dimension=self.dimension, radius=RADIUS)

    @cached_property
    def loss(self) -> CustomLoss:
        """For the solvers; its rows are users' signs."""
        spread = self.spread
        constants: dict[str, Any] = (
            {"smooth": float(self.sizes.max()), "strongly": float(self.sizes.min()) if self.ridge else 0.0}
            if self.smooth
            else {
                "proximal": lambda theta, smoothing, x: theta - self.slopes(theta - spread * x, smoothing) / smoothing
            }
        )
        return CustomLoss(
            value=lambda theta, x: self.values(theta - spread * x).sum(axis=1),
            gradient=lambda theta, x: self.slopes(theta - spread * x),
            bound=1.0,
            rowwise=True,
            rows=(RowShape(width=self.dimension, values=(-1, 1)),),
            ridge=self.ridge,
            **constants,
        )

    def population(self, theta: Floats) -> float:
        """The expected loss of a user, ridge included."""
        ones, others = self.values(theta - self.spread), self.values(theta + self.spread)
        return float((PROBABILITY * ones + (1 - PROBABILITY) * others).sum() + self.ridge / 2 * theta @ theta)

    def excess(self, theta: Floats) -> float:
        """Over the optimum."""
        return self.population(theta) - self.population(self.optimum)

    def gradient_sum(self, point: Floats, smoothing: float | None, users: int, ones: Whole) -> Floats:
        """The exact sum of users' gradients at a point, or of their envelopes', if so many of their signs are 1."""
        up, down = (self.slopes(point + side * self.spread, smoothing) for side in (-1, 1))
        return np.asarray(ones * up + (users - ones) * down)

    def signs(self, users: int, generator: np.random.Generator) -> Floats:
        """Users one by one."""
        return np.where(generator.random((users, self.dimension)) < PROBABILITY, 1.0, -1.0)


@dataclass(frozen=True, kw_only=True)
class Valleys(SignWorld):
    """f_j = size_j/2 off^2: smooth.

    >>> world = Valleys(dimension=3)
    >>> float(round(world.excess(world.optimum + 0.1) / world.sizes.sum(), 6))
    0.005
    """

    smooth: ClassVar[bool] = True

    @cached_property
    def sizes(self) -> Floats:
        # On the ball, |sizes (theta - spread signs)| <= largest radius + |sizes| spread = 1.
        return self.shape / (RADIUS + self.spread * float(np.linalg.norm(self.shape)))

    def values(self, off: Floats) -> Floats:
        return np.asarray(self.sizes / 2 * off**2)

    def slopes(self, off: Floats, smoothing: float | None = None) -> Floats:
        return np.asarray(self.sizes * off if smoothing is None else self.sizes / (1 + self.sizes / smoothing) * off)

    @cached_property
    def optimum(self) -> Floats:
        mean = (2 * PROBABILITY - 1) * self.spread
        return np.asarray(self.sizes * mean / (self.sizes + self.ridge))


@dataclass(frozen=True, kw_only=True)
class Kinks(SignWorld):
    """f_j = size_j |off|: not smooth.

    >>> world = Kinks(dimension=3)
    >>> float(round(world.excess(0 * world.optimum) / (world.sizes.sum() * world.spread), 6))
    0.5
    """

    smooth: ClassVar[bool] = False

    @cached_property
    def sizes(self) -> Floats:
        return self.shape / float(np.linalg.norm(self.shape))

    def values(self, off: Floats) -> Floats:
        return np.asarray(self.sizes * np.abs(off))

    def slopes(self, off: Floats, smoothing: float | None = None) -> Floats:
        slopes = np.sign(off) * self.sizes if smoothing is None else np.clip(smoothing * off, -self.sizes, self.sizes)
        return np.asarray(slopes)

    @cached_property
    def optimum(self) -> Floats:
        # Between users' optima the slope is ridge theta - (2 p - 1) size.
        drift = (2 * PROBABILITY - 1) * self.sizes
        return np.asarray(np.minimum(self.spread, drift / self.ridge) if self.ridge else self.spread + 0 * drift)


def counted_run(
    solver: Solver, world: SignWorld, *, scale: float, people: np.random.Generator, noise: np.random.Generator
) -> Floats:
    """The model of one run with `scale` times the solver's noise: 0 makes its twin, -1 mirrors the noise.

    The same `people` are the same users. Noise is Gaussian with the plan's exact variance, rounding at its largest: the
    solver's law in its first two moments, which decide the mean excess loss wherever that is quadratic.

    >>> from shuffledp import Privacy
    >>> from shuffledp.learn.optimize import Problem, plan
    >>> world = Valleys(dimension=3)
    >>> problem = Problem.of(world.loss, world.domain, users=10**6, privacy=Privacy(1, 1e-6))
    >>> people, noise = np.random.default_rng(1), np.random.default_rng(2)
    >>> model = counted_run(plan(problem, solver="agd"), world, scale=1, people=people, noise=noise)
    >>> 0 < world.excess(model) < 0.001
    True
    """
    state, ones, stage = solver.start(), np.empty(0, dtype=np.int64), -1
    while (cohort := solver.ask(state)) is not None:
        if cohort.stage != stage or not solver.stages[cohort.stage].repeats:
            ones, stage = people.binomial(cohort.users, PROBABILITY, world.dimension), cohort.stage
        total = world.gradient_sum(cohort.point, cohort.smoothing, cohort.users, ones)
        if scale and cohort.plan is not None:
            total = total + scale * cohort.plan.standard_error * noise.standard_normal(world.dimension)
        state = solver.tell(state, cohort.users, {1: total})
    return solver.estimate(state)
