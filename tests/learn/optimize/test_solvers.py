import itertools
import json
import math
from dataclasses import replace

import numpy as np
import pytest

from shuffledp import Privacy
from shuffledp.errors import DataError, InfeasibleError, ParameterError
from shuffledp.estimates import VectorEstimate
from shuffledp.learn.optimize import (
    METHODS,
    CustomLoss,
    HingeLoss,
    L2Ball,
    LogisticLoss,
    Loss,
    OptimizerState,
    Problem,
    Solver,
    SquaredLoss,
    plan,
    predicted_bounds,
)
from shuffledp.learn.optimize.repeated_sums import RepeatedSum
from shuffledp.learn.steps import compute
from shuffledp.protocols.vector_sum.base import VectorSumPlan
from shuffledp.randomness import RandomBits

PRIVACY = Privacy(1, 1e-6)
BALL = L2Ball(dimension=2, radius=1)
SMOOTH, SHARP = SquaredLoss(ridge=0.5), HingeLoss(ridge=0.5)


def _loss_for(name: str) -> Loss:
    return SHARP if "smoothed" in name else SMOOTH


def _solver(name: str, users: int = 400, **limits: object) -> Solver:
    return plan(Problem.of(_loss_for(name), BALL, users=users, privacy=PRIVACY, rounds=8, **limits), solver=name)


