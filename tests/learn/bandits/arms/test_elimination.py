"""Policies step by step: guarantees, states, and what is refused."""

import dataclasses
import json
import math

import numpy as np
import pytest

from shuffledp.accounting.composition import Composition
from shuffledp.accounting.pairs import ShiftPair
from shuffledp.errors import DataError, InfeasibleError, ParameterError
from shuffledp.estimates import Estimate
from shuffledp.learn.bandits.arms.batches import batch_plan, guarantee_of
from shuffledp.learn.bandits.arms.doubling_batches import DoublingBatches
from shuffledp.learn.bandits.arms.elimination import ArmsState
from shuffledp.learn.bandits.arms.fixed_batches import FixedBatches
from shuffledp.learn.bandits.arms.paper import paper_sigma
from shuffledp.learn.bandits.rewards import check_rewards, reward_bits
from shuffledp.privacy import Privacy
from shuffledp.protocols.binary_sum.shares import Shares
from shuffledp.randomness import RandomBits
from shuffledp.references.bandits.arms import CuratorElimination, LocalElimination, NonPrivateElimination
from shuffledp.simulation.arms import play
from shuffledp.simulation.environments.arms import ArmsWorld, random_gaps

PRIVACY = Privacy(1, 1e-6)
POLICIES = [
    DoublingBatches(arms=3, horizon=4000, privacy=PRIVACY),
    DoublingBatches(arms=3, horizon=4000, privacy=PRIVACY, growth=1.25, method="coins"),
    FixedBatches(arms=3, horizon=4000, privacy=PRIVACY, batch=60),
    FixedBatches(arms=3, horizon=4000, privacy=PRIVACY, batch=100, method="rr"),
]


def told(value: float) -> Estimate:
    return Estimate(value=value, standard_error=1.0, bound=3.0, confidence=0.95)


# --- the guarantee ----------------------------------------------------------------------------


@pytest.mark.parametrize("policy", POLICIES, ids=lambda p: f"{p.policy}-{p.method}")
def test_the_guarantee_is_what_the_plans_prove(policy) -> None:
    guarantee = policy.guarantee()
    assert guarantee.shuffle == guarantee.joint == PRIVACY
    plans = [policy.batch_plan(stage.batch_users) for stage in policy.stages]
    assert guarantee.proved_delta == max(plan.guarantee().delta for plan in plans) <= PRIVACY.delta
    if policy.method == "rr":
        assert guarantee.local_epsilon == plans[0].local_epsilon and guarantee.local_delta == 0
    else:
        assert guarantee.local_epsilon is guarantee.local_delta is None


def test_less_noise_cannot_be_made() -> None:
    plan = POLICIES[0].batch_plan(64)
    assert isinstance(plan, Shares)
    with pytest.raises(InfeasibleError):
        dataclasses.replace(plan, ratio=plan.ratio**1.25)
    coins = POLICIES[1].batch_plan(64)
    with pytest.raises(InfeasibleError):
        dataclasses.replace(coins, bits_per_user=1, probability=0.3)


@pytest.mark.parametrize("method", ["shares", "coins"])
def test_returning_users_compose(method: str) -> None:
    once = DoublingBatches(arms=3, horizon=10**6, privacy=PRIVACY, method=method, first_batch=64)
    often = dataclasses.replace(once, visits=12)
    guarantee = often.guarantee()
    assert guarantee.shuffle == PRIVACY and guarantee.visits == 12 and guarantee.proved_delta <= PRIVACY.delta
    plan = often.batch_plan(1000)
    assert PRIVACY.epsilon / 12 * 0.999 <= plan.privacy.epsilon < PRIVACY.epsilon
    assert often.stages[3].width > once.stages[3].width
    if method == "shares":
        # By hand: the pair of one batch, twelve times, and all of each batch's delta.
        pair = plan.pair(plan.honest_users)
        assert isinstance(pair, ShiftPair)
        by_hand = Composition([(pair, 12)]).delta(PRIVACY.epsilon) + 12 * plan.privacy.delta
        assert by_hand == pytest.approx(guarantee.proved_delta, rel=0.02)


def test_only_visits_and_privacy_decide_the_noise() -> None:
    names = {field.name for field in dataclasses.fields(DoublingBatches)}
    assert names.isdisjoint({"noise", "ratio", "probability", "scale"})


# --- asking and telling ------------------------------------------------------------------------


