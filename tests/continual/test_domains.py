"""Running sums of numbers, vectors and categories: privacy, bounds, messages and states."""

import json
import math
from dataclasses import replace

import numpy as np
import pytest

from shuffledp.accounting.composition import Composition
from shuffledp.accounting.laws import Binomial
from shuffledp.accounting.pairs import FinitePair
from shuffledp.continual.counter import Counter, CounterState
from shuffledp.continual.plan import CounterPlan
from shuffledp.continual.views import UserView
from shuffledp.errors import BrokenBatchError, DataError, InfeasibleError, ParameterError
from shuffledp.messages import Batch
from shuffledp.privacy import Privacy
from shuffledp.protocols.catalogue import plan_from_document
from shuffledp.protocols.domains.summed import Bits, OneHot, Reals, SummedDomain, Vectors
from shuffledp.protocols.sums.noise import CoinNoise, LaplaceNoise, SkellamNoise
from shuffledp.randomness import RandomBits
from shuffledp.testing.statistics import assert_deviation, assert_mean, assert_same_law

EASY = Privacy(2, 1e-3)
CASES = {
    "reals laplace": (Reals(16), "laplace"),
    "reals skellam": (Reals(16), "skellam"),
    "reals coins": (Reals(3), "coins"),
    "vectors skellam": (Vectors(3, 2.0, 16), "skellam"),
    "vectors coins": (Vectors(2, 1.0, 2), "coins"),
    "categories laplace": (OneHot(4), "laplace"),
    "categories coins": (OneHot(4), "coins"),
}


def plan_of(case: str, **asked) -> CounterPlan:
    domain, noise = CASES[case]
    return CounterPlan.plan(users=400, shufflers=3, privacy=EASY, noise=noise, domain=domain, **asked)


def data_for(domain: SummedDomain, users: int = 400) -> np.ndarray:
    rng = np.random.default_rng(7)
    if isinstance(domain, Vectors):
        directions = rng.normal(size=(users, domain.dimension))
        return domain.radius * directions / np.linalg.norm(directions, axis=1, keepdims=True)
    if isinstance(domain, OneHot):
        return rng.integers(domain.count, size=users)
    return rng.random(users)


def true_sums(domain: SummedDomain, values: np.ndarray) -> np.ndarray:
    steps = np.eye(domain.count)[values] if isinstance(domain, OneHot) else values
    return np.cumsum(steps, axis=0)


# --- privacy ---------------------------------------------------------------------------------


@pytest.mark.parametrize("case", CASES)
def test_a_quieter_twin_cannot_be_made(case: str) -> None:
    plan = plan_of(case)
    assert sum(term.value for term in plan.delta_terms(EASY.epsilon, plan.users)) <= EASY.delta
    noise = plan.batch_noise
    if isinstance(noise, LaplaceNoise):
        quieter = LaplaceNoise(noise.ratio ** (1 / 0.8))
    elif isinstance(noise, SkellamNoise):
        quieter = SkellamNoise(noise.variance * 0.64)
    else:
        quieter = CoinNoise(2 * int(noise.coins * 0.64 / 2))
    with pytest.raises(InfeasibleError, match="noise"):
        replace(plan, batch_noise=quieter)


@pytest.mark.parametrize("batches", [1, 2, 3])
@pytest.mark.parametrize("coins", [20, 60])
def test_two_categories_by_exact_composition(batches: int, coins: int) -> None:
    """A replaced category is one step up here and one down there, in every batch: never more than is claimed."""
    view = UserView.of(OneHot(2), batches, Privacy(1, 1e-3))
    masses = np.exp(Binomial(coins, 0.5).log_pmf(np.arange(-1.0, coins + 2)))
    here, up = masses[1:], masses[:-1]
    first = np.outer(up, here).reshape(-1)
    second = np.outer(here, up).reshape(-1)
    exact = Composition([(FinitePair(first, second, "one category against another"), batches)])
    for epsilon in (0.1, 0.5, 1.0, 2.0):
        claimed = sum(term.value for term in view.delta_terms(CoinNoise(coins), epsilon))
        # Both are upper bounds of one number, on grids of their own; one batch needs no grid.
        assert claimed == pytest.approx(exact.delta(epsilon), rel=1e-4, abs=1e-9)
        if batches == 1:
            assert FinitePair(first, second, "").delta(epsilon) <= claimed * (1 + 1e-9)


