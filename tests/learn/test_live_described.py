"""What is said of learners on people's devices: promises and charges are the accountant's, people are counted once."""

from typing import Any

import pytest

from shuffledp import Privacy
from shuffledp.continual.plan import CounterPlan
from shuffledp.learn.bandits.arms.doubling_batches import DoublingBatches
from shuffledp.learn.bandits.linear.setting import LinearSetting
from shuffledp.learn.bandits.linear.shuffle_vec import ShuffleVecLinUCB
from shuffledp.learn.live.described import described
from shuffledp.learn.live.linear_models import people_of
from shuffledp.learn.optimize import L2Ball, LogisticLoss, Problem, plan

PRIVACY = Privacy(8, 1e-2)


def solver(name: str, visits: int | None = 1) -> Any:
    ball = L2Ball(dimension=2, radius=2)
    problem = Problem.of(LogisticLoss(ridge=0.5), ball, users=200, privacy=PRIVACY, visits=visits, rounds=6)
    return plan(problem, solver=name)


LEARNERS = {
    "arms": lambda: DoublingBatches(arms=3, horizon=400, privacy=PRIVACY, method="coins", visits=2),
    "linear": lambda: ShuffleVecLinUCB.planned(LinearSetting(users=100, dimension=2), PRIVACY, batch=20, visits=2),
    "sgd": lambda: solver("sgd"),
    "gd": lambda: solver("gd", None),
    "phases": lambda: solver("phased-agd"),
    "count": lambda: CounterPlan.plan(users=60, shufflers=2, privacy=PRIVACY, noise="coins").learner(),
}


@pytest.mark.parametrize("name", LEARNERS)
def test_what_is_charged_is_what_is_promised(name: str) -> None:
    learner = LEARNERS[name]()
    told = described(learner)
    assert told.privacy == told.entry.claim == PRIVACY and told.entry.fingerprint == learner.fingerprint
    assert 0 < told.proved_delta <= PRIVACY.delta
    assert told.entry.users == told.people <= told.reports
    assert "collude" in told.trusted and told.learns and told.accurate


@pytest.mark.parametrize("name", ["sgd", "gd", "phases"])
def test_people_of_rounds_are_counted_once(name: str) -> None:
    learner = LEARNERS[name]()
    counts = [people_of(learner, rounds) for rounds in range(learner.rounds + 1)]
    assert counts[0] == 0 and counts == sorted(counts) and counts[-1] == learner.users
    assert counts[1] == learner.stages[0].users


def test_a_bound_that_proves_nothing_says_so() -> None:
    told = described(LEARNERS["linear"]())
    assert told.bound > 100 and "proves nothing at this size" in told.accurate
    assert described(LEARNERS["sgd"]()).bound == LEARNERS["sgd"]().bound


@pytest.mark.parametrize("promised", [False, True])
def test_what_features_are_promised_to_be_is_said(promised: bool) -> None:
    setting = LinearSetting(users=100, dimension=2, nonnegative=promised)
    told = described(ShuffleVecLinUCB.planned(setting, PRIVACY, batch=20))
    assert ("no two users' features have a negative product" in told.trusted) is promised
