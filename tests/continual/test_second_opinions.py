"""Second opinions: weights, exact laws, the bound, privacy, and three ways to the same estimates."""

import dataclasses
import json
from itertools import product

import numpy as np
import pytest
from scipy import stats

from shuffledp.accounting.laws import Binomial, DiscreteLaplace
from shuffledp.continual import combined_bound
from shuffledp.continual.certified import certify
from shuffledp.continual.combined_bound import combined_laws
from shuffledp.continual.counter import Counter, CounterState
from shuffledp.continual.noise import calibrate
from shuffledp.continual.plan import CounterPlan
from shuffledp.continual.second_opinions import SecondOpinions, combine, divisors
from shuffledp.errors import InfeasibleError, ParameterError
from shuffledp.privacy import Privacy
from shuffledp.protocols.catalogue import plan_from_document
from shuffledp.protocols.sums.noise import LaplaceNoise
from shuffledp.randomness import RandomBits
from shuffledp.schedules.combinatorial import combinatorial_schedule, slots
from shuffledp.testing.statistics import assert_deviation, assert_mean, assert_same_law

PRIVACY = Privacy(1, 1e-6)
FALSE_ALARM = 1e-9
SMALL = [(c, k) for c in range(1, 5) for k in range(2, 5)]


def planned(budget: int, shufflers: int, slot_users: int = 3, **change) -> CounterPlan:
    """A combined plan of this shape, every slot of it used."""
    return CounterPlan(
        users=slots(budget, shufflers) * slot_users - 1,
        shufflers=shufflers,
        privacy=PRIVACY,
        batch_noise=calibrate("coins", shufflers, PRIVACY),
        budget=budget,
        **{"estimator": "combined", "shufflers_used": shufflers} | change,
    )


# --- weights ---------------------------------------------------------------------------------


def variances_with(budget: int, shufflers: int) -> list[list[float]]:
    """Of a batch after its second opinion, without the rounding, in units of a batch's: by level and what is left."""
    rows = [[1.0] * budget]
    for table in divisors(budget, shufflers):
        seconds = [1 + sum(rows[-1][: left + 1]) for left in range(budget)]
        rows.append([(1 - 1 / q) ** 2 + second / q**2 for q, second in zip(table, seconds, strict=True)])
    return rows


def test_the_divisor_is_the_odd_one_with_the_least_variance() -> None:
    """And the best weight of all, which is no odd whole part, would gain less than two per cent of a batch."""
    table, variances = divisors(12, 5), variances_with(12, 5)
    for level in range(2, 6):
        for left in range(1, 13):
            second = 1 + sum(variances[level - 2][:left])
            by_divisor = {q: (1 - 1 / q) ** 2 + second / q**2 for q in range(3, 99, 2)}
            assert table[level - 2][left - 1] == min(by_divisor, key=lambda q: by_divisor[q])
            least = min(w**2 + (1 - w) ** 2 * second for w in np.linspace(0, 1, 20_001))
            assert least - 1e-7 <= variances[level - 1][left - 1] <= least + 0.02


@pytest.mark.parametrize(("budget", "shufflers"), SMALL)
def test_variances_are_those_of_the_linear_map(budget: int, shufflers: int) -> None:
    """Coefficients of every noise in every prefix, written out slot by slot."""
    schedule = combinatorial_schedule(budget, shufflers, 1)
    opinions = SecondOpinions.of(schedule, budget, shufflers)
    last = {int(end): place for place, end in enumerate(opinions.places)}
    units = np.eye(schedule.batches + opinions.count)
    prefixes = np.zeros((schedule.slots, len(units)))
    for end in range(1, schedule.slots):
        prefixes[end] = prefixes[schedule.parents[end]] + units[end - 1]
        if end in last:
            second = prefixes[end - 1] + units[schedule.batches + last[end]]
            prefixes[end] += (second - prefixes[end]) / opinions.divisor_at(end)
    expected = schedule.prefix_sums(opinions.by_batch(np.array(variances_with(budget, shufflers))))
    np.testing.assert_allclose((prefixes**2).sum(axis=1), expected)
    assert (expected <= schedule.depths + 1e-9).all()


def test_combining_rounds_to_the_nearest_and_is_odd_and_shifts_with_the_truth() -> None:
    first, second = np.arange(-60, 61)[:, None], np.arange(-60, 61)[None, :]
    for divisor in (3, 5, 21):
        found = combine(first, second, divisor)
        np.testing.assert_array_equal(found, first + np.rint((second - first) / divisor))
        np.testing.assert_array_equal(found, -combine(-first, -second, divisor))
        np.testing.assert_array_equal(found + 17, combine(first + 17, second + 17, divisor))