@pytest.mark.parametrize("shift", [(3, 4), (5, 0), (0, -5), (4, -3)])
def test_vectors_by_brute_force(shift: tuple[int, int]) -> None:
    """Two coordinates in two batches, every direction of one length: never more than is claimed."""
    noise = CoinNoise(400)
    view = UserView(2, 2, None, 5.0, 5, 0.0, 1e-9)
    at = np.arange(-5.0, 406.0)
    masses = np.exp(Binomial(400, 0.5).log_pmf(at))
    moved = [np.exp(Binomial(400, 0.5).log_pmf(at - step)) for step in shift]
    first = np.outer(masses, masses).reshape(-1)
    second = np.outer(*moved).reshape(-1)
    exact = Composition([(FinitePair(first, second, "a vector against another"), 2)])
    for epsilon in (0.1, 0.5, 1.0):
        assert exact.delta(epsilon) <= sum(term.value for term in view.delta_terms(noise, epsilon)) + 1e-9


@pytest.mark.parametrize("case", ["reals laplace", "vectors skellam", "categories coins"])
def test_fewer_honest_users_leave_less(case: str) -> None:
    plan = plan_of(case, honest_fraction=0.8)
    assert plan.epsilon_with(0.8) <= EASY.epsilon
    assert EASY.epsilon < plan.epsilon_with(0.7) < math.inf
    assert plan.error_bound > plan_of(case).error_bound


# --- accuracy --------------------------------------------------------------------------------


# Domains and noises know nothing of each other: each is here once, all pairs of them are a sweep.
PAIRED = {"reals laplace", "vectors skellam", "categories coins"}


@pytest.mark.parametrize(
    "case", [case if case in PAIRED else pytest.param(case, marks=pytest.mark.sweep) for case in CASES]
)
def test_messages_and_law_agree(case: str) -> None:
    counter = Counter(plan_of(case))
    values = data_for(counter.plan.domain)
    schedule = counter.plan.schedule
    time = int(schedule.users_by(schedule.place_of(400)[0]))
    seen = {
        fast: np.array([np.ravel(counter.run(values, bits=b, fast=fast).at(time).value)[0] for b in streams])
        for fast, streams in ((True, RandomBits.seeded(1).spawn(150)), (False, RandomBits.seeded(2).spawn(150)))
    }
    assert_same_law(seen[True], seen[False])


@pytest.mark.parametrize("case", CASES)
def test_errors_are_as_claimed(case: str) -> None:
    """Unbiased, and as wide as claimed where nothing is rounded; bounded at all times at once."""
    counter = Counter(plan_of(case))
    domain = counter.plan.domain
    values = data_for(domain)
    truth = true_sums(domain, values)
    slot, _ = counter.plan.schedule.place_of(400)
    time = int(counter.plan.schedule.users_by(slot))
    runs = [counter.run(values, bits=b) for b in RandomBits.seeded(3).spawn(1500)]
    errors = np.array([run.at(time).value for run in runs]) - truth[time - 1]
    claimed = counter.plan.standard_error_of(slot)
    assert_mean(errors.reshape(-1), 0.0, claimed)
    if not domain.rounds:
        assert_deviation(errors.reshape(1500, -1)[:, 0], claimed)
    largest = np.array([np.abs(run.every() - truth).max() for run in runs[:400]])
    assert (largest > counter.plan.error_bound).mean() <= 0.05 + 3 * math.sqrt(0.05 * 0.95 / 400)


def test_rounding_stays_within_its_bound() -> None:
    domain = Vectors(4, 1.0, 2)
    values = np.full((2000, 4), 0.25)
    bits = RandomBits.seeded(5)
    largest = [
        np.abs(domain.step * np.cumsum(domain.to_steps(values, bits=bits), axis=0) - np.cumsum(values, axis=0)).max()
        for _ in range(200)
    ]
    assert np.mean(np.array(largest) > domain.rounding_bound(2000, 0.05)) <= 0.05
    assert Bits().rounding_bound(2000, 0.05) == 0


def test_numbers_cost_little_more_than_bits() -> None:
    privacy = Privacy(1, 1e-6)
    bits = CounterPlan.plan(users=100_000, shufflers=4, privacy=privacy).error_bound
    reals = CounterPlan.plan_reals(users=100_000, shufflers=4, privacy=privacy)
    assert bits < reals.error_bound < 1.06 * bits
    vectors = CounterPlan.plan_vectors(users=100_000, shufflers=4, privacy=privacy, dimension=10, radius=0.5)
    # Gaussian noise of the same sensitivity, ten coordinates at once.
    skellam = CounterPlan.plan(users=100_000, shufflers=4, privacy=privacy, noise="skellam").error_bound
    assert skellam < vectors.error_bound < 1.25 * skellam