def _data(users: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    features = rng.normal(size=(users, 2))
    features /= np.maximum(1, np.linalg.norm(features, axis=1))[:, None]
    return features, rng.choice([-1.0, 1.0], users)


def _sums(solver: Solver, loss: Loss, data: tuple[np.ndarray, ...], told: list[np.ndarray]) -> list[np.ndarray]:
    """Every cohort's exact sum where the analyzer hears `told`."""
    sums, state = [], solver.start()
    for estimate in told:
        cohort = solver.ask(state)
        assert cohort is not None
        rows = tuple(array[cohort.first : cohort.first + cohort.users] for array in data)
        sums.append(compute(cohort.step, rows, bits=RandomBits.seeded(1)).sum(axis=0))
        state = solver.tell(state, cohort.users, {1: estimate[: cohort.width]})
    assert solver.ask(state) is None
    return sums


@pytest.mark.parametrize("name", METHODS)
def test_a_replaced_user_moves_only_its_cohorts_sums(name: str) -> None:
    solver, loss = _solver(name), _loss_for(name)
    told = list(np.random.default_rng(1).normal(size=(solver.rounds, 3)) * 50)
    data = _data(400)
    before = _sums(solver, loss, data, told)
    for user in (0, 57, solver.users - 1):
        changed = tuple(array.copy() for array in data)
        changed[0][user], changed[1][user] = [0.6, -0.8], -changed[1][user]
        after = _sums(solver, loss, changed, told)
        moved = [float(np.linalg.norm(b - a)) for a, b in zip(before, after, strict=True)]
        assert sum(distance > 0 for distance in moved) <= solver.guarantee().rounds_per_user
        assert 0 < max(moved) <= 2 * solver.problem.lipschitz
    if solver.users < 400:
        changed = tuple(array.copy() for array in data)
        changed[0][solver.users :] = 0.0
        assert all(np.array_equal(a, b) for a, b in zip(before, _sums(solver, loss, changed, told), strict=True))


@pytest.mark.parametrize("name", ["agd", "gd", "sgd"])
def test_stages_have_users_and_proofs_of_their_own(name: str) -> None:
    """Nobody is in two stages, and what is promised is what the stage proves that proves least."""
    stages = (*_solver(name, users=300).stages, *_solver("agd", users=500).stages, *_solver(name, users=700).stages)
    solver = replace(_solver(name, users=2000), stages=stages)
    asked: list[tuple[int, int]] = []
    state = solver.start()
    while (cohort := solver.ask(state)) is not None:
        asked.append((cohort.first, cohort.first + cohort.users))
        state = solver.tell(state, cohort.users, {1: [0.0, 0.0]})
    places = sorted(set(asked))
    assert all(end <= begin for (_, end), (begin, _) in itertools.pairwise(places)) and places[-1][1] == solver.users
    assert max(asked.count(place) for place in places) <= solver.guarantee().rounds_per_user
    proved = [
        RepeatedSum(stage.plan, stage.visits).delta_terms(1.0, stage.users) for stage in solver.stages if stage.plan
    ]
    sums = [sum(term.value for term in terms) for terms in proved]
    assert solver.guarantee().delta == max(sums) > min(sums)
    assert all(len(terms) > 1 and max(term.value for term in terms) < solver.guarantee().delta for terms in proved)


@pytest.mark.parametrize("name", ["sgd", "agd", "gd", "phased-agd"])
def test_clipped_gradients_are_whole_numbers_as_near_as_accounted_for(name: str) -> None:
    solver, loss = _solver(name), _loss_for(name)
    cohort = solver.ask(solver.start())
    assert cohort is not None
    vector_sum = cohort.plan
    assert isinstance(vector_sum, VectorSumPlan)
    # Data far beyond their bounds: what is sent is clipped, on the grid, and no further apart than the pair's shift.
    features = 1e6 * np.array([[0.6, 0.8], [-0.6, -0.8]])
    sent, clipped = loss.sent(cohort.point, cohort.clip, None, features, np.ones(2))
    assert clipped == 2
    rng = np.random.default_rng(0)
    for _ in range(200):
        u = rng.random(2)  # the same u for both: the coupling of the proof
        one, other = (np.floor(vector / vector_sum.step + u) for vector in sent)
        assert np.linalg.norm(one - other) <= vector_sum.rounded_difference.length
        assert np.abs(one).max() <= vector_sum.grid


@pytest.mark.parametrize("name", METHODS)
def test_guarantees_come_from_the_accountant(name: str) -> None:
    solver = _solver(name)
    guarantee = solver.guarantee()
    assert guarantee.holds
    assert 0.85e-6 < guarantee.delta <= 1e-6
    assert guarantee.pair is not None
    assert guarantee.pair.delta(1.0) <= guarantee.delta
    assert guarantee.model == ("pan-private" if "pan" in name else "shuffle")
    assert guarantee.rounds == solver.rounds <= 8
    assert (guarantee.rounds_per_user == 1) == METHODS[name].asks_once
    assert (guarantee.messages_per_user == 0) == ("pan" in name)
    assert json.loads(json.dumps(solver.document(), allow_nan=False))["guarantee"]["epsilon"] == 1.0
    twin = plan(replace(solver.problem, privacy=None), solver=name)
    assert (twin.guarantee().model, twin.guarantee().delta, twin.guarantee().privacy) == ("none", 0, None)
    if name == "conditioned":
        assert twin.bound is solver.bound is None
    else:
        assert twin.bound < solver.bound


@pytest.mark.parametrize("name", ["sgd", "phased-smoothed-agd", "gd"])
def test_states_are_saved_and_belong_to_their_solver(name: str) -> None:
    solver, told = _solver(name), np.random.default_rng(2).normal(size=(8, 2)) * 30
    through = halfway = solver.start()
    for round_number in range(solver.rounds):
        users = solver.ask(through).users
        through = solver.tell(through, users, {1: told[round_number]})
        copy = OptimizerState.from_document(json.loads(json.dumps(halfway.document())))
        estimate = VectorEstimate(value=told[round_number], standard_error=1.0, bound=1.0, confidence=0.95)
        halfway = solver.tell(copy, users, {1: estimate})
    assert through == halfway
    assert solver.ask(through) is None
    assert solver.estimate(through).tolist() == through.average.tolist()
    with pytest.raises(ParameterError, match="rounds left"):
        solver.tell(through, users, {1: told[0]})
    other = _solver(name, users=401)
    with pytest.raises(ParameterError, match="its own solver"):
        other.ask(through)
    for broken in (None, {}, {**through.document(), "round": 1.5}, {**through.document(), "point": [math.nan, 0.0]}):
        with pytest.raises(DataError):
            OptimizerState.from_document(broken)
    with pytest.raises(ParameterError):
        solver.ask(replace(through, round=99))
    for bad in ([1.0], [math.inf, 0.0], [[1.0, 2.0]]):
        with pytest.raises(DataError, match="finite numbers"):
            solver.tell(solver.start(), solver.ask(solver.start()).users, {1: bad})


def test_a_void_batch_loses_its_round_and_is_not_asked_again() -> None:
    solver = _solver("agd")
    users = solver.ask(solver.start()).users
    state = solver.tell(solver.start(), users, {1: [10.0, -5.0]})
    lost = solver.tell(state, users, {1: None})
    assert (lost.round, lost.lost) == (2, 1)
    assert (lost.point.tolist(), lost.average.tolist()) == (state.point.tolist(), state.average.tolist())
    first, second = solver.ask(state), solver.ask(lost)
    assert first is not None
    assert second is not None
    assert second.first == first.first + first.users


def test_solvers_are_ranked_by_their_bounds() -> None:
    smooth = Problem.of(LogisticLoss(), L2Ball(dimension=5, radius=3), users=100_000, privacy=PRIVACY, rounds=60)
    rows = predicted_bounds(smooth)
    bounds = [row.bound for row in rows if row.bound is not None]
    assert bounds == sorted(bounds)
    assert {row.solver for row in rows if row.bound is not None} == {"gd", "full-agd", "agd", "sgd"}
    assert plan(replace(smooth, visits=1), solver="least-bound").name == "agd"
    for row in rows:
        if row.bound is not None:
            assert plan(smooth, solver=row.solver).bound == pytest.approx(row.bound, rel=0.02)
    strong = Problem.of(SquaredLoss(ridge=1.0), BALL, users=100_000, privacy=PRIVACY, visits=1)
    assert predicted_bounds(strong)[0].solver == "phased-agd"
    pan = predicted_bounds(smooth, "pan-private")
    assert pan[0].solver == "pan-private-agd"
    sharp = Problem.of(HingeLoss(), L2Ball(dimension=5, radius=3), users=100_000, privacy=PRIVACY, visits=1)
    assert plan(sharp, solver="least-bound").name == "smoothed-agd"


def test_more_users_and_more_epsilon_lower_every_bound() -> None:
    for loss in (SMOOTH, SHARP):
        problem = Problem.of(loss, BALL, users=2000, privacy=PRIVACY)
        for better in (replace(problem, users=8000), replace(problem, privacy=Privacy(2, 1e-6))):
            here = {row.solver: row.bound for row in predicted_bounds(problem)}
            there = {row.solver: row.bound for row in predicted_bounds(better)}
            assert all(there[name] < bound for name, bound in here.items() if bound is not None)  # type: ignore[operator]


def test_what_cannot_be_done_is_refused_in_words() -> None:
    sharp = Problem.of(HingeLoss(), BALL, users=1000, privacy=PRIVACY)
    smooth = Problem.of(LogisticLoss(), BALL, users=1000, privacy=PRIVACY)
    nothing = CustomLoss(value=np.linalg.norm, gradient=np.sign, bound=1.0)
    for problem, name, words in (
        (sharp, "agd", "smooth loss.*take .*smoothed-agd"),
        (smooth, "smoothed-agd", "not smooth"),
        (smooth, "phased-agd", "strongly convex"),
        (replace(smooth, visits=1), "gd", "only once"),
        (Problem.of(nothing, BALL, users=1000, privacy=PRIVACY), "smoothed-agd", "proximal"),
        (Problem.of(nothing, BALL, users=1000, privacy=PRIVACY), "gd", "proximal"),
        (Problem.of(nothing, BALL, users=1000, privacy=PRIVACY), "full-agd", "linear model"),
    ):
        with pytest.raises(InfeasibleError, match=words):
            plan(problem, solver=name)
    with pytest.raises(ParameterError, match="must be auto, least-bound or one of"):
        plan(smooth, solver="newton")
    with pytest.raises(ParameterError, match="model"):
        predicted_bounds(smooth, "trusting")
    for bad in ({"rounds": 0}, {"visits": 0}, {"honest_fraction": 0.0}):
        with pytest.raises(ParameterError):
            Problem.of(LogisticLoss(), BALL, users=1000, privacy=PRIVACY, **bad)


def test_too_few_users_are_told_how_many_would_do() -> None:
    with pytest.raises(InfeasibleError, match="would do") as refused:
        Problem.of(LogisticLoss(), BALL, users=3, privacy=PRIVACY)
    needed = int(str(refused.value).split(";")[1].split()[0].replace(",", ""))
    problem = Problem.of(LogisticLoss(), BALL, users=needed, privacy=PRIVACY)
    assert plan(problem, solver="agd").stages[0].plan.standard_error * math.sqrt(2) <= needed  # type: ignore[union-attr]
    with pytest.raises(InfeasibleError):
        Problem.of(LogisticLoss(), BALL, users=needed - 1, privacy=PRIVACY)


def test_stages_must_fit_their_problem() -> None:
    solver = _solver("agd")
    (stage,) = solver.stages
    for stages in ((), (stage, stage), (replace(stage, plan=None),), (replace(stage, users=stage.users - 1),)):
        with pytest.raises(ParameterError, match="stages"):
            replace(solver, stages=stages)
