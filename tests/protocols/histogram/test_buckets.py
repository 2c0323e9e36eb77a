"""Buckets: every promise of a plan, hash functions by enumeration, exact noise, twins that fail."""

import dataclasses
import math

import numpy as np
import pytest

from shuffledp.audit.trials import audit_plan
from shuffledp.errors import InfeasibleError, ParameterError
from shuffledp.messages import Batch
from shuffledp.privacy import Privacy
from shuffledp.protocols.histogram import Histogram
from shuffledp.protocols.histogram.buckets import Buckets
from shuffledp.protocols.histogram.primes import is_prime, next_prime
from shuffledp.randomness import RandomBits
from shuffledp.testing.protocols import check_protocol
from shuffledp.testing.statistics import assert_law, assert_not_law

TARGET = Privacy(1, 1e-6)
BAD_VALUES = [[0, 1, 40], [-1], [0.5], ["a"], [], [[1]]]


def _small(buckets: int, bins: int, users: int = 5) -> Buckets:
    """A plan of few users; enough coins to be allowed at a generous delta."""
    coins, probability = Buckets.coins_for(Privacy(2, 0.05), users, 1 / buckets)
    return Buckets(
        users=users,
        privacy=Privacy(2, 0.05),
        categories=bins,  # type: ignore[arg-type]
        coins=coins,
        probability=probability,
        buckets=buckets,
    )


def test_keeps_every_promise() -> None:
    plan = Buckets.plan(users=60, privacy=TARGET, categories=40)
    assert plan.buckets < 40
    check_protocol(plan, np.arange(60) ** 2 % 40, BAD_VALUES, runs=500)


def _every_message(plan: Buckets) -> Batch:
    q, b = plan.prime, plan.buckets
    a, v, w = np.meshgrid(np.arange(1, q), np.arange(q), np.arange(b), indexing="ij")
    return Batch((a * q + v).ravel().astype(np.uint64), plan.users, w.ravel().astype(np.uint32))


def _fits(plan: Buckets, x: int, a: int, v: int, w: int) -> bool:
    """By definition, with a division."""
    return (pow(a, -1, plan.prime) * (x - v)) % plan.prime % plan.buckets == w


