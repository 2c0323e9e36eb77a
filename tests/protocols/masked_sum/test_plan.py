"""A sum under masks: what a coalition sees, exactly; the noise; who must stay."""

import dataclasses
import itertools
import json
import math
from collections import Counter
from datetime import UTC, datetime

import numpy as np
import pytest
from scipy import stats

from shuffledp.accounting.differences import PolyaDifference
from shuffledp.accounting.pairs import ShiftPair
from shuffledp.audit.events import Outcomes, find
from shuffledp.audit.trials import audit_plan
from shuffledp.errors import BrokenBatchError, DataError, InfeasibleError, ParameterError, TooFewReportsError
from shuffledp.messages import Batch
from shuffledp.privacy import Privacy
from shuffledp.protocols.catalogue import PROTOCOLS, plan_from_document
from shuffledp.protocols.ledger_entries import entry_of
from shuffledp.protocols.masked_sum import MaskedSum
from shuffledp.protocols.masked_sum import plan as masked_sum
from shuffledp.protocols.polya import pure_ratio
from shuffledp.protocols.tallies import Tally as PieceTally
from shuffledp.randomness import RandomBits
from shuffledp.sampling.laws import discrete_laplace
from shuffledp.simulation.masked_sum import run_masked_sum
from shuffledp.simulation.run import simulate
from shuffledp.testing.statistics import assert_law, assert_not_law, assert_same_law

TARGET = Privacy(1, 1e-6)


def tiny(privacy: Privacy = TARGET, modulus_bits: int = 12) -> MaskedSum:
    """Three users and short keys, of which many can be tried."""
    return dataclasses.replace(
        MaskedSum.plan(users=3, privacy=privacy), modulus_bits=modulus_bits, repetitions=modulus_bits
    )


def as_bits(numbers: tuple[int, ...], length: int) -> np.ndarray:
    return np.array([[number >> (length - 1 - place) & 1 for place in range(length)] for number in numbers], np.uint8)


def view_law(values: list[int], *, honest_key: bool, monkeypatch: pytest.MonkeyPatch) -> Counter:
    """Over all keys: what user 2 and the analyzer see, its keys and all that is sent; users have no noise here."""
    monkeypatch.setattr(masked_sum, "sample_polya_difference", lambda *_, **__: np.zeros(3, dtype=np.int64))
    plan = dataclasses.replace(tiny(), modulus_bits=3, largest_deviation=0)
    law: Counter = Counter()
    for secrets in itertools.product(range(8), repeat=3):
        first, second, third = as_bits(secrets if honest_key else (0, *secrets[1:]), 3)
        keys = np.array([[first, second], [first, third], [second, third]])
        sent = plan.mask(values, keys, bits=RandomBits.seeded(0)).payloads
        law[(*sent.tolist(), *secrets[1:])] += 1
    return law


def test_a_coalition_sees_the_sum_of_the_others_and_nothing_else(monkeypatch) -> None:
    def law(values: list[int], honest_key: bool = True) -> Counter:
        return view_law(values, honest_key=honest_key, monkeypatch=monkeypatch)

    # Users 0 and 1 exchange their values: the exact laws of everything that user 2 sees are equal.
    assert law([0, 1, 1]) == law([1, 0, 1])
    # Another sum shows, as it must; and a mask that is missing between 0 and 1 shows who has the 1.
    assert law([0, 1, 1]) != law([1, 1, 1])
    assert law([0, 1, 1], honest_key=False) != law([1, 0, 1], honest_key=False)


def sums(plan: MaskedSum, runs: int, seed: int, values: list[int]) -> np.ndarray:
    bits = RandomBits.seeded(seed)
    found = []
    for _ in range(runs):
        one = bits.unsigned((3, plan.modulus_bits), 8) & np.uint8(1)
        keys = np.array([[one[0], one[1]], [one[0], one[2]], [one[1], one[2]]])
        found.append(plan.mask(values, keys, bits=bits).payloads)
    assert plan.analyze(Batch(found[0], 3)).value == totals(plan, np.array(found))[0]
    return totals(plan, np.array(found))


def totals(plan: MaskedSum, sent: np.ndarray) -> np.ndarray:
    """What `analyze` makes of each run."""
    return plan._arithmetic.decode(plan._arithmetic.total(sent))


def test_the_error_is_a_curators_and_20_percent_less_noise_is_seen() -> None:
    samples = sums(tiny(), 12_000, 1, [1, 0, 1]) - 2
    law = discrete_laplace(tiny().ratio)
    assert_law(samples, law.low, [float(m) for m in law.masses()])
    less = discrete_laplace(ratio_of_variance(0.8 * tiny().standard_error ** 2))
    assert_not_law(samples, less.low, [float(m) for m in less.masses()])


