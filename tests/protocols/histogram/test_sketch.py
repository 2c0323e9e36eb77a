"""The private Count-Min sketch: every promise, the whole view of tiny rounds, twins that fail, and large domains."""

import dataclasses
import itertools
import math

import numpy as np
import pytest

from shuffledp.accounting.repeated import RepeatedPair
from shuffledp.accounting.visible_coins import GridBallsPair
from shuffledp.audit.trials import audit_plan
from shuffledp.errors import InfeasibleError, ParameterError
from shuffledp.privacy import Privacy
from shuffledp.protocols.histogram.blanket import smallest_blanket
from shuffledp.protocols.histogram.sketch import Sketch, paper_sketch
from shuffledp.randomness import RandomBits
from shuffledp.testing.protocols import check_protocol

BAD_VALUES = [[0, 1, 20], [-1], [0.5], ["a"], [], [[1]]]
VALUES = [3] * 60 + [7] * 25 + [19] * 15


@pytest.fixture(scope="module")
def plan() -> Sketch:
    return Sketch.plan(users=100, privacy=Privacy(6, 1e-2), categories=20)


def test_keeps_every_promise(plan: Sketch) -> None:
    check_protocol(plan, VALUES, BAD_VALUES, runs=250)
    assert plan.collision_probability <= 0.01


def test_the_claimed_error_is_not_passed(plan: Sketch) -> None:
    """Where every category is alone in some row, whatever that row is."""
    bits = RandomBits.seeded(2)
    errors = np.array([plan.sample_estimate(VALUES, bits=bits).value for _ in range(200)]) - plan.true_value(VALUES)
    assert (np.sqrt((errors**2).mean(axis=0)) <= plan.standard_error).all()


def _views(data: tuple[int, int], hashes: tuple[tuple[int, ...], ...], probability: float) -> dict[tuple, float]:
    """The whole view of two users with a coin each, two rows and three columns."""
    one = [(None, 1 - probability)] + [(column, probability / 3) for column in range(3)]
    row_views = []
    for row in hashes:
        seen: dict[tuple[int, ...], float] = {}
        for thrown in itertools.product(one, repeat=2):
            counts = [0, 0, 0]
            for column in [*(row[code] for code in data), *(place for place, _ in thrown if place is not None)]:
                counts[column] += 1
            seen[tuple(counts)] = seen.get(tuple(counts), 0.0) + math.prod(chance for _, chance in thrown)
        row_views.append(seen)
    return {(a, b): p * q for (a, p), (b, q) in itertools.product(*(view.items() for view in row_views))}


@pytest.mark.parametrize("epsilon", [0.0, 0.6])
def test_the_pair_dominates_the_whole_view(epsilon: float) -> None:
    probability, deltas = 0.9, []
    for hashes in itertools.product(itertools.product(range(3), repeat=2), repeat=2):
        for other in (0, 1):
            p, q = (_views((own, other), hashes, probability) for own in (0, 1))
            deltas.append(sum(max(0.0, mass - math.exp(epsilon) * q.get(seen, 0.0)) for seen, mass in p.items()))
    delta = RepeatedPair(GridBallsPair(2, probability / 3), 2).delta(epsilon)
    assert max(deltas) <= delta <= 1.02 * max(deltas)


def test_a_fifth_less_noise_misses(plan: Sketch) -> None:
    assert plan.guarantee().delta <= 1e-2
    for twin in (plan.quieter(0.8), {"rows": plan.rows + 2}, {"columns": 2 * plan.columns}):
        with pytest.raises(InfeasibleError):
            dataclasses.replace(plan, **twin)


def test_rows_cost_less_than_their_number() -> None:
    plan = Sketch.plan(users=20_000, privacy=Privacy(1, 1e-6), categories=100)
    assert 42.7 < plan.cell_mean < plan.rows * smallest_blanket(Privacy(1, 1e-6))


def test_the_audit_catches_half_the_noise() -> None:
    loud = Sketch.plan(users=20, privacy=Privacy(2, 0.1), categories=3, max_messages=100)
    trials = 10_000
    assert audit_plan(loud, bits=RandomBits.seeded(1), trials=trials).verdict == "stands"
    assert audit_plan(loud, bits=RandomBits.seeded(2), trials=trials, sabotage=0.5).verdict == "refuted"


def test_a_domain_far_larger_than_the_users() -> None:
    plan = Sketch.plan(users=300, privacy=Privacy(6, 1e-3), categories=200_000, hash_seed=5)
    values = np.repeat([5, 77_777, 199_999], 100)
    estimate = plan.sample_estimate(values, bits=RandomBits.seeded(1))
    assert np.abs(estimate.value - plan.true_value(values)).max() <= plan.error_bound


def test_the_papers_constants() -> None:
    rows, columns, noise = paper_sketch(10**5, 1000, Privacy(1, 1e-6))
    assert (rows, columns) == (18, 200_000) and noise > 10**6
    with pytest.raises(InfeasibleError, match="fewer categories"):
        Sketch.plan(users=10**5, privacy=Privacy(1, 1e-6), categories=1000, constants="paper")
    paper = Sketch.plan(users=1000, privacy=Privacy(12, 1e-3), categories=2, constants="paper")
    assert paper.rows == 9 and paper.columns == 2000 and paper.guarantee().delta < 1e-20


def test_refusals(plan: Sketch) -> None:
    with pytest.raises(InfeasibleError, match="decoys"):
        Sketch.plan(users=1000, privacy=Privacy(1, 1e-6), categories=5, max_messages=10)
    for wrong in ({"columns": 1}, {"coins": 0}, {"probability": 0.0}):
        with pytest.raises(ParameterError):
            dataclasses.replace(plan, **wrong)
