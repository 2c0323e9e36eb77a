"""LinUCB with noise that is carried from window to window: the exact law of sums, and what all visits show."""

import json
import math
from dataclasses import replace
from functools import cache
from itertools import combinations, product

import numpy as np
import pytest
from scipy import stats

from shuffledp.accounting.filter_designs import design_for
from shuffledp.accounting.gaussian import GaussianPair, gaussian_standard_deviation
from shuffledp.continual.carried.counter import VOID
from shuffledp.continual.carried.plan import CarriedPlan
from shuffledp.errors import InfeasibleError, ParameterError, ShuffleDPError
from shuffledp.learn.bandits.linear.carried import carried_plan, carried_schedules, extremes
from shuffledp.learn.bandits.linear.concurrent import ConcurrentLinUCB, best_schedule
from shuffledp.learn.bandits.linear.planning import planning_bound
from shuffledp.learn.bandits.linear.policy import LinearState
from shuffledp.learn.bandits.linear.setting import LinearSetting
from shuffledp.privacy import Privacy
from shuffledp.randomness import RandomBits
from shuffledp.references.bandits.buffered import BufferedLinUCB
from shuffledp.references.bandits.catalogue import linear_policy

FALSE_ALARM = 1e-9
PRIVACY = Privacy(1.0, 0.01)
ONE = LinearSetting(users=600, dimension=1)


@cache
def policy_of(visits: int = 1, windows: int = 3, size: int = 50) -> ConcurrentLinUCB:
    plan = carried_plan(ONE, PRIVACY, 4, visits, windows, size)
    return ConcurrentLinUCB(setting=ONE, privacy=PRIVACY, plan=plan, visits=visits)


def drawn_covariance(plan: CarriedPlan) -> np.ndarray:
    """Of all running sums' noise, from what the users of each slot draw."""
    slots = plan.weights.slots
    difference = np.eye(slots) - np.eye(slots, k=-1)
    found, pattern = np.zeros((slots, slots)), np.eye(slots)
    for row in plan.weights.noise_variances:
        found += pattern * row @ pattern.T
        pattern = pattern @ difference
    return found


def columns(plan: CarriedPlan) -> np.ndarray:
    """What a step of a user of each slot adds to all running sums: a column a slot."""
    weights = plan.weights
    found = np.zeros((weights.slots, weights.slots))
    for slot in range(weights.slots):
        taps = weights.taps[: weights.slots - slot]
        found[slot : slot + len(taps), slot] = taps * weights.slot_weights[slot]
    return np.cumsum(found, axis=0)


def longest(plan: CarriedPlan, visits: int, part: float = 1.0) -> float:
    """By how many deviations a user of so many visits moves everything, wherever they fall, each by the same step."""
    whitened = np.linalg.solve(np.linalg.cholesky(part * drawn_covariance(plan)), columns(plan))
    slots = range(plan.weights.slots)
    return max(
        float(np.linalg.norm(whitened[:, list(chosen)] @ np.array([1.0, *signs])))
        for chosen in combinations(slots, visits)
        for signs in product((1.0, -1.0), repeat=visits - 1)
    )


@pytest.mark.parametrize("visits", [1, 2, 3])
@pytest.mark.parametrize("windows", [2, 3, 4])
def test_no_visits_show_more_than_is_counted(visits: int, windows: int) -> None:
    policy = policy_of(visits, windows)
    plan = policy.plan
    length = math.floor(ONE.joint.apart / plan.domain.step)
    shift = longest(plan, visits) * length
    terms = {term.name: term.value for term in policy.guarantee().terms}
    exact = GaussianPair(shift).delta(PRIVACY.epsilon)
    assert exact <= terms["noise"] and sum(terms.values()) <= PRIVACY.delta
    # Visits in a row come close to what is counted.
    assert shift > 0.93 * plan.weights.visits_shift(visits) * length
    # The twin with a fifth less noise tells too much, and so do the visits of whom noise for one less was made.
    assert GaussianPair(longest(plan, visits, 0.64) * length).delta(PRIVACY.epsilon) > PRIVACY.delta
    if visits > 1:
        fewer = policy_of(visits - 1, windows).plan
        moved = longest(fewer, visits) * math.floor(ONE.joint.apart / fewer.domain.step)
        assert GaussianPair(moved).delta(PRIVACY.epsilon) > PRIVACY.delta


