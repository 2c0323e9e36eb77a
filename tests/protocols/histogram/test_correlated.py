"""Parallel correlated noise: every promise of a plan, the whole view of tiny rounds, twins that fail, the figures."""

import dataclasses
import itertools
import math

import numpy as np
import pytest

from shuffledp.accounting.correlated import CorrelatedPair
from shuffledp.accounting.curves import smallest_real
from shuffledp.accounting.differences import negative_binomial_masses
from shuffledp.accounting.two_bins import TwoBinsPair
from shuffledp.audit.trials import audit_plan
from shuffledp.errors import InfeasibleError
from shuffledp.messages import Batch
from shuffledp.privacy import Privacy
from shuffledp.protocols.histogram.correlated import HistogramCorrelated
from shuffledp.protocols.plan import changed
from shuffledp.randomness import RandomBits
from shuffledp.simulation.run import simulate
from shuffledp.testing.protocols import check_protocol

TARGET = Privacy(1, 1e-6)
BAD_VALUES = [[0, 1, 5], [-1], [0.5], ["a"], [], [[1]]]


def test_keeps_every_promise() -> None:
    plan = HistogramCorrelated.plan(users=100, privacy=Privacy(2, 1e-3), categories=4)
    check_protocol(plan, np.arange(100) % 3, BAD_VALUES, runs=500)


def test_keeps_every_promise_when_some_drop_out() -> None:
    plan = HistogramCorrelated.plan(users=50, privacy=Privacy(2, 1e-2), categories=2, honest_fraction=0.8)
    check_protocol(plan, np.arange(50) % 2, BAD_VALUES, runs=300)
    assert plan.pair(40).delta(2.0) <= 1e-2 < plan.pair(20).delta(2.0)


def _bin_view(ratio: float, shape: float, flood_ratio: float, size: int) -> np.ndarray:
    """P[plus ones = a, minus ones = b] of one bin's noise, noise by noise, far enough out."""
    noise, flood = (negative_binomial_masses(s, r)[:size] for s, r in ((1.0, ratio), (shape, flood_ratio)))
    plane = np.zeros((2 * size, 2 * size))
    for z, weight in enumerate(flood):
        plane[z : z + noise.size, z : z + noise.size] += weight * np.outer(noise, noise)
    return plane


@pytest.mark.parametrize("epsilon", [0.0, 0.8, 2.0])
def test_the_pair_is_two_bins_of_plus_and_minus_ones(epsilon: float) -> None:
    ratio, shape, flood_ratio = 0.2, 1.5, 0.2
    plane = _bin_view(ratio, shape, flood_ratio, 12)
    moved = np.zeros_like(plane)
    moved[1:] = plane[:-1]
    # All four numbers of two bins at once; a third bin is noise alone, whatever the others have.
    p, q = np.multiply.outer(moved, plane), np.multiply.outer(plane, moved)
    brute = float(np.maximum(p - math.exp(epsilon) * q, 0).sum())
    delta = TwoBinsPair(CorrelatedPair(ratio, shape, flood_ratio)).delta(epsilon)
    assert delta >= brute * (1 - 1e-9) and delta == pytest.approx(brute, rel=1e-4)


def test_the_others_categories_do_not_matter() -> None:
    """Three users, message by message: whatever two of them have, what is left is the third and the noise."""
    plan = HistogramCorrelated.plan(users=3, privacy=Privacy(3, 1e-2), categories=3)
    laws = []
    for others in itertools.product(range(3), repeat=2):
        values = np.tile([0, *others], 3000)
        reports = plan.randomize(values, bits=RandomBits.seeded(5))
        rows = np.repeat(np.arange(3000), reports.sizes.reshape(3000, 3).sum(axis=1))
        seen = np.bincount(rows * 6 + reports.payloads, minlength=18_000).reshape(3000, 6)
        for j in others:
            seen[:, 2 * j + 1] -= 1
        laws.append(seen)
    # The same bits give the same noise, so that not only the law but each view is the same.
    assert all((law == laws[0]).all() for law in laws[1:])


