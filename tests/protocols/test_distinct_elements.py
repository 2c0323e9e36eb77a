"""Distinct elements by parities: every promise of a plan, the pair against brute force, twins that fail."""

import dataclasses
import itertools
import math

import numpy as np
import pytest

from shuffledp.accounting.mixing import mixing_distance
from shuffledp.audit.trials import audit_plan
from shuffledp.errors import BrokenBatchError, InfeasibleError
from shuffledp.messages import Batch
from shuffledp.privacy import Privacy
from shuffledp.protocols.distinct_elements import DistinctElements, Parities, parity_mixing
from shuffledp.randomness import RandomBits
from shuffledp.testing.protocols import check_protocol

TARGET = Privacy(1, 1e-6)
BAD_VALUES = [[0, 1, 5], [-1], [0.5], ["a"], [], [[1]]]


def test_keeps_every_promise() -> None:
    plan = Parities.plan(users=12, privacy=Privacy(1, 1e-2), categories=5)
    check_protocol(plan, np.arange(12) % 3, BAD_VALUES, runs=1500)


def _parities(values: list[int], bins: int, probability: float) -> dict[tuple[int, ...], float]:
    """The law of all bins' parities, user by user, bit by bit."""
    law = {(0,) * bins: 1.0}
    for value in values:
        after: dict[tuple[int, ...], float] = {}
        for seen, mass in law.items():
            for bits in itertools.product((0, 1), repeat=bins):
                chance = math.prod(
                    0.5 if j == value else probability if bit else 1 - probability for j, bit in enumerate(bits)
                )
                key = tuple(a ^ b for a, b in zip(seen, bits, strict=True))
                after[key] = after.get(key, 0.0) + mass * chance
        law = after
    return law


@pytest.mark.parametrize("epsilon", [0.0, 0.5, 1.0])
def test_the_pair_dominates_whatever_the_others_have(epsilon: float) -> None:
    users, bins, probability = 4, 3, 0.07
    plan = Parities.plan(users=users, privacy=Privacy(5, 0.9), categories=bins)
    claimed = dataclasses.replace(plan, probability=probability).pair(users).delta(epsilon)
    worst = 0.0
    for others in itertools.product(range(bins), repeat=users - 1):
        for mine, yours in itertools.permutations(range(bins), 2):
            p, q = (_parities([x, *others], bins, probability) for x in (mine, yours))
            worst = max(worst, sum(max(0.0, p[k] - math.exp(epsilon) * q[k]) for k in p))
    assert worst <= claimed <= worst * (1 + 1e-8) + 1e-9


def _views(values: tuple[int, ...], shares: int) -> dict[int, float]:
    """The law of what permuted shares modulo 2 show: the number of ones."""
    law = {0: 1.0}
    for value in values:
        own = [s for s in itertools.product((0, 1), repeat=shares) if sum(s) % 2 == value]
        after: dict[int, float] = {}
        for seen, mass in law.items():
            for s in own:
                after[seen + sum(s)] = after.get(seen + sum(s), 0.0) + mass / len(own)
        law = after
    return law


@pytest.mark.parametrize(("users", "shares"), [(2, 4), (3, 4), (4, 3), (5, 4), (6, 5)])
def test_shares_of_a_parity_mix_at_least_as_well_as_claimed(users: int, shares: int) -> None:
    for parity in (0, 1):
        inputs = [x for x in itertools.product((0, 1), repeat=users) if sum(x) % 2 == parity]
        laws = [_views(x, shares) for x in inputs]
        outcomes = set().union(*laws)
        simulated = {k: sum(law.get(k, 0.0) for law in laws) / len(laws) for k in outcomes}
        worst = max(sum(abs(law.get(k, 0.0) - simulated[k]) for k in outcomes) / 2 for law in laws)
        assert worst <= parity_mixing(users, shares)
    assert parity_mixing(users, shares) == mixing_distance(users, shares, max(2, users - 1))


@pytest.mark.parametrize(("users", "fraction"), [(50, 1.0), (5000, 0.5)])
def test_a_fifth_less_noise_misses(users: int, fraction: float) -> None:
    plan = Parities.plan(users=users, privacy=TARGET, categories=30, honest_fraction=fraction)
    assert plan.guarantee().delta <= 1e-6
    assert plan.odd >= 1 / (1 + math.e) * (1 - 1e-4)
    for less in (plan.quieter(0.8), {"shares": plan.shares - 1}):
        with pytest.raises(InfeasibleError):
            dataclasses.replace(plan, **less)


def test_the_audit_catches_half_the_noise() -> None:
    plan = Parities.plan(users=6, privacy=Privacy(1, 1e-2), categories=3)
    assert audit_plan(plan, bits=RandomBits.seeded(1), trials=40_000).verdict == "stands"
    assert audit_plan(plan, bits=RandomBits.seeded(2), trials=40_000, sabotage=0.5).verdict == "refuted"


def test_the_error_grows_with_the_root_of_the_categories() -> None:
    errors = [DistinctElements.plan(users=1000, privacy=TARGET, categories=d).standard_error for d in (10, 1000)]
    assert errors[1] / errors[0] == pytest.approx(10, rel=0.01)
    assert errors[0] == pytest.approx(math.sqrt(10) / 2 / (0.5 - 1 / (1 + math.e)), rel=1e-3)


def test_a_lost_share_voids_the_batch() -> None:
    plan = Parities.plan(users=20, privacy=Privacy(1, 1e-2), categories=4)
    reports = plan.randomize(np.arange(20) % 4, bits=RandomBits.seeded(3))
    assert plan.analyze(Batch(reports.payloads, 20, reports.labels)).bound == plan.error_bound
    moved = reports.labels.copy()
    moved[0] = 1
    for payloads, labels in ((reports.payloads[1:], reports.labels[1:]), (reports.payloads, moved)):
        with pytest.raises(BrokenBatchError):
            plan.analyze(Batch(payloads, 20, labels))


def test_two_bins_transport_is_a_term_of_delta() -> None:
    plan = Parities.plan(users=50, privacy=TARGET, categories=30)
    for honest in (50, 30):
        [shown] = [term.value for term in plan.delta_terms(1.0, honest) if term.name == "transport"]
        expected = (1 + math.e) * parity_mixing(honest, plan.shares, 2)
        alone = parity_mixing(honest, plan.shares)
        assert alone < parity_mixing(honest, plan.shares, 2) < 2 * alone or alone in (0.0, 1.0)
        assert shown == pytest.approx(expected, abs=0) and shown > 0