@pytest.mark.parametrize("visits", [1, 4])
def test_too_little_noise_is_refused(visits: int) -> None:
    policy = policy_of(visits)
    weights = policy.plan.weights
    begins = tuple(tuple(0.64 * each for each in row) for row in weights.begins)
    with pytest.raises(ShuffleDPError, match="delta"):
        quiet = replace(policy.plan, weights=replace(weights, variance=0.64 * weights.variance, begins=begins))
        replace(policy, plan=quiet)
    with pytest.raises(ParameterError, match="delta must be at most"):
        replace(policy, visits=visits + 1)


def test_each_visit_rounds_anew_and_shares_are_counted_once() -> None:
    plan = carried_plan(replace(ONE, dimension=12), PRIVACY, 4, 3, 3, 50)
    once, often = ({term.name: term.value for term in plan.visit_terms(visits, 1.0)} for visits in (1, 3))
    assert often["rounding"] == pytest.approx(3 * once["rounding"], abs=0) and once["rounding"] > 0
    assert often["transport"] == once["transport"] and often["smoothing"] == once["smoothing"]
    assert once == {term.name: term.value for term in plan.delta_terms(1.0, plan.honest_users)}
    with pytest.raises(ParameterError, match="visits"):
        plan.visit_terms(0, 1.0)


def test_the_gaussian_law_is_that_of_sums_with_rounding_noise() -> None:
    """Exactly, by dense matrices: noise of variance 4 in every running sum, which the offsets then take off again."""
    plan = policy_of().plan
    weights, slots, failure = plan.weights, plan.weights.slots, 1e-4
    responses = np.column_stack([weights.decoded(np.append(column, 0.0)[:slots]) for column in _differences(slots)])
    deviations, offsets = (each[1:] for each in plan.gaussian_noise(slots, failure))
    together = np.sqrt(np.diag(responses @ (drawn_covariance(plan) + 4 * np.eye(slots)) @ responses.T))
    assert (together <= deviations).all() and (deviations <= 1.001 * together).all()
    # What was added is counted as a part of every estimate's variance, and passes the offsets no more often than said.
    counted = np.sqrt(weights.rounding_part * weights.prefix_variances)
    assert (2 * np.linalg.norm(responses, axis=1) <= counted).all()
    passed = 2 * plan.domain.coordinates * float(stats.norm.sf(offsets / counted).sum())
    assert 0.99 * failure < passed <= failure
    first, apart = plan.gaussian_noise(5, failure)
    assert first.tolist() == [0.0, *deviations[:5]] and apart.tolist() == [0.0, *offsets[:5]]


def _differences(slots: int) -> list[np.ndarray]:
    """Windows of a unit of noise in each running sum."""
    return list((np.eye(slots) - np.eye(slots, k=-1)).T)


def test_drawn_noise_has_the_deviations_of_the_rule() -> None:
    policy, runs = policy_of(), 4000
    noise = np.array(list(policy.sample_noise((runs, 2), bits=RandomBits.seeded(1))))[..., 0] * policy.step
    assert len(noise) == policy.releases
    low, high = stats.chi2.ppf([FALSE_ALARM / 100, 1 - FALSE_ALARM / 100], runs)
    ratio = (noise**2).sum(axis=1) / policy.release_noise.deviations[1:] ** 2
    assert ((low < ratio) & (ratio < high)).all()
    assert not ((low < 0.64 * ratio) & (0.64 * ratio < high)).any()


