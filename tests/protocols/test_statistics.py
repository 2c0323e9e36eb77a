import json
import math
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import special

from shuffledp.audit.trials import audit_plan
from shuffledp.errors import DataError, ParameterError
from shuffledp.estimates import VectorEstimate
from shuffledp.messages import Batch
from shuffledp.privacy import Privacy
from shuffledp.protocols.bounded_sum import BoundedSum
from shuffledp.protocols.catalogue import PROTOCOLS, plan_from_document
from shuffledp.protocols.ledger_entries import entry_of
from shuffledp.protocols.statistics import Mean, Moments, WeightedMean
from shuffledp.protocols.statistics.moments import HEIGHT, RADIUS
from shuffledp.protocols.tallies import Tally
from shuffledp.protocols.vector_sum import VectorSum
from shuffledp.randomness import RandomBits
from shuffledp.simulation.run import simulate
from shuffledp.testing.protocols import check_protocol
from shuffledp.testing.statistics import assert_deviation, assert_mean

PRIVACY = Privacy(1, 1e-6)
USERS, RUNS = 60, 3000
LOW, HIGH = -2.0, 6.0
X = np.linspace(-1.3, 5.9, USERS)
W = np.linspace(0.1, 3.0, USERS) ** 2 / 3
METHODS = ["shares", "bits"]


def moments_plan(method: str = "auto", users: int = USERS) -> Moments:
    return Moments.plan(users=users, privacy=PRIVACY, low=LOW, high=HIGH, method=method)


def weighted_plan(method: str = "auto", users: int = USERS) -> WeightedMean:
    return WeightedMean.plan(users=users, privacy=PRIVACY, low=LOW, high=HIGH, largest_weight=3, method=method)


def runs(plan, points: np.ndarray, seed: int, count: int = RUNS) -> list:
    bits = RandomBits.seeded(seed)
    return [plan.sample_estimate(points, bits=bits) for _ in range(count)]


def assert_covered(intervals: list[tuple[float, float]], truth: float, *, false_alarm: float = 1e-9) -> None:
    """Fail if more intervals miss than 5% each allow: a binomial tail."""
    missed = sum(not low - 1e-9 <= truth <= high + 1e-9 for low, high in intervals)
    assert special.bdtrc(missed - 1, len(intervals), 0.05) >= false_alarm, f"{missed} of {len(intervals)} miss"


def both(estimate) -> tuple[float, float]:
    return estimate.lower, estimate.upper


# --- means -----------------------------------------------------------------------------------


@pytest.mark.parametrize("method", METHODS)
def test_a_mean_is_unbiased_with_its_error_and_bound(method: str) -> None:
    mean = Mean.plan(users=USERS, privacy=PRIVACY, low=LOW, high=HIGH, method=method)
    answers = [mean.from_estimate(each) for each in runs(mean.sum_plan, X, 1)]
    assert_mean([a.value for a in answers], X.mean(), mean.standard_error)
    assert_deviation([a.value for a in answers], mean.standard_error)
    assert_covered([both(a) for a in answers], X.mean())
    with pytest.raises(AssertionError):
        assert_covered([(a.value - a.bound / 2, a.value + a.bound / 2) for a in answers], X.mean())
    assert answers[0].standard_error == mean.standard_error and answers[0].bound == mean.error_bound


def test_a_mean_is_its_sum_over_the_users_and_keeps_the_notes() -> None:
    asked = {"users": 50, "privacy": PRIVACY, "low": 0, "high": 1, "method": "bits", "honest_fraction": 0.5}
    mean = Mean.plan(**asked)
    assert mean.sum_plan == BoundedSum.plan(**asked)
    total = simulate(mean.sum_plan, np.linspace(0, 2, 50), bits=RandomBits.seeded(2), clip=True)
    answer = mean.from_estimate(replace(total, dropped=3))
    assert answer.value * 50 == pytest.approx(total.value)
    assert (answer.clipped, answer.dropped, answer.simulated, answer.confidence) == (25, 3, True, 0.95)


