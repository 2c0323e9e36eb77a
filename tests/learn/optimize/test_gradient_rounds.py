"""Gradient rounds for any loss: how often a person is asked, what all rounds show together, and whose state it is."""

import json
import math
from collections import Counter
from dataclasses import replace

import numpy as np
import pytest

from shuffledp import Privacy
from shuffledp.errors import DataError, ParameterError
from shuffledp.learn.optimize import (
    AdamSteps,
    CustomLoss,
    GradientRounds,
    MomentumSteps,
    RoundsState,
    RowShape,
    SoftmaxLoss,
)
from shuffledp.learn.optimize.repeated_sums import RepeatedSum
from shuffledp.learn.steps import compute
from shuffledp.protocols.learner import DeviceStep
from shuffledp.randomness import RandomBits
from shuffledp.simulation.optimize import optimize

CLAIM = Privacy(1.0, 1e-3)
# Neither convex nor a bound on anything: tanh(theta - x) squared.
HILLS = CustomLoss(
    value=lambda theta, x: (np.tanh(theta - x) ** 2).sum(axis=1),
    gradient=lambda theta, x: 2 * np.tanh(theta - x) / np.cosh(theta - x) ** 2,
    bound=1.0,
    convex=False,
    rowwise=True,
    rows=(RowShape(width=2),),
)


def _rounds(**change) -> GradientRounds:
    return GradientRounds.plan(**{"users": 24, "dimension": 1, "privacy": CLAIM, "rounds": 5, "clip": 1.0} | change)


def _asked(rounds: GradientRounds) -> Counter:
    """How often each person is asked."""
    asked, state = Counter(), rounds.start()
    while (cohort := rounds.ask(state)) is not None:
        asked.update(range(cohort.first, cohort.first + cohort.users))
        state = rounds.tell(state, cohort.users, {1: np.zeros(rounds.dimension)})
    return asked


@pytest.mark.parametrize(("rounds", "visits"), [(5, 3), (5, 1), (5, 2), (5, None), (6, 4), (7, 3), (1, 1)])
def test_nobody_is_asked_more_often_than_is_accounted_for(rounds: int, visits: int | None) -> None:
    plan = _rounds(rounds=rounds, visits=visits)
    asked = _asked(plan)
    most = max(asked.values())
    assert most == plan.visits == plan.guarantee().rounds_per_user <= (visits or rounds)
    assert sum(asked.values()) == rounds * plan.people and max(asked) < plan.users
    sums = plan.sums
    assert sums is not None and sums.users == plan.people
    assert plan.guarantee().delta == RepeatedSum(sums, most).delta(1.0, sums.users) <= CLAIM.delta
    assert RepeatedSum(sums, most + 1).delta(1.0, sums.users) > CLAIM.delta


def _exact_delta(law, shift: int, epsilon: float) -> float:
    """Of two rounds whose views are this noise and this noise moved: over all pairs of outcomes."""
    start, end = law.window(1e-9)
    k = np.arange(start, end + shift + 1) * 1.0
    p, q = np.exp(law.log_pmf(k)), np.exp(law.log_pmf(k - shift))
    worst = 0.0
    for here, there in ((p, q), (q, p)):
        worst = max(
            worst, float(np.maximum(np.outer(here, here) - math.exp(epsilon) * np.outer(there, there), 0).sum())
        )
    return worst


def test_two_rounds_keep_the_claim_exactly_and_with_a_fifth_less_noise_do_not() -> None:
    """The same person in two rounds, moved as far as clipping and rounding allow in both: all outcomes, summed."""
    plan = _rounds(rounds=2, users=8)
    sums = plan.sums
    assert sums is not None
    coarse = replace(sums, grid=8, variance=sums.variance * (8 / sums.grid) ** 2 * 1.1, privacy=Privacy(4, 0.1))
    assert RepeatedSum(coarse, 2).delta(CLAIM.epsilon, 8) <= CLAIM.delta
    exact = _exact_delta(coarse.noise_law, coarse.largest_shift, CLAIM.epsilon)
    assert 0.3 * CLAIM.delta < exact <= CLAIM.delta
    quieter = replace(coarse, variance=0.64 * coarse.variance, privacy=Privacy(8, 0.5))
    assert _exact_delta(quieter.noise_law, quieter.largest_shift, CLAIM.epsilon) > CLAIM.delta
    with pytest.raises(ParameterError, match=r"delta must be at most 0\.001"):
        replace(plan, rounds=3)


def test_what_one_person_moves_is_its_cohorts_sums_by_twice_the_clip() -> None:
    plan = _rounds(dimension=2, visits=2, clip=0.5)
    rng = np.random.default_rng(1)
    rows, told = rng.uniform(-1, 1, (24, 2)), rng.normal(size=(5, 2))
    changed = rows.copy()
    changed[3] = -changed[3]

    def sums(data: np.ndarray) -> list[np.ndarray]:
        found, state = [], plan.start()
        for estimate in told:
            cohort = plan.ask(state)
            own = data[cohort.first : cohort.first + cohort.users]
            found.append(HILLS.sent(cohort.point, cohort.clip, None, own)[0].sum(axis=0))
            state = plan.tell(state, cohort.users, {1: estimate})
        return found

    moved = [float(np.linalg.norm(b - a)) for a, b in zip(sums(rows), sums(changed), strict=True)]
    assert [distance > 0 for distance in moved] == [True, False, False, True, False]
    assert max(moved) <= 1.0


