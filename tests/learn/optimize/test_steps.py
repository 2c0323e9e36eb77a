"""Each method's steps without noise: at the rate that its theorem promises; and the printed steps, which diverge."""

import math

import numpy as np
import pytest

from shuffledp.learn.optimize import HingeLoss, L2Ball
from shuffledp.learn.optimize.agd import AgdStage, noise_part, noise_weight
from shuffledp.learn.optimize.gd import GdStage
from shuffledp.learn.optimize.sets import ConvexSet, Floats
from shuffledp.learn.optimize.sgd import SgdStage
from shuffledp.learn.optimize.stages import Stage

CURVATURES = np.geomspace(1e-3, 1.0, 8)
OPTIMUM = np.full(8, 0.5)
BALL = L2Ball(dimension=8, radius=3)
DISTANCE = float(np.linalg.norm(OPTIMUM))


def _excess(theta: Floats) -> float:
    """Of a quadratic of smoothness 1."""
    return float(CURVATURES @ (theta - OPTIMUM) ** 2) / 2


def _run(stage: Stage, domain: ConvexSet = BALL, noise: float = 0.0, seed: int = 0) -> Floats:
    rng = np.random.default_rng(seed)
    point = average = domain.centre
    for time in range(1, stage.rounds + 1):
        gradient = CURVATURES * (stage.query(time, point, average) - OPTIMUM)
        gradient = gradient + noise / math.sqrt(gradient.size) * rng.normal(size=gradient.size)
        point, average = stage.step(time, point, average, gradient, domain.project)
    return average


def _agd(rounds: int, weight: float) -> AgdStage:
    return AgdStage(rounds=rounds, users=1, plan=None, bound=0.0, weight=weight)


@pytest.mark.parametrize("rounds", [1, 2, 10, 50, 300, 1000])
def test_acceleration_converges_with_the_square_of_the_rounds(rounds: int) -> None:
    assert _excess(_run(_agd(rounds, 1.0))) <= 2 * DISTANCE**2 / (rounds * (rounds + 1))


@pytest.mark.parametrize("rounds", [10, 100, 1000])
def test_noise_costs_acceleration_what_is_proved(rounds: int) -> None:
    deviation = 0.3
    stage = _agd(rounds, 1 + noise_weight(rounds, deviation**2, DISTANCE))
    bound = 2 * DISTANCE**2 / (rounds * (rounds + 1)) + noise_part(rounds, deviation**2, DISTANCE)
    excesses = [_excess(_run(stage, noise=deviation, seed=seed)) for seed in range(60)]
    assert np.mean(excesses) <= bound
    # And the steps are not timid: the noise's own part is of the right size.
    assert np.mean(excesses) >= bound / 100


@pytest.mark.parametrize("rounds", [1, 10, 100, 1000])
def test_gradient_descent_converges_with_the_rounds(rounds: int) -> None:
    stage = GdStage(rounds=rounds, users=1, plan=None, bound=0.0, step_size=1.0)
    assert _excess(_run(stage)) <= DISTANCE**2 / (2 * rounds)


@pytest.mark.parametrize("rounds", [4, 100, 2000])
def test_plain_steps_converge_with_the_square_root_of_the_rounds(rounds: int) -> None:
    longest = float(np.linalg.norm(CURVATURES * (BALL.radius + 0.5)))
    step = DISTANCE / (longest * math.sqrt(rounds))
    stage = SgdStage(rounds=rounds, users=1, plan=None, bound=0.0, step_size=step)
    assert _excess(_run(stage)) <= DISTANCE * longest / math.sqrt(rounds)


def test_steps_stay_in_the_set_and_find_its_best_point() -> None:
    small = L2Ball(dimension=8, radius=0.2)
    best = _excess(_run(_agd(20_000, 1.0), small))
    for stage in (
        _agd(300, 1.0),
        GdStage(rounds=3000, users=1, plan=None, bound=0.0, step_size=1.0),
    ):
        found = _run(stage, small)
        assert np.linalg.norm(found) <= 0.2 + 1e-12
        assert best <= _excess(found) + 1e-9 <= best + 1e-3


def test_the_printed_acceleration_diverges() -> None:
    """Erratum: alpha_t = 2/(t+2), L_t = ((T+2)^1.5 sigma/D + beta)/(t+1) on a quadratic with no noise."""
    rounds, theta, average = 50, 1.0, 1.0
    for time in range(1, rounds + 1):
        part = 2 / (time + 2)
        middle = part * theta + (1 - part) * average
        theta = theta - (time + 1) * middle  # beta = 1, sigma = 0
        average = part * theta + (1 - part) * average
    assert average**2 / 2 > 1e20
    ours = _agd(rounds, 1.0)
    point = model = np.ones(1)
    line = L2Ball(dimension=1, radius=1e100)
    for time in range(1, rounds + 1):
        point, model = ours.step(time, point, model, ours.query(time, point, model), line.project)
    assert model[0] ** 2 / 2 <= 2 / (rounds * (rounds + 1))


@pytest.mark.parametrize("rounds", [10, 100, 1000])
def test_smoothing_costs_what_is_proved(rounds: int) -> None:
    """One user's hinge loss, whose least value on the ball is 1 - radius."""
    loss, ball = HingeLoss(), L2Ball(dimension=2, radius=0.5)
    features, targets = np.array([[0.6, 0.8], [0.6, -0.8]]), np.ones(2)
    smoothing = math.sqrt(rounds * (rounds + 1)) / (2 * ball.reach)
    stage = AgdStage(rounds=rounds, users=1, plan=None, bound=0.0, smoothing=smoothing, weight=smoothing)
    point = average = ball.centre
    for time in range(1, rounds + 1):
        sent, _ = loss.sent(stage.query(time, point, average), 1.0, smoothing, features, targets)
        point, average = stage.step(time, point, average, sent.mean(axis=0), ball.project)
    least = 1 - 0.6 * 0.5  # along the mean of the features, which is (0.6, 0)
    assert -1e-9 <= loss.objective(average, features, targets) - least <= 2 * 0.5 / math.sqrt(rounds * (rounds + 1))
