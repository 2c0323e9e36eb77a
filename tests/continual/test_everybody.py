"""Everybody is counted in the end, for nothing; and users since the last release count by the rate before them."""

import dataclasses
import json

import numpy as np
import pytest

from shuffledp.continual.counter import Counter, CounterState
from shuffledp.continual.estimates import RunningEstimates
from shuffledp.continual.plan import CounterPlan
from shuffledp.errors import ParameterError
from shuffledp.privacy import Privacy
from shuffledp.protocols.catalogue import plan_from_document
from shuffledp.protocols.domains.summed import OneHot
from shuffledp.randomness import RandomBits
from shuffledp.testing.statistics import assert_deviation, assert_mean, assert_same_law

PRIVACY = Privacy(1, 1e-6)


def opened(plan: CounterPlan) -> CounterPlan:
    return dataclasses.replace(plan, counts_everybody=False)


@pytest.mark.parametrize(
    ("users", "shufflers", "asked"),
    [
        (10_000, 3, {}),
        (12_345, 4, {}),
        (6007, 3, {"noise": "coins"}),
        (7001, 4, {"domain": OneHot(5)}),
        (8000, 3, {"honest_fraction": 0.8}),
    ],
)
def test_the_last_batch_ends_with_the_last_user_for_nothing(users: int, shufflers: int, asked: dict) -> None:
    plan = CounterPlan.plan(users=users, shufflers=shufflers, privacy=PRIVACY, **asked)
    open_plan = opened(plan)
    assert plan.counts_everybody and plan.uncounted == 0 < open_plan.uncounted
    assert plan.error_bound == open_plan.error_bound and plan.slot_users == open_plan.slot_users
    assert plan.messages_per_user_max <= 1.25 * open_plan.messages_per_user_max
    assert plan.guarantee().delta <= 1e-6
    # What a user joins, user by user: never more batches than shufflers, never more messages than are said.
    routing = plan.layout
    for slot in range(plan.schedule.batches):
        joined = plan.learner()._joined(slot)
        sent = sum(routing.messages[plan.schedule.batch_users(first, end)] for _, first, end in joined)
        assert len(joined) <= plan.shufflers_used and sent <= plan.messages_per_user_max


def test_what_cannot_be_closed_says_how_many_stay_out() -> None:
    # A slot of 36 users instead of 35 would be needed, and half a user more in the bound.
    plan = CounterPlan.plan(users=10_000, shufflers=3, privacy=PRIVACY, noise="coins")
    assert not plan.counts_everybody and plan.uncounted == 10_000 % plan.slot_users > 0
    assert f"the last {plan.uncounted}" in dict(plan.facts())["once all have come"]
    closed = dataclasses.replace(plan, counts_everybody=True)
    assert closed.uncounted == 0 and closed.error_bound == plan.error_bound + 0.5
    with pytest.raises(ParameterError, match="counts_everybody"):
        dataclasses.replace(plan, counts_everybody=1)
    assert plan.document()["uncounted"] == plan.uncounted and "counts_everybody" not in plan.document()


def test_documents_say_it_and_those_of_before_load() -> None:
    plan = CounterPlan.plan(users=5000, shufflers=3, privacy=PRIVACY)
    document = json.loads(json.dumps(plan.document()))
    assert document["counts_everybody"] is True and plan_from_document(document) == plan
    with pytest.raises(ParameterError, match="uncounted"):
        plan_from_document(document | {"uncounted": 3})
    # 0.1.0 knew neither key.
    old = opened(plan).document()
    del old["uncounted"]
    assert plan_from_document(old) == opened(plan) and old["fingerprint"] != plan.fingerprint


@pytest.mark.parametrize("estimator", ["completed", "combined"])
def test_the_estimate_of_everybody_holds_everybody(estimator: str) -> None:
    """By law and by messages alike, with the deviation that is claimed; a counter that leaves users out is off."""
    asked = {"users": 401, "shufflers": 3, "privacy": Privacy(2, 1e-3), "noise": "coins", "estimator": estimator}
    counter = Counter.of(**asked)
    plan = counter.plan
    assert plan.counts_everybody and 401 % plan.slot_users
    values = np.ones(401, dtype=np.uint8)
    values[:200] = 0
    by_law = [counter.run(values, bits=bits).at(401) for bits in RandomBits.seeded(1).spawn(1000)]
    by_messages = [counter.run(values, bits=bits, fast=False).at(401) for bits in RandomBits.seeded(2).spawn(60)]
    errors = [estimate.value - 201 for estimate in by_law]
    assert_mean(errors, 0.0, by_law[0].standard_error)
    assert_deviation(errors, by_law[0].standard_error)
    assert_same_law(errors[:60], [estimate.value - 201 for estimate in by_messages])
    # Of 200 zeros and then ones, the rate alone says something else.
    open_counter = Counter(opened(plan))
    left_out = [open_counter.run(values, bits=bits).at(401).value - 201 for bits in RandomBits.seeded(3).spawn(100)]
    assert np.mean(left_out) < -0.1 * open_counter.plan.uncounted


