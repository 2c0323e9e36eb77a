"""Solvers on data: messages against the law, the twin, and bounds that dominate what is measured."""

import math
from dataclasses import replace
from functools import cache

import numpy as np
import pytest

from shuffledp import Privacy
from shuffledp.errors import DataError, ParameterError
from shuffledp.estimates import VectorEstimate
from shuffledp.learn.optimize import (
    CustomLoss,
    HingeLoss,
    L2Ball,
    LogisticLoss,
    Loss,
    Problem,
    RowShape,
    Solver,
    SquaredLoss,
    plan,
)
from shuffledp.protocols.vector_sum.shares import VectorShares
from shuffledp.randomness import RandomBits
from shuffledp.simulation.optimize import Fidelity, cohort_sums, optimize
from shuffledp.testing.statistics import assert_same_law

MEAN = CustomLoss(
    value=lambda theta, x: ((theta - x) ** 2).sum(axis=1) / 2,
    gradient=lambda theta, x: theta - x,
    bound=2.0,
    smooth=1.0,
    strongly=1.0,
    rowwise=True,
    rows=(RowShape(width=3, longest=1.0),),
)
MEDIAN = CustomLoss(
    value=lambda theta, x: np.abs(theta - x)[:, 0],
    gradient=lambda theta, x: np.sign(theta - x),
    proximal=lambda theta, smoothing, x: x + np.sign(theta - x) * np.maximum(np.abs(theta - x) - 1 / smoothing, 0),
    bound=1.0,
    rowwise=True,
    rows=(RowShape(width=1),),
)


def _solver(loss: Loss, name: str, users: int, dimension: int = 3, epsilon: float = 1.0, rounds: int = 200) -> Solver:
    ball = L2Ball(dimension=dimension, radius=1)
    return plan(Problem.of(loss, ball, users=users, privacy=Privacy(epsilon, 1e-6), rounds=rounds), solver=name)


def _points(users: int, dimension: int, seed: int) -> np.ndarray:
    """On the sphere, more often on one side: the mean's first coordinate is known."""
    rng = np.random.default_rng(seed)
    points = rng.normal(size=(users, dimension))
    points /= np.linalg.norm(points, axis=1, keepdims=True)
    points[:, 0] = np.where(rng.random(users) < 0.8, np.abs(points[:, 0]), -np.abs(points[:, 0]))
    return points


def _mean_of_points(dimension: int) -> np.ndarray:
    """0.6 times the mean absolute coordinate of a uniform point of the sphere."""
    absolute = math.exp(math.lgamma(dimension / 2) - math.lgamma((dimension + 1) / 2)) / math.sqrt(math.pi)
    return np.eye(dimension)[0] * 0.6 * absolute


@cache
def _estimates(name: str, fidelity: Fidelity, runs: int, less: float = 1.0) -> np.ndarray:
    """Of the first cohort's sum, again and again; with `less` times the deviation of the noise."""
    loss: Loss = HingeLoss() if "smoothed" in name else LogisticLoss()
    solver = _solver(loss, name, 16, dimension=1, epsilon=2.0, rounds=2)
    rng = np.random.default_rng(5)
    rows = rng.normal(size=(16, 1)) / 4, rng.choice([-1.0, 1.0], 16)
    cohort = solver.ask(solver.start())
    assert cohort is not None
    assert isinstance(cohort.plan, VectorShares)
    if less < 1:
        claim = Privacy(2 * cohort.plan.privacy.epsilon, cohort.plan.privacy.delta)
        cohort = replace(cohort, plan=replace(cohort.plan, variance=less**2 * cohort.plan.variance, privacy=claim))
    sums = cohort_sums(loss, rows, None, fidelity, RandomBits.seeded(6 if fidelity == "fast" else 7))
    estimates = [sums.of(cohort) for _ in range(runs)]
    return np.array([estimate.value[0] for estimate in estimates if isinstance(estimate, VectorEstimate)])


@pytest.mark.parametrize(("name", "runs"), [("agd", 4000), ("smoothed-agd", 1500), ("gd", 1500)])
def test_messages_and_the_fast_law_have_one_law(name: str, runs: int) -> None:
    fast, messages = _estimates(name, "fast", 2 * runs), _estimates(name, "messages", runs)
    assert_same_law(fast, messages)


def test_a_law_with_less_noise_is_told_apart() -> None:
    with pytest.raises(AssertionError, match="differ"):
        assert_same_law(_estimates("agd", "fast", 8000, 0.8), _estimates("agd", "messages", 4000))


