"""The counter with carried noise: by law and by messages, step by step, bounds that hold, and broken chains."""

import json
from functools import lru_cache

import numpy as np
import pytest
from scipy import special

from harness import carried
from shuffledp.continual.carried.counter import VOID, CarriedCounter, CarriedState
from shuffledp.continual.carried.planner import plan_carried, plan_of
from shuffledp.continual.carried.shape import CarriedShape
from shuffledp.continual.request import CountRequest
from shuffledp.errors import BrokenBatchError, ParameterError
from shuffledp.messages import Batch
from shuffledp.privacy import Privacy
from shuffledp.protocols.domains.summed import BITS, OneHot
from shuffledp.randomness import RandomBits
from shuffledp.testing.statistics import assert_law, assert_not_law

EVEN = np.full(20, 1 / 20)
DOMAINS = {"bits": BITS, "categories": OneHot(5)}


@lru_cache(maxsize=16)
def small(windows: int, domain: str = "bits", honest_fraction: float = 1.0) -> CarriedCounter:
    asked = CountRequest(
        users=118,
        shufflers=windows,
        privacy=Privacy(4, 1e-2),
        domain=DOMAINS[domain],
        honest_fraction=honest_fraction,
    )
    return plan_of(asked, windows, 10).learner()


def values_of(counter: CarriedCounter) -> np.ndarray:
    return np.arange(counter.plan.users) * 7 % (5 if counter.plan.domain.coordinates > 1 else 2)


def noise_of(counter: CarriedCounter) -> np.ndarray:
    """The covariance of all running sums when everybody draws its part."""
    plan = counter.plan
    people = np.diff(plan.schedule.users_by(np.arange(plan.weights.slots + 1)))
    honest = np.array([max(1, int(plan.honest_fraction * each + 1e-9)) for each in people.tolist()])
    return carried.covariance(people / honest * plan.weights.noise_variances, plan.weights.slots)


def errors_of(counter: CarriedCounter, runs: int, seed: int, *, fast: bool) -> np.ndarray:
    """In steps, after every slot: a row a run and coordinate."""
    values = values_of(counter)
    plan = counter.plan
    truth = np.cumsum(plan.domain.to_steps(plan.check_values(values), bits=RandomBits.seeded(0)), axis=0)
    ends = plan.schedule.users_by(np.arange(1, plan.weights.slots + 1)) - 1
    found = [
        counter.run(values, bits=bits, fast=fast).prefixes[1:] - truth[ends]
        for bits in RandomBits.seeded(seed).spawn(runs)
    ]
    return np.array([row for each in found for row in np.atleast_2d(each.T)])


LAWS = [(2, "bits", 1.0), (3, "bits", 0.5), (4, "bits", 1.0), (3, "categories", 1.0)]


@pytest.mark.parametrize(("windows", "domain", "honest_fraction"), LAWS)
def test_messages_and_law_both_have_the_explicit_law(windows: int, domain: str, honest_fraction: float) -> None:
    """Whitened by explicit matrices, errors at all times are independent standard Gaussians, either way."""
    counter = small(windows, domain, honest_fraction)
    noise = noise_of(counter)
    runs = 160 if domain == "bits" else 32
    for fast, seed in ((True, 1), (False, 2)):
        found = errors_of(counter, runs, seed, fast=fast)
        white = carried.whitened(counter.plan.weights, noise, found)
        assert_law(carried.cells(white, 20), 0, EVEN)
        assert_law(carried.cells(carried.mixed(white), 20), 0, EVEN)
        # With a fifth less noise they would be like this.
        assert_not_law(carried.cells(0.8 * white, 20), 0, EVEN)


def test_shares_of_one_user_that_are_drawn_by_themselves_are_told_apart(monkeypatch) -> None:
    """The wrong twin: every window's number with its own draw of the same noise."""
    counter = small(3)
    contributions = CarriedShape._contributions

    def twin(plan, steps, slots, bits):
        several = [contributions(plan, steps, slots, bits) for _ in range(plan.shufflers_used)]
        return np.stack([each[:, place] for place, each in enumerate(several)], axis=1)

    monkeypatch.setattr(CarriedShape, "_contributions", twin)
    found = errors_of(counter, 20, 3, fast=False)
    assert_not_law(carried.cells(carried.whitened(counter.plan.weights, noise_of(counter), found), 20), 0, EVEN)