@pytest.mark.parametrize(("buckets", "bins"), [(2, 5), (3, 7), (4, 9), (5, 11), (6, 7)])
def test_the_sets_by_enumeration(buckets: int, bins: int) -> None:
    """Every set has one part in `buckets` of all messages, and two sets meet as often as `collision` says."""
    plan = _small(buckets, bins)
    every = _every_message(plan)
    q = plan.prime
    messages = [(int(p) // q, int(p) % q, int(w)) for p, w in zip(every.payloads, every.labels, strict=True)]
    sets = [{m for m in messages if _fits(plan, x, *m)} for x in range(bins)]
    assert {len(each) for each in sets} == {len(messages) // buckets}
    seen, count = plan.matching(every)
    assert count == len(messages) and seen.tolist() == [len(each) for each in sets]
    for x in range(1, bins):
        assert len(sets[0] & sets[x]) / len(sets[0]) == pytest.approx(plan.collision, rel=1e-12)
    assert plan.collision < plan.hit
    # Some batch of a few messages, category by category.
    some = np.random.default_rng(1).integers(len(messages), size=20)
    few, _ = plan.matching(Batch(every.payloads[some], plan.users, every.labels[some]))
    assert few.tolist() == [sum(messages[i] in each for i in some) for each in sets]


def test_own_messages_are_uniform_on_their_set() -> None:
    """False alarm 1e-9; the wrong twin is the set of another category."""
    plan = _small(3, 7)
    values = np.full(60_000, 4)
    reports = plan.randomize(values, bits=RandomBits.seeded(3))
    own = np.cumsum(reports.sizes) - reports.sizes
    q = plan.prime
    messages = np.stack([reports.payloads[own] // q, reports.payloads[own] % q, reports.labels[own]], axis=1)
    number = messages[:, 0] * q * 3 + messages[:, 1] * 3 + messages[:, 2]
    for x, judge in ((4, assert_law), (5, assert_not_law)):
        masses = np.zeros(q * q * 3)
        for a in range(1, q):
            for v in range(q):
                w = next(w for w in range(3) if _fits(plan, x, a, v, w))
                masses[a * q * 3 + v * 3 + w] = 1 / (q * (q - 1))
        judge(number.astype(np.int64), 0, masses, false_alarm=1e-9)


def test_messages_that_cannot_be_are_dropped() -> None:
    plan = _small(3, 7)
    reports = plan.randomize([0, 1, 2, 3, 4], bits=RandomBits.seeded(1))
    fine = plan.analyze(Batch(reports.payloads, 5, reports.labels))
    odd = np.array([0, 3, plan.prime**2, 8], dtype=np.uint64)  # no a, no a, too large, and one with a bad bucket
    labels = np.array([0, 0, 0, 3], dtype=np.uint8)
    mixed = Batch(np.concatenate((reports.payloads, odd)), 5, np.concatenate((reports.labels, labels)))
    estimate = plan.analyze(mixed)
    assert estimate.dropped == 4 and np.array_equal(estimate.value, fine.value)
    assert estimate.bound > fine.bound


@pytest.mark.parametrize(("users", "bins"), [(300, 500), (100_000, 1_000_000)])
def test_a_fifth_less_noise_misses(users: int, bins: int) -> None:
    plan = Buckets.plan(users=users, privacy=TARGET, categories=bins)
    assert plan.guarantee().delta <= 1e-6
    with pytest.raises(InfeasibleError):
        dataclasses.replace(plan, probability=0.8 * plan.probability)
    with pytest.raises(InfeasibleError):  # more buckets are hit less often
        dataclasses.replace(plan, buckets=int(1.25 * plan.buckets))


def test_the_audit_catches_half_the_noise() -> None:
    plan = _small(6, 7, users=10)  # sets that hardly meet, so that little is left between bound and truth
    assert audit_plan(plan, bits=RandomBits.seeded(1), trials=30_000).verdict == "stands"
    assert audit_plan(plan, bits=RandomBits.seeded(2), trials=30_000, sabotage=0.5).verdict == "refuted"


def test_a_million_categories_close_to_the_curator() -> None:
    plan = Histogram.plan(users=100_000, privacy=TARGET, categories=1_000_000, max_messages=50)
    assert plan.messages_per_user_max <= 50 and plan.error_bound <= 2 * plan.reference()["central_l_inf_error"]
    tenth = Buckets.plan(users=100_000, privacy=TARGET, categories=1_000_000)
    assert tenth.messages_per_user_max == 11
    values = np.random.default_rng(1).integers(0, 1_000_000, 100_000)
    error = np.abs(tenth.sample_estimate(values, bits=RandomBits.seeded(1)).value - tenth.true_value(values))
    assert error.max() <= tenth.error_bound  # fails in at most 5% of runs
    assert math.sqrt(float(np.mean(error**2))) == pytest.approx(tenth.standard_error, rel=0.01)


def test_hashing_needs_a_domain_to_hash() -> None:
    with pytest.raises(InfeasibleError, match="decoys"):
        Buckets.plan(users=100_000, privacy=TARGET, categories=1000)
    why = Histogram.choose(users=100_000, privacy=TARGET, categories=1000, max_messages=4).why
    assert "buckets cannot" in why and "hadamard cannot" in why
    with pytest.raises(ParameterError):
        dataclasses.replace(_small(3, 7), buckets=7)


def test_primes() -> None:
    sieve = np.ones(10_000, dtype=bool)
    sieve[:2] = False
    for n in range(2, 100):
        sieve[n * n :: n] &= not sieve[n]
    assert [is_prime(n) for n in range(10_000)] == sieve.tolist()
    # A strong pseudoprime to the bases 2, 3, 5 and 7; a Fermat number; a Mersenne prime.
    assert not is_prime(3_215_031_751) and not is_prime(4_294_967_297) and is_prime(2_147_483_647)
    assert next_prime(2**31) == 2_147_483_659


@pytest.mark.parametrize("method", ["buckets", "hadamard"])
def test_the_papers_constants_and_dropouts(method: str) -> None:
    asked = {"users": 10_000, "privacy": TARGET, "categories": 100_000, "method": method}
    exact, half = Histogram.plan(**asked), Histogram.plan(**asked, honest_fraction=0.5)
    paper = Histogram.plan(**asked, constants="paper")
    assert paper.standard_error > 3 * exact.standard_error and paper.guarantee().delta < 1e-12
    assert half.pair(5000).delta(1.0) <= 1e-6 < exact.pair(5000).delta(1.0)
    assert exact.epsilon_with(0.5) > 1.2
