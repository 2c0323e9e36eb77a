"""Thompson sampling on released sums: what it is computed from, what its law is, and what devices do with it."""

import json
import math
from dataclasses import replace

import numpy as np
import pytest

from shuffledp.errors import DataError, ParameterError
from shuffledp.learn.bandits.linear.confidence import ReleaseNoise
from shuffledp.learn.bandits.linear.models import linear_model_from
from shuffledp.learn.bandits.linear.posterior import PosteriorRule, standard_normals
from shuffledp.learn.bandits.linear.setting import LinearSetting
from shuffledp.learn.steps import compute
from shuffledp.privacy import Privacy
from shuffledp.protocols.learner import DeviceStep
from shuffledp.randomness import RandomBits
from shuffledp.references.bandits.catalogue import linear_policy
from shuffledp.simulation.environments.linear_every_draw import narrow
from shuffledp.simulation.environments.linear_runs import run_linear_bandit, run_slots
from shuffledp.simulation.environments.linear_worlds import FixedArms, FreshArms, raised_sphere
from shuffledp.simulation.linear_messages import run_with_messages

SETTING = LinearSetting(users=600, dimension=3, nonnegative=True)
PRIVACY = Privacy(5.0, 0.1)
# Six standard errors: a false alarm of 2e-9.
WIDTH = 6.0


def world(instances: int, arms: int = 10) -> FixedArms:
    return FixedArms.drawn(instances, arms=arms, dimension=3, generator=np.random.default_rng(4))


@pytest.mark.parametrize("name", ["concurrent-4", "shuffle-vec", "ldp"])
def test_models_are_functions_of_released_sums_and_guarantees_are_the_same(name: str) -> None:
    bounds, draws = linear_policy(name, SETTING, PRIVACY), linear_policy(f"thompson-{name}", SETTING, PRIVACY)
    assert draws.guarantee() == bounds.guarantee() and draws.slot_users == bounds.slot_users
    assert draws.fingerprint != bounds.fingerprint
    rule, joint = PosteriorRule(SETTING, bounds.release_noise), SETTING.joint
    for release, (released, model, *_) in enumerate(run_slots(draws, world(5), np.random.default_rng(2), 2)):
        expected = rule.model(*joint.unpack(released), release)
        assert np.array_equal(model.theta, expected.theta) and np.array_equal(model.root, expected.root)
    assert release == draws.releases > 2


def test_live_states_are_of_one_choice_only() -> None:
    policy = linear_policy("thompson-shuffle-vec", LinearSetting(users=60, dimension=2), Privacy(5, 0.1), batch=20)
    theta = np.array([0.7, 0.3])
    generator = np.random.default_rng(1)

    def offer(users: int):
        arms = generator.uniform(0, 0.7, (users, 4, 2))
        return arms, lambda chosen: (generator.random(users) < arms[np.arange(users), chosen] @ theta).astype(float)

    states = list(run_with_messages(policy, offer, bits=RandomBits.seeded(1)))
    assert states[-1].users == 60
    model = policy.ask(states[0]).model
    matrix, vector = policy.setting.joint.unpack(np.array(states[0].released))
    assert np.allclose(model.theta, policy.model_rule.model(matrix, vector, 1).theta)
    with pytest.raises(ParameterError, match="policy"):
        replace(policy, choice="confidence").ask(states[0])
    with pytest.raises(ParameterError, match="choice must be one of confidence, posterior, got best"):
        replace(policy, choice="best")


def _regressions(deviation: float, count: int, size: int = 3) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Theta from the prior, and noisy sums of 60 users in each of many worlds with rewards of deviation 1/2."""
    generator = np.random.default_rng(7)
    joint = LinearSetting(users=60, dimension=size).joint
    theta = generator.standard_normal((count, size)) / math.sqrt(size)
    phi = raised_sphere((count, 60), size, generator)
    rewards = np.einsum("iud,id->iu", phi, theta) + generator.standard_normal((count, 60)) / 2
    sums = joint.pack(phi, rewards).sum(axis=1) + deviation * generator.standard_normal((count, joint.length))
    return theta, *joint.unpack(sums)


def _spread(theta: np.ndarray, model) -> float:
    """The mean square of theta's distance from its mean in deviations of the model: 1 where its law is right."""
    off = np.linalg.solve(model.root, (theta - model.theta)[..., np.newaxis])[..., 0]
    return float(np.square(off).mean())


def test_without_noise_it_is_bayesian_regression() -> None:
    theta, matrix, vector = _regressions(0.0, 4000)
    model = PosteriorRule(SETTING, ReleaseNoise.gaussian(np.zeros(1))).model(matrix, vector, 1)
    covariance = np.linalg.inv(4 * matrix + 3 * np.eye(3))
    assert np.allclose(np.matmul(model.root, np.swapaxes(model.root, 1, 2)), covariance)
    assert np.allclose(model.theta, 4 * np.matmul(covariance, vector[..., np.newaxis])[..., 0])
    assert abs(_spread(theta, model) - 1) < WIDTH * math.sqrt(2 / 12_000)