# --- the ball --------------------------------------------------------------------------------


def test_the_ball_is_the_smallest_and_the_scale_the_best() -> None:
    u = np.linspace(-1, 1, 401)

    def radius(height: float) -> float:
        centres = np.linspace(0.8, 1.4, 1201)
        # The curve's points farthest from any centre on the axis, by brute force.
        return float(np.sqrt(np.max(u**2 + (height * u**2 - centres[:, None]) ** 2, axis=1)).min())

    assert radius(HEIGHT) == pytest.approx(RADIUS, abs=1e-3)
    assert radius(1.0) == pytest.approx(1.0, abs=1e-3)
    heights = np.linspace(1.0, 2.0, 101)
    variances = [radius(h) ** 2 * (1 + 1 / h**2) for h in heights]
    assert heights[int(np.argmin(variances))] == pytest.approx(HEIGHT, abs=0.03)


def test_replacing_a_value_moves_less_than_the_ball_is_wide() -> None:
    moments, weighted = moments_plan(), weighted_plan()
    grid = np.linspace(LOW, HIGH, 41)
    values, weights = (each.ravel() for each in np.meshgrid(grid, np.linspace(0, 3, 11)))
    for points in (moments.encode(grid), weighted.encode(values, weights)):
        apart = np.linalg.norm(points[:, None] - points[None], axis=2).max()
        assert apart == pytest.approx(2.0) and apart < 2 * RADIUS


RANGES = st.tuples(
    st.floats(-1e30, 1e30), st.floats(1e-30, 1e30), st.lists(st.floats(0, 1), min_size=1, max_size=20)
).filter(lambda drawn: drawn[0] + drawn[1] > drawn[0])
MOMENTS, WEIGHTED = moments_plan(), weighted_plan()


@settings(max_examples=300, deadline=None, derandomize=True)
@given(RANGES, st.floats(1e-90, 1e90), st.booleans())
def test_points_stay_in_the_ball(drawn, largest: float, clip: bool) -> None:
    low, width, parts = drawn
    high = low + width
    moments = replace(MOMENTS, low=low, high=high)
    weighted = replace(WEIGHTED, low=low, high=high, largest_weight=largest)
    values = np.clip(low + width * np.array([0, 1, *parts]), low, high)
    weights = np.clip(largest * np.array([1, 0, *reversed(parts)]), 0, largest)
    if clip:
        values, weights = 3 * values, 3 * weights - largest
    for points in (moments.encode(values, clip=clip), weighted.encode(values, weights, clip=clip)):
        assert points.shape == (values.size, 2)
        assert np.linalg.norm(points, axis=1).max() <= RADIUS * (1 + 1e-12)
        MOMENTS.vector_plan.check_values(points)


# --- moments ---------------------------------------------------------------------------------


@pytest.mark.parametrize("method", METHODS)
def test_mean_and_variance_are_unbiased_and_bounded(method: str) -> None:
    moments = moments_plan(method)
    plan = moments.vector_plan
    estimates = runs(plan, moments.encode(X), 3)
    answers = [moments.from_estimate(each) for each in estimates]
    assert_mean([a.mean.value for a in answers], X.mean(), moments.mean_standard_error)
    assert_deviation([a.mean.value for a in answers], moments.mean_standard_error)
    variances = np.array([a.variance.value for a in answers])
    # What the rounding leaves: half its largest variance, on half the width squared.
    left = (HIGH - LOW) ** 2 / 4 * plan.step**2 / (8 * USERS)
    spread = variances.std()
    assert left < spread / 30
    assert_mean(variances - left * np.sign(variances.mean() - X.var()), X.var(), spread)
    assert_covered([both(a.mean) for a in answers], X.mean())
    assert_covered([both(a.variance) for a in answers], X.var())
    assert_covered([a.variance_interval for a in answers], X.var())
    assert min(a.variance_interval[0] for a in answers) == 0.0
    assert all(a.variance_interval[1] <= (HIGH - LOW) ** 2 / 4 for a in answers)

    # The wrong twin: the square of the noisy mean as it is.
    half = (HIGH - LOW) / 2
    sums = np.array([each.value for each in estimates]) / USERS
    forgotten = half**2 * ((sums[:, 1] + RADIUS) / HEIGHT - sums[:, 0] ** 2)
    with pytest.raises(AssertionError, match="standard errors"):
        assert_mean(forgotten, X.var(), spread)


