"""Policies in simulated worlds: both fidelities have one law, and the best arm is kept as often as stated."""

import dataclasses
import math

import numpy as np
import pytest
from scipy import stats

from shuffledp.errors import ParameterError
from shuffledp.learn.bandits.arms.doubling_batches import DoublingBatches
from shuffledp.learn.bandits.arms.elimination import Elimination, EliminationStage
from shuffledp.learn.bandits.arms.fixed_batches import FixedBatches
from shuffledp.privacy import Privacy
from shuffledp.randomness import RandomBits
from shuffledp.references.bandits.arms import (
    UCB1,
    CuratorElimination,
    LocalElimination,
    NonPrivateElimination,
    ThompsonSampling,
)
from shuffledp.simulation.arms import play, simulate_arms
from shuffledp.simulation.environments.arms import ArmsWorld, random_gaps
from shuffledp.testing.statistics import assert_same_law

PRIVACY = Privacy(1, 1e-6)
FALSE_ALARM = 1e-9


def common_gap(instances: int, arms: int, gap: float, best: float = 0.75) -> ArmsWorld:
    """One arm, each in its turn, is better than all others, which are alike."""
    means = np.full((instances, arms), best - gap)
    rows = np.arange(instances)
    means[rows, rows % arms] = best
    return ArmsWorld(means)


@pytest.mark.parametrize(
    "policy",
    [
        DoublingBatches(arms=3, horizon=1500, privacy=PRIVACY, failure=0.2),
        DoublingBatches(arms=3, horizon=1500, privacy=PRIVACY, failure=0.2, method="coins"),
        FixedBatches(arms=3, horizon=1500, privacy=PRIVACY, failure=0.2, batch=40),
        FixedBatches(arms=3, horizon=1500, privacy=PRIVACY, failure=0.2, batch=80, method="rr"),
    ],
    ids=lambda policy: f"{policy.policy}-{policy.method}",
)
def test_messages_and_the_law_agree(policy) -> None:
    means = [0.8, 0.55, 0.2]
    gaps = 0.8 - np.array(means)
    single, runs = ArmsWorld.one(means), 300
    instances = 20_000
    bits, generator = RandomBits.seeded(11), np.random.default_rng(11)
    by_messages = []
    for _ in range(runs):
        state = play(policy, lambda arm, users: single.rewards(arm, users, generator=generator), bits=bits)
        rest = policy.horizon - sum(state.counts)
        by_messages.append(float(np.dot(state.counts, gaps)) + rest * gaps[policy.best(state)])
    many = ArmsWorld(np.tile(np.array(means), (instances, 1)))
    by_law = simulate_arms(policy, many, bits=RandomBits.seeded(12), seed=12).regret
    assert_same_law(by_messages, by_law, false_alarm=FALSE_ALARM)
    assert len(set(np.round(by_law, 6))) > 3
    # A wrong twin: the same policy in another world is told apart.
    other = ArmsWorld(np.tile(np.array([0.8, 0.7, 0.2]), (instances, 1)))
    wrong = simulate_arms(policy, other, bits=RandomBits.seeded(13), seed=13).regret
    with pytest.raises(AssertionError):
        assert_same_law(by_messages, wrong, false_alarm=FALSE_ALARM)


@dataclasses.dataclass(frozen=True)
class Narrower(Elimination):
    """Another policy with narrower widths: what a wrong radius would do."""

    other: Elimination
    part: float = 0.3

    def plan_stages(self) -> tuple[EliminationStage, ...]:
        return tuple(dataclasses.replace(stage, width=self.part * stage.width) for stage in self.other.stages)

    def sample_sums(self, stage, ones, *, bits):
        return self.other.sample_sums(stage, ones, bits=bits)


@pytest.mark.parametrize(
    "policy",
    [
        DoublingBatches(arms=4, horizon=20_000, privacy=PRIVACY, failure=0.1),
        DoublingBatches(arms=4, horizon=20_000, privacy=Privacy(0.2, 1e-6), failure=0.1),
        DoublingBatches(arms=4, horizon=20_000, privacy=PRIVACY, failure=0.1, method="coins"),
        FixedBatches(arms=4, horizon=20_000, privacy=PRIVACY, failure=0.1, batch=20),
        CuratorElimination(arms=4, horizon=20_000, privacy=PRIVACY, failure=0.1),
        LocalElimination(arms=4, horizon=20_000, privacy=PRIVACY, failure=0.1),
        NonPrivateElimination(arms=4, horizon=20_000, failure=0.1),
    ],
    ids=lambda policy: policy.policy,
)
def test_the_best_arm_is_dropped_no_more_often_than_stated(policy) -> None:
    instances = 4000
    world = common_gap(instances, 4, 1e-9, best=0.5)  # the hardest: no gap to speak of
    dropped = int(np.count_nonzero(~simulate_arms(policy, world, bits=RandomBits.seeded(2), seed=2).kept_best))
    assert stats.binom.sf(dropped - 1, instances, policy.failure_probability) > FALSE_ALARM
    narrow = Narrower(arms=4, horizon=20_000, failure=0.1, other=policy)
    wrong = int(np.count_nonzero(~simulate_arms(narrow, world, bits=RandomBits.seeded(2), seed=2).kept_best))
    assert stats.binom.sf(wrong - 1, instances, policy.failure_probability) < FALSE_ALARM


