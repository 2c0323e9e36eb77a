"""The survey's Table 2: each method's own figures, twins with 20% less noise, removal lemmas."""

import dataclasses
import math

import numpy as np
import pytest
from scipy import stats

from shuffledp.accounting.anonymous_sum import AnonymousSumPair
from shuffledp.accounting.composition import Composition
from shuffledp.accounting.correlated import CorrelatedPair
from shuffledp.accounting.curves import smallest_real
from shuffledp.accounting.differences import negative_binomial_masses
from shuffledp.accounting.pairs import FinitePair
from shuffledp.accounting.responses import ShuffledResponsePair
from shuffledp.accounting.split_coins import SplitCoinsPair
from shuffledp.errors import InfeasibleError
from shuffledp.messages import Batch
from shuffledp.privacy import Privacy
from shuffledp.protocols.binary_sum import BinarySum
from shuffledp.protocols.binary_sum.correlated import Correlated
from shuffledp.protocols.binary_sum.poisson_bits import PoissonBits
from shuffledp.protocols.binary_sum.pure import Pure
from shuffledp.protocols.binary_sum.response import Response
from shuffledp.protocols.binary_sum.zsum import ZSum
from shuffledp.randomness import RandomBits

TARGET = Privacy(1, 1e-6)


# --- the exact minima of protocols section 0 --------------------------------------------------


@pytest.mark.parametrize(("epsilon", "rate"), [(1, 85.3), (0.5, 272.2), (0.2, 1453)])
def test_symmetric_poisson_bits(epsilon: float, rate: float) -> None:
    found = smallest_real(lambda r: SplitCoinsPair(r).delta(epsilon) <= 1e-6, 0.0, 10.0)
    assert found == pytest.approx(rate, abs=0.051 if rate < 1000 else 0.5)
    assert SplitCoinsPair(0.8 * found).delta(epsilon) > 1.5e-6


@pytest.mark.parametrize(("users", "expected"), [(200, 45.0), (1000, 61.5), (5000, 65.9)])
def test_randomized_response(users: int, expected: float) -> None:
    """The design's figures are those of others all 0; at 5000 users a few ones are a little worse."""

    def least(holds) -> float:
        return users * smallest_real(holds, 0.0, 1 / users, relative=1e-6)

    all_zero = least(lambda p: ShuffledResponsePair(users, p / 2).delta_for(0, 1.0) <= 1e-6)
    assert all_zero == pytest.approx(expected, abs=0.051)
    worst = least(lambda p: ShuffledResponsePair(users, p / 2).delta(1.0) <= 1e-6)
    assert all_zero <= worst <= 1.002 * all_zero
    assert ShuffledResponsePair(users, 0.4 * worst / users).delta(1.0) > 1.5e-6


@pytest.mark.parametrize(
    ("part", "decay", "mean"), [(0.1, 0.6, 300), (0.3, 0.6, 109), (0.1, 0.2, 361), (0.3, 0.2, 134)]
)
def test_correlated_flooding(part: float, decay: float, mean: float) -> None:
    q, p = math.exp(-(1 - part)), math.exp(-decay * part)
    shape = smallest_real(lambda r: CorrelatedPair(q, r, p).delta(1) <= 1e-6, 0.0, 1.0)
    assert shape * p / (1 - p) == pytest.approx(mean, rel=0.01)
    assert CorrelatedPair(q, 0.8 * shape, p).delta(1) > 1.5e-6


def test_the_papers_flooding_is_far_too_much() -> None:
    q, p, shape = math.exp(-0.9), math.exp(-0.02), 3 * (1 + math.log(1e6))
    assert shape * p / (1 - p) == pytest.approx(2200, rel=0.01)
    assert CorrelatedPair(q, shape, p).delta(1) < 1e-20


def test_figures_at_ten_thousand_users() -> None:
    correlated = Correlated.plan(users=10_000, privacy=TARGET)
    assert correlated.standard_error <= 1.6 and correlated.messages_per_user_mean <= 1.2
    assert PoissonBits.plan(users=10_000, privacy=TARGET).standard_error <= 4.65
    zsum = ZSum.plan(users=10_000, privacy=TARGET)
    assert zsum.silence * 10_000 == pytest.approx(34.1, abs=0.05)