def test_whole_runs_have_one_law_too() -> None:
    loss = LogisticLoss()
    solver = _solver(loss, "agd", 16, dimension=1, epsilon=2.0, rounds=2)
    rng = np.random.default_rng(5)
    rows = rng.normal(size=(16, 1)) / 4, rng.choice([-1.0, 1.0], 16)
    clients = RandomBits.seeded(8), RandomBits.seeded(9)
    fast = [optimize(solver, loss, *rows, bits=clients[0]).theta[0] for _ in range(600)]
    messages = [optimize(solver, loss, *rows, bits=clients[1], fidelity="messages").theta[0] for _ in range(600)]
    assert_same_law(fast, messages)


@pytest.mark.parametrize("name", ["sgd", "agd", "phased-agd", "gd", "phased-gd", "pan-private-agd"])
def test_bounds_dominate_what_is_measured(name: str) -> None:
    users, dimension = 4000, 3
    solver = _solver(MEAN, name, users, rounds=40)
    mean = _mean_of_points(dimension)
    excesses, twins = [], []
    for seed in range(12):
        points = _points(users, dimension, seed)
        for found, fidelity in ((excesses, "fast"), (twins, "exact")):
            run = optimize(solver, MEAN, points, bits=RandomBits.seeded(seed), fidelity=fidelity)  # type: ignore[arg-type]
            found.append(float(((run.theta - mean) ** 2).sum()) / 2)
            assert run.clipped == 0
    assert np.mean(excesses) <= solver.bound
    assert np.mean(twins) <= solver.bound
    # A bound says something: below what the centre of the ball already has.
    start = float((mean**2).sum()) / 2
    assert np.mean(excesses) < start


@pytest.mark.parametrize("name", ["sgd", "smoothed-agd", "gd"])
def test_bounds_dominate_where_the_loss_is_not_smooth(name: str) -> None:
    """The median of -1, 1/2, 1 with probabilities 1/5, 3/5, 1/5: the excess is exact."""
    users, values, chances = 4000, np.array([-1.0, 0.5, 1.0]), np.array([0.2, 0.6, 0.2])
    solver = _solver(MEDIAN, name, users, dimension=1)

    def loss_at(theta: float) -> float:
        return float(chances @ np.abs(theta - values))

    excesses = []
    for seed in range(12):
        data = np.random.default_rng(seed).choice(values, users, p=chances).reshape(-1, 1)
        run = optimize(solver, MEDIAN, data, bits=RandomBits.seeded(seed))
        excesses.append(loss_at(float(run.theta[0])) - loss_at(0.5))
    assert np.mean(excesses) <= solver.bound
    assert np.mean(excesses) < (loss_at(0.0) - loss_at(0.5)) / 2


def test_the_twin_has_the_same_steps_and_no_noise() -> None:
    solver = _solver(MEAN, "agd", 2000)
    points = np.tile([[0.6, 0.0, 0.8]], (2000, 1))
    twin = optimize(solver, MEAN, points, bits=RandomBits.seeded(0), fidelity="exact")
    again = optimize(solver, MEAN, points, bits=RandomBits.seeded(1), fidelity="exact")
    assert twin.theta.tolist() == again.theta.tolist()
    state = solver.start()
    while (cohort := solver.ask(state)) is not None:
        state = solver.tell(state, cohort.users, {1: cohort.users * (cohort.point - points[0])})
    assert np.allclose(twin.theta, state.average, atol=1e-12)
    alone = plan(replace(solver.problem, privacy=None), solver="agd")
    free = optimize(alone, MEAN, points, bits=RandomBits.seeded(0))
    assert np.linalg.norm(free.theta - points[0]) < 0.05


def test_runs_go_on_from_saved_states_and_in_any_order() -> None:
    solver = _solver(MEAN, "gd", 500, rounds=6)
    points = _points(500, 3, 1)
    whole = optimize(solver, MEAN, points, bits=RandomBits.seeded(0), fidelity="exact")
    seen: list[int] = []
    order = np.random.default_rng(0).permutation(500)
    half = optimize(solver, MEAN, points, bits=RandomBits.seeded(0), fidelity="exact", order=order, rounds=3)
    rest = optimize(
        solver,
        MEAN,
        points,
        bits=RandomBits.seeded(0),
        fidelity="exact",
        order=order,
        state=half.state,
        watch=lambda state: seen.append(state.round),
    )
    assert np.allclose(rest.theta, whole.theta, atol=1e-12)
    assert (half.state.round, seen[-1]) == (3, solver.rounds)


