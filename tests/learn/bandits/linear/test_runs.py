"""Fast runs: the same law as asking and telling user by user, and intervals that hold."""

import math

import numpy as np
import pytest
from scipy import stats

from shuffledp.errors import ParameterError
from shuffledp.learn.bandits.linear.carried import carried_plan
from shuffledp.learn.bandits.linear.setting import LinearSetting
from shuffledp.learn.bandits.linear.shuffle_vec import ShuffleVecLinUCB
from shuffledp.privacy import Privacy
from shuffledp.randomness import RandomBits
from shuffledp.references.bandits.catalogue import POLICIES, linear_policy
from shuffledp.references.bandits.linucb import LinUCB
from shuffledp.references.bandits.prefix_noise import buffered_noise, square_root_noise, tree_noise, walk_noise
from shuffledp.simulation.environments.linear_curves import RegretCurves
from shuffledp.simulation.environments.linear_every_round import run_every_round
from shuffledp.simulation.environments.linear_runs import run_linear_bandit, run_slots
from shuffledp.simulation.environments.linear_worlds import FixedArms, FreshArms
from shuffledp.simulation.linear_messages import run_with_messages

FALSE_ALARM = 1e-9
SETTING = LinearSetting(users=600, dimension=3, nonnegative=True)
PRIVACY = Privacy(5.0, 0.1)


def world(instances: int, dimension: int = 3, arms: int = 10) -> FixedArms:
    return FixedArms.drawn(instances, arms=arms, dimension=dimension, generator=np.random.default_rng(4))


def test_every_round_is_ask_and_tell() -> None:
    policy, here = LinUCB(setting=SETTING), world(3)
    curves = run_every_round(policy, here, np.random.default_rng((5, 1)), behind=0.0)
    uniform = np.random.default_rng((5, 1)).random((600, 3))
    for instance in range(3):
        state, total, regret = policy.start(), np.zeros(policy.setting.joint.length), 0.0
        for user in range(600):
            arm = int(policy.ask(state).model.choose(here.features[instance]))
            mean = here.means[instance, arm]
            regret += here.best[instance] - mean
            total += policy.setting.joint.pack(here.features[instance, arm], uniform[user, instance] < mean)
            state = policy.tell(state, 1, {1: total})
        assert curves.final[instance] == pytest.approx(regret, abs=1e-9)


def test_an_older_eigenvalue_costs_nothing_to_speak_of() -> None:
    policy, here = LinUCB(setting=LinearSetting(users=3000, dimension=3, nonnegative=True)), world(200)
    late, exact = (run_every_round(policy, here, np.random.default_rng(2), behind=part).final for part in (0.01, 0.0))
    apart = late - exact
    assert abs(apart.mean()) < 0.02 * exact.mean() + 6 * apart.std() / math.sqrt(200)
    # A twin that never looks again has the textbook's radius, and regret that is clearly larger.
    twin = run_every_round(policy, here, np.random.default_rng(2), behind=1e9).final
    assert (twin - exact).mean() > 0.1 * exact.mean()


def test_the_papers_constants_are_not_the_fast_runs() -> None:
    setting = LinearSetting(users=300, dimension=3, nonnegative=True, constants="paper")
    policy, here = LinUCB(setting=setting), world(3)
    slots, regret = RegretCurves(300, 3), np.zeros(3)
    for user, (*_, lost) in enumerate(run_slots(policy, here, np.random.default_rng((1, 1)), 1), start=1):
        before, regret = regret, regret + lost
        slots.add(before, regret, min(user, 300))
    assert np.array_equal(run_linear_bandit(policy, here, seed=1).regret, slots.regret)


@pytest.mark.parametrize("name", POLICIES)
def test_curves_grow_and_stay_below_the_bound(name: str) -> None:
    policy = linear_policy(name, SETTING, PRIVACY)
    told: list[int] = []
    curves = run_linear_bandit(policy, world(8), seed=1, progress=told.append)
    assert curves.regret.shape == (8, curves.times.size) and told[-1] == curves.times[-1] == 600
    assert (np.diff(curves.regret, axis=1) >= -1e-9).all() and (curves.regret[:, 0] == 0).all()
    assert curves.final.max() <= policy.rule.regret_bound
    assert np.array_equal(curves.regret, run_linear_bandit(policy, world(8), seed=1).regret)
    fresh = FreshArms.drawn(4, arms=5, dimension=3, generator=np.random.default_rng(1))
    again = run_linear_bandit(policy, fresh, seed=2)
    assert again.final.shape == (4,) and (again.final > 0).all()


def test_a_world_of_another_dimension_is_refused() -> None:
    with pytest.raises(ParameterError, match="dimension"):
        run_linear_bandit(LinUCB(setting=SETTING), world(2, dimension=4), seed=1)