def ratio_of_variance(variance: float) -> float:
    """The p with 2p/(1-p)^2 = variance."""
    return 1 + 1 / variance - math.sqrt((1 + 1 / variance) ** 2 - 1)


def test_a_twin_with_20_percent_less_noise_cannot_be_made() -> None:
    plan = MaskedSum.plan(users=20, privacy=TARGET)
    assert plan.guarantee().holds and plan.guarantee().delta < 1e-30
    with pytest.raises(InfeasibleError, match="add noise"):
        dataclasses.replace(plan, ratio=ratio_of_variance(0.8 * plan.standard_error**2))


def test_the_audit_lets_it_stand_and_refutes_half_the_noise() -> None:
    half = ratio_of_variance(0.5 * tiny().standard_error ** 2)
    twin = dataclasses.replace(tiny(Privacy(2, 1e-6)), ratio=half)
    bounds = []
    for plan in (tiny(), twin):
        sides = [sums(plan, 2_500, seed, [bit, 0, 1]).reshape(-1, 1) for seed, bit in ((1, 0), (2, 1))]
        found = find(Outcomes.of(sides[0]), Outcomes.of(sides[1]), delta=1e-6, confidence=0.999)
        bounds.append(found.epsilon_lower_bound)
    assert bounds[0] <= 1 < bounds[1] <= twin.epsilon_against(0)


@pytest.mark.parametrize(("users", "colluders", "high"), [(20, 0, 1), (20, 10, 1), (20, 18, 1), (8, 4, 5)])
def test_what_a_coalition_leaves_is_that_of_the_others_noise(users: int, colluders: int, high: int) -> None:
    """Against the noise's masses by an independent convolution."""
    plan = MaskedSum.plan(users=users, privacy=TARGET, high=high)
    one_sided = stats.nbinom.pmf(np.arange(4000), (users - colluders) / users, 1 - plan.ratio)
    masses = np.convolve(one_sided, one_sided[::-1])
    p, q = np.pad(masses, (0, high)), np.pad(masses, (high, 0))

    def delta(epsilon: float) -> float:
        return float(np.maximum(p - math.exp(epsilon) * q, 0).sum())

    epsilon = plan.epsilon_against(colluders)
    assert delta(epsilon * (1 + 1e-6)) <= 1e-6 < delta(epsilon * 0.999)


@pytest.mark.parametrize("shape", [0.1, 0.5, 0.9])
@pytest.mark.parametrize("epsilon", [0.0, 0.5, 1.5])
def test_the_largest_shift_is_the_worst_though_the_noise_is_not_log_concave(shape: float, epsilon: float) -> None:
    noise = PolyaDifference(shape, math.exp(-0.3))
    deltas = [ShiftPair(noise, shift).delta(epsilon) for shift in range(1, 12)]
    assert (np.diff(deltas) >= -1e-12).all()


def test_fewer_than_two_outside_a_coalition_are_refused() -> None:
    plan = MaskedSum.plan(users=5, privacy=TARGET)
    epsilons = [plan.epsilon_against(colluders) for colluders in range(4)]
    assert epsilons == sorted(epsilons) and epsilons[0] <= 1 < epsilons[1]
    for colluders in (4, 5, -1, True):
        with pytest.raises(ParameterError, match="colluders"):
            plan.epsilon_against(colluders)
    rows = plan.collusions()
    assert rows[-1].parties == "analyzer + shuffler" and rows[-1].epsilon is None
    assert [row.epsilon for row in rows[:-1]] == [epsilons[0], epsilons[2], epsilons[3]]
    assert len(MaskedSum.plan(users=2, privacy=TARGET).collusions()) == 2


def test_whoever_leaves_voids_the_sum() -> None:
    plan = MaskedSum.plan(users=6, privacy=TARGET)
    agreement = plan.agreement
    coins = agreement.toss(bits=RandomBits.seeded(1))
    reports = agreement.reports(coins)
    keys = agreement.keys(coins, agreement.useful(Batch(reports.payloads, 6, reports.labels)))
    sent = plan.mask([1] * 6, keys, bits=RandomBits.seeded(2)).payloads
    assert abs(plan.analyze(Batch(sent, 6)).value - 6) <= plan.largest_deviation
    with pytest.raises(TooFewReportsError):
        plan.analyze(Batch(sent[:-1], 5))
    for wrong in (sent[:-1], np.append(sent[:-1], sent[0]), sent << np.uint64(20)):
        with pytest.raises(BrokenBatchError):
            plan.analyze(Batch(wrong, 6))