def test_a_counter_is_saved_and_goes_on_to_the_very_end() -> None:
    counter = Counter.of(users=401, shufflers=3, privacy=Privacy(2, 1e-3), noise="coins")
    state = counter.start()
    while (cohort := counter.ask(state)).users:
        # Batches that say that everybody has a 1.
        closed = {level: batch.mechanism.users for level, batch in cohort.closing(cohort.users).items()}
        state = counter.tell(state, cohort.users, closed)
        state = CounterState.from_document(json.loads(json.dumps(state.document())))
    assert state.users == 401 and counter.estimate(state).value == 401


def _worst_since(plan: CounterPlan, values: np.ndarray, run: RunningEstimates) -> float:
    """How much of the error at any time is not the noise of the prefix: it must never pass the slot's part."""
    sums = np.concatenate((np.zeros((1, *np.shape(values)[1:])), np.cumsum(values, axis=0)))
    slots, _ = plan.schedule.place_of(np.arange(1, len(values) + 1))
    noise = run.prefixes - sums[run.times]
    return float(np.abs(run.every() - sums[1:] - noise[slots]).max())


@pytest.mark.parametrize("kind", ["ones", "zeros", "then ones", "then zeros", "against the rate", "random"])
def test_whoever_comes_the_rate_keeps_the_bound(kind: str) -> None:
    """Exactly: without the prefix's noise no estimate is off by more than (m - 1)/2, as with one half for everybody."""
    plan = CounterPlan.plan(users=6000, shufflers=2, privacy=PRIVACY)
    m = plan.slot_users
    time = np.arange(6000)
    values = {
        "ones": np.ones(6000, dtype=np.uint8),
        "zeros": np.zeros(6000, dtype=np.uint8),
        "then ones": (time >= 3000 - 3000 % m).astype(np.uint8),
        "then zeros": (time < 3000 - 3000 % m).astype(np.uint8),
        # Slot after slot the opposite of what most were before.
        "against the rate": ((time // m) % 2).astype(np.uint8),
        "random": (np.random.default_rng(1).random(6000) < 0.1).astype(np.uint8),
    }[kind]
    for bits in RandomBits.seeded(4).spawn(20):
        assert _worst_since(plan, values, Counter(plan).run(values, bits=bits)) <= (m - 1) / 2 + 1e-9


def test_the_rate_keeps_the_bound_of_categories_too() -> None:
    plan = CounterPlan.plan(users=4000, shufflers=3, privacy=Privacy(2, 1e-6), domain=OneHot(4))
    codes = np.arange(4000) // plan.slot_users % 4
    run = Counter(plan).run(codes, bits=RandomBits.seeded(1))
    assert _worst_since(plan, np.eye(4)[codes], run) <= (plan.slot_users - 1) * plan.domain.reach + 1e-9
    assert run.at(1000).value.tolist() == run.at_times(np.array([1000]))[0].tolist()


def test_what_the_rate_buys() -> None:
    """Of few ones that come evenly, half of the mean error of the users since goes; the largest stays."""
    plan = CounterPlan.plan(users=20_000, shufflers=2, privacy=PRIVACY)
    values = (np.random.default_rng(2).random(20_000) < 0.05).astype(np.uint8)
    sums = np.cumsum(values)
    # No noise at all: the true sums where slots close.
    schedule = plan.schedule
    prefixes = np.concatenate(([0], sums))[schedule.users_by(np.arange(schedule.batches + 1))]
    run = RunningEstimates(plan, 20_000, prefixes)
    times = np.arange(1, 20_001)
    slots, since = schedule.place_of(times)
    by_rate, by_half = np.abs(run.every() - sums), np.abs(prefixes[slots] + since / 2 - sums)
    late = slots >= 5
    assert by_rate[late].mean() < 0.6 * by_half[late].mean()
    assert by_rate.max() <= (plan.slot_users - 1) / 2