# --- laws and bounds -------------------------------------------------------------------------


@pytest.mark.parametrize(("budget", "shufflers"), [(1, 2), (2, 2), (3, 2), (1, 3), (1, 4), (2, 3)])
def test_the_union_is_that_of_all_noises_enumerated(budget: int, shufflers: int) -> None:
    """Two coins a batch: all 3^14 outcomes, at most, with their probabilities."""
    schedule = combinatorial_schedule(budget, shufflers, 1)
    opinions = SecondOpinions.of(schedule, budget, shufflers)
    count = schedule.batches + opinions.count
    values, masses = np.array([-1, 0, 1]), np.array([0.25, 0.5, 0.25])
    ahead = max(0, count - 10)
    inner = np.stack([axis.ravel() for axis in np.indices((3,) * (count - ahead))])
    measure = np.zeros(41)
    for outer in product(range(3), repeat=ahead):
        outcome = np.vstack((np.repeat(np.array(outer, dtype=int)[:, None], inner.shape[1], axis=1), inner))
        chance = masses[outcome].prod(axis=0)
        noise = values[outcome]
        prefixes = schedule.prefix_sums(opinions.combined(noise[: schedule.batches], noise[schedule.batches :]))
        for prefix in prefixes:
            measure += np.bincount(prefix + 20, chance, 41)
    union = combined_laws(Binomial(2, 0.5), budget, shufflers).unions[budget]
    np.testing.assert_allclose(union.masses, measure[20 - union.reach : 21 + union.reach], atol=1e-13)
    assert union.doubt < 1e-12 and measure.sum() == pytest.approx(slots(budget, shufflers))
    bound = combined_laws(Binomial(2, 0.5), budget, shufflers).bound(budget, 0.3)
    beyond = [measure[np.abs(np.arange(-20, 21)) > a].sum() for a in range(20)]
    assert bound == next(a for a in range(20) if beyond[a] <= 0.3)


def test_transforms_are_within_the_doubt(monkeypatch) -> None:
    exact = combined_bound._combined_laws.__wrapped__(DiscreteLaplace(0.8), 12, 3)
    monkeypatch.setattr(combined_bound, "_DIRECT", 0)
    quick = combined_bound._combined_laws.__wrapped__(DiscreteLaplace(0.8), 12, 3)
    for one, other in zip(exact.unions, quick.unions, strict=True):
        reach = max(one.reach, other.reach)
        wide = [np.pad(union.masses, reach - union.reach) for union in (one, other)]
        assert np.abs(wide[0] - wide[1]).sum() <= one.doubt + other.doubt + 1e-13 * one.total
        assert other.doubt < 1e-7
    assert quick.bound(12, 0.05) in (exact.bound(12, 0.05), exact.bound(12, 0.05) + 1)


@pytest.mark.parametrize(("users", "shufflers", "noise"), [(20_000, 3, "laplace"), (20_000, 5, "coins")])
def test_the_bound_is_above_simulated_quantiles(users: int, shufflers: int, noise: str) -> None:
    """3000 runs: they pass it no more often than 5% allow (false alarm 1e-9), and the bound is not far above."""
    plan = CounterPlan.plan(users=users, shufflers=shufflers, privacy=PRIVACY, noise=noise, estimator="combined")
    largest = plan.noise_maxima(3000, bits=RandomBits.seeded(1))
    laws = combined_laws(plan.batch_noise.law(), plan.budget, plan.shufflers_used)
    for failure in (0.5, 0.2, 0.05, 0.01):
        passed = int((largest > laws.bound(plan.budget, failure)).sum())
        assert stats.binom.sf(passed - 1, 3000, failure) > FALSE_ALARM
    assert plan.noise_bound <= 1.15 * np.quantile(largest, 0.95)
    # The wrong twin: the bound for 0.8 of the noise is passed too often.
    law = plan.batch_noise.law()
    quieter = (
        DiscreteLaplace(plan.batch_noise.ratio**1.25)
        if noise == "laplace"
        else Binomial(2 * int(0.32 * law.trials), 0.5)
    )
    wrong = combined_laws(quieter, plan.budget, plan.shufflers_used).bound(plan.budget, 0.05)
    assert stats.binom.sf(int((largest > wrong).sum()) - 1, 3000, 0.05) < FALSE_ALARM