@pytest.mark.parametrize(("users", "bins"), [(100, 2), (100_000, 1000)])
def test_a_fifth_less_noise_misses(users: int, bins: int) -> None:
    plan = HistogramCorrelated.plan(users=users, privacy=TARGET, categories=bins)
    assert plan.guarantee().delta <= 1e-6
    for twin in (plan.quieter(0.8), {"flood_shape": 0.8 * plan.flood_shape}, {"most_pairs": plan.most_pairs // 2}):
        with pytest.raises(InfeasibleError):
            dataclasses.replace(plan, **twin)


def test_the_audit_catches_half_the_noise() -> None:
    plan = HistogramCorrelated.plan(users=30, privacy=Privacy(1, 1e-2), categories=2)
    trials = 15_000
    assert audit_plan(plan, bits=RandomBits.seeded(1), trials=trials).verdict == "stands"
    assert audit_plan(plan, bits=RandomBits.seeded(2), trials=trials, sabotage=0.5).verdict == "refuted"


def test_almost_the_curator() -> None:
    plan = HistogramCorrelated.plan(users=100_000, privacy=TARGET, categories=1000)
    assert plan.error_bound <= 1.1 * plan.reference()["central_l_inf_error"]
    assert plan.messages_per_user_mean <= 7
    many = HistogramCorrelated.plan(users=10_000_000, privacy=TARGET, categories=1000)
    assert many.messages_per_user_mean <= 1.1, "vanishes with the number of users"


def test_fewer_messages_at_most_cost_a_little() -> None:
    plans = [
        HistogramCorrelated.plan(users=100_000, privacy=TARGET, categories=1000, max_messages=most)
        for most in (None, 300, 170)
    ]
    assert [plan.messages_per_user_max <= most for plan, most in zip(plans[1:], (300, 170), strict=True)] == [True] * 2
    assert plans[0].error_bound <= plans[1].error_bound <= plans[2].error_bound <= 30
    with pytest.raises(InfeasibleError, match="max_messages"):
        HistogramCorrelated.plan(users=100_000, privacy=TARGET, categories=1000, max_messages=10)


def test_the_papers_constants() -> None:
    plan = HistogramCorrelated.plan(users=100_000, privacy=TARGET, categories=1000, constants="paper")
    exact = HistogramCorrelated.plan(users=100_000, privacy=TARGET, categories=1000)
    assert plan.guarantee().terms[0].value < 1e-20
    assert plan.messages_per_user_mean > 10 * exact.messages_per_user_mean
    # With the paper's own decay, the flood for two bins that is really needed.
    needed = smallest_real(
        lambda r: TwoBinsPair(CorrelatedPair(plan.ratio, r, plan.flood_ratio)).delta(1) <= 1e-6, 0.0, 1.0, relative=1e-3
    )
    assert plan.flood_shape > 5 * needed


def test_many_users_message_by_message() -> None:
    plan = HistogramCorrelated.plan(users=100_000, privacy=TARGET, categories=1000)
    values = np.arange(100_000) % 900
    estimate = simulate(plan, values, bits=RandomBits.seeded(1))
    assert np.abs(estimate.value - plan.true_value(values)).max() <= 1.5 * estimate.bound


@pytest.mark.parametrize("sign", [0, 1])
def test_a_client_that_sends_all_its_messages_to_one_bin_moves_that_bin_as_said(sign: int) -> None:
    """A category's plus one is the message 2 c + 1 and its minus one 2 c; all others of the client's bins stay.

    Between only plus ones and only minus ones, as many as are taken from one user, lies the whole influence.
    """
    plan = HistogramCorrelated.plan(users=200, privacy=TARGET, categories=3)
    honest = np.full(200, 2 * 1 + 1, dtype=np.uint8)
    lied = np.concatenate((honest[1:], np.full(plan.messages_per_user_max, 2 * 1 + sign, dtype=np.uint8)))
    moved = plan.analyze(Batch(lied, 200)).value - plan.analyze(Batch(honest, 200)).value
    assert moved[0] == moved[2] == 0
    assert abs(moved[1]) <= plan.influence == 2 * plan.messages_per_user_max
    assert moved[1] == (plan.messages_per_user_max if sign else -plan.messages_per_user_max) - 1
    assert f"at most {plan.influence:,.0f}" in plan.lying_client and not plan.warnings


def test_no_client_reports_more_than_its_lie_is_bounded_by() -> None:
    """What is taken from one user is what honest ones may send: reports are cut, and their cut costs delta."""
    plan = HistogramCorrelated.plan(users=30, privacy=Privacy(2, 1e-3), categories=4)
    sizes = plan.randomize(np.arange(300) % 4, bits=RandomBits.seeded(1)).sizes
    assert sizes.max() <= plan.messages_per_user_max
    short = changed(plan, most_noise=1, most_pairs=1)
    assert short.randomize(np.arange(300) % 4, bits=RandomBits.seeded(1)).sizes.max() == short.messages_per_user_max
    assert short.delta_terms(2.0, 30)[1].value > plan.delta_terms(2.0, 30)[1].value


def test_a_message_of_no_category_is_dropped_and_widens_the_bound() -> None:
    plan = HistogramCorrelated.plan(users=200, privacy=TARGET, categories=3)
    found = plan.analyze(Batch(np.append(np.ones(200, dtype=np.uint8), np.uint8(plan.alphabet_size)), 200))
    assert found.dropped == 1 and found.bound == plan.error_bound + plan.message_influence
    assert found.value.tolist() == [200.0, 0.0, 0.0]
