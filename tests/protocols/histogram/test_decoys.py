"""Decoys: every promise of a plan, exact noise, twins that fail, and the figures beside the references."""

import dataclasses
import itertools
import math

import numpy as np
import pytest

from shuffledp.accounting.split_coins import BallsPair
from shuffledp.audit.trials import audit_plan
from shuffledp.errors import InfeasibleError
from shuffledp.privacy import Privacy
from shuffledp.protocols.histogram.decoys import Decoys
from shuffledp.randomness import RandomBits
from shuffledp.testing.protocols import check_protocol

TARGET = Privacy(1, 1e-6)
BAD_VALUES = [[0, 1, 5], [-1], [0.5], ["a"], [], [[1]]]


def test_keeps_every_promise() -> None:
    plan = Decoys.plan(users=60, privacy=TARGET, categories=5)
    check_protocol(plan, np.arange(60) % 5, BAD_VALUES, runs=2000)


def test_two_bins_are_enough() -> None:
    plan = Decoys.plan(users=50, privacy=TARGET, categories=["no", "yes"])
    check_protocol(plan, np.arange(50) % 2, BAD_VALUES, runs=1000)


def _brute_force(balls: int, bins: int, probability: float, epsilon: float) -> float:
    """The hockey stick of all counts of a user's own message and of balls that may be thrown, outcome by outcome."""
    views: list[dict[tuple[int, ...], float]] = [{}, {}]
    outcomes = [(None, 1 - probability)] + [(j, probability / bins) for j in range(bins)]
    for thrown in itertools.product(outcomes, repeat=balls):
        chance = math.prod(weight for _, weight in thrown)
        counts = [0] * bins
        for place, _ in thrown:
            if place is not None:
                counts[place] += 1
        for side in (0, 1):
            seen = counts.copy()
            seen[side] += 1
            views[side][tuple(seen)] = views[side].get(tuple(seen), 0.0) + chance
    p, q = views
    return sum(max(0.0, mass - math.exp(epsilon) * q.get(seen, 0.0)) for seen, mass in p.items())


@pytest.mark.parametrize(("balls", "bins", "probability"), [(4, 3, 0.7), (5, 2, 1.0), (5, 4, 0.4), (6, 2, 0.5)])
@pytest.mark.parametrize("epsilon", [0.0, 0.7])
def test_the_pair_is_the_whole_view(balls: int, bins: int, probability: float, epsilon: float) -> None:
    exact = _brute_force(balls, bins, probability, epsilon)
    assert BallsPair(balls, probability / bins).delta(epsilon) == pytest.approx(exact, rel=1e-8)


@pytest.mark.parametrize(("users", "bins"), [(100, 2), (1000, 50), (100_000, 1000)])
def test_a_fifth_less_noise_misses(users: int, bins: int) -> None:
    plan = Decoys.plan(users=users, privacy=TARGET, categories=bins)
    assert plan.guarantee().delta <= 1e-6
    with pytest.raises(InfeasibleError):
        dataclasses.replace(plan, probability=0.8 * plan.probability)


def test_the_audit_catches_half_the_noise() -> None:
    plan = Decoys.plan(users=40, privacy=Privacy(1, 1e-3), categories=3)
    trials = 400_000
    assert audit_plan(plan, bits=RandomBits.seeded(1), trials=trials).verdict == "stands"
    assert audit_plan(plan, bits=RandomBits.seeded(2), trials=trials, sabotage=0.5).verdict == "refuted"
    assert plan.twin(0.5).standard_error == pytest.approx(plan.standard_error * math.sqrt(0.5))


def test_close_to_the_curator_and_far_below_local() -> None:
    plan = Decoys.plan(users=100_000, privacy=TARGET, categories=1000)
    reference = plan.reference()
    assert plan.messages_per_user_max <= 4
    assert plan.error_bound <= 1.5 * reference["central_l_inf_error"]
    assert 10 * plan.error_bound <= reference["local_l_inf_error"]


def test_dropouts_cost_what_the_accountant_says() -> None:
    plan = Decoys.plan(users=1000, privacy=TARGET, categories=20, honest_fraction=0.5)
    assert plan.pair(500).delta(1.0) <= 1e-6
    assert plan.epsilon_with(0.25) > 1.2
