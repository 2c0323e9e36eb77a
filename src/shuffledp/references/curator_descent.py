"""Gradient descent by a trusted curator, who sees all gradients and adds Gaussian noise in every round."""

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from shuffledp.accounting.gaussian import gaussian_standard_deviation
from shuffledp.errors import ParameterError
from shuffledp.learn.optimize.sets import L2Ball
from shuffledp.learn.optimize.solver import Solver
from shuffledp.learn.steps import compute
from shuffledp.privacy import Privacy
from shuffledp.randomness import RandomBits

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True, kw_only=True)
class CuratorDescent:
    """Noisy gradient descent in the central model: the loss that P_GD has to come close to.

    No user's gradient is longer than `clip`. Rounds of Gaussian noise compose exactly: T of them are one with sqrt(T)
    times the shift, so that each needs sqrt(T) times the noise of one.

    Reference: Bassily, Smith, Thakurta 2014, with the analytic Gaussian mechanism of Balle, Wang 2018.

    Attributes:
        users: how many people the curator holds the data of.
        privacy: what must hold for all rounds together.
        clip: no user's gradient is longer.
        radius: no model is longer.
        rounds: how many gradients are released.
        step_size: how far the mean gradient moves the model.

    >>> descent = CuratorDescent(users=1000, privacy=Privacy(1, 1e-6), clip=1, radius=1, rounds=4, step_size=0.5)
    >>> round(descent.standard_error, 3)
    16.899
    >>> noise = descent.standard_error * np.random.default_rng(1).standard_normal((4, 1))
    >>> model = descent.fit(lambda theta: 1000 * (theta - 0.5), noise)
    >>> bool(0.2 < model[0] < 0.5)
    True
    """

    users: int
    privacy: Privacy
    clip: float
    radius: float
    rounds: int
    step_size: float

    def __post_init__(self) -> None:
        for name in ("users", "clip", "radius", "rounds", "step_size"):
            if not 0 < getattr(self, name) < math.inf:
                raise ParameterError(name, getattr(self, name), "must be > 0 and finite", "take P_GD's")

    @property
    def standard_error(self) -> float:
        """The standard deviation of the noise in a coordinate of one round's sum."""
        return math.sqrt(self.rounds) * gaussian_standard_deviation(self.privacy, 2 * self.clip)

    def fit(self, sums: Callable[[Floats], Floats], noise: Floats) -> Floats:
        """The mean of the points after each step, from 0.

        Args:
            sums: all users' clipped gradients' sum at a point.
            noise: what is added to each round's sum, a row a round: Gaussian of `standard_error`.
        """
        ball = L2Ball(dimension=noise.shape[1], radius=self.radius)
        point = average = np.zeros(noise.shape[1])
        for time, drawn in enumerate(noise, start=1):
            point = ball.project(point - self.step_size / self.users * (sums(point) + drawn))
            average = average + (point - average) / time
        return average


def curator_rounds(
    solver: Solver, rows: Floats, labels: Floats, runs: int, *, noisy: bool, seed: int | None = None
) -> Iterator[Floats]:
    """A solver's models after every round, where a curator adds up gradients: the same steps, and Gaussian noise.

    Args:
        solver: one that asks everybody once, and so needs the noise of one round.
        rows: people's rows.
        labels: people's labels.
        runs: how often, with people in another order and other noise.
        noisy: whether the curator adds what the solver's privacy needs, or nothing.
        seed: of orders and noise; left out, from nowhere that is known.

    Returns:
        For each run the models, a row a round, the first before anybody was asked.

    >>> from shuffledp.learn.optimize import LogisticLoss, Problem, plan
    >>> ball = L2Ball(dimension=2, radius=2)
    >>> solver = plan(Problem.of(LogisticLoss(), ball, users=900, privacy=Privacy(1, 1e-3), visits=1), solver="agd")
    >>> rows, labels = np.tile([[0.6, 0.8]], (900, 1)), np.ones(900)
    >>> [found.shape[1] for found in curator_rounds(solver, rows, labels, 1, noisy=True, seed=1)]
    [2]
    """
    generator, bits, problem = np.random.default_rng(seed), RandomBits.secure(), solver.problem
    if problem.privacy is None or any(stage.visits != 1 for stage in solver.stages):
        raise ParameterError("solver", solver.name, "must be private, and ask everybody once", "plan it with visits=1")
    each = gaussian_standard_deviation(problem.privacy, 2 * problem.lipschitz) if noisy else 0.0
    for _ in range(runs):
        order, state, found = generator.permutation(len(rows)), solver.start(), []
        while (cohort := solver.ask(state)) is not None:
            found.append(solver.estimate(state))
            people = order[cohort.first : cohort.first + cohort.users]
            total = compute(cohort.step, (rows[people], labels[people]), bits=bits).sum(axis=0)
            state = solver.tell(state, cohort.users, {1: total + each * generator.standard_normal(len(total))})
        yield np.array([*found, solver.estimate(state)])