@pytest.mark.parametrize("rule", [AdamSteps(step_size=0.05), MomentumSteps(step_size=0.2)], ids=lambda rule: rule.name)
def test_a_loss_that_is_not_convex_is_learned_and_goes_on_from_paper(rule) -> None:
    rng = np.random.default_rng(2)
    rows = np.clip(np.array([0.6, -0.3]) + 0.1 * rng.normal(size=(4000, 2)), -1, 1)
    plan = GradientRounds.plan(
        users=4000, dimension=2, privacy=Privacy(1, 1e-6), rounds=40, clip=1.0, visits=20, rule=rule
    )
    bits = RandomBits.seeded(3)
    half = optimize(plan, HILLS, rows, bits=bits, rounds=20)
    state = plan.resume(json.loads(json.dumps(half.state.document())))
    assert state == half.state
    run = optimize(plan, HILLS, rows, bits=bits, state=state)
    assert np.abs(run.theta - [0.6, -0.3]).max() < 0.12
    assert run.state.round == 40 and plan.ask(run.state) is None
    # One row at a time learns the same.
    slow = optimize(plan, replace(HILLS, rowwise=False), rows, bits=RandomBits.seeded(3), rounds=1)
    fast = optimize(plan, HILLS, rows, bits=RandomBits.seeded(3), rounds=1)
    assert np.allclose(slow.theta, fast.theta)


def test_devices_know_a_named_loss_by_its_document() -> None:
    loss = SoftmaxLoss(classes=3)
    plan = _rounds(dimension=6, loss=loss.document())
    cohort = plan.ask(plan.start())
    step = DeviceStep.from_document(json.loads(json.dumps(cohort.step.document())))
    rows = np.array([[0.6, 0.8], [1.0, 0.0]]), np.array([0.0, 2.0])
    sent = compute(step, rows, bits=RandomBits.seeded(1))
    assert np.allclose(sent, loss.gradients(np.zeros(6), *rows)) and np.linalg.norm(sent, axis=1).max() <= 1


def test_steps_are_those_of_the_rules() -> None:
    """Momentum by its closed form, Adam against its own recursion written down once more."""
    gradients = np.random.default_rng(4).normal(size=(6, 3))
    for rule in (MomentumSteps(step_size=0.3, momentum=0.8), AdamSteps(step_size=0.3, decay=0.7, decay_of_squares=0.9)):
        plan = _rounds(dimension=3, rounds=6, privacy=None, rule=rule, initial=[1.0, 2.0, 3.0])
        state = plan.start()
        for gradient in gradients:
            state = plan.tell(state, 24, {1: 24 * gradient})
        wanted = np.array([1.0, 2.0, 3.0])
        for time in range(1, 7):
            ages = np.arange(time)[::-1, None]
            if rule.name == "momentum":
                wanted -= 0.3 * (0.8**ages * gradients[:time]).sum(axis=0)
            else:
                mean = 0.3 * (0.7**ages * gradients[:time]).sum(axis=0) / (1 - 0.7**time)
                square = 0.1 * (0.9**ages * gradients[:time] ** 2).sum(axis=0) / (1 - 0.9**time)
                wanted -= 0.3 * mean / (np.sqrt(square) + 1e-8)
        assert np.allclose(plan.estimate(state), wanted)


def test_a_void_batch_loses_its_round_and_bad_values_are_refused() -> None:
    plan = _rounds(privacy=None)
    state = plan.tell(plan.start(), 24, {1: None})
    assert (state.round, state.lost) == (1, 1) and np.array_equal(state.point, plan.initial)
    for users, closed, words in (
        (23, {1: [0.0]}, "24 of one batch"),
        (24, {2: [0.0]}, "24 of one batch"),
        (24, {1: [math.nan]}, "1 finite numbers"),
        (24, {1: [0.0, 0.0]}, "1 finite numbers"),
        (24, {1: ["many"]}, "numbers"),
    ):
        with pytest.raises(ParameterError, match=words):
            plan.tell(state, users, closed)
    with pytest.raises(ParameterError, match="belong to the plan"):
        _rounds(privacy=None, clip=2.0).ask(state)
    wrong = RoundsState(plan.fingerprint, 1, np.zeros(2), np.zeros(2))
    with pytest.raises(ParameterError, match=r"must be of rounds 0\.\.5"):
        plan.ask(wrong)
    with pytest.raises(DataError, match="all its fields"):
        plan.resume({"schema": 1, "fingerprint": plan.fingerprint})
    for change, parameter in (
        ({"rounds": 0}, "rounds"),
        ({"visits": 0}, "visits"),
        ({"clip": -1.0}, "clip"),
        ({"clip": math.nan}, "clip"),
        ({"dimension": 0}, "dimension"),
        ({"users": 0}, "users"),
        ({"privacy": 1.0}, "privacy"),
        ({"rule": "adam"}, "rule"),
        ({"initial": [1.0, 2.0]}, "initial"),
        ({"initial": [math.inf]}, "initial"),
        ({"users": 3, "visits": 1}, "users"),
        ({"rule": None, "honest_fraction": 0.0}, "honest_fraction"),
    ):
        with pytest.raises(ParameterError) as refused:
            _rounds(**change)
        assert refused.value.parameter == parameter
    for wrong_rule in ({"step_size": 0}, {"decay": 1.0}):
        with pytest.raises(ParameterError):
            AdamSteps(**wrong_rule)