def test_the_variance_has_its_standard_error() -> None:
    users = 5000
    moments = moments_plan(users=users)
    x = np.linspace(LOW, 2.0, users)
    answers = [moments.from_estimate(each) for each in runs(moments.vector_plan, moments.encode(x), 4, 2000)]
    claimed = moments.variance_standard_error(float(x.mean()))
    assert_deviation([a.variance.value for a in answers], claimed)
    assert [a.variance.standard_error for a in answers[:20]] == pytest.approx([claimed] * 20, rel=0.1)
    with pytest.raises(AssertionError):
        assert_deviation([a.variance.value for a in answers], claimed * 0.8)


def exact(points: np.ndarray, bound: float = 0.0) -> VectorEstimate:
    return VectorEstimate(value=points.sum(axis=0), standard_error=1.0, bound=bound, confidence=0.95)


@settings(max_examples=200, deadline=None, derandomize=True)
@given(st.integers(0, 2**32), st.floats(-1, 1), st.floats(-1, 1), st.floats(0, 50))
def test_whatever_the_noise_within_the_bound_the_intervals_hold(seed, first, second, bound) -> None:
    rng = np.random.default_rng(seed)
    x = rng.choice([rng.uniform(LOW, HIGH, USERS), np.full(USERS, LOW), rng.choice([LOW, HIGH], USERS)])
    w = 3 * rng.choice([rng.random(USERS), np.ones(USERS), 1e-3 * rng.random(USERS)])
    for plan, points in ((MOMENTS, MOMENTS.encode(x)), (WEIGHTED, WEIGHTED.encode(x, w))):
        true = exact(points, bound)
        answer = plan.from_estimate(replace(true, value=true.value + bound * np.array([first, second])))
        truths = {"mean": x.mean() if plan is MOMENTS else np.average(x, weights=w)}
        if plan is MOMENTS:
            truths["variance"] = x.var()
            intervals = [(answer.variance_interval, x.var())]
        else:
            truths |= {"weighted_sum": (w * x).sum(), "total_weight": w.sum()}
            intervals = [(answer.mean_interval, truths["mean"])]
        intervals += [(both(getattr(answer, name)), truth) for name, truth in truths.items()]
        for (low, high), truth in intervals:
            slack = 1e-9 * (1 + abs(truth))
            assert low - slack <= truth <= high + slack


@pytest.mark.parametrize(
    ("method", "one", "two"), [("shares", (0.045, 1.63), (0.029, 0.75)), ("bits", (0.049, 1.77), (0.091, 2.39))]
)
def test_the_guide_says_when_two_sums_at_half_the_budget_are_better(method: str, one, two) -> None:
    asked = {"users": 10**4, "method": method}
    moments = Moments.plan(privacy=PRIVACY, low=0, high=100, **asked)
    assert (moments.mean_standard_error, moments.variance_standard_error(54)) == pytest.approx(one, rel=0.02)
    first, second = (
        BoundedSum.plan(privacy=Privacy(0.5, 5e-7), low=low, high=1, **asked).standard_error / 10**4 for low in (-1, 0)
    )
    assert (50 * first, 2500 * math.hypot(second, 2 * 0.08 * first)) == pytest.approx(two, rel=0.02)


# --- weighted means --------------------------------------------------------------------------