@pytest.mark.parametrize(
    "name", ["carried-4", "independent-4", "shuffle-vec", "jdp-tree", "jdp-sqrt", "jdp-buffers", "ldp"]
)
def test_theta_stays_in_the_ellipsoid_and_matrices_positive(name: str) -> None:
    """The confidence is 0.95 for all releases together."""
    instances = 60
    setting = LinearSetting(users=1500, dimension=3, nonnegative=True)
    policy, here = linear_policy(name, setting, Privacy(1.0, 0.1), batch=50), world(instances)
    failed, twin = np.zeros(instances, dtype=bool), 0
    for release, (released, model, *_) in enumerate(run_slots(policy, here, np.random.default_rng(3), 3)):
        matrix, _ = setting.joint.unpack(released)
        shifted = matrix + policy.rule.shift[release] * np.eye(3)
        failed |= np.linalg.eigvalsh(shifted)[:, 0] < policy.rule.low[release] * (1 - 1e-9)
        off = model.theta - here.theta
        distance = np.sqrt(np.einsum("id,ide,ie->i", off, shifted, off))
        failed |= distance > model.radius
        # A twin without the regularizer loses positive matrices.
        twin += int((np.linalg.eigvalsh(matrix)[:, 0] < policy.rule.low[release]).sum())
    assert release == policy.releases
    assert failed.sum() <= stats.binom.ppf(1 - FALSE_ALARM, instances, 0.05)
    assert twin > 0


def test_noise_of_references_has_its_deviations() -> None:
    runs, releases = 4000, 11
    made = {
        "jdp-tree": lambda policy, rng: tree_noise(releases, policy.node_deviation, (runs, 1), generator=rng),
        "jdp-sqrt": lambda policy, rng: square_root_noise(
            releases, float(policy.release_noise.deviations[1]), (runs, 1), generator=rng
        ),
        "ldp": lambda policy, rng: walk_noise(
            releases, policy.user_deviation * math.sqrt(policy.slot_users), (runs, 1), generator=rng
        ),
        "jdp-buffers": lambda policy, rng: buffered_noise(
            policy.design, releases, policy.deviation, (runs, 1), generator=rng
        ),
    }
    from shuffledp.references.bandits.buffered import BufferedLinUCB
    from shuffledp.references.bandits.curator import SquareRootLinUCB, TreeLinUCB
    from shuffledp.references.bandits.local import LocalLinUCB

    setting = LinearSetting(users=releases * 10, dimension=3)
    for kind in (TreeLinUCB, SquareRootLinUCB, BufferedLinUCB, LocalLinUCB):
        policy = kind(setting=setting, privacy=PRIVACY, batch=10)
        noise = np.array(list(made[policy.name](policy, np.random.default_rng(1))))[..., 0]
        ratio = noise.var(axis=1) / policy.release_noise.deviations[1:] ** 2 * runs
        low, high = stats.chi2.ppf([FALSE_ALARM / 100, 1 - FALSE_ALARM / 100], runs)
        assert ((low < ratio) & (ratio < high)).all(), policy.name
        assert not ((low < 0.64 * ratio) & (0.64 * ratio < high)).any()


@pytest.mark.parametrize("name", ["shuffle-vec", "independent-3", "carried-3"])
def test_messages_have_the_fast_law(name: str) -> None:
    """One coordinate of the released sums, through clients, shufflers and analyzers, against the drawn noise."""
    from shuffledp.learn.bandits.linear.concurrent import ConcurrentLinUCB

    setting = LinearSetting(users=24, dimension=2, nonnegative=True)
    if name == "shuffle-vec":
        policy = ShuffleVecLinUCB.planned(setting, PRIVACY, batch=6)
    elif name == "independent-3":
        policy = ConcurrentLinUCB.with_layout(setting, PRIVACY, 1, shufflers=3, shufflers_used=3, budget=1, users=24)
    else:
        plan = carried_plan(setting, PRIVACY, 3, 1, 3, 6)
        policy = ConcurrentLinUCB(setting=setting, privacy=PRIVACY, plan=plan)
    features, rewards = np.array([[0.6, 0.8]]), np.array([1.0])
    # The largest distance of the twin's law is 0.3: found with probability 1 - 1e-3 or more.
    runs = 200
    slow = []
    for run in range(runs):
        states = list(
            run_with_messages(
                policy,
                lambda users: (np.repeat(features[np.newaxis], users, axis=0), lambda chosen: rewards[chosen]),
                bits=RandomBits.seeded(run),
            )
        )
        ended = [state for state in states if state.users % policy.slot_users == 0]
        slow.append([state.released[0] for state in ended])
    seen = np.array(slow)
    releases = seen.shape[1]
    many = 4000
    drawn = policy.sample_noise((many, setting.joint.length), bits=RandomBits.seeded(9))
    noise = np.array(list(drawn))[:releases, :, 0]
    truth = 0.6 * policy.slot_users * np.arange(1, releases + 1)
    fast = noise.T * policy.plan.domain.step
    for release in range(releases):
        found = stats.ks_2samp(seen[:, release] - truth[release], fast[:, release])
        assert found.pvalue > FALSE_ALARM, release
    # A twin whose noise is shrunk fourfold must fail.
    assert stats.ks_2samp((seen[:, -1] - truth[-1]) / 4, fast[:, -1]).pvalue < FALSE_ALARM