@pytest.mark.parametrize(("users", "epsilon", "visits"), [(20_000, 0.2, 1), (20_000, 10.0, 1), (3000, 1.0, 3)])
def test_no_other_windows_have_a_smaller_bound(users: int, epsilon: float, visits: int) -> None:
    setting, privacy = LinearSetting(users=users, dimension=5, nonnegative=True), Privacy(epsilon, 0.1)
    deviation = gaussian_standard_deviation(privacy, setting.joint.apart)
    found = carried_schedules(setting, privacy, 4, visits)
    assert [each[1] for each in sorted(found, key=lambda each: each[1])] == [2, 3, 4] and list(found) == sorted(found)
    for bound, windows, _ in found:
        every = []
        for size in range(2 * windows + 1, users // (2 * windows), users // 500):
            slots = -(-users // size)
            times = design_for(windows, slots).visits_length(slots, visits)
            ends = times * extremes(_deviations(windows, slots))
            every.append(planning_bound(setting, deviation * ends, size, users // size))
        assert bound <= 1.003 * min(every)


@cache
def _deviations(windows: int, slots: int) -> np.ndarray:
    return design_for(windows, slots).deviations(slots)


@pytest.mark.parametrize("epsilon", [0.2, 1.0, 10.0])
def test_carried_where_its_bound_is_smaller_and_near_the_best_curator(epsilon: float) -> None:
    setting, privacy = LinearSetting(users=20_000, dimension=5, nonnegative=True), Privacy(epsilon, 0.1)
    chosen, named, old = (
        linear_policy(f"{name}-4", setting, privacy) for name in ("concurrent", "carried", "independent")
    )
    assert chosen.fingerprint == named.fingerprint != old.fingerprint
    assert chosen.rule.regret_bound < 0.85 * old.rule.regret_bound
    curator = BufferedLinUCB.planned(setting, privacy)
    assert chosen.rule.regret_bound < 1.06 * curator.rule.regret_bound
    assert chosen.guarantee().holds and "false people in a row" in chosen.guarantee().trusted


def test_independent_where_nothing_can_be_carried_or_visits_are_many() -> None:
    assert linear_policy("concurrent-1", ONE, PRIVACY).plan.is_independent  # type: ignore[attr-defined]
    many = ConcurrentLinUCB.planned(replace(ONE, users=20_000), PRIVACY, visits=50)
    assert many.plan.is_independent
    assert best_schedule(many.setting, PRIVACY, 4, 50)[0] < carried_schedules(many.setting, PRIVACY, 4, 50)[0][0]
    with pytest.raises(InfeasibleError, match="too few to carry noise"):
        ConcurrentLinUCB.planned(replace(ONE, users=8), PRIVACY, noise="carried")
    paper = replace(ONE, constants="paper")
    assert linear_policy("concurrent-4", paper, PRIVACY).plan.is_independent  # type: ignore[attr-defined]


def test_slots_have_one_size() -> None:
    plan = carried_plan(ONE, PRIVACY, 4, 1, 3, 50)
    short = replace(plan, users=plan.users - 1)
    with pytest.raises(ParameterError, match="slot_users must be 50 in a bandit's plan"):
        ConcurrentLinUCB(setting=replace(ONE, users=599), privacy=PRIVACY, plan=short)
    # A horizon that ends inside a slot has no release of that slot.
    assert carried_plan(replace(ONE, users=601), PRIVACY, 4, 1, 3, 50).users == 650
    laplace = ConcurrentLinUCB.planned(ONE, PRIVACY, noise="independent").plan
    with pytest.raises(ParameterError, match="plan must be one of running sums"):
        replace(policy_of(), plan=laplace.domain)  # type: ignore[arg-type]


def test_after_a_void_window_the_last_good_model_stays() -> None:
    policy = policy_of()
    state = policy.start()
    for _ in range(3):
        state = policy.tell(state, 50, dict.fromkeys(policy.ask(state).closing(50), np.arange(2)))  # type: ignore[union-attr]
    known = policy.estimate(state).document()
    level = next(iter(policy.ask(state).closing(50)))  # type: ignore[union-attr]
    later = policy.tell(state, 50, {level: VOID})
    later = policy.tell(later, 50, dict.fromkeys(policy.ask(later).closing(50), np.arange(2)))  # type: ignore[union-attr]
    assert later.users == 250 and policy.estimate(later).document() == known
    assert LinearState.from_document(json.loads(json.dumps(later.document()))) == later
    assert math.isfinite(policy.rule.regret_bound)
