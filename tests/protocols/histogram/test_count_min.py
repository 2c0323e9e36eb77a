"""Count-Min on opting in: every promise, the whole view of tiny rounds, twins that fail, and large domains."""

import dataclasses
import itertools
import math

import numpy as np
import pytest

from shuffledp.accounting.repeated import RepeatedPair
from shuffledp.accounting.visible_coins import OptInPair
from shuffledp.audit.trials import audit_plan
from shuffledp.errors import InfeasibleError, ParameterError
from shuffledp.privacy import Privacy
from shuffledp.protocols.histogram.count_min import CountMin
from shuffledp.protocols.histogram.opt_in import OptIn
from shuffledp.randomness import RandomBits
from shuffledp.testing.protocols import check_protocol

BAD_VALUES = [[0, 1, 20], [-1], [0.5], ["a"], [], [[1]]]
VALUES = [3] * 60 + [7] * 25 + [19] * 15


@pytest.fixture(scope="module")
def plan() -> CountMin:
    return CountMin.plan(users=100, privacy=Privacy(6, 1e-2), categories=20)


def test_keeps_every_promise(plan: CountMin) -> None:
    check_protocol(plan, VALUES, BAD_VALUES, runs=250)
    assert plan.collision_probability <= 0.01


def test_the_claimed_error_is_not_passed(plan: CountMin) -> None:
    """Where every category is alone in some row, whatever that row is."""
    bits = RandomBits.seeded(2)
    errors = np.array([plan.sample_estimate(VALUES, bits=bits).value for _ in range(200)]) - plan.true_value(VALUES)
    assert (np.sqrt((errors**2).mean(axis=0)) <= plan.standard_error).all()
    assert (errors[:, [j for j in range(20) if j not in (3, 7, 19)]] == 0).all()


def _views(data: tuple[int, int], hashes: tuple[tuple[int, ...], ...], probability: float) -> dict[tuple, float]:
    """The whole view of two users, two rows and two columns: in each row how many opted in, and both columns."""
    one = [((0, 0, 0), 1 - probability)]
    one += [((1, *coins), probability / 4) for coins in itertools.product((0, 1), repeat=2)]
    row_views = []
    for row in hashes:
        seen: dict[tuple[int, ...], float] = {}
        for noise in itertools.product(one, repeat=2):
            total = np.sum([each for each, _ in noise], axis=0)
            for code in data:
                total[1 + row[code]] += 1
            key = tuple(total.tolist())
            seen[key] = seen.get(key, 0.0) + math.prod(chance for _, chance in noise)
        row_views.append(seen)
    return {(a, b): p * q for (a, p), (b, q) in itertools.product(*(view.items() for view in row_views))}


@pytest.mark.parametrize("epsilon", [0.0, 0.7])
def test_the_pair_dominates_the_whole_view(epsilon: float) -> None:
    probability, deltas = 0.8, []
    for hashes in itertools.product(itertools.product(range(2), repeat=2), repeat=2):
        for other in (0, 1):
            p, q = (_views((own, other), hashes, probability) for own in (0, 1))
            deltas.append(sum(max(0.0, mass - math.exp(epsilon) * q.get(seen, 0.0)) for seen, mass in p.items()))
    delta = RepeatedPair(OptInPair(2, probability), 2).delta(epsilon)
    assert max(deltas) <= delta <= 1.02 * max(deltas)


def test_a_fifth_less_noise_misses(plan: CountMin) -> None:
    assert plan.guarantee().delta <= 1e-2
    for twin in (plan.quieter(0.8), {"rows": plan.rows + 2}):
        with pytest.raises(InfeasibleError):
            dataclasses.replace(plan, **twin)


def test_exact_composition_is_far_below_dividing_by_the_rows(plan: CountMin) -> None:
    divided = OptIn.plan(users=1000, privacy=Privacy(6 / plan.rows, 1e-2 / plan.rows), categories=20)
    assert 1.5 * plan.opted_mean < divided.opted_mean


def test_the_audit_catches_half_the_noise() -> None:
    loud = CountMin.plan(users=20, privacy=Privacy(2, 0.1), categories=3, max_messages=100)
    trials = 10_000
    assert audit_plan(loud, bits=RandomBits.seeded(1), trials=trials).verdict == "stands"
    assert audit_plan(loud, bits=RandomBits.seeded(2), trials=trials, sabotage=0.5).verdict == "refuted"


def test_a_domain_far_larger_than_the_users() -> None:
    plan = CountMin.plan(users=300, privacy=Privacy(6, 1e-3), categories=200_000, hash_seed=5)
    values = np.repeat([5, 77_777, 199_999], 100)
    estimate = plan.sample_estimate(values, bits=RandomBits.seeded(1))
    assert np.abs(estimate.value - plan.true_value(values)).max() <= plan.error_bound
    assert np.count_nonzero(estimate.value) <= 3


def test_refusals_name_the_way_out(plan: CountMin) -> None:
    with pytest.raises(InfeasibleError, match="exact"):
        CountMin.plan(users=1000, privacy=Privacy(1, 1e-6), categories=5, constants="paper")
    with pytest.raises(InfeasibleError, match="decoys"):
        CountMin.plan(users=1000, privacy=Privacy(1, 1e-6), categories=5, max_messages=10)
    with pytest.raises(InfeasibleError, match="more users"):
        CountMin.plan(users=20, privacy=Privacy(1, 1e-6), categories=5)
    with pytest.raises(ParameterError):
        dataclasses.replace(plan, columns=0)
