"""Every policy: its guarantee, its ask and tell, its state on disk."""

import json
import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from shuffledp.accounting.gaussian import gaussian_delta
from shuffledp.continual.gaussian_offset import gaussian_offset
from shuffledp.continual.noise import SkellamNoise
from shuffledp.continual.visits import Visits
from shuffledp.errors import DataError, ParameterError, ShuffleDPError
from shuffledp.learn.bandits.linear.concurrent import ConcurrentLinUCB
from shuffledp.learn.bandits.linear.counted import CountedPolicy
from shuffledp.learn.bandits.linear.policy import LinearState
from shuffledp.learn.bandits.linear.setting import LinearSetting
from shuffledp.learn.bandits.linear.shuffle_vec import ShuffleVecLinUCB
from shuffledp.privacy import Privacy
from shuffledp.randomness import RandomBits
from shuffledp.references.bandits.catalogue import POLICIES, linear_policy
from shuffledp.references.bandits.curator import SquareRootLinUCB, TreeLinUCB
from shuffledp.references.bandits.linucb import LinUCB
from shuffledp.references.bandits.local import AmplifiedLinUCB, LocalLinUCB

SETTING = LinearSetting(users=2000, dimension=3, nonnegative=True)
PRIVACY = Privacy(1.0, 0.01)


@pytest.mark.parametrize("name", [*POLICIES, "concurrent-2", "independent-4"])
@pytest.mark.parametrize("visits", [1, 3])
def test_guarantees_hold_and_are_tight(name: str, visits: int) -> None:
    if name == "shuffle-amp" and visits > 1:
        with pytest.raises(ParameterError, match="visits"):
            linear_policy(name, SETTING, PRIVACY, visits=visits)
        return
    policy = linear_policy(name, SETTING, PRIVACY, visits=visits)
    guarantee = policy.guarantee()
    assert guarantee.holds and guarantee.document()["model"] == guarantee.model
    if name in ("linucb", "thompson"):
        assert guarantee.privacy is None and guarantee.also == ()
        return
    assert guarantee.visits == visits and guarantee.privacy == PRIVACY
    # No noise to spare, but for what stands ready for transport and rounding.
    assert guarantee.delta > 0.85 * PRIVACY.delta
    assert (guarantee.model, guarantee.also) in {
        ("joint", ()),
        ("shuffle", ("joint",)),
        ("local", ("shuffle", "joint")),
    }
    # Noise that only a sum carries protects no message by itself.
    assert (guarantee.local is not None) == (name in ("ldp", "shuffle-amp"))
    if isinstance(policy, LocalLinUCB) and guarantee.local is not None:
        apart = SETTING.joint.apart * math.sqrt(visits)
        exact = gaussian_delta(guarantee.local.epsilon, policy.user_deviation, apart)
        assert 0.9 * guarantee.local.delta < exact <= guarantee.local.delta * (1 + 1e-9)


@pytest.mark.parametrize("name", ["independent-4", "shuffle-vec"])
@pytest.mark.parametrize("visits", [1, 4])
def test_too_little_noise_is_refused(name: str, visits: int) -> None:
    policy = linear_policy(name, SETTING, PRIVACY, visits=visits)
    assert isinstance(policy, CountedPolicy)
    noise = policy.plan.batch_noise  # type: ignore[attr-defined]
    assert isinstance(noise, SkellamNoise)
    with pytest.raises(ShuffleDPError, match="delta"):
        replace(policy, plan=replace(policy.plan, batch_noise=SkellamNoise(0.64 * noise.variance)))  # type: ignore[call-arg]


def test_visits_cost_what_gaussian_composition_says() -> None:
    once, four = (ShuffleVecLinUCB.planned(SETTING, PRIVACY, visits=visits) for visits in (1, 4))
    ratio = four.release_noise.deviations[1] / once.release_noise.deviations[1]
    assert ratio == pytest.approx(2.0, rel=0.01)
    several = ConcurrentLinUCB.planned(SETTING, PRIVACY, visits=4, noise="independent")
    levels = several.plan.shufflers_used
    shift = math.sqrt(Visits(4, levels).squares) * SETTING.joint.apart
    deviation = float(several.release_noise.deviations[1])
    assert 0.9 * PRIVACY.delta < gaussian_delta(1.0, deviation, shift) + 0.11 * PRIVACY.delta < 1.05 * PRIVACY.delta