@pytest.mark.parametrize("method", METHODS)
def test_weighted_sums_are_unbiased_and_the_ratio_bounded(method: str) -> None:
    weighted = weighted_plan(method)
    truth = float(np.average(X, weights=W))
    answers = [weighted.from_estimate(each) for each in runs(weighted.vector_plan, weighted.encode(X, W), 5)]
    for name, value in (("weighted_sum", float(W @ X)), ("total_weight", float(W.sum()))):
        estimates = [getattr(a, name) for a in answers]
        assert_mean([e.value for e in estimates], value, estimates[0].standard_error)
        assert_deviation([e.value for e in estimates], estimates[0].standard_error)
        assert_covered([both(e) for e in estimates], value)
    assert_covered([a.mean_interval for a in answers], truth)
    assert_covered([both(a.mean) for a in answers], truth)
    assert all(LOW <= a.mean_interval[0] <= a.mean.value <= a.mean_interval[1] <= HIGH for a in answers)


def test_the_weighted_mean_has_its_standard_error() -> None:
    users = 5000
    weighted = weighted_plan(users=users)
    x, w = np.linspace(LOW, HIGH, users), np.linspace(0, 3, users)
    truth, claimed = float(np.average(x, weights=w)), weighted.mean_standard_error(np.average(x, weights=w), w.sum())
    answers = [weighted.from_estimate(each) for each in runs(weighted.vector_plan, weighted.encode(x, w), 6, 2000)]
    assert_mean([a.mean.value for a in answers], truth, claimed)
    assert_deviation([a.mean.value for a in answers], claimed)
    assert [a.mean.standard_error for a in answers[:20]] == pytest.approx([claimed] * 20, rel=0.1)
    assert_covered([a.mean_interval for a in answers], truth)
    # The wrong twin: the plain mean, weights forgotten.
    with pytest.raises(AssertionError, match="standard errors"):
        assert_mean([a.mean.value for a in answers], float(x.mean()), claimed)


def test_a_total_weight_that_may_be_0_leaves_the_whole_range() -> None:
    light = WEIGHTED.encode(X, np.full(USERS, 1e-3))
    answer = WEIGHTED.from_estimate(exact(light, bound=10.0))
    assert answer.mean_interval == (LOW, HIGH) and answer.mean.upper >= HIGH and answer.mean.lower <= LOW
    none = WEIGHTED.from_estimate(exact(WEIGHTED.encode(X, np.zeros(USERS)) - 0.1, bound=10.0))
    assert none.mean.value == (LOW + HIGH) / 2 and none.mean.standard_error == HIGH - LOW
    assert none.mean_interval == (LOW, HIGH) and none.total_weight.value < 0


def test_without_noise_the_answers_are_exact_but_for_the_correction() -> None:
    users = 10**4
    moments, weighted = moments_plan(users=users), weighted_plan(users=users)
    x, w = np.linspace(LOW, HIGH, users) ** 2 % 5, np.linspace(0, 3, users)
    answer = moments.from_estimate(exact(moments.encode(x)))
    excess = moments.mean_standard_error**2
    assert answer.mean.value == pytest.approx(x.mean()) and answer.variance.value == pytest.approx(x.var() + excess)
    assert answer.variance_interval == pytest.approx((x.var(), x.var()))
    assert weighted.from_estimate(exact(weighted.encode(x, w))).mean.value == pytest.approx(np.average(x, weights=w))


def test_through_all_messages_with_notes() -> None:
    for plan, points in ((MOMENTS, MOMENTS.encode(X)), (WEIGHTED, WEIGHTED.encode(X, W))):
        total = simulate(plan.vector_plan, points, bits=RandomBits.seeded(7))
        answer = plan.from_estimate(replace(total, dropped=2))
        assert answer.mean.simulated and answer.mean.dropped == 2 and answer.mean.confidence == total.confidence
        assert math.isfinite(answer.mean.value)


# --- refusals --------------------------------------------------------------------------------

BAD = {
    "nan in row 2": [0.0, math.nan],
    "inf in row 1": [math.inf],
    "got 7 in row 3": [1, 2, 7.0],
    "column": [[0.0]],
    "at least one": [],
    "numbers": ["a"],
}


@pytest.mark.parametrize("message", BAD)
def test_bad_values_are_refused_with_their_row(message: str) -> None:
    for encode in (MOMENTS.encode, lambda x: WEIGHTED.encode(x, [1.0] * len(x))):
        with pytest.raises(DataError, match=f"values .*{message}"):
            encode(BAD[message])
    with pytest.raises(DataError, match=f"weights .*{message}"):
        WEIGHTED.encode([0.0] * 3, BAD[message])


