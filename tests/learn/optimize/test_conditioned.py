"""Steps in the metric of released moments: composed, run in every fidelity, saved, and better where features mix."""

import json
import math
from dataclasses import replace

import numpy as np
import pytest

from shuffledp import Privacy
from shuffledp.accounting.composition import Composition
from shuffledp.accounting.differences import Skellam
from shuffledp.accounting.gaussian import GaussianPair
from shuffledp.accounting.pairs import ShiftPair
from shuffledp.errors import DataError, InfeasibleError, ParameterError
from shuffledp.learn.optimize import (
    BallWithIntercepts,
    HingeLoss,
    L2Ball,
    LogisticLoss,
    OptimizerState,
    Problem,
    SoftmaxLoss,
    Solver,
    SquaredLoss,
    plan,
)
from shuffledp.learn.optimize.conditioned import ConditionedStage
from shuffledp.learn.optimize.moments import Conditioner
from shuffledp.learn.optimize.repeated_sums import RepeatedSum
from shuffledp.protocols.vector_sum.matrices import pack_symmetric
from shuffledp.protocols.vector_sum.shares import VectorShares
from shuffledp.randomness import RandomBits
from shuffledp.simulation.optimize import optimize

PRIVACY = Privacy(1, 1e-6)


def _solver(dimension: int = 2, rounds: int = 6, **more: object) -> Solver:
    ball = L2Ball(dimension=dimension, radius=20)
    problem = Problem.of(LogisticLoss(), ball, users=600, privacy=PRIVACY, rounds=rounds, **more)
    return plan(problem, solver="conditioned")


def _stage(solver: Solver) -> ConditionedStage:
    (stage,) = solver.stages
    assert isinstance(stage, ConditionedStage)
    return stage


def _tables(users: int) -> tuple[np.ndarray, np.ndarray]:
    """Two features that are nearly equal, and classes by their difference."""
    rng = np.random.default_rng(5)
    shared, apart = rng.uniform(-0.6, 0.6, users), rng.uniform(-0.05, 0.05, users)
    return np.column_stack((shared + apart, shared - apart)), np.sign(apart + rng.normal(0, 0.01, users))


def test_moments_and_gradients_compose_as_the_accountant_says() -> None:
    solver = _solver()
    (gradients, often), (moments, once) = _stage(solver).sums
    assert (often, once) == (5, 1) and moments.dimension == 3
    pairs = gradients.gaussian(600), moments.gaussian(600)
    assert all(isinstance(pair, GaussianPair) for pair in pairs)
    brute = Composition([(pairs[0], 5), (pairs[1], 1)]).delta(1.0)
    both = RepeatedSum(gradients, 5, (RepeatedSum(moments, 1),))
    closed = both.pair(600).delta(1.0)
    assert closed <= brute * (1 + 1e-6) and brute <= closed * 1.02
    assert closed > 1.05 * RepeatedSum(gradients, 5).pair(600).delta(1.0)
    guarantee = solver.guarantee()
    assert guarantee.terms == both.delta_terms(1.0, 600) and 0.9e-6 < guarantee.delta <= 1e-6
    assert [term.name for term in guarantee.terms].count("cut-off") == 2
    assert guarantee.rounds_per_user == 6 and "moments" in guarantee.because
    each = 5 * gradients.messages_per_user_max + moments.messages_per_user_max
    assert guarantee.messages_per_user == each


def test_exact_noise_in_one_dimension_and_twins_with_less_in_either_sum() -> None:
    (gradients, often), (moments, _) = _stage(_solver(dimension=1)).sums
    assert isinstance(gradients, VectorShares) and isinstance(moments, VectorShares)

    def exact(gradient_part: float, moment_part: float) -> float:
        sums = ((gradients, gradient_part, often), (moments, moment_part, 1))
        return Composition(
            [
                (ShiftPair(Skellam(part**2 * each.variance), round(each.rounded_difference.length)), times)
                for each, part, times in sums
            ]
        ).delta(1.0)

    assert exact(1.0, 1.0) <= RepeatedSum(gradients, often, (RepeatedSum(moments, 1),)).delta(1.0, 600) <= 1e-6
    assert exact(0.8, 1.0) > 1e-6 and exact(1.0, 0.8) > 1e-6