@pytest.mark.parametrize(("windows", "domain"), [(2, "bits"), (3, "bits"), (4, "categories")])
def test_step_by_step_and_resumed_as_in_one_run(windows: int, domain: str) -> None:
    """A server that asks, randomizes and tells by hand, and saves its state after every slot, reads the same."""
    counter = small(windows, domain)
    values = values_of(counter)
    expected = counter.run(values, bits=RandomBits.seeded(5), fast=False)
    clients, _ = RandomBits.seeded(5).spawn(2)
    state, held = counter.start(), {}
    while (cohort := counter.ask(state)) is not None:
        came = np.arange(state.users, state.users + cohort.users)
        sent = counter.plan.prepare(values[came], bits=clients, positions=came)
        assert len(cohort.batches) <= counter.plan.shufflers_used
        closed = {}
        for batch in cohort.batches:
            report = batch.mechanism.randomize(sent, batch.first_seat, bits=clients)
            held.setdefault(batch.level, []).append(report)
            if batch.first_seat + cohort.users == batch.mechanism.users:
                reports = held.pop(batch.level)
                labels = None
                if reports[0].labels is not None:
                    labels = np.concatenate([each.labels for each in reports])
                whole = Batch(np.concatenate([each.payloads for each in reports]), batch.mechanism.users, labels)
                told = batch.mechanism.read(batch.mechanism.tally(whole))[0]
                closed[batch.level] = counter.told_from(json.loads(json.dumps(counter.told_document(told))))
        state = counter.tell(state, cohort.users, closed)
        state = counter.resume(json.loads(json.dumps(state.document())))
        np.testing.assert_array_equal(counter.estimate(state).value, expected.at(state.users).value)
    assert state.users == counter.plan.users and not held


def test_users_come_one_by_one() -> None:
    """Estimates between two slots go on by the rate, whoever told how many came."""
    counter = small(3)
    expected = counter.run(values_of(counter), bits=RandomBits.seeded(6), fast=False)
    slots, schedule = counter.plan.weights.slots, counter.plan.schedule
    windows = np.diff(np.linalg.solve(carried.errors(counter.plan.weights), expected.prefixes[1:]), prepend=0.0)
    state = counter.start()
    for user in range(counter.plan.users):
        cohort = counter.ask(state)
        closing = cohort.closing(1)
        slot, _ = schedule.place_of(user)
        state = counter.tell(state, 1, dict.fromkeys(closing, round(windows[slot])))
        assert counter.estimate(state).value == pytest.approx(expected.at(user + 1).value, abs=1e-6)
    assert schedule.place_of(state.users) == (slots, 0)


# --- the bound -------------------------------------------------------------------------------


