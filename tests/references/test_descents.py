"""Descents of a curator and of the local model: exact composition, steps, and what noise does to them."""

import math
import runpy
from pathlib import Path

import numpy as np
import pytest

from shuffledp import Privacy
from shuffledp.accounting.composition import Composition
from shuffledp.accounting.gaussian import GaussianPair
from shuffledp.errors import ParameterError
from shuffledp.learn.optimize import L2Ball, LogisticLoss, Problem, plan
from shuffledp.learn.optimize.agd import AgdStage, noise_weight
from shuffledp.references.curator_descent import CuratorDescent

LocalDescent = runpy.run_path(str(Path(__file__).parents[2] / "benchmarks" / "local_descent.py"))["LocalDescent"]
TARGET = Privacy(1, 1e-6)


def test_a_curators_rounds_compose_to_the_target() -> None:
    descent = CuratorDescent(users=100, privacy=TARGET, clip=0.5, radius=1, rounds=7, step_size=1)
    exact = Composition([(GaussianPair(1 / descent.standard_error), 7)]).delta(1.0)
    assert 0.98e-6 < exact < 1.005e-6
    less = Composition([(GaussianPair(1 / (0.8 * descent.standard_error)), 7)]).delta(1.0)
    assert less > 5e-6


def test_a_curators_noise_is_p_gd_s_within_two_percent() -> None:
    ball = L2Ball(dimension=3, radius=1)
    problem = Problem.of(LogisticLoss(), ball, users=500, privacy=TARGET, rounds=20)
    stage = plan(problem, solver="gd").stages[0]
    assert stage.plan is not None
    descent = CuratorDescent(users=500, privacy=TARGET, clip=1, radius=1, rounds=stage.rounds, step_size=1)
    assert 1 <= stage.plan.standard_error / descent.standard_error < 1.02


def test_local_steps_are_p_agd_s_and_noise_shrinks_with_users() -> None:
    asked = {"privacy": Privacy(2, 1e-6), "dimension": 2, "clip": 1.0, "smoothness": 1.0, "radius": 1.0}
    descent = LocalDescent(users=8000, batch=400, **asked)
    variance = 1 / 400 + 2 * (descent.standard_error / 400) ** 2
    assert descent.rounds == 20 and descent.weight == pytest.approx(1 + noise_weight(20, variance, 1.0))
    target = np.array([0.3, -0.4])

    def answers(first: int, count: int, theta: np.ndarray) -> np.ndarray:
        return np.tile(0.5 * (theta - target), (count, 1))

    def error(users: int) -> float:
        fits = [
            LocalDescent(users=users, batch=users // 20, **asked).fit(answers, generator=np.random.default_rng(seed))
            for seed in range(8)
        ]
        return float(np.mean([np.linalg.norm(fit - target) for fit in fits]))

    assert error(100_000) < 0.5 * error(4000)


def test_without_noise_the_local_loop_is_p_agd_s(monkeypatch) -> None:
    monkeypatch.setattr(LocalDescent, "_sum", lambda self, rows, generator: rows.sum(axis=0))
    asked = {"privacy": TARGET, "dimension": 2, "clip": 1.0, "smoothness": 1.0, "radius": 1.0}
    descent, target = LocalDescent(users=100, batch=10, **asked), np.array([0.6, 0.3])
    stage = AgdStage(rounds=10, users=10, plan=None, bound=math.inf, weight=descent.weight)
    ball, point, average = L2Ball(dimension=2, radius=1), np.zeros(2), np.zeros(2)
    for time in range(1, 11):
        point, average = stage.step(time, point, average, stage.query(time, point, average) - target, ball.project)
    model = descent.fit(lambda _, count, theta: np.tile(theta - target, (count, 1)), generator=np.random.default_rng())
    np.testing.assert_allclose(model, average, rtol=1e-12)


def test_gaussian_answers_where_they_are_better() -> None:
    asked = {"privacy": Privacy(40, 1e-6), "dimension": 2, "clip": 1.0, "smoothness": 1.0, "radius": 1.0}
    model = LocalDescent(users=4000, batch=400, **asked).fit(
        lambda _, count, theta: np.tile(theta - 0.2, (count, 1)), generator=np.random.default_rng(1)
    )
    assert np.abs(model - 0.2).max() < 0.1


def test_bad_requests() -> None:
    with pytest.raises(ParameterError, match="rounds"):
        CuratorDescent(users=10, privacy=TARGET, clip=1, radius=1, rounds=0, step_size=1)
    asked = {"privacy": TARGET, "dimension": 2, "clip": 1.0, "smoothness": 1.0}
    with pytest.raises(ParameterError, match="batch"):
        LocalDescent(users=10, batch=11, radius=1, **asked)
    with pytest.raises(ParameterError, match="radius"):
        LocalDescent(users=10, batch=5, radius=0, **asked)