def test_noise_is_as_far_from_gaussian_as_said() -> None:
    from scipy import special

    noise = SkellamNoise(2500.0)
    law = noise.law()
    below = np.array([law.cdf(k) for k in range(-300, 301)])
    scores = 50.0 * special.ndtri(below)
    worst = max(np.abs(np.arange(-300, 301) - scores).max(), np.abs(np.arange(-299, 301) - scores[:-1]).max())
    assert 0.5 < worst <= gaussian_offset(noise, 3e-12)


@pytest.mark.parametrize("variance", [0.5, 1.0, 10.0, 100.0, 10_000.0])
@pytest.mark.parametrize("failure", [3e-12, 1e-20])
def test_noise_is_further_from_gaussian_no_more_often_than_said(variance: float, failure: float) -> None:
    """By integration over the whole law: with few steps of noise seven deviations leave out far more than 3e-12."""
    from scipy import special

    noise, deviation = SkellamNoise(variance), math.sqrt(variance)
    offset = gaussian_offset(noise, failure)
    places = np.arange(-int(40 * deviation + 60), 1)
    ends = special.ndtri(np.cumsum(np.exp(noise.law().log_pmf(places.astype(np.float64)))))
    starts = np.concatenate(([-np.inf], ends[:-1]))

    def beyond(off: float) -> float:
        low, high = (places - off) / deviation, (places + off) / deviation
        below = special.ndtr(np.minimum(ends, low)) - special.ndtr(starts)
        above = special.ndtr(ends) - special.ndtr(np.maximum(starts, high))
        return 2 * float(np.maximum(below, 0).sum() + np.maximum(above, 0).sum())

    assert beyond(offset) <= failure
    # A twin that says a tenth less is wrong.
    assert beyond(0.9 * offset) > failure


def test_draws_that_may_fail_are_counted() -> None:
    from shuffledp.learn.bandits.linear import counted

    policy = ShuffleVecLinUCB.planned(SETTING, PRIVACY)
    draws = policy.releases * SETTING.joint.length
    each = counted.OFFSETS * SETTING.failure / 2 / draws
    noise = policy.plan.batch_noise
    assert isinstance(noise, SkellamNoise)
    depths = policy.plan.schedule.depths[: policy.releases + 1]
    least = policy.plan.domain.step * depths * gaussian_offset(noise, each)
    assert (policy.release_noise.offsets >= least).all()
    with pytest.raises(ParameterError, match="failure must lie in"):
        gaussian_offset(noise, 1e-40)


def told(policy, state: LinearState, users: int, bits: RandomBits):
    """Some sums that may be told."""
    if not policy.is_counted:
        ends = (state.users + users) % policy.slot_users == 0
        return {1: np.full(policy.setting.joint.length, float(state.users))} if ends else {}
    cohort = policy.ask(state)
    due = [batch for batch in cohort.batches if batch.first_seat + users == batch.mechanism.users]
    return {batch.level: np.arange(policy.setting.joint.length) for batch in due}


@pytest.mark.parametrize("name", POLICIES)
def test_a_state_survives_paper_and_is_refused_elsewhere(name: str) -> None:
    policy = linear_policy(name, SETTING, PRIVACY)
    bits, state = RandomBits.seeded(1), policy.start()
    assert policy.ask(state).model.theta.tolist() == [0.0] * 3
    for _ in range(6):
        cohort = policy.ask(state)
        state = policy.tell(state, cohort.users, told(policy, state, cohort.users, bits))
    if policy.slot_users > 1:
        state = policy.tell(state, 1, told(policy, state, 1, bits))
        assert policy.ask(state).users == policy.slot_users - 1
    again = LinearState.from_document(json.loads(json.dumps(state.document())))
    assert again == state
    assert policy.ask(again).model.theta.tolist() == policy.ask(state).model.theta.tolist()
    other = linear_policy(name, replace(SETTING, users=2001), PRIVACY)
    with pytest.raises(ParameterError, match="must belong to the policy"):
        other.ask(state)
    with pytest.raises(ParameterError, match="users must lie in"):
        policy.tell(state, 0, {})


