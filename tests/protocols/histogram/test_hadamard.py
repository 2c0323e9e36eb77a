"""Hadamard: every promise of a plan, sign vectors by enumeration, both ways of decoding, exact noise."""

import dataclasses
import itertools

import numpy as np
import pytest

from shuffledp.audit.trials import audit_plan
from shuffledp.errors import InfeasibleError, ParameterError
from shuffledp.messages import Batch
from shuffledp.privacy import Privacy
from shuffledp.protocols.histogram.hadamard import Hadamard
from shuffledp.protocols.histogram.sign_vectors import (
    counts_by_solving,
    counts_by_transform,
    fitting_counts,
    seed_bits,
    sign_vectors,
)
from shuffledp.randomness import RandomBits
from shuffledp.testing.protocols import check_protocol

TARGET = Privacy(1, 1e-6)
LOOSE = Privacy(2, 0.05)
BAD_VALUES = [[0, 1, 40], [-1], [0.5], ["a"], [], [[1]]]


def _small(signs: int, bins: int, users: int) -> Hadamard:
    coins, probability = Hadamard.coins_for(LOOSE, users, 0.5**signs)
    return Hadamard(
        users=users,
        privacy=LOOSE,
        categories=bins,  # type: ignore[arg-type]
        coins=coins,
        probability=probability,
        signs=signs,
    )


def test_keeps_every_promise() -> None:
    plan = Hadamard.plan(users=60, privacy=TARGET, categories=40)
    check_protocol(plan, np.arange(60) ** 2 % 40, BAD_VALUES, runs=500)


@pytest.mark.parametrize(("index_bits", "signs"), [(2, 1), (3, 2), (4, 3), (3, 3), (5, 2)])
def test_two_categories_have_the_same_signs_once_in_two_to_the_signs(index_bits: int, signs: int) -> None:
    """Over all seeds, the difference of two categories' sign vectors takes every value equally often."""
    seeds = np.arange(1 << seed_bits(index_bits, signs))
    vectors = [sign_vectors(seeds, code, index_bits, signs) for code in range(1 << index_bits)]
    for one, other in itertools.combinations(vectors, 2):
        assert (np.bincount(one ^ other, minlength=1 << signs) == seeds.size >> signs).all()


@pytest.mark.parametrize(("index_bits", "signs"), [(2, 1), (4, 4), (5, 3), (7, 1), (9, 6), (10, 3)])
def test_transform_and_solving_count_what_fits(index_bits: int, signs: int) -> None:
    rng = np.random.default_rng(index_bits)
    seeds = rng.integers(0, 1 << seed_bits(index_bits, signs), 400)
    seeds[:3] = 0, 0, 1  # matrices that hide everything, or nearly so
    vectors = rng.integers(0, 1 << signs, seeds.size)
    vectors[0] = 0
    naive = [int((sign_vectors(seeds, code, index_bits, signs) == vectors).sum()) for code in range(1 << index_bits)]
    for count in (counts_by_transform, counts_by_solving, fitting_counts):
        assert count(seeds, vectors, index_bits, signs).tolist() == naive


@pytest.mark.parametrize(("users", "bins"), [(300, 500), (100_000, 1_000_000)])
def test_a_fifth_less_noise_misses(users: int, bins: int) -> None:
    plan = Hadamard.plan(users=users, privacy=TARGET, categories=bins)
    assert plan.guarantee().delta <= 1e-6
    with pytest.raises(InfeasibleError):
        dataclasses.replace(plan, probability=0.8 * plan.probability)
    with pytest.raises(InfeasibleError):  # longer sign vectors are hit half as often
        dataclasses.replace(plan, signs=plan.signs + 1)


def test_the_audit_catches_half_the_noise() -> None:
    plan = _small(4, 17, users=10)  # sets that hardly meet, so that little is left between bound and truth
    assert audit_plan(plan, bits=RandomBits.seeded(1), trials=30_000).verdict == "stands"
    assert audit_plan(plan, bits=RandomBits.seeded(2), trials=30_000, sabotage=0.5).verdict == "refuted"


def test_as_many_signs_as_messages_allow() -> None:
    plan = Hadamard.plan(users=100_000, privacy=TARGET, categories=1_000_000, max_messages=8)
    assert plan.messages_per_user_max <= 8
    assert Hadamard.plan(users=100_000, privacy=TARGET, categories=1_000_000, max_messages=16).signs == plan.signs + 1
    assert plan.error_bound <= 1.3 * plan.reference()["central_l_inf_error"]
    with pytest.raises(InfeasibleError, match="decoys"):
        Hadamard.plan(users=100_000, privacy=TARGET, categories=1000)
    with pytest.raises(ParameterError):
        dataclasses.replace(plan, signs=20)


def test_messages_that_cannot_be_are_dropped() -> None:
    plan = _small(2, 9, users=10)
    reports = plan.randomize(np.arange(10) % 9, bits=RandomBits.seeded(1))
    fine = plan.analyze(Batch(reports.payloads, 10, reports.labels))
    payloads = np.concatenate((reports.payloads, np.array([plan.alphabet_size, 0], dtype=reports.payloads.dtype)))
    labels = np.concatenate((reports.labels, np.array([0, 4], dtype=np.uint8)))
    estimate = plan.analyze(Batch(payloads, 10, labels))
    assert estimate.dropped == 2 and np.array_equal(estimate.value, fine.value)