def test_bad_weights_are_refused() -> None:
    with pytest.raises(DataError, match=r"weights .*-1 in row 2"):
        WEIGHTED.encode([0.0, 0.0], [1.0, -1.0])
    with pytest.raises(DataError, match="weights must be as many as the 2 values"):
        WEIGHTED.encode([0.0, 0.0], [1.0])
    with pytest.raises(DataError, match="finite"):
        WEIGHTED.encode([0.0], [math.nan], clip=True)
    assert np.array_equal(WEIGHTED.encode([-9.0], [5.0], clip=True), WEIGHTED.encode([LOW], [3.0]))


@pytest.mark.parametrize("largest", [0, -1, math.nan, math.inf, True, "1", None])
def test_bad_largest_weights_are_refused(largest) -> None:
    with pytest.raises(ParameterError, match="largest_weight"):
        WeightedMean.plan(users=9, privacy=PRIVACY, low=0, high=1, largest_weight=largest)


@pytest.mark.parametrize("ends", [(1, 1), (2, 1), (0, math.nan), (-math.inf, 0), (0, 1e101), (0, 1e-101), (None, 1)])
def test_bad_ranges_are_refused(ends) -> None:
    with pytest.raises(ParameterError, match=r"low|high"):
        Moments.plan(users=9, privacy=PRIVACY, low=ends[0], high=ends[1])
    with pytest.raises(ParameterError, match=r"low|high"):
        WeightedMean.plan(users=9, privacy=PRIVACY, low=ends[0], high=ends[1], largest_weight=1)


def test_another_plan_or_another_plans_answer_is_refused() -> None:
    other = VectorSum.plan(users=USERS, privacy=PRIVACY, dimension=2, radius=1)
    for plan in (MOMENTS, WEIGHTED):
        with pytest.raises(ParameterError, match="sum_plan"):
            replace(plan, sum_plan=other)
        with pytest.raises(DataError, match="estimate must have 2 numbers"):
            plan.from_estimate(exact(np.zeros((4, 3))))
    with pytest.raises(ParameterError, match="method"):
        moments_plan("guess")


# --- plans like all others -------------------------------------------------------------------

FAMILIES = {
    "mean": {"low": LOW, "high": HIGH},
    "moments": {"low": LOW, "high": HIGH},
    "weighted-mean": {"low": LOW, "high": HIGH, "largest_weight": 3},
}


def planned(name: str, method: str, users: int = USERS) -> Any:
    return PROTOCOLS[name].plan(users=users, privacy=PRIVACY, method=method, **FAMILIES[name])


def own_values(plan: Any) -> Any:
    return plan.encode(np.column_stack((X, W)) if plan.domain.columns == 2 else X)


@pytest.mark.parametrize("method", METHODS)
def test_a_mean_keeps_every_promise_of_a_protocol(method: str) -> None:
    check_protocol(planned("mean", method), X, [[0.0, math.nan], [HIGH + 1], [], ["a"]], runs=2000)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("name", FAMILIES)