def test_broken_states_and_sums_are_refused_in_words() -> None:
    policy = LinUCB(setting=SETTING, batch=10)
    state = policy.start()
    with pytest.raises(DataError, match="schema"):
        LinearState.from_document([])
    with pytest.raises(DataError, match="all its fields"):
        LinearState.from_document({"schema": 1})
    with pytest.raises(DataError, match="finite"):
        LinearState.from_document({**state.document(), "released": [math.nan]})
    with pytest.raises(ParameterError, match="closed must be left out"):
        policy.tell(state, 1, {1: np.zeros(9)})
    with pytest.raises(ParameterError, match="closed must be 9 finite numbers"):
        policy.tell(state, 10, {1: np.zeros(8)})
    with pytest.raises(ParameterError, match="must hold 9 sums"):
        policy.ask(replace(state, released=(0.0,)))
    with pytest.raises(ParameterError, match="users must lie in"):
        policy.ask(replace(state, users=2001))
    for wrong in ("98765", [True] * 9, [10**400] * 9, [1e300] * 9, ["1"] * 9, None, {}):
        with pytest.raises(DataError, match="list of finite sums"):
            LinearState.from_document({**state.document(), "released": wrong})
    for change, wanted in (
        ({"users": True}, "whole users"),
        ({"users": "1"}, "whole users"),
        ({"fingerprint": None}, "a fingerprint"),
    ):
        with pytest.raises(DataError, match=f"must have {wanted}"):
            LinearState.from_document({**state.document(), **change})
    with pytest.raises(ParameterError, match="none before the first slot"):
        policy.ask(replace(state, released=(1.0,) * 9))
    for bad in ("sums", [[1], [1, 2]], ["x"] * 9, None, [1e300] * 9):
        with pytest.raises(ParameterError, match="closed must be"):
            policy.tell(state, 10, {1: bad})
    counted = ShuffleVecLinUCB.planned(SETTING, PRIVACY)
    with pytest.raises(ParameterError, match="counter"):
        counted.ask(replace(counted.start(), counter=None))
    with pytest.raises(DataError, match="schema 1, got dict"):
        LinearState.from_document({**counted.start().document(), "counter": {}})
    with pytest.raises(ParameterError, match="closed must name levels"):
        counted.tell(counted.start(), 1, 5)
    # What was released is what the counter says.
    cohort = counted.ask(counted.start())
    later = counted.tell(counted.start(), cohort.users, {1: np.arange(9)})
    assert counted.ask(later).users > 0
    for forged in ((0.0,) * 9, (1e6,) * 9):
        with pytest.raises(ParameterError, match="sums of its counter"):
            counted.ask(replace(later, released=forged))


def test_equal_policies_have_equal_fingerprints_and_states_can_be_saved() -> None:
    whole = np.int64
    plain = LinearSetting(users=100, dimension=2, nonnegative=True, lowest_reward=0.0, theta_length=1.0)
    other = LinearSetting(
        users=whole(100), dimension=whole(2), nonnegative=np.bool_(True), lowest_reward=-0, theta_length=1
    )
    assert plain == other and plain.document() == other.document()
    assert json.dumps(plain.document()) == json.dumps(other.document())
    for name in POLICIES:
        one, two = (
            linear_policy(name, setting, PRIVACY, batch=batch, visits=visits)
            for setting, batch, visits in ((plain, 20, 1), (other, whole(20), whole(1)))
        )
        assert one.fingerprint == two.fingerprint, name
        ends = two.slot_users == 1
        state = two.tell(two.start(), whole(1), {1: [0.0] * 5} if ends else {})
        assert LinearState.from_document(json.loads(json.dumps(state.document()))) == state


def test_what_decides_privacy_must_be_what_it_says() -> None:
    for flag in ("no", "false", 1, 0, math.nan, None):
        with pytest.raises(ParameterError, match="nonnegative must be True or False"):
            LinearSetting(users=10, dimension=2, nonnegative=flag)  # type: ignore[arg-type]
    for wrong in (
        {"users": "10"},
        {"dimension": 2.0},
        {"lowest_reward": "0"},
        {"lowest_reward": False},
        {"theta_length": "1"},
        {"theta_length": math.inf},
        {"confidence": "0.9"},
        {"constants": ["exact"]},
    ):
        with pytest.raises(ParameterError, match=next(iter(wrong))):
            LinearSetting(**{"users": 10, "dimension": 2, **wrong})
    for name in POLICIES:
        with pytest.raises(ParameterError, match="privacy must be a Privacy"):
            linear_policy(name, SETTING, (1, 0.1))  # type: ignore[arg-type]
        with pytest.raises(ParameterError, match="visits"):
            linear_policy(name, SETTING, PRIVACY, visits="2")  # type: ignore[arg-type]
    for make in (LocalLinUCB, TreeLinUCB, SquareRootLinUCB):
        with pytest.raises(ParameterError, match="privacy must be a Privacy"):
            make(setting=SETTING, privacy=1)  # type: ignore[arg-type]
        with pytest.raises(ParameterError, match="setting must be"):
            make(setting=5, privacy=PRIVACY)  # type: ignore[arg-type]
    with pytest.raises(ParameterError, match="policy must be one of"):
        linear_policy(5, SETTING, PRIVACY)  # type: ignore[arg-type]


