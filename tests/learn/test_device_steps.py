"""Device steps are data: what comes through JSON computes what the learner's own object does."""

import json

import numpy as np
import pytest

from shuffledp import Privacy, RandomBits
from shuffledp.errors import DataError, ParameterError
from shuffledp.learn.bandits.arms.doubling_batches import DoublingBatches
from shuffledp.learn.bandits.linear.setting import LinearSetting
from shuffledp.learn.bandits.linear.shuffle_vec import ShuffleVecLinUCB
from shuffledp.learn.optimize import (
    CustomLoss,
    HingeLoss,
    HuberLoss,
    L2Ball,
    LogisticLoss,
    PoissonLoss,
    Problem,
    SoftmaxLoss,
    SquaredLoss,
    plan,
)
from shuffledp.learn.steps import STEPS, compute
from shuffledp.protocols.learner import DeviceStep

PRIVACY = Privacy(5, 1e-2)
BITS = RandomBits.seeded(1)


def through_json(step: DeviceStep) -> DeviceStep:
    again = DeviceStep.from_document(json.loads(json.dumps(step.document(), allow_nan=False)))
    assert again == step and again.name in STEPS
    return again


def test_a_report_is_the_value() -> None:
    assert compute(through_json(DeviceStep()), 7, bits=BITS) == 7


def test_a_pull_reports_the_reward_of_its_arm_as_a_bit() -> None:
    policy = DoublingBatches(arms=3, horizon=1000, privacy=Privacy(1, 1e-6))
    cohort = policy.ask(policy.start())
    assert cohort is not None and cohort.plan is not None
    step = through_json(cohort.step)
    rewards = np.array([1.0, 0.0, 0.0])
    assert compute(step, rewards.__getitem__, bits=BITS).tolist() == [1]
    many = compute(step, lambda arm: np.full(20_000, 0.25), bits=RandomBits.seeded(2))
    assert set(many.tolist()) == {0, 1} and abs(many.mean() - 0.25) < 0.02  # 6.5 standard errors
    with pytest.raises(DataError, match="rewards must lie in"):
        compute(step, lambda arm: [1.5], bits=BITS)


def test_a_choice_sends_the_joint_vector_of_the_arm_with_the_largest_bound() -> None:
    policy = ShuffleVecLinUCB.planned(LinearSetting(users=200, dimension=3), PRIVACY, batch=20)
    state = policy.start()
    cohort = policy.ask(state)
    assert cohort is not None
    told = np.random.default_rng(1).integers(-(10**6), 10**6, policy.setting.joint.length)
    cohort = policy.ask(policy.tell(state, cohort.users, {1: told}))
    assert cohort is not None
    offered = np.random.default_rng(2).uniform(0, 0.5, (50, 4, 3))
    sent = compute(through_json(cohort.step), (offered, lambda chosen: (chosen % 2).astype(float)), bits=BITS)
    chosen = cohort.model.choose(offered)
    expected = policy.setting.joint.pack(offered[np.arange(50), chosen], chosen % 2)
    assert np.array_equal(sent, expected) and len(set(chosen.tolist())) > 1
    assert policy.plan.check_values(sent).shape == (50, policy.setting.joint.length)


@pytest.mark.parametrize(
    "loss",
    [
        LogisticLoss(feature_bound=2.0),
        HingeLoss(ridge=0.5),
        SquaredLoss(target_bound=3.0),
        HuberLoss(threshold=0.5, ridge=0.25),
        PoissonLoss(target_bound=4.0, largest_mean=2.0),
        SoftmaxLoss(classes=3, feature_bound=2.0),
    ],
    ids=lambda loss: loss.name,
)
def test_a_gradient_is_that_of_the_named_loss(loss) -> None:
    size = 3 * loss.outputs
    problem = Problem.of(loss, L2Ball(dimension=size, radius=1), users=5000, privacy=PRIVACY)
    solver = plan(problem, solver="least-bound")
    users = solver.ask(solver.start()).users
    cohort = solver.ask(solver.tell(solver.start(), users, {1: np.tile([100.0, -50.0, 25.0], loss.outputs)}))
    known = [0.0, 2.0] if loss.name in ("softmax", "poisson") else [-1.0, 1.0]
    rows = np.random.default_rng(3).normal(size=(40, 3)), np.random.default_rng(4).choice(known, 40)
    sent = compute(through_json(cohort.step), rows, bits=BITS)
    assert np.array_equal(sent, loss.sent(cohort.point, cohort.clip, cohort.smoothing, *rows)[0])
    assert np.linalg.norm(sent, axis=1).max() <= cohort.plan.radius * (1 + 1e-12)
    assert [batch.mechanism.plan for batch in cohort.batches] == [cohort.plan]


@pytest.mark.parametrize("loss", [LogisticLoss(feature_bound=2.0), SoftmaxLoss(classes=3)], ids=lambda loss: loss.name)
def test_moments_are_products_of_features_no_longer_than_the_plan_says(loss) -> None:
    problem = Problem.of(loss, L2Ball(dimension=3 * loss.outputs, radius=1), users=5000, privacy=PRIVACY)
    cohort = plan(problem, solver="conditioned").ask(plan(problem, solver="conditioned").start())
    assert cohort is not None and cohort.plan.radius == loss.feature_bound**2 and cohort.plan.dimension == 6
    rows = np.random.default_rng(3).normal(size=(40, 3)), np.ones(40)
    rows[0][0] *= 1e200  # as long as they come
    rows[0][1] *= 1e-200
    sent = compute(through_json(cohort.step), rows, bits=BITS)
    longest = np.minimum(1, loss.feature_bound / np.maximum(np.hypot.reduce(rows[0], axis=1), 1e-300))
    short = rows[0] * longest[:, np.newaxis]
    expected = np.einsum("ni,nj->nij", short, short)
    places, twice = np.triu_indices(3), np.array([1, 2, 2, 1, 2, 1]) ** 0.5
    assert sent == pytest.approx(expected[:, *places] * twice, rel=1e-6, abs=1e-300)
    lengths = np.linalg.norm(sent, axis=1)
    assert (longest < 1).any() and lengths.max() <= cohort.plan.radius and lengths.max() > 0.999 * cohort.plan.radius
    assert lengths == pytest.approx(np.hypot.reduce(short, axis=1) ** 2, rel=1e-6, abs=1e-300)
    cohort.plan.check_values(sent)


def test_what_no_device_knows_is_refused_in_words() -> None:
    with pytest.raises(ParameterError, match="step must be one of report, pull, choose, gradient, moments, got guess"):
        compute(DeviceStep("guess"), 1, bits=BITS)
    for bad in (None, {"name": 1, "parameters": {}}, {"name": "pull"}, {"name": "pull", "parameters": [1]}):
        with pytest.raises(DataError, match="must name a step"):
            DeviceStep.from_document(bad)
    own = CustomLoss(value=lambda t, x: x[:, 0], gradient=lambda t, x: x, bound=1.0, smooth=1.0)
    solver = plan(Problem.of(own, L2Ball(dimension=2, radius=1), users=500, privacy=PRIVACY))
    cohort = solver.ask(solver.start())
    assert cohort is not None
    with pytest.raises(ParameterError, match="loss must be one of logistic, hinge, squared, huber, softmax, poisson"):
        compute(through_json(cohort.step), (np.zeros((1, 2)),), bits=BITS)