# --- states and files ------------------------------------------------------------------------


@pytest.mark.parametrize("case", ["reals laplace", "vectors skellam", "categories coins"])
def test_saved_in_the_middle_of_a_batch(case: str) -> None:
    counter = Counter(plan_of(case))
    state = counter.start()
    size = counter.plan.domain.coordinates
    while state.users < 200:
        cohort = counter.ask(state)
        due = [b for b in cohort.batches if b.first_seat + cohort.users == b.mechanism.users]
        totals = {b.level: np.arange(size) + 7 if size > 1 else 7 for b in due}
        state = counter.tell(state, cohort.users, totals)
    state = counter.tell(state, 1, {}) if counter.ask(state).users > 1 else state
    again = CounterState.from_document(json.loads(json.dumps(state.document())))
    assert again.document() == state.document()
    assert counter.estimate(again) == counter.estimate(state)
    broken = CounterState(state.fingerprint, state.users, dict.fromkeys(state.prefixes, 1.5))
    with pytest.raises(ParameterError, match="state"):
        counter.ask(broken)


@pytest.mark.parametrize("case", CASES)
def test_a_plan_is_read_again(case: str) -> None:
    plan = plan_of(case)
    document = json.loads(json.dumps(plan.document()))
    assert plan_from_document(document) == plan
    assert plan_from_document(document).fingerprint == plan.fingerprint
    edited = document | {"domain": document["domain"] | {next(iter(plan.domain.parameters)): 999}}
    with pytest.raises((DataError, InfeasibleError, ParameterError)):
        plan_from_document(edited)
    with pytest.raises(DataError, match="domain"):
        plan_from_document(document | {"domain": {"kind": "colours"}})


@pytest.mark.parametrize("case", ["vectors skellam", "categories coins"])
def test_a_lost_or_relabelled_message_voids_the_batch(case: str) -> None:
    counter = Counter(plan_of(case))
    mechanism = counter.plan.mechanism(counter.plan.slot_users)
    steps = counter.plan.domain.to_steps(data_for(counter.plan.domain), bits=RandomBits.seeded(0))
    reports = mechanism.randomize(steps[: mechanism.users], 0, bits=RandomBits.seeded(1))
    assert reports.labels is not None
    with pytest.raises(BrokenBatchError):
        mechanism.analyze(Batch(reports.payloads[1:], mechanism.users, reports.labels[1:]))
    labels = reports.labels.copy()
    labels[0] = (labels[0] + 1) % counter.plan.domain.coordinates
    with pytest.raises(BrokenBatchError):
        mechanism.analyze(Batch(reports.payloads, mechanism.users, labels))


@pytest.mark.parametrize(
    ("domain", "values", "says"),
    [
        (Reals(4), [0.5, 1.5], "row 2"),
        (Reals(4), [0.5, float("nan")], "nan in row 2"),
        (Reals(4), [[0.5]], "column"),
        (Vectors(2, 1.0, 4), [[0.6, 0.6], [0.9, 0.9]], "row 2"),
        (Vectors(2, 1.0, 4), [[0.5, float("inf")]], "finite"),
        (Vectors(2, 1.0, 4), [[0.5, 0.5, 0.5]], "2 columns"),
        (OneHot(3), [0, 3], "row 2"),
        (OneHot(3), [0.5], "row 1"),
        (OneHot(3), ["a"], "numbers"),
        (Bits(), [0, 2], "row 2"),
    ],
)
def test_bad_values_are_named(domain: SummedDomain, values: list, says: str) -> None:
    with pytest.raises(DataError, match=says):
        domain.check_values(values)


def test_bad_domains_are_refused() -> None:
    with pytest.raises(ParameterError, match="categories"):
        OneHot(1)
    with pytest.raises(ParameterError, match="grid"):
        Reals(0)
    with pytest.raises(ParameterError, match="radius"):
        Vectors(2, -1.0, 4)
    with pytest.raises(ParameterError, match="noise"):
        CounterPlan.plan(users=400, shufflers=2, privacy=EASY, noise="laplace", domain=Vectors(3, 1.0, 8))
    with pytest.raises(ParameterError, match="certified"):
        replace(plan_of("reals laplace"), certified_noise_bound=3)