@pytest.mark.parametrize("deviation", [1.0, 6.0])
def test_with_noise_it_is_as_unsure_as_it_should_be(deviation: float) -> None:
    theta, matrix, vector = _regressions(deviation, 4000)
    told = PosteriorRule(SETTING, ReleaseNoise.gaussian(np.array([deviation]))).model(matrix, vector, 1)
    # Cut eigenvalues are not the matrix's own, so that its law is right but for a part.
    assert 0.8 < _spread(theta, told) < 1.25
    # A twin that knows nothing of the noise is far too sure.
    twin = PosteriorRule(SETTING, ReleaseNoise.gaussian(np.zeros(1))).model(matrix, vector, 1)
    assert _spread(theta, twin) > 1.25 * _spread(theta, told)


def test_rank_one_updates_are_the_posterior() -> None:
    generator = np.random.default_rng(2)
    rule, joint = PosteriorRule(SETTING, ReleaseNoise.gaussian(np.zeros(9))), SETTING.joint
    sums = np.zeros((4, joint.length))
    model = rule.model(*joint.unpack(sums), 0)
    theta, root = model.theta, model.root
    for _ in range(9):
        phi, reward = raised_sphere((4,), 3, generator), generator.random(4)
        added, moved = narrow(root, phi, 0.25)
        theta = theta + moved * (reward - (phi * theta).sum(axis=1))[:, np.newaxis]
        root, sums = root + added, sums + joint.pack(phi, reward)
    model = rule.model(*joint.unpack(sums), 9)
    assert np.allclose(theta, model.theta)
    assert np.allclose(root @ np.swapaxes(root, 1, 2), model.root @ np.swapaxes(model.root, 1, 2))


def test_every_draw_has_the_law_of_slots_of_one() -> None:
    policy, here = linear_policy("thompson", LinearSetting(users=150, dimension=3), PRIVACY), world(300)
    fast = run_linear_bandit(policy, here, seed=1).final
    slow = sum(lost for *_, lost in run_slots(policy, here, np.random.default_rng(5), 5))
    assert abs(fast.mean() - slow.mean()) < WIDTH * math.hypot(fast.std(), slow.std()) / math.sqrt(300)
    # A twin that draws nothing but takes the best of the mean has another.
    bounds = run_linear_bandit(replace(policy, choice="confidence"), here, seed=1).final
    assert abs(bounds.mean() - slow.mean()) > WIDTH * math.hypot(bounds.std(), slow.std()) / math.sqrt(300)


def test_half_the_regret_on_the_same_releases() -> None:
    setting = LinearSetting(users=6000, dimension=3, nonnegative=True)
    for here in (world(20, arms=30), FreshArms.drawn(12, arms=10, dimension=3, generator=np.random.default_rng(1))):
        bounds, draws = (
            run_linear_bandit(linear_policy(name, setting, Privacy(1, 0.1)), here, seed=3)
            for name in ("concurrent-4", "thompson-concurrent-4")
        )
        high, low = draws.mean + 3 * draws.standard_error, bounds.mean - 3 * bounds.standard_error
        assert high < 0.75 * low


def test_devices_draw_for_themselves() -> None:
    policy = linear_policy("thompson-concurrent-2", SETTING, PRIVACY)
    step = DeviceStep.from_document(json.loads(json.dumps(policy.ask(policy.start()).step.document())))
    assert step.name == "choose" and linear_model_from(step.parameters["model"]).draws == 3
    offered = np.broadcast_to(np.eye(3), (4000, 3, 3))
    taken: list[np.ndarray] = []

    def rewards(chosen: np.ndarray) -> np.ndarray:
        taken.append(chosen)
        return np.ones(len(chosen))

    vectors = compute(step, (offered, rewards), bits=RandomBits.seeded(3))
    assert vectors.shape == (4000, SETTING.joint.length)
    # Nothing is known: all arms alike, and every device takes its own.
    assert (abs(np.bincount(taken[0]) - 4000 / 3) < WIDTH * math.sqrt(4000 * 2 / 9)).all()
    compute(step, (offered, rewards), bits=RandomBits.seeded(4))
    assert (taken[0] != taken[1]).any()
    with pytest.raises(DataError, match="model must be a model of a linear bandit"):
        linear_model_from({"theta": [1.0]})


def test_normals_are_normal() -> None:
    drawn = standard_normals((200_000,), bits=RandomBits.seeded(5))
    assert abs(drawn.mean()) < WIDTH / math.sqrt(200_000)
    assert abs(np.square(drawn).mean() - 1) < WIDTH * math.sqrt(2 / 200_000)
    with pytest.raises(ParameterError, match="release"):
        PosteriorRule(SETTING, ReleaseNoise.gaussian(np.zeros(1))).model(np.eye(3), np.zeros(3), 2)