@pytest.mark.parametrize(
    ("users", "shufflers", "noise", "limit"),
    [
        (10**6, 4, "auto", 154),
        (10**6, 3, "auto", 156.5),
        (10**6, 2, "auto", 189),
        (10**6, 8, "coins", 174.5),
        (10**5, 4, "auto", 103.5),
        (10**4, 3, "auto", 64),
        (10**8, 5, "auto", 287),
    ],
)
def test_combined_is_chosen_where_it_is_proved_to_be_better(users, shufflers, noise, limit) -> None:
    asked = {"users": users, "shufflers": shufflers, "privacy": PRIVACY, "noise": noise}
    by_name = {name: CounterPlan.plan(**asked, estimator=name) for name in ("auto", "completed", "combined")}
    assert by_name["auto"] == by_name["combined"] and by_name["completed"].estimator == "completed"
    assert by_name["auto"].error_bound <= limit < by_name["completed"].error_bound
    assert by_name["auto"].fingerprint != by_name["completed"].fingerprint


def test_certificates_are_those_of_combined_noise() -> None:
    plan = CounterPlan.plan(users=20_000, shufflers=3, privacy=PRIVACY, estimator="combined")
    certified = certify(plan, runs=2000)
    assert 0.8 * plan.error_bound < certified.error_bound < plan.error_bound
    assert certified.estimator == "combined"


# --- privacy ---------------------------------------------------------------------------------


@pytest.mark.parametrize(("budget", "shufflers"), SMALL)
def test_nobody_joins_more_batches_than_there_are_shufflers(budget: int, shufflers: int) -> None:
    """Asked slot by slot: one batch a level at most, each level's batches one after the other, none begun twice."""
    plan = planned(budget, shufflers)
    counter, slot_users = Counter(plan), plan.slot_users
    state = counter.start()
    ends, messages = dict.fromkeys(range(1, shufflers + 1), 0), 0.0
    for slot in range(plan.schedule.slots):
        cohort = counter.ask(state)
        levels = [batch.level for batch in cohort.batches]
        assert levels == sorted(set(levels)) and len(levels) <= shufflers
        assert (levels[:1] == [1]) == (slot + 1 < plan.schedule.slots)
        for batch in cohort.batches:
            assert batch.first_seat == (slot - batch.first_slot) * slot_users
            if batch.opens:
                assert ends[batch.level] <= slot
                ends[batch.level] = slot + batch.mechanism.users // slot_users
        messages += sum(batch.mechanism.messages_mean for batch in cohort.batches) * slot_users
        assert sum(batch.mechanism.messages_max for batch in cohort.batches) <= plan.messages_per_user_max
        closed = {
            batch.level: 0
            for batch in cohort.batches
            if batch.first_seat + cohort.users == batch.mechanism.users and cohort.users == slot_users
        }
        state = counter.tell(state, cohort.users, closed)
    assert state.users == plan.users
    assert plan.messages_per_user_mean == pytest.approx(messages / (plan.schedule.slots * slot_users))


def test_a_twin_with_a_fifth_less_noise_cannot_be_made() -> None:
    plan = CounterPlan.plan(users=20_000, shufflers=3, privacy=PRIVACY, estimator="combined")
    with pytest.raises(InfeasibleError, match="noise"):
        dataclasses.replace(plan, batch_noise=LaplaceNoise(plan.batch_noise.ratio**1.12))


# --- the same estimates in three ways --------------------------------------------------------


@pytest.mark.parametrize(("budget", "shufflers"), SMALL)
def test_told_and_vectorised_are_the_same_for_the_same_noise(budget: int, shufflers: int) -> None:
    plan = planned(budget, shufflers, slot_users=2)
    counter, schedule, opinions = Counter(plan), plan.schedule, plan.second_opinions
    rng = np.random.default_rng(budget)
    values = rng.integers(0, 2, plan.users)
    noise, last = rng.integers(-50, 51, schedule.batches), rng.integers(-50, 51, opinions.count)
    truth = np.concatenate(([0], np.cumsum(values)))[:: plan.slot_users]
    expected = schedule.prefix_sums(opinions.combined(noise, last)) + truth
    state = counter.start()
    while state.users < plan.users:
        cohort = counter.ask(state)
        closed = {}
        for batch in cohort.batches:
            if batch.first_seat + 1 == batch.mechanism.users:
                end = (state.users + 1) // plan.slot_users
                at_end = schedule.levels[end] == batch.level
                added = noise[end - 1] if at_end else last[np.searchsorted(opinions.places, end)]
                closed[batch.level] = int(truth[end] - truth[batch.first_slot] + added)
        # Saved and restored in the middle of batches.
        state = CounterState.from_document(json.loads(json.dumps(counter.tell(state, 1, closed).document())))
        slot, since = divmod(state.users, plan.slot_users)
        assert counter.estimate(state).value == expected[slot] + since / 2