def test_vectors_of_one_number() -> None:
    """A number a user, with exact composition."""
    counter = Counter(CounterPlan.plan_vectors(users=2000, shufflers=2, privacy=EASY, dimension=1, radius=3.0))
    values = np.random.default_rng(1).uniform(-3, 3, size=(2000, 1))
    for fast in (True, False):
        estimates = counter.run(values, bits=RandomBits.seeded(4), fast=fast)
        assert np.abs(estimates.every() - np.cumsum(values)).max() <= counter.plan.error_bound
        assert estimates.times.size == estimates.prefixes.shape[0]


def test_times_of_many_coordinates() -> None:
    counter = Counter(plan_of("vectors skellam"))
    estimates = counter.run(data_for(counter.plan.domain), bits=RandomBits.seeded(4))
    assert estimates.times.tolist() == [counter.plan.schedule.users_by(i) for i in range(len(estimates.prefixes))]


def test_hostile_states_plans_and_labels_are_refused_in_words() -> None:
    counter = Counter(plan_of("vectors skellam"))
    state = counter.start()
    assert CounterState.from_document(state.document()) == state
    with pytest.raises(DataError, match="state"):
        CounterState.from_document(state.document() | {"prefixes": {"0": [2**63, 0, 0]}})
    for noise in (
        {"family": "skellam", "variance": float("nan")},
        {"family": "laplace", "ratio": 1.5},
        {"family": "laplace", "ratio": 1 - 1e-9},
    ):
        with pytest.raises((ParameterError, InfeasibleError)):
            plan_from_document(plan_of("reals laplace").document() | {"noise": noise})
    with pytest.raises(InfeasibleError):
        CounterPlan.plan(users=100_000, shufflers=2, privacy=Privacy(1, 1e-6), domain=Reals(100_000), noise="laplace")
    coins = plan_of("categories coins").mechanism(plan_of("categories coins").slot_users)
    strange = Batch(np.ones(4, dtype=np.uint8), coins.users, np.array([0, 2**63, 3, 99], dtype=np.uint64))
    assert coins.read(coins.tally(strange))[1] > 0


def test_a_client_that_labels_all_its_messages_alike_moves_what_is_said() -> None:
    plan = plan_of("categories coins")
    mechanism = plan.mechanism(plan.slot_users)
    steps = plan.domain.to_steps(np.zeros(mechanism.users, dtype=np.int64), bits=RandomBits.seeded(0))
    reports = mechanism.randomize(steps, 0, bits=RandomBits.seeded(1))
    honest, _ = mechanism.read(mechanism.tally(Batch(reports.payloads, mechanism.users, reports.labels)))
    payloads, labels = reports.payloads.copy(), reports.labels.copy()
    own = int(reports.sizes[0])
    payloads[:own], labels[:own] = 1, 0
    moved, dropped = mechanism.read(mechanism.tally(Batch(payloads, mechanism.users, labels)))
    assert np.abs(moved - honest).sum() <= mechanism.messages_max
    assert f"{mechanism.messages_max}, all coordinates together" in plan.lying_client
    assert dropped > 0


def test_vectors_that_are_never_far_apart_need_less_noise() -> None:
    asked = {"users": 20_000, "shufflers": 4, "privacy": Privacy(1, 1e-6), "dimension": 5, "radius": math.sqrt(2)}
    near, far = CounterPlan.plan_vectors(apart=math.sqrt(4.5), **asked), CounterPlan.plan_vectors(**asked)
    assert 0.7 < near.error_bound / far.error_bound < 0.8
    assert plan_from_document(json.loads(json.dumps(near.document()))) == near
    with pytest.raises(ParameterError, match="apart"):
        Vectors(5, 1.0, 4, apart=2.5)


@pytest.mark.parametrize("fast", [True, False])
def test_numbers_of_another_range_are_counted_from_its_lower_end(fast: bool) -> None:
    plan = CounterPlan.plan(users=600, shufflers=2, privacy=Privacy(4, 1e-3), domain=Reals(4, low=5.0, high=6.0))
    values = np.linspace(5, 6, 600)
    run = plan.learner().run(values, bits=RandomBits.seeded(1), fast=fast)
    assert np.abs(run.every() - np.cumsum(values)).max() <= plan.error_bound
    assert run.at(600).value == run.every()[-1]
    batch = plan.mechanism(plan.slot_users)
    assert 0 <= plan.learner().stand_in(batch) <= batch.users * plan.domain.grid