def test_doubling_by_shares_is_a_trusted_curator() -> None:
    world = random_gaps(4000, 5, smallest=0.05, largest=0.5, seed=3)
    asked = {"arms": 5, "horizon": 10**5, "privacy": PRIVACY}
    ours, curator = DoublingBatches(**asked), CuratorElimination(**asked)
    assert [s.batch_users for s in ours.stages] == [s.batch_users for s in curator.stages]
    assert [s.width for s in ours.stages] == pytest.approx([s.width for s in curator.stages], rel=1e-5)
    mine, theirs = (simulate_arms(p, world, bits=RandomBits.seeded(4), seed=4).regret for p in (ours, curator))
    assert_same_law(mine, theirs, false_alarm=FALSE_ALARM)


def test_who_pays_what() -> None:
    world = random_gaps(200, 6, smallest=0.05, largest=0.5, seed=1)
    asked = {"arms": 6, "horizon": 10**6}

    def regret(policy) -> float:
        return float(simulate_arms(policy, world, bits=RandomBits.seeded(1), seed=1).regret.mean())

    free = regret(NonPrivateElimination(**asked, growth=2))
    ours = regret(DoublingBatches(**asked, privacy=PRIVACY))
    local = regret(LocalElimination(**asked, privacy=PRIVACY))
    paper = regret(DoublingBatches(**asked, privacy=PRIVACY, method="coins", constants="paper"))
    assert free <= ours < 1.2 * free
    assert 2 * ours < local and 5 * ours < paper


def test_the_noise_does_not_grow_with_the_batch() -> None:
    policy = DoublingBatches(arms=2, horizon=10**7, privacy=PRIVACY)
    errors = [policy.batch_plan(stage.batch_users).standard_error for stage in policy.stages]
    assert max(errors) == min(errors) == pytest.approx(1.357, abs=1e-3)


def test_ucb1_plays_everybody_and_mostly_the_best() -> None:
    world = common_gap(50, 3, 0.3)
    counts = UCB1(arms=3, horizon=20_000).play(world.means, bits=RandomBits.seeded(1))
    assert (counts.sum(axis=1) == 20_000).all() and counts[world.gaps == 0].min() > 18_000
    # Refreshed at every user, it is UCB1 itself; one in a hundred costs little.
    often = UCB1(arms=3, horizon=20_000, refresh=1e-9).play(world.means, bits=RandomBits.seeded(2))
    some, all_of_them = (played[world.gaps > 0] for played in (counts, often))
    error = math.hypot(some.std(), all_of_them.std()) / math.sqrt(100)
    assert abs(some.mean() - all_of_them.mean()) < 0.05 * all_of_them.mean() + 6 * error


def test_thompson_sampling_is_the_strongest() -> None:
    world = random_gaps(300, 3, smallest=0.1, largest=0.5, seed=2)

    def regret(policy) -> np.ndarray:
        return simulate_arms(policy, world, bits=RandomBits.seeded(1), seed=1).regret

    asked = {"arms": 3, "horizon": 3000}
    late, exact = regret(ThompsonSampling(**asked)), regret(ThompsonSampling(**asked, refresh=0))
    error = math.hypot(late.std(), exact.std()) / math.sqrt(300)
    assert abs(late.mean() - exact.mean()) < 0.05 * exact.mean() + 6 * error
    for other in (UCB1(**asked), NonPrivateElimination(**asked)):
        assert late.mean() < 0.5 * regret(other).mean()


@pytest.mark.parametrize("kind", [UCB1, ThompsonSampling])
def test_policies_of_every_round_refuse_in_words(kind) -> None:
    for wrong in ({"arms": 10, "horizon": 5}, {"arms": 1.5, "horizon": 9}, {"arms": 2, "horizon": 9, "refresh": "x"}):
        with pytest.raises(ParameterError, match="must be a"):
            kind(**wrong)


def test_the_best_arm_may_be_anywhere() -> None:
    for world in (random_gaps(3000, 3, smallest=0.1, largest=0.5, seed=1), common_gap(3000, 3, 0.1)):
        first = np.bincount(world.means.argmax(axis=1), minlength=3)
        assert (abs(first - 1000) < 6 * math.sqrt(3000 * 2 / 9)).all()


def test_a_world_with_other_arms_is_refused() -> None:
    with pytest.raises(ParameterError, match="arms"):
        simulate_arms(
            NonPrivateElimination(arms=3, horizon=100), common_gap(2, 4, 0.1), bits=RandomBits.seeded(1), seed=1
        )