USERS, RUNS = 20_000, 200
LATE = np.zeros(USERS, dtype=np.uint8)
LATE[-700:-300] = 1
HARD = {
    "ones": np.ones(USERS, dtype=np.uint8),
    "zeros": np.zeros(USERS, dtype=np.uint8),
    "blocks": (np.arange(USERS) // 40 % 2).astype(np.uint8),
    "late": LATE,
}
# With probability 1 - 1e-9 a bound of 95% fails no more often than this in so many runs.
MOST = next(count for count in range(RUNS) if special.bdtrc(count, RUNS, 0.05) <= 1e-9)


@lru_cache(maxsize=4)
def large(windows: int) -> CarriedCounter:
    counter = plan_carried(users=USERS, shufflers=windows, privacy=Privacy(1, 1e-6)).learner()
    assert counter.plan.shufflers_used == windows
    return counter


@pytest.mark.parametrize("kind", HARD)
@pytest.mark.parametrize("windows", [3, 4])
def test_the_bound_holds_over_the_whole_horizon(windows: int, kind: str) -> None:
    counter, values = large(windows), HARD[kind]
    plan, truth = counter.plan, np.cumsum(values)
    times = np.arange(1, USERS + 1)
    slots, since = plan.schedule.place_of(times)
    # What holds at the end of a slot, and after it until the next one ends.
    ends = plan.schedule.users_by(np.arange(plan.weights.slots + 1))
    closed = np.array([plan.bound_at(int(end)) for end in ends])
    between = np.array([plan.bound_at(int(end) + 1) for end in ends[:-1]] + [np.inf])
    limits = np.where(since == 0, closed[slots], between[slots])
    failed = np.zeros(4, dtype=int)
    for bits in RandomBits.seeded(11).spawn(RUNS):
        off = np.abs(counter.run(values, bits=bits).every() - truth)
        bounds = (plan.error_bound, limits, 0.8 * plan.error_bound, 0.8 * limits)
        failed += [bool((off > bound).any()) for bound in bounds]
    assert failed[0] <= MOST and failed[1] <= MOST
    # Wrong twins: four fifths of either bound fail far too often.
    assert failed[2] > MOST and failed[3] > MOST
    assert closed[0] == 0 and (np.diff(closed[1:]) > -1e-9 * closed[-1]).mean() > 0.5


def test_one_estimates_bound_is_below_where_its_noise_is() -> None:
    plan = large(4).plan
    first = plan.bound_at(plan.slot_users)
    assert first < plan.error_bound
    assert max(plan.bound_at(int(end)) for end in plan.schedule.users_by(np.arange(1, 1250, 50))) < 1.15 * (
        plan.error_bound
    )


# --- a window that cannot be read ------------------------------------------------------------


@pytest.mark.parametrize("domain", ["bits", "categories"])
@pytest.mark.parametrize("void", [0, 4])
def test_a_void_window_breaks_the_chain_and_the_bound_says_so(domain: str, void: int) -> None:
    counter = small(3, domain)
    plan, schedule, size = counter.plan, counter.plan.schedule, counter.plan.domain.coordinates
    # Nobody has anything to count before, and everybody the last category after, or the first; without noise.
    for before, after in ((0, 1), (1, 0), (1, 1)):
        state = counter.start()
        for slot in range(plan.weights.slots):
            cohort = counter.ask(state)
            steps = np.zeros((plan.weights.slots, size), dtype=np.int64)
            people = np.diff(schedule.users_by(np.arange(plan.weights.slots + 1)))
            chosen = np.where(np.arange(plan.weights.slots) < void, before, after)
            places = chosen if size > 1 else np.zeros_like(chosen)
            steps[np.arange(plan.weights.slots), places] = people * (chosen if size == 1 else 1)
            windows = carried.difference(plan.weights.slots) @ carried.signal(plan.weights) @ steps
            told = VOID if slot == void else np.round(windows[slot]).astype(np.int64)
            told = counter.told_from(json.loads(json.dumps(counter.told_document(told))))
            state = counter.tell(state, cohort.users, dict.fromkeys(cohort.closing(cohort.users), told))
            state = counter.resume(json.loads(json.dumps(state.document())))
            truth = np.atleast_1d(steps[: slot + 1].sum(axis=0))
            estimate = counter.estimate(state)
            assert np.abs(np.atleast_1d(estimate.value) - truth).max() <= estimate.bound + 1e-9
            known = int(schedule.users_by(min(slot + 1, void)))
            if slot >= void:
                assert state.broken == known
                assert estimate.bound > plan.error_bound or state.users - known < plan.slot_users
            else:
                assert state.broken is None and estimate.bound == plan.error_bound
        if void and before == after:
            # The rate before goes on, so that a steady stream is estimated well.
            np.testing.assert_allclose(np.atleast_1d(estimate.value), truth, atol=1e-6)


def test_a_missing_message_voids_its_window() -> None:
    counter = small(3)
    mechanism = counter.plan.mechanism(int(counter.plan.schedule.users_by(1)))
    sent = counter.plan.prepare(
        np.zeros(mechanism.users), bits=RandomBits.seeded(1), positions=np.arange(mechanism.users)
    )
    reports = mechanism.randomize(sent, 0, bits=RandomBits.seeded(2))
    assert isinstance(mechanism.read(mechanism.tally(Batch(reports.payloads, mechanism.users)))[0], int)
    with pytest.raises(BrokenBatchError):
        mechanism.read(mechanism.tally(Batch(reports.payloads[1:], mechanism.users)))
    assert counter.stand_in(mechanism) == VOID


def test_a_state_belongs_to_its_plan() -> None:
    counter, other = small(3), small(3, honest_fraction=0.5)
    state = counter.start()
    with pytest.raises(ParameterError, match="state"):
        other.ask(state)
    first = counter.ask(state)
    for users, closed in ((0, {}), (1.5, {}), (True, {}), (10**6, {}), (first.users, {}), (1, {1: 0})):
        with pytest.raises(ParameterError, match=r"users|closed"):
            counter.tell(state, users, closed)
    for told in (1.5, np.array([1, 2]), "x"):
        with pytest.raises(ParameterError, match="closed"):
            counter.tell(state, first.users, {1: told})
    document = state.document()
    for change in (
        {"users": -1},
        {"users": 2.5},
        {"users": 10**6},
        {"memory": [[0.0]]},
        {"memory": [[0.0], [float("nan")]]},
        {"memory": "x"},
        {"total": [0.0, 0.0]},
        {"broken": 5},
        {"broken": -1},
        {"broken": "x"},
    ):
        with pytest.raises(ParameterError):
            counter.ask(CarriedState.from_document(document | change))