def test_statistics_are_saved_and_loaded(name: str, method: str) -> None:
    plan = planned(name, method)
    document = json.loads(json.dumps(plan.document()))
    again = plan_from_document(document)
    assert again == plan and again.fingerprint == plan.fingerprint and again.method == method
    assert plan.document()["noise"] == plan.sum_plan.noise and plan.fingerprint != plan.sum_plan.fingerprint
    for key, value in {"low": LOW - 1, "users": USERS + 1, "method": "guess", "epsilon": 0.9}.items():
        with pytest.raises(ParameterError, match=r"plan|noise|epsilon"):
            plan_from_document(document | {key: value})


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("name", FAMILIES)
def test_statistics_are_answered_by_one_driver(name: str, method: str) -> None:
    """Message by message, in pieces and by law: each is what the sum says, and near the truth."""
    plan = planned(name, method)
    values = own_values(plan)
    truth = np.atleast_1d(plan.true_value(values))
    assert truth[0] == pytest.approx(np.average(X, weights=W) if name == "weighted-mean" else X.mean())
    if name == "moments":
        assert truth[1] == pytest.approx(X.var())
    bits = RandomBits.seeded(3)
    for fast in (False, True):
        missed = np.zeros(truth.size + 1)
        for _ in range(200):
            answer = simulate(plan, values, bits=bits, fast=fast)
            assert answer.simulated
            missed[:-1] += np.abs(answer.value - truth) > np.array(getattr(answer, "bounds", answer.bound))
            missed[-1] += (np.abs(answer.value - truth) > plan.error_bound).any()
        assert (special.bdtrc(missed - 1, 200, 0.05) >= 1e-9).all()
    payloads = plan.randomize(values, bits=bits)
    labels = payloads.labels
    whole = Batch(payloads.payloads, USERS, labels)
    cut = payloads.payloads.size // 3
    pieces = [
        Batch(payloads.payloads[:cut], USERS, None if labels is None else labels[:cut]),
        Batch(payloads.payloads[cut:], 0, None if labels is None else labels[cut:]),
    ]
    assert plan.estimate(Tally.merge(map(plan.tally, pieces))) == plan.analyze(whole)


@pytest.mark.parametrize("name", FAMILIES)
def test_a_statistics_privacy_is_its_sums(name: str) -> None:
    plan = planned(name, "bits")
    mine, sums = plan.guarantee(), plan.sum_plan.guarantee()
    assert mine.terms == sums.terms and mine.pair.describe() == sums.pair.describe() and mine.claim == sums.claim
    assert plan.collusions() == plan.sum_plan.collusions()
    assert plan.epsilon_with(0.5) == plan.sum_plan.epsilon_with(0.5)
    entry = entry_of(plan, datetime(2026, 1, 31, tzinfo=UTC))
    assert entry.pair.describe() == entry_of(plan.sum_plan, datetime(2026, 1, 31, tzinfo=UTC)).pair.describe()
    assert entry.description == f"{name} by bits" and entry.fingerprint == plan.fingerprint
    assert audit_plan(plan, bits=RandomBits.seeded(1), trials=20_000).verdict == "stands"
    assert audit_plan(plan, bits=RandomBits.seeded(1), trials=20_000, sabotage=0.01).verdict == "refuted"
    assert planned(name, "shares").influence is None and planned(name, "shares").warnings


def test_what_a_liar_can_do_to_a_statistic() -> None:
    """The sum moves by the liar's influence in every coordinate: no number of the answer moves further than is said."""
    rng = np.random.default_rng(5)
    for name in FAMILIES:
        plan = planned(name, "bits")
        total = plan.sum_plan.sample_estimate(own_values(plan), bits=RandomBits.seeded(1))
        before = np.atleast_1d(plan.answer(total).value)
        for _ in range(50):
            by = plan.sum_plan.influence * rng.uniform(-1, 1, np.shape(total.value))
            after = np.atleast_1d(plan.answer(replace(total, value=total.value + by)).value)
            assert (np.abs(after - before) <= plan.influence).all()


def test_the_best_method_of_a_statistic_is_its_sums() -> None:
    choice = PROTOCOLS["mean"].choose(users=400, privacy=PRIVACY, low=0, high=10)
    assert choice.plan.method == BoundedSum.plan(users=400, privacy=PRIVACY, low=0, high=10).method
    assert "by its sum" in choice.why and set(choice.considered) == set(BoundedSum.methods)
    with pytest.raises(ParameterError, match="low must be given"):
        PROTOCOLS["mean"].plan(users=400, privacy=PRIVACY, high=10)
    with pytest.raises(ParameterError, match="method must be auto"):
        PROTOCOLS["moments"].plan(users=400, privacy=PRIVACY, low=0, high=10, method="rr")
    with pytest.raises(ParameterError, match="a value and a weight"):
        WEIGHTED.encode(X)