def test_features_and_rewards_that_are_no_numbers_are_refused_in_words() -> None:
    joint = SETTING.joint
    for features, rewards in (
        ([["a"] * 3], [1]),
        ([[0.1] * 3, [1]], [1, 1]),
        ([[0.1j] * 3], [1]),
        ([[0.1] * 3], ["x"]),
    ):
        with pytest.raises(DataError, match="must be an array of numbers"):
            joint.check(features, rewards)
    with pytest.raises(DataError, match="finite lengths"):
        joint.check([[1e200] * 3], [1])


def test_bad_requests_are_refused_in_words() -> None:
    for make in (LinUCB, LocalLinUCB, TreeLinUCB, AmplifiedLinUCB, SquareRootLinUCB):
        extra = {} if make is LinUCB else {"privacy": PRIVACY}
        with pytest.raises(ParameterError, match=r"batch must be a whole number in 1\.\.2000, got 2001"):
            make(setting=SETTING, batch=2001, **extra)  # type: ignore[arg-type]
    with pytest.raises(ParameterError, match="batch"):
        ShuffleVecLinUCB.planned(SETTING, PRIVACY, batch=2001)
    with pytest.raises(ParameterError, match="policy must be one of"):
        linear_policy("ucb", SETTING, PRIVACY)
    with pytest.raises(ParameterError, match="visits"):
        ConcurrentLinUCB.planned(SETTING, PRIVACY, visits=0)
    with pytest.raises(ParameterError, match="noise must be auto, carried, independent"):
        ConcurrentLinUCB.planned(SETTING, PRIVACY, noise="laplace")  # type: ignore[arg-type]
    with pytest.raises(ParameterError, match="theta_length"):
        LinearSetting(users=10, dimension=2, theta_length=0)
    with pytest.raises(ParameterError, match="constants"):
        LinearSetting(users=10, dimension=2, constants="best")  # type: ignore[arg-type]
    policy = ShuffleVecLinUCB.planned(SETTING, PRIVACY)
    with pytest.raises(ParameterError, match=r"honest_fraction must be 1\.0"):
        replace(policy, plan=replace(policy.plan, honest_fraction=0.5))
    with pytest.raises(ParameterError, match="plan must be for at least 9000 users"):
        replace(policy, setting=replace(SETTING, users=9000))
    with pytest.raises(ParameterError, match="plan must be of 14 coordinates"):
        replace(ShuffleVecLinUCB.planned(SETTING, PRIVACY), setting=replace(SETTING, dimension=4))


def test_the_papers_constants_are_larger() -> None:
    paper = replace(SETTING, constants="paper")
    tight = Privacy(0.1, 0.01)
    for name in ("jdp-tree", "ldp", "shuffle-amp", "shuffle-vec"):
        exact, theirs = (linear_policy(name, setting, tight) for setting in (SETTING, paper))
        assert theirs.rule.shift[-1] > 1.5 * exact.rule.shift[-1], name
        assert theirs.rule.largest_radius > 1.1 * exact.rule.largest_radius, name


def test_batches_have_the_size_that_was_asked() -> None:
    for users, batch in ((100, 30), (2000, 20), (7, 7), (50, 1)):
        policy = ShuffleVecLinUCB.planned(replace(SETTING, users=users), PRIVACY, batch=batch)
        assert policy.slot_users == batch and policy.releases == users // batch


def test_no_numpy_noise_in_what_protects() -> None:
    import shuffledp.learn

    for path in Path(str(shuffledp.learn.__file__)).parent.rglob("*.py"):
        assert "np.random" not in path.read_text() and "default_rng" not in path.read_text(), path