def test_arms_take_turns_and_the_worst_goes() -> None:
    policy = FixedBatches(arms=3, horizon=100_000, privacy=PRIVACY, batch=200)
    state, rates, turns = policy.start(), (0.9, 0.1, 0.8), []
    while len(state.active) == 3:
        cohort = policy.ask(state)
        turns.append(cohort.arm)
        assert cohort.users == cohort.plan.users == 200
        state = policy.tell(state, 200, {1: told(200 * rates[cohort.arm])})
    assert turns == [0, 1, 2] * (len(turns) // 3)
    assert state.active == (0, 2) and state.means == pytest.approx(rates)
    before = policy.stages[state.stage - 1]
    assert before.width < 0.8 and policy.best(state) == 0


@pytest.mark.parametrize(("behind", "left"), [(0.75, (0, 1, 2)), (1.01, (0, 2))])
def test_an_arm_goes_when_it_is_further_behind_than_the_width(behind: float, left: tuple[int, ...]) -> None:
    policy = FixedBatches(arms=3, horizon=100_000, privacy=PRIVACY, batch=200)
    stage = next(number for number, stage in enumerate(policy.stages) if stage.width < 0.8)
    state = policy.start()
    while state.stage <= stage:
        cohort = policy.ask(state)
        rate = 0.9 - (behind * policy.stages[stage].width if cohort.arm == 1 else 0.0)
        state = policy.tell(state, 200, {1: told(200 * rate)})
    assert state.active == left


def test_a_users_own_messages_are_counted_on_every_visit() -> None:
    plans = [batch_plan(users, PRIVACY, "rr", 1.0, "exact") for users in (500, 1000)]
    local = max(plan.local_epsilon for plan in plans)
    assert guarantee_of(plans, PRIVACY, 1).local_epsilon == local
    assert guarantee_of(plans, PRIVACY, 3).local_epsilon == pytest.approx(3 * local)


def test_the_rest_plays_the_best_arm_and_reports_nothing() -> None:
    policy = DoublingBatches(arms=2, horizon=10_000, privacy=PRIVACY)
    state = policy.start()
    while (cohort := policy.ask(state)).plan is not None:
        state = policy.tell(state, cohort.users, {1: told(cohort.users * (0.2 + 0.7 * cohort.arm))})
    assert cohort.arm == 1 and cohort.users == 10_000 - state.users
    with pytest.raises(ParameterError, match="nobody reports"):
        policy.tell(state, cohort.users, {1: told(1.0)})
    state = policy.tell(state, cohort.users, {})
    assert state.users == 10_000 and policy.ask(state) is None
    with pytest.raises(ParameterError, match="horizon is over"):
        policy.tell(state, cohort.users, {})


def test_a_void_batch_is_asked_for_again() -> None:
    policy = POLICIES[0]
    users = policy.ask(policy.start()).users
    state = policy.tell(policy.start(), users, {1: told(10.0)})
    again = policy.tell(state, users, {1: None})
    assert again.users == state.users + policy.ask(state).users and policy.ask(again) == policy.ask(state)


@pytest.mark.parametrize("policy", POLICIES, ids=lambda p: f"{p.policy}-{p.method}")
def test_a_state_goes_on_where_it_was_saved(policy) -> None:
    world = ArmsWorld.one([0.9, 0.5, 0.2])

    def run(cut: int | None) -> ArmsState:
        bits, generator = RandomBits.seeded(5), np.random.default_rng(5)

        def rewards(arm: int, users: int) -> np.ndarray:
            return world.rewards(arm, users, generator=generator)

        state = play(policy, rewards, bits=bits, users=cut)
        if cut is not None:
            assert state.told > 0  # in the middle of a stage
            state = ArmsState.from_document(json.loads(json.dumps(state.document())))
        return play(policy, rewards, bits=bits, state=state)

    cut = policy.stages[0].batch_users * 2
    assert run(cut) == run(None)


def test_a_state_of_another_spec_is_refused() -> None:
    state = POLICIES[0].start()
    for change in ({"horizon": 5000}, {"failure": 0.1}, {"privacy": Privacy(2, 1e-6)}, {"growth": 3.0}, {"visits": 2}):
        other = dataclasses.replace(POLICIES[0], **change)
        with pytest.raises(ParameterError, match="must belong to the policy"):
            other.ask(state)


@pytest.mark.parametrize(
    "change",
    [
        {"users": 9999},
        {"stage": 99},
        {"told": 3},
        {"told": -1},
        {"active": [0, 5]},
        {"active": [1, 0]},
        {"active": []},
        {"sums": [0.0]},
        {"counts": [-1, 0, 0]},
        {"counts": [1, 0, 0]},
        {"users": 10**400},
        {"sums": [10**400, 0, 0]},
        {"sums": [1e308, 1e308, -1e308]},
        {"sums": [1.0, 0.0, 0.0]},
        {"sums": [True, 0.0, 0.0]},
        {"users": 32, "counts": [32, 0, 0]},
        {"users": 96, "counts": [32, 32, 32]},
        {"users": 96, "stage": 1, "active": [0, 1], "counts": [32, 32, 31], "sums": [1.0, 1.0, 1.0]},
        {"fingerprint": None},
        {"users": 1.5},
        {"users": True},
        {"sums": [0.0, "x", 0.0]},
        {"sums": [0.0, math.nan, 0.0]},
        {"active": "all"},
        {"schema": 2},
    ],
    ids=str,
)
def test_a_broken_state_is_refused(change) -> None:
    document = POLICIES[0].start().document() | change
    with pytest.raises(DataError, match="state"):
        POLICIES[0].ask(ArmsState.from_document(document))
    with pytest.raises(DataError, match="state"):
        ArmsState.from_document({key: value for key, value in document.items() if key != "sums"} | {"schema": 1})


# --- what is refused ----------------------------------------------------------------------------


@pytest.mark.parametrize("bad", [1.5, -0.1, math.nan, math.inf])
def test_rewards_outside_are_named_by_their_row(bad: float) -> None:
    with pytest.raises(DataError, match="in row 3"):
        check_rewards([0, 0.5, bad, 1])
    with pytest.raises(DataError, match="in row 3"):
        play(POLICIES[0], lambda arm, users: np.array([0, 1, bad]), bits=RandomBits.seeded(1))


def test_rewards_are_rounded_without_bias() -> None:
    bits = reward_bits(np.full(100_000, 0.3), bits=RandomBits.seeded(1))
    assert set(np.unique(bits)) == {0, 1} and abs(bits.mean() - 0.3) < 6.2 * math.sqrt(0.21 / 100_000)
    for bad in ([], [[0.1]], ["a"]):
        with pytest.raises(DataError, match="rewards"):
            reward_bits(bad, bits=RandomBits.seeded(1))


@pytest.mark.parametrize(
    ("asked", "parameter"),
    [
        ({"arms": 1}, "arms"),
        ({"arms": 2.0}, "arms"),
        ({"horizon": 0}, "horizon"),
        ({"arms": 50, "horizon": 20}, "arms"),
        ({"failure": 0.0}, "failure"),
        ({"failure": math.nan}, "failure"),
        ({"visits": 0}, "visits"),
        ({"method": "zsum"}, "method"),
        ({"method": "magic"}, "method"),
        ({"constants": "paper"}, "constants"),
        ({"first_batch": 0}, "first_batch"),
        ({"first_batch": 2000}, "first_batch"),
        ({"growth": 1.0}, "growth"),
        ({"growth": math.nan}, "growth"),
        ({"growth": "2"}, "growth"),
        ({"growth": True}, "growth"),
        ({"failure": "x"}, "failure"),
        ({"failure": 1e-320}, "failure"),
        ({"failure": 1.0}, "failure"),
        ({"honest_fraction": -1.0}, "honest_fraction"),
        ({"honest_fraction": math.nan}, "honest_fraction"),
        ({"honest_fraction": True}, "honest_fraction"),
        ({"visits": "2"}, "visits"),
        ({"privacy": (1, 1e-6)}, "privacy"),
        ({"method": ["shares"]}, "method"),
        ({"constants": "best"}, "constants"),
        ({"first_batch": "8"}, "first_batch"),
    ],
    ids=str,
)
def test_bad_specs_are_named(asked, parameter: str) -> None:
    with pytest.raises(ParameterError) as error:
        DoublingBatches(**{"arms": 3, "horizon": 4000, "privacy": PRIVACY} | asked)
    assert error.value.parameter == parameter


def test_equal_policies_have_equal_fingerprints() -> None:
    whole = np.int64
    asked = {"arms": 3, "horizon": 10_000, "privacy": PRIVACY}
    one = DoublingBatches(**asked, growth=2.0, honest_fraction=1.0, first_batch=32, visits=2, failure=0.5)
    two = DoublingBatches(
        arms=whole(3),
        horizon=whole(10_000),
        privacy=Privacy(1.0, 1e-6),
        growth=2,
        honest_fraction=1,
        first_batch=whole(32),
        visits=whole(2),
        failure=np.float64(0.5),
    )
    assert one == two and one.fingerprint == two.fingerprint
    assert json.dumps(two.start().document()) == json.dumps(one.start().document())
    fixed = [FixedBatches(**asked, batch=batch).fingerprint for batch in (60, whole(60))]
    assert fixed[0] == fixed[1]


def test_growth_of_references_is_checked() -> None:
    for growth in (1.0, 0.5, math.nan, "2"):
        for kind, extra in ((NonPrivateElimination, {}), (CuratorElimination, {"privacy": PRIVACY})):
            with pytest.raises(ParameterError, match="growth"):
                kind(arms=2, horizon=1000, growth=growth, **extra)
    for kind in (LocalElimination, CuratorElimination):
        with pytest.raises(ParameterError, match="privacy"):
            kind(arms=2, horizon=1000, privacy=1)


def test_more_phases_than_can_be_compared_are_refused() -> None:
    asked = {"arms": 2, "privacy": Privacy(0.1, 1e-6), "batch": 1, "method": "coins"}
    with pytest.raises(ParameterError, match="batch makes 15,000,000 phases"):
        FixedBatches(**asked, horizon=3 * 10**7, constants="paper")
    assert len(FixedBatches(**asked, horizon=3 * 10**7).stages) < 200


def test_batches_larger_than_there_are_users_are_refused() -> None:
    with pytest.raises(ParameterError, match="batch must be at most 1333"):
        FixedBatches(arms=3, horizon=4000, privacy=PRIVACY, batch=1334)
    with pytest.raises(ParameterError, match="batch must be at most"):  # the paper's own choice
        FixedBatches(arms=3, horizon=4000, privacy=PRIVACY, method="coins", constants="paper")


def test_an_unknown_arm_is_refused() -> None:
    world = ArmsWorld.one([0.9, 0.5, 0.2])
    for arm in (3, -1):
        with pytest.raises(ParameterError, match="arm must lie in"):
            world.rewards(arm, 10, generator=np.random.default_rng(1))
    for means in ([[1.5, 0.1]], [[0.5]]):
        with pytest.raises(ParameterError):
            ArmsWorld(np.array(means))
    with pytest.raises(ParameterError, match="gaps"):
        random_gaps(1, 3, smallest=0.5, largest=0.1, seed=1)


def test_only_estimates_are_told() -> None:
    policy = POLICIES[0]
    for bad in (3.0, told(math.nan), "x"):
        with pytest.raises(ParameterError, match="estimate"):
            policy.tell(policy.start(), policy.ask(policy.start()).users, {1: bad})


# --- the paper's constants -----------------------------------------------------------------------


def test_the_papers_batches_and_radii() -> None:
    paper = DoublingBatches(arms=2, horizon=10**6, privacy=PRIVACY, method="coins", constants="paper")
    assert [stage.batch_users for stage in paper.stages[:4]] == [2, 4, 8, 16]
    users, sigma = 2**5 - 2, paper_sigma(PRIVACY)
    radius = (2 * math.sqrt(4) * sigma / users + 1 / math.sqrt(users)) * math.sqrt(2 * math.log(10**6))
    assert paper.stages[3].width == pytest.approx(2 * radius)
    fixed = FixedBatches(arms=2, horizon=10**6, privacy=PRIVACY, method="coins", constants="paper")
    assert fixed.stages[0].batch_users == math.ceil(sigma**2) and {s.batches for s in fixed.stages} == {1}
    assert paper.guarantee().proved_delta < 1e-6


def test_our_widths_are_far_below_the_papers() -> None:
    asked = {"arms": 10, "horizon": 10**6, "privacy": PRIVACY, "method": "coins", "first_batch": 64}
    ours, paper = (DoublingBatches(**asked, constants=constants) for constants in ("exact", "paper"))
    for mine, theirs in zip(ours.stages, paper.stages, strict=True):
        assert 3 * mine.width < theirs.width