def test_pure_over_all_inputs_of_the_others() -> None:
    plan = Pure.plan(users=40, privacy=TARGET)
    assert plan.standard_error <= 2.9 and plan.guarantee().delta == 0
    pair = plan.pair(40)
    assert max(pair.pure_epsilon_for(ones) for ones in range(40)) <= 1
    assert Pure.plan(users=40, privacy=Privacy(2, 1e-6)).standard_error < plan.standard_error


def test_pure_at_the_designs_parameters() -> None:
    """n 40, d 11, s 0.7, p 0.054: pure epsilon 0.994, standard error 2.84."""
    weights = np.exp(-0.7 * np.abs(np.arange(12) - 5.5))
    pair = AnonymousSumPair(40, 0.054, tuple(weights / weights.sum()))
    assert pair.pure_epsilon == pytest.approx(0.994, abs=0.001)
    assert AnonymousSumPair(40, 0.8 * 0.054, pair.masses).pure_epsilon > 1.1


# --- pairs against brute force ---------------------------------------------------------------


def test_split_coins_against_the_two_counts() -> None:
    rate = 12.0
    k = np.arange(60)
    pois = np.exp(k * math.log(rate / 2) - rate / 2 - np.array([math.lgamma(i + 1) for i in k]))
    padded, shifted = np.append(pois, 0.0), np.append(0.0, pois)
    pair = FinitePair(np.outer(shifted, padded).ravel(), np.outer(padded, shifted).ravel())
    for epsilon in (0.0, 0.5, 1.0, 3.0):
        assert SplitCoinsPair(rate).delta(epsilon) == pytest.approx(pair.delta(epsilon), rel=1e-8)
    composed = Composition([(SplitCoinsPair(rate), 1)])
    assert composed.delta(1.0) == pytest.approx(pair.delta(1.0), rel=1e-4)


@pytest.mark.parametrize("honest", [1.0, 0.6])
def test_correlated_against_the_two_counts(honest: float) -> None:
    q, shape, p = math.exp(-0.9), 4.0, math.exp(-0.5)
    centre, flood = negative_binomial_masses(honest, q)[:60], negative_binomial_masses(shape * honest, p)[:120]
    plane = np.zeros((180, 180))
    for z, mass in enumerate(flood):
        plane[z : z + centre.size, z : z + centre.size] += mass * np.outer(centre, centre)
    shifted = np.vstack((np.zeros(180), plane[:-1]))
    brute = FinitePair(plane.ravel(), shifted.ravel())
    pair = CorrelatedPair(q, shape, p, honest)
    for epsilon in (0.3, 1.0, 2.0):
        assert pair.delta(epsilon) == pytest.approx(brute.delta(epsilon), rel=1e-6, abs=1e-12)


@pytest.mark.parametrize("lie", [0.05, 0.2])
def test_randomized_response_against_every_input(lie: float) -> None:
    users = 9

    def view(ones: int, bit: int) -> np.ndarray:
        law = np.ones(1)
        for value in [1] * ones + [0] * (users - 1 - ones) + [bit]:
            law = np.convolve(law, [1 - lie, lie] if value == 0 else [lie, 1 - lie])
        return law

    exact = max(FinitePair(view(k, 0), view(k, 1)).delta(0.7) for k in range(users))
    assert exact <= ShuffledResponsePair(users, lie).delta(0.7) <= 1.0011 * exact + 1e-20
    blanket = ShuffledResponsePair(users, lie).atoms()
    assert blanket.hockey_stick(0.7) >= exact, "the pair for composition is worse than every input"