@pytest.mark.parametrize("family", ["laplace", "coins"])
def test_messages_and_law_agree(family: str) -> None:
    counter = Counter.of(
        users=200, shufflers=3, privacy=Privacy(2, 1e-3), noise=family, estimator="combined", confidence=0.6
    )
    values = np.arange(200) % 3 == 0
    first = int(counter.plan.second_opinions.places[0])
    times = [int(counter.plan.schedule.users_by(first)), 101, 200]
    seen = {
        fast: np.array(
            [[run.at(t).value for t in times] for run in (counter.run(values, bits=b, fast=fast) for b in streams)]
        )
        for fast, streams in ((True, RandomBits.seeded(1).spawn(250)), (False, RandomBits.seeded(2).spawn(250)))
    }
    for place in range(len(times)):
        assert_same_law(seen[True][:, place], seen[False][:, place])


@pytest.mark.parametrize("shufflers", [2, 4])
def test_errors_have_the_deviations_that_are_claimed(shufflers: int) -> None:
    """Every prefix's, the worst one's included; with little noise the rounding shows, and is counted."""
    for noise in (None, LaplaceNoise(0.05)):
        plan = planned(4, shufflers)
        opinions, count = plan.second_opinions, 4000
        law = noise or plan.batch_noise
        drawn = [
            law.sample(1, size * count, bits=RandomBits.seeded(size)).reshape(size, count)
            for size in (plan.schedule.batches, opinions.count)
        ]
        errors = plan.schedule.prefix_sums(opinions.combined(*drawn))
        laws = combined_laws(law.law(), 4, shufflers)
        expected = np.sqrt(plan.schedule.prefix_sums(opinions.by_batch(laws.variances)))
        if noise is None:
            np.testing.assert_allclose(plan.standard_errors(), expected)
            assert plan.standard_error_of(5) == plan.standard_errors()[5]
            assert plan.standard_error_max == pytest.approx(plan.standard_errors().max())
        for slot in range(1, plan.schedule.slots):
            assert_mean(errors[slot], 0.0, expected[slot])
            if noise is None:
                assert_deviation(errors[slot], expected[slot])
        assert laws.largest_variance(4) == pytest.approx(expected.max() ** 2)


# --- plans and refusals ----------------------------------------------------------------------


def test_files_say_the_estimator() -> None:
    plan = CounterPlan.plan(users=20_000, shufflers=3, privacy=PRIVACY, estimator="combined")
    document = json.loads(json.dumps(plan.document(), allow_nan=False))
    assert document["estimator"] == "combined" and plan_from_document(document) == plan
    for bad in ("completed", "auto", None):
        with pytest.raises(ParameterError):
            plan_from_document(document | {"estimator": bad})


@pytest.mark.parametrize(
    "change",
    [
        {"estimator": "median"},
        {"estimator": "combined", "shufflers": 1},
        {"estimator": "combined", "honest_fraction": 0.9},
        {"estimator": "combined", "privacy": Privacy(0.005, 1e-6), "users": 10**6},
    ],
)
def test_what_cannot_be_combined_is_refused(change) -> None:
    with pytest.raises(ParameterError) as refused:
        CounterPlan.plan(**({"users": 20_000, "shufflers": 3, "privacy": PRIVACY} | change))
    assert refused.value.parameter == "estimator"


def test_auto_adds_up_where_nothing_is_proved_for_combining() -> None:
    assert CounterPlan.plan(users=20_000, shufflers=1, privacy=PRIVACY).estimator == "completed"
    robust = CounterPlan.plan(users=20_000, shufflers=3, privacy=PRIVACY, honest_fraction=0.9)
    assert robust.estimator == "completed"
    for change in ({"honest_fraction": 0.9}, {"shufflers_used": 1}):
        with pytest.raises(ParameterError, match="estimator"):
            planned(4, 2, **change)