@pytest.mark.parametrize("which", ["plan", "moments"])
def test_a_twin_with_less_noise_in_either_sum_is_refused(which: str) -> None:
    solver = _solver()
    stage = _stage(solver)
    vector_sum = getattr(stage, which)
    claim = Privacy(2 * vector_sum.privacy.epsilon, vector_sum.privacy.delta)
    weaker = replace(vector_sum, variance=0.8**2 * vector_sum.variance, privacy=claim)
    with pytest.raises(ParameterError, match="delta"):
        replace(solver, stages=(replace(stage, **{which: weaker}),))
    with pytest.raises(ParameterError, match="delta"):
        replace(solver, stages=(replace(stage, rounds=stage.rounds + 1),))
    # A plan for other vectors than those that are sent, and one sum that is not private.
    with pytest.raises(ParameterError, match="plans for their cohorts"):
        replace(solver, stages=(replace(stage, moments=stage.plan),))
    with pytest.raises(ParameterError, match="all be private"):
        replace(solver, stages=(replace(stage, moments=None),))


def test_every_fidelity_runs_and_states_carry_the_moments() -> None:
    solver, data = _solver(), _tables(600)
    exact = optimize(solver, LogisticLoss(), *data, bits=RandomBits.seeded(1), fidelity="exact")
    mean = data[0].T @ data[0] / 600
    assert exact.state.moments == pytest.approx(pack_symmetric(mean)) and exact.gradients == 5 * 600
    for fidelity in ("fast", "messages"):
        run = optimize(solver, LogisticLoss(), *data, bits=RandomBits.seeded(2), fidelity=fidelity)
        spread = _stage(solver).moments_noise / 600
        assert 0 < np.abs(run.state.moments - pack_symmetric(mean)).max() < 7 * spread  # false alarms: 1e-11
        half = optimize(solver, LogisticLoss(), *data, bits=RandomBits.seeded(2), fidelity=fidelity, rounds=3)
        saved = json.loads(json.dumps(half.state.document(), allow_nan=False))
        again = OptimizerState.from_document(saved)
        assert again == half.state and solver.ask(again).step.name == "gradient"
        assert solver.tell(again, 600, {1: [9.0, 5.0]}) == solver.tell(half.state, 600, {1: [9.0, 5.0]})


def test_states_from_before_there_were_moments_are_read() -> None:
    solver = plan(_solver().problem, solver="full-agd")
    old = {"schema": 1, "fingerprint": solver.fingerprint, "round": 0, "point": [0.0] * 2, "average": [0.0] * 2}
    state = OptimizerState.from_document({**old, "lost": 0})
    assert state == solver.start() and state.document() == {**old, "lost": 0} and state.moments is None
    with pytest.raises(DataError, match="finite moments"):
        OptimizerState.from_document({**old, "lost": 0, "moments": [math.nan]})
    with pytest.raises(ParameterError, match="3 moments"):
        solver.ask(replace(state, moments=np.zeros(2)))
    with pytest.raises(DataError, match="3 finite numbers"):
        _solver().tell(_solver().start(), 600, {1: [0.0, 0.0]})


def test_a_lost_round_of_moments_leaves_plain_steps() -> None:
    solver = _solver()
    lost = solver.tell(solver.start(), 600, {1: None})
    assert (lost.lost, lost.moments, lost.round) == (1, None, 1)
    moved = solver.tell(lost, 600, {1: [60.0, -60.0]})
    # The longest steps that gradients of rows of any direction allow.
    assert moved.average == pytest.approx(np.array([-0.1, 0.1]) / 0.25 / 2 / _stage(solver).weight)


def test_metrics_end_at_the_best_model_of_the_domain() -> None:
    """Without noise, more rounds come to the domain's own optimum, where plain nearest points would not stop."""
    features, targets = _tables(4000)
    loss, ball = SquaredLoss(), BallWithIntercepts(dimension=2, radius=1.0, intercept_radius=0.5, every=2)
    problem = Problem.of(loss, ball, users=4000, privacy=None, rounds=400)
    stage = replace(_stage(plan(problem, solver="conditioned")), rounds=400)
    solver = replace(plan(problem, solver="conditioned"), stages=(stage,))
    found = optimize(solver, loss, features, targets, bits=RandomBits.seeded(1)).theta
    angles = [np.array([a, b]) for a in np.linspace(-1, 1, 201) for b in np.linspace(-0.5, 0.5, 101)]
    best = min(loss.objective(each, features, targets) for each in angles)
    assert loss.objective(found, features, targets) <= best + 1e-5
    assert np.linalg.norm(found - ball.project(found)) < 1e-9