def test_long_gradients_are_clipped_counted_and_cannot_move_a_sum_further() -> None:
    loss = LogisticLoss()
    solver = _solver(loss, "agd", 600, dimension=2)
    rng = np.random.default_rng(0)
    features, targets = rng.normal(size=(600, 2)) / 3, rng.choice([-1.0, 1.0], 600)
    features[7] *= 1e9
    run = optimize(solver, loss, features, targets, bits=RandomBits.seeded(0))
    assert 1 <= run.clipped <= np.count_nonzero(np.linalg.norm(features, axis=1) > 1)
    assert run.gradients == solver.users
    assert run.simulated


def test_bad_runs_are_refused() -> None:
    solver = _solver(MEAN, "agd", 500)
    with pytest.raises(ParameterError, match="must have"):
        optimize(solver, MEAN, np.zeros((10, 3)), bits=RandomBits.seeded(0))
    with pytest.raises(ParameterError, match="fidelity"):
        optimize(solver, MEAN, np.zeros((500, 3)), bits=RandomBits.seeded(0), fidelity="guess")  # type: ignore[arg-type]
    points = np.zeros((500, 3))
    points[3, 1] = np.nan
    with pytest.raises(DataError, match="finite"):
        optimize(solver, MEAN, points, bits=RandomBits.seeded(0))


def test_full_acceleration_keeps_its_bound_on_a_linear_model() -> None:
    """Squared loss, features on the sphere: the excess is |theta - truth|^2 / (2 dimension)."""
    loss, users, dimension, truth = SquaredLoss(), 2000, 3, np.array([0.6, 0.0, 0.0])
    solver = _solver(loss, "full-agd", users, rounds=40)
    excesses = []
    for seed in range(8):
        rng = np.random.default_rng(seed)
        features = rng.normal(size=(users, dimension))
        features /= np.linalg.norm(features, axis=1, keepdims=True)
        targets = features @ truth + rng.uniform(-0.4, 0.4, users)
        run = optimize(solver, loss, features, targets, bits=RandomBits.seeded(seed))
        excesses.append(float(((run.theta - truth) ** 2).sum()) / (2 * dimension))
    assert np.mean(excesses) <= solver.bound
    assert np.mean(excesses) < 0.1 * float(truth @ truth) / (2 * dimension)
    assert solver.guarantee().rounds_per_user == solver.rounds


class _Unclipped(LogisticLoss):
    """Sends what it should not."""

    def sent(self, theta, bound, smoothing, *rows):
        return 80 * np.ones((len(rows[0]), theta.size)), 0


def test_a_loss_that_does_not_clip_is_refused_in_every_fidelity() -> None:
    loss = _Unclipped()
    features, targets = np.full((500, 2), 0.5), np.ones(500)
    solver = plan(Problem.of(loss, L2Ball(dimension=2, radius=1), users=500, privacy=Privacy(1, 1e-6)), solver="agd")
    for fidelity in ("fast", "messages"):
        with pytest.raises(DataError, match="length"):
            optimize(solver, loss, features, targets, bits=RandomBits.seeded(1), fidelity=fidelity)


@pytest.mark.parametrize(
    ("order", "words"),
    [(np.zeros(500, dtype=int), "a row twice"), (np.arange(500) + 1, "not there"), (np.arange(500.0), "whole numbers")],
)
def test_nobody_is_asked_twice_by_an_order(order, words: str) -> None:
    loss = LogisticLoss()
    solver = plan(Problem.of(loss, L2Ball(dimension=2, radius=1), users=500, privacy=Privacy(1, 1e-6)), solver="agd")
    with pytest.raises(ParameterError, match=words):
        optimize(solver, loss, np.full((500, 2), 0.5), np.ones(500), bits=RandomBits.seeded(1), order=order)


def test_a_run_without_noise_is_a_simulation_whatever_its_bits() -> None:
    loss = LogisticLoss()
    solver = plan(Problem.of(loss, L2Ball(dimension=2, radius=1), users=500, privacy=Privacy(1, 1e-6)), solver="agd")
    data = np.full((500, 2), 0.5), np.ones(500)
    assert optimize(solver, loss, *data, bits=RandomBits.secure(), fidelity="exact").simulated
    assert not optimize(solver, loss, *data, bits=RandomBits.secure()).simulated