# --- the 20% rule ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("plan", "twin"),
    [
        (Response.plan(users=1000, privacy=TARGET), lambda p: {"random_probability": 0.8 * p.random_probability}),
        (ZSum.plan(users=1000, privacy=TARGET), lambda p: {"silence": 0.8 * p.silence}),
        (PoissonBits.plan(users=1000, privacy=TARGET), lambda p: {"rate": 0.8 * p.rate}),
        (Correlated.plan(users=1000, privacy=TARGET), lambda p: {"ratio": math.exp(-0.9 / 0.8)}),
        (Correlated.plan(users=1000, privacy=TARGET), lambda p: {"flood_shape": 0.8 * p.flood_shape}),
        (Pure.plan(users=40, privacy=TARGET), lambda p: {"random_probability": 0.8 * p.random_probability}),
    ],
    ids=["rr", "zsum", "poisson-bits", "correlated", "correlated flood", "pure"],
)
def test_a_twin_with_20_percent_less_noise_cannot_be_made(plan, twin) -> None:
    with pytest.raises(InfeasibleError, match="noise must reach delta"):
        dataclasses.replace(plan, **twin(plan))


# --- properties --------------------------------------------------------------------------------


def test_an_empty_count_stays_zero_and_a_small_one_is_bounded() -> None:
    plan = ZSum.plan(users=200, privacy=TARGET)
    bits = RandomBits.seeded(1)
    for ones in (0, 20, 60):
        values = np.arange(200) < ones
        errors = []
        for _ in range(400):
            reports = plan.randomize(values, bits=bits)
            estimate = plan.analyze(Batch(reports.payloads, 200))
            errors.append(abs(estimate.value - ones))
            assert ones or estimate.value == 0
        assert np.mean(np.array(errors) > estimate.bound) <= 0.05 + 0.16


@pytest.mark.parametrize("ones", [0, 1, 20, 34, 60, 200])
def test_the_error_of_a_count_that_is_cut_is_its_own(ones: int) -> None:
    """By the law of the silences S: n + ones - S messages, of which at most n are answered with 0."""
    plan = ZSum.plan(users=200, privacy=TARGET)
    silent = np.arange(201)
    law = stats.binom(200, plan.silence)
    answered = np.where(ones > silent, ones - silent + law.mean(), 0.0)
    exact = math.sqrt(float(law.pmf(silent) @ (answered - ones) ** 2))
    values = np.arange(200) < ones
    assert plan.standard_errors_for(values) == pytest.approx(exact, rel=1e-9, abs=1e-9)
    assert exact <= plan.standard_error * (1 + 1e-9) and not plan.is_unbiased


def test_the_standard_error_of_a_count_that_is_cut_is_that_of_the_worst_sum() -> None:
    """Once claimed: 0.0 with a standard error of 5.73, where 20 of 1,000 users had a 1."""
    plan = ZSum.plan(users=1000, privacy=TARGET)
    each = [plan.standard_errors_for(np.arange(1000) < ones) for ones in range(0, 1001)]
    assert plan.standard_error == pytest.approx(max(each), rel=1e-12) and plan.standard_error > 20
    estimate = plan.sample_estimate(np.arange(1000) < 20, bits=RandomBits.seeded(1))
    assert estimate.value == 0 and estimate.standard_error >= 19


def test_a_client_that_lies_moves_a_count_over_the_cut() -> None:
    plan = ZSum.plan(users=1000, privacy=TARGET)

    def answer(messages: int) -> float:
        return plan.analyze(Batch(np.ones(messages, dtype=np.uint8), 1000)).value

    moved = max(answer(honest + more) - answer(honest) for honest in range(990, 1010) for more in (1, 2))
    assert plan.influence == pytest.approx(moved) and moved > 30
    assert f"from 0 to {moved:.3g}" in plan.lying_client


def test_a_count_that_is_cut_is_not_taken_for_a_better_one() -> None:
    assert BinarySum.plan(users=1000, privacy=TARGET, max_messages=2).method == "coins"
    assert BinarySum.plan(users=1000, privacy=TARGET, max_messages=1).method == "rr"


def test_too_few_users_say_so() -> None:
    with pytest.raises(InfeasibleError, match="too few"):
        ZSum.plan(users=20, privacy=TARGET)
    with pytest.raises(InfeasibleError, match="epsilon"):
        Pure.plan(users=40, privacy=Privacy(0.01, 1e-6))