def test_nearest_points_are_those_of_the_metric() -> None:
    rng = np.random.default_rng(3)
    for _ in range(20):
        root = rng.normal(size=(4, 4))
        metric = Conditioner.of(root @ root.T, 0.5)
        matrix, ball = root @ root.T + 0.5 * np.eye(4), L2Ball(dimension=4, radius=1)
        point = 3 * rng.normal(size=4)
        found = metric.nearest(point, ball)
        # On the rim the metric's gradient points inwards, along the radius.
        inwards = matrix @ (point - found)
        assert np.linalg.norm(found) == pytest.approx(1)
        assert inwards / np.linalg.norm(inwards) == pytest.approx(found, abs=2e-2)
        assert metric.descent(matrix @ point) == pytest.approx(point)
    assert metric.nearest(np.full(4, 0.1), ball).tolist() == [0.1] * 4


def test_features_that_nearly_follow_from_one_another_are_learned_in_fewer_rounds() -> None:
    """Exact runs, so that nothing but the steps differs: 33 rounds here, and 33 of full-agd."""
    features, targets = _tables(4000)
    loss, ball = LogisticLoss(), L2Ball(dimension=2, radius=100)
    problem = Problem.of(loss, ball, users=4000, privacy=PRIVACY, rounds=33)
    losses = {
        name: loss.objective(
            optimize(
                plan(problem, solver=name), loss, features, targets, bits=RandomBits.seeded(1), fidelity="exact"
            ).theta,
            features,
            targets,
        )
        for name in ("conditioned", "full-agd")
    }
    assert losses["conditioned"] < 0.9 * losses["full-agd"]


def test_several_scores_have_one_metric_a_block() -> None:
    loss = SoftmaxLoss(classes=3)
    problem = Problem.of(loss, L2Ball(dimension=6, radius=10), users=2000, privacy=PRIVACY, rounds=12)
    solver = plan(problem, solver="conditioned")
    features, labels = _tables(2000)
    run = optimize(solver, loss, features, (labels > 0) * 2.0, bits=RandomBits.seeded(1))
    assert run.state.moments.size == 3
    assert loss.objective(run.theta, features, (labels > 0) * 2.0) < math.log(3)


@pytest.mark.parametrize(
    ("loss", "ball", "more", "why"),
    [
        (HingeLoss(), L2Ball(dimension=2, radius=1), {}, "needs a smooth loss"),
        (LogisticLoss(), L2Ball(dimension=91, radius=1), {}, "products of all features"),
        (LogisticLoss(), L2Ball(dimension=2, radius=1), {"visits": 1}, "asked only once"),
        (LogisticLoss(), L2Ball(dimension=50, radius=1), {}, "needs more people"),
    ],
)
def test_what_moments_cannot_help_is_refused_in_words(loss, ball, more, why: str) -> None:
    problem = Problem.of(loss, ball, users=600, privacy=PRIVACY, **more)
    with pytest.raises(InfeasibleError, match=why):
        plan(problem, solver="conditioned")
    nameless = replace(problem, row_bound=None, visits=None)
    with pytest.raises(InfeasibleError, match="linear model, by name"):
        plan(nameless, solver="conditioned")


def test_moments_alone_are_charged_by_their_own_noise() -> None:
    """A document may say one round: it is of moments, and gradients' noise, which nobody adds then, hides nobody."""
    solver = _solver(rounds=2)
    stage = _stage(solver)
    kind = {"users": stage.users, "dimension": 3, "radius": stage.moments_clip}
    enough, weak = (VectorShares.plan(privacy=Privacy(epsilon, 1e-6), **kind) for epsilon in (1, 20))
    alone = replace(solver, stages=(replace(stage, rounds=1, moments=enough),)).guarantee()
    assert (alone.terms, alone.pair) == (enough.delta_terms(1.0, stage.users), enough.pair(stage.users))
    with pytest.raises(ParameterError, match="delta must be at most 1e-06"):
        replace(solver, stages=(replace(stage, rounds=1, moments=weak),))
    with pytest.raises(ParameterError, match="rounds must be a whole number >= 0"):
        replace(solver, stages=(replace(stage, rounds=0, moments=weak),))