@pytest.mark.parametrize("high", [1, 7, 1000])
def test_values_up_to_any_height(high: int) -> None:
    plan = MaskedSum.plan(users=4, privacy=TARGET, high=high)
    assert plan.ratio == pure_ratio(1.0, high) and plan.epsilon_against(0) <= 1
    keys = np.zeros((4, 3, plan.modulus_bits), dtype=np.uint8)
    estimate = plan.analyze(Batch(plan.mask([high, 0, high, 1], keys, bits=RandomBits.seeded(1)).payloads, 4))
    assert abs(estimate.value - 2 * high - 1) <= plan.largest_deviation
    for bad in ([high + 1, 0, 0, 0], [-1, 0, 0, 0], [0, 0, 0], [0.5, 0, 0, 0]):
        with pytest.raises(DataError, match="values"):
            plan.mask(bad, keys, bits=RandomBits.seeded(1))


@pytest.mark.parametrize(
    ("wrong", "parameter"), [({"users": 1}, "users"), ({"users": 3, "high": 0}, "high"), ({"users": 5000}, "users")]
)
def test_bad_plans_are_named(wrong: dict, parameter: str) -> None:
    with pytest.raises(ParameterError) as told:
        MaskedSum.plan(privacy=TARGET, **wrong)
    assert told.value.parameter == parameter


@pytest.mark.parametrize("high", [1, 10])
def test_a_masked_sum_is_a_plan_like_all_others(high: int) -> None:
    plan = PROTOCOLS["masked-sum"].plan(users=8, privacy=TARGET, high=high)
    document = json.loads(json.dumps(plan.document()))
    assert plan_from_document(document) == plan == MaskedSum.plan(users=8, privacy=TARGET, high=high)
    for key, value in {"high": high + 1, "users": 9, "noise": {**document["noise"], "repetitions": 400}}.items():
        with pytest.raises(ParameterError, match=r"plan|noise"):
            plan_from_document(document | {key: value})
    values = np.arange(8) % (high + 1)
    by_rounds = simulate(plan, values, bits=RandomBits.seeded(3))
    assert by_rounds == run_masked_sum(plan, values, bits=RandomBits.seeded(3)).estimate
    by_law = simulate(plan, values, bits=RandomBits.seeded(3), fast=True)
    assert all(abs(each.value - values.sum()) <= plan.largest_deviation for each in (by_rounds, by_law))
    entry = entry_of(plan, datetime(2026, 1, 31, tzinfo=UTC))
    assert entry.description == "masked-sum by masks" and entry.pair.describe() == plan.pair(8).describe()


def test_messages_and_law_agree() -> None:
    plan = MaskedSum.plan(users=4, privacy=TARGET)
    bits = RandomBits.seeded(4)
    rows = [[simulate(plan, [1, 0, 1, 1], bits=bits, fast=fast).value for _ in range(600)] for fast in (False, True)]
    assert_same_law(np.array(rows[0]), np.array(rows[1]), false_alarm=1e-9)


def test_the_audit_of_a_plan_lets_it_stand_and_refutes_a_quieter_twin() -> None:
    plan = MaskedSum.plan(users=6, privacy=TARGET)
    assert audit_plan(plan, bits=RandomBits.seeded(1), trials=40_000).verdict == "stands"
    assert audit_plan(plan, bits=RandomBits.seeded(1), trials=40_000, sabotage=0.2).verdict == "refuted"


def test_two_rounds_are_not_served_live_and_everybody_must_stay() -> None:
    plan = MaskedSum.plan(users=6, privacy=TARGET)
    for refused in (lambda: plan.layout, lambda: plan.mechanism(6)):
        with pytest.raises(ParameterError, match="two rounds of the same people"):
            refused()
    learner = plan.learner()
    with pytest.raises(ParameterError, match="everybody must stay"):
        learner.tell(learner.start(), 5, {})
    with pytest.raises(InfeasibleError, match="honest_fraction must be 1"):
        MaskedSum.plan(users=6, privacy=TARGET, honest_fraction=0.5)
    assert plan.warnings and "voids" in plan.lying_client


def test_pieces_of_round_one_add_up() -> None:
    plan = MaskedSum.plan(users=5, privacy=TARGET)
    reports = plan.agreement.reports(plan.agreement.toss(bits=RandomBits.seeded(2)))
    cuts = [slice(0, 100), slice(100, 101), slice(101, None)]
    tallies = [
        plan.agreement.tally(Batch(reports.payloads[cut], 0 if place else 5, reports.labels[cut]))
        for place, cut in enumerate(cuts)
    ]
    whole = plan.agreement.useful(Batch(reports.payloads, 5, reports.labels))
    assert np.array_equal(plan.agreement.differing(PieceTally.merge(tallies)), whole)
