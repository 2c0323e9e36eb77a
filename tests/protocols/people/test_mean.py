"""The mean of people's rows: how many rows there are is private, and the noise hides both numbers together."""

import itertools
import json
import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from shuffledp import Privacy, RandomBits, simulate
from shuffledp.accounting.laws import DiscreteLaplace
from shuffledp.accounting.mixing import mixing_distance_of
from shuffledp.audit.trials import audit_plan
from shuffledp.errors import InfeasibleError, ParameterError
from shuffledp.protocols.catalogue import plan_from_document
from shuffledp.protocols.domains.row_means import RowMeans
from shuffledp.protocols.people.mean import RepeatedMeanFamily
from shuffledp.protocols.plan import changed
from shuffledp.protocols.statistics import MeanFamily
from shuffledp.protocols.statistics.weighted import WeightedMean

PRIVACY = Privacy(1, 1e-6)
RANGE: dict[str, Any] = {"low": -1, "high": 3, "at_most": 3}


def people_of(users: int, seed: int) -> np.ndarray:
    """Sums and numbers of rows; one person in four has none."""
    generator = np.random.default_rng(seed)
    rows = generator.integers(0, 4, users).astype(np.float64)
    return np.column_stack((rows * generator.uniform(-1, 3, users), rows))


def test_at_most_asks_for_it_and_the_plan_is_kept() -> None:
    plan: Any = MeanFamily.plan(users=500, privacy=PRIVACY, **RANGE)
    assert plan.protocol == "repeated-mean" and plan.domain.most_rows == 3
    assert plan_from_document(json.loads(json.dumps(plan.document()))) == plan
    with pytest.raises(InfeasibleError, match="one client"):
        MeanFamily.plan(users=500, privacy=PRIVACY, **RANGE, live=True)


def test_the_bound_holds_and_the_error_is_what_is_said() -> None:
    plan: Any = RepeatedMeanFamily.plan(users=600, privacy=PRIVACY, **RANGE)
    people = people_of(600, 1)
    truth, bits = people[:, 0].sum() / people[:, 1].sum(), RandomBits.seeded(1)
    assert plan.true_value(people) == pytest.approx(truth)
    found = [plan.sample_estimate(people, bits=bits) for _ in range(600)]
    errors = np.array([each.value - truth for each in found])
    said = float(np.mean([each.standard_error for each in found]))
    # Six deviations of the mean, and of the deviation, which a Laplace law finds to 4.6% in 600 runs.
    assert abs(errors.mean()) < 6 * said / math.sqrt(600)
    assert 0.72 * said < errors.std() < 1.28 * said
    assert np.mean([abs(error) <= each.bound for error, each in zip(errors, found, strict=True)]) > 0.93
    by_messages = simulate(plan, people, bits=RandomBits.seeded(3))
    assert abs(by_messages.value - truth) <= 3 * by_messages.bound


def test_it_is_better_than_a_weighted_mean_of_own_means() -> None:
    plan: Any = RepeatedMeanFamily.plan(users=5000, privacy=PRIVACY, **RANGE)
    weighted = WeightedMean.plan(users=5000, privacy=PRIVACY, low=-1, high=3, largest_weight=3)
    assert plan.error_among(7500) < 0.5 * weighted.mean_standard_error(1.0, total_weight=7500)


def test_without_rows_nothing_is_known() -> None:
    plan: Any = RepeatedMeanFamily.plan(users=50, privacy=PRIVACY, **RANGE)
    found = [plan.sample_estimate(np.zeros((50, 2)), bits=RandomBits.seeded(seed)) for seed in range(20)]
    assert all(-1 <= each.value <= 3 and each.standard_error <= 4 and each.bound <= 4 for each in found)
    assert max(each.bound for each in found) > 2


# --- privacy -------------------------------------------------------------------------------------


def test_no_two_people_are_further_apart_than_the_noise_hides() -> None:
    """By brute force over rows and roundings: both numbers together, and never beyond the ends."""
    domain = RowMeans(-1.0, 3.0, 3, 4)
    rows = [list(each) for size in range(4) for each in itertools.product((-1.0, 0.3, 3.0), repeat=size)]
    bits = RandomBits.seeded(1)
    steps = np.concatenate([domain.to_steps(domain.encode(rows), bits=bits) for _ in range(30)])
    steps = np.unique(steps, axis=0)
    assert max(int(np.abs(a - b).sum()) for a, b in itertools.product(steps, steps)) == domain.furthest == 12
    assert (np.abs(steps[:, 0]) <= steps[:, 1]).all() and steps[:, 1].max() == domain.highest
    law = DiscreteLaplace(RepeatedMeanFamily.plan(users=50, privacy=PRIVACY, **RANGE).sum_plan.ratio)
    grid = RepeatedMeanFamily.plan(users=50, privacy=PRIVACY, **RANGE).sum_plan.grid
    assert 3 * grid * law.largest_log_ratio <= PRIVACY.epsilon * (1 + 1e-12)


def test_quieter_twins_and_less_than_all_rows_are_refused() -> None:
    plan: Any = RepeatedMeanFamily.plan(users=300, privacy=PRIVACY, **RANGE)
    assert plan.guarantee().holds and not plan.twin(0.8).guarantee().holds
    sums = plan.sum_plan
    assert not changed(sums, ratio=sums.ratio**3).guarantee().holds
    every = mixing_distance_of([(300, sums.shares, 1 << sums.modulus_bits, 2)])
    transport = {term.name: term.value for term in sums.delta_terms(1.0, 300)}["transport"]
    assert transport >= (1 + math.e) * every * (1 - 1e-12)
    with pytest.raises(ParameterError, match="must be even"):
        replace(sums, grid=sums.grid + 1)


def test_nothing_that_is_sent_says_how_many_rows_one_has() -> None:
    plan: Any = RepeatedMeanFamily.plan(users=50, privacy=PRIVACY, **RANGE)
    sizes = {
        tuple(plan.randomize(plan.encode([rows] * 50), bits=RandomBits.seeded(1)).sizes) for rows in ([], [3.0] * 3)
    }
    assert len(sizes) == 1


def test_an_audit_finds_half_the_noise() -> None:
    plan = RepeatedMeanFamily.plan(users=6, privacy=Privacy(1, 1e-3), low=0, high=1, at_most=2)
    assert audit_plan(plan, bits=RandomBits.seeded(1), trials=20_000).verdict == "stands"
    assert audit_plan(plan, bits=RandomBits.seeded(2), trials=20_000, sabotage=0.5).verdict == "refuted"


def test_what_nobody_can_contribute_is_refused() -> None:
    rows = RowMeans(0.0, 2.0, 2, 4)
    for wrong, words in (
        ([[1.0]], "a sum of rows and their number"),
        ([[1.0, 3.0]], "whole number of rows in 0..2"),
        ([[1.0, 0.5]], "whole number of rows"),
        ([[2.5, 1.0]], "times the number of rows"),
        ([[0.1, 0.0]], "times the number of rows"),
    ):
        with pytest.raises(ParameterError, match=words):
            rows.check_values(np.array(wrong))
    with pytest.raises(ParameterError, match="at most 2 rows"):
        rows.encode([[1.0, 1.0, 1.0]])
    clipped, many = rows.clip_values(np.array([[5.0, 1.0], [1.0, 1.0]]))
    assert clipped.tolist() == [[2.0, 1.0], [1.0, 1.0]] and many == 1
