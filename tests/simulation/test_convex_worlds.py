"""Worlds that need not list their users: against users one by one, and against numeric minimization."""

import numpy as np
import pytest
from scipy import optimize as numeric

from shuffledp import Privacy, RandomBits
from shuffledp.learn.optimize import Problem, Solver, plan
from shuffledp.simulation.environments.convex import Kinks, SignWorld, Valleys, counted_run
from shuffledp.simulation.optimize import optimize

WORLDS = [Valleys(dimension=4), Valleys(dimension=4, ridge=0.5), Kinks(dimension=4), Kinks(dimension=4, ridge=0.5)]


@pytest.mark.parametrize("world", WORLDS, ids=repr)
def test_a_known_optimum_and_gradients_of_length_one(world: SignWorld) -> None:
    nobody = numeric.minimize(
        world.population, world.optimum + 0.05, method="Powell", options={"xtol": 1e-9, "ftol": 1e-15}
    )
    assert world.population(world.optimum) <= nobody.fun + 1e-9 and np.linalg.norm(world.optimum) <= 1
    rng = np.random.default_rng(1)
    signs = world.signs(2000, rng)
    for _ in range(20):
        theta = world.domain.project(3 * rng.standard_normal(4))
        sent, clipped = world.loss.sent(theta, 1.0, None, signs)
        assert clipped == 0
        assert abs(world.loss.objective(theta, signs) - world.population(theta)) < 0.05
        numbers = numeric.approx_fprime(theta, lambda at: world.loss.values(at, signs).mean(), 1e-7)
        np.testing.assert_allclose(sent.mean(axis=0), numbers, atol=1e-5)


def _solver(world: SignWorld, name: str, users: int) -> Solver:
    problem = Problem.of(world.loss, world.domain, users=users, privacy=Privacy(2, 1e-6), rounds=8)
    return plan(problem, solver=name)


@pytest.mark.parametrize(("name", "world"), [("agd", WORLDS[0]), ("smoothed-agd", WORLDS[2]), ("gd", WORLDS[0])])
def test_counts_are_users(name: str, world: SignWorld) -> None:
    """Means of 150 runs each; five standard errors of their difference happen by chance once in a million."""
    solver, users, runs = _solver(world, name, 400), 400, 150
    rng = np.random.default_rng(3)
    listed, counted = [], []
    for run, bits in enumerate(RandomBits.seeded(4).spawn(runs)):
        listed.append(world.excess(optimize(solver, world.loss, world.signs(users, rng), bits=bits).theta))
        people, noise = np.random.default_rng((5, run)), np.random.default_rng((6, run))
        counted.append(world.excess(counted_run(solver, world, scale=1, people=people, noise=noise)))
    error = np.hypot(np.std(listed), np.std(counted)) / np.sqrt(runs)
    assert abs(np.mean(listed) - np.mean(counted)) < 5 * error
    louder = [
        world.excess(
            counted_run(
                solver, world, scale=4.0, people=np.random.default_rng((5, run)), noise=np.random.default_rng((6, run))
            )
        )
        for run in range(runs)
    ]
    assert np.mean(louder) - np.mean(listed) > 5 * error


def test_a_twin_sees_the_same_users_and_no_noise() -> None:
    solver, world = _solver(WORLDS[0], "agd", 5000), WORLDS[0]

    def run(scale: float, noise: int) -> np.ndarray:
        people = np.random.default_rng(1)
        return counted_run(solver, world, scale=scale, people=people, noise=np.random.default_rng(noise))

    assert (run(0, 2) == run(0, 3)).all() and not (run(1, 2) == run(1, 3)).all()
    assert not (run(1, 2) == run(-1, 2)).all()