def test_nothing_that_is_not_pure_calls_itself_so() -> None:
    """Its delta would pass the plan's, but not the word pure; nor may an underflow pass."""
    common = {"honest_fraction": 1.0, "constants": "exact", "decay": 0.5}
    with pytest.raises(InfeasibleError, match="delta 0"):
        Pure(users=120, privacy=Privacy(0.3, 1e-3), random_probability=0.4, bits_per_user=3, **common)
    with pytest.raises(InfeasibleError, match="delta 0"):
        Pure(users=20, privacy=Privacy(1.5, 1e-6), random_probability=0.9, bits_per_user=101, **common | {"decay": 0.1})


@pytest.mark.parametrize("pair", [SplitCoinsPair(50.0), ShuffledResponsePair(20, 0.1), CorrelatedPair(0.4, 5.0, 0.6)])
def test_a_huge_epsilon_is_no_overflow(pair) -> None:
    assert 0 <= pair.delta(1000.0) < 1


def test_one_user_alone_is_the_local_model() -> None:
    plan = Response.plan(users=1, privacy=TARGET)
    assert plan.lie == pytest.approx(1 / (1 + math.e), rel=2e-3)


# --- removal lemmas ----------------------------------------------------------------------------


@pytest.mark.parametrize("users", [50, 1000])
def test_lemma_21_what_is_left_without_the_shuffler(users: int) -> None:
    """A single-message (eps, delta) protocol is (eps + ln n, delta) on its own."""
    plan = Response.plan(users=users, privacy=TARGET)
    alone = FinitePair([1 - plan.lie, plan.lie], [plan.lie, 1 - plan.lie])
    assert alone.delta(1 + math.log(users)) <= 1e-6
    assert alone.delta(plan.local_epsilon * (1 + 1e-9)) == pytest.approx(0, abs=1e-9)
    assert alone.delta(plan.local_epsilon * 0.99) > 0


def test_lemma_20_pure_single_messages_gain_nothing_from_shuffling() -> None:
    """The all-zero outcome of an all-zero input has the local ratio, however many users there are."""
    lie, users = 0.2, 12
    zeros = (1 - lie) ** users
    other = (1 - lie) ** (users - 1) * lie
    assert math.log(zeros / other) == pytest.approx(math.log((1 - lie) / lie))


def test_lemma_25_many_messages_are_dominated() -> None:
    """An m-message (eps, delta) protocol is (eps + m ln(e n), delta)-dominated: here by the mean of both inputs."""
    plan = ZSum.plan(users=200, privacy=TARGET)
    laws = {0: np.array([plan.silence, 1 - plan.silence, 0.0]), 1: np.array([0.0, plan.silence, 1 - plan.silence])}
    dominating = (laws[0] + laws[1]) / 2
    factor = math.exp(1 + 2 * math.log(math.e * 200))
    for law in laws.values():
        assert np.maximum(law - factor * dominating, 0).sum() <= 1e-6


@pytest.mark.parametrize("kind", [ZSum, PoissonBits, Correlated, Pure])
def test_most_multi_message_protocols_leave_nothing(kind) -> None:
    plan = kind.plan(users=200, privacy=TARGET)
    assert plan.local_epsilon is None and plan.local_delta is None


@pytest.mark.parametrize("method", ["rr", "pure"])
def test_lost_messages_widen_the_bound_by_what_they_move(method: str) -> None:
    """An answer counts 1 / (1 - the part that is random), so that is what losing one can move."""
    kind = {"rr": Response, "pure": Pure}[method]
    plan = kind.plan(users=1000, privacy=Privacy(0.3, 1e-6))
    ones = plan.randomize(np.ones(1000, dtype=np.uint8), bits=RandomBits.seeded(1)).payloads
    whole = plan.analyze(Batch(ones, 1000))
    lost = np.flatnonzero(ones == 1)[:100]
    fewer = plan.analyze(Batch(np.delete(ones, lost), 1000))
    assert fewer.dropped == 100
    assert abs(whole.value - fewer.value) <= (fewer.bound - whole.bound) * (1 + 1e-9)
