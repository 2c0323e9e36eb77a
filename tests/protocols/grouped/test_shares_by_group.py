"""Counts, rates and sums by group in shares: a replaced person moves two numbers, and the noise hides both."""

import itertools
import json
import math
from typing import Any

import numpy as np
import pytest

from shuffledp import BinarySum, BoundedSum, Histogram, Privacy, RandomBits, simulate
from shuffledp.accounting.laws import DiscreteLaplace
from shuffledp.accounting.mixing import mixing_distance, mixing_distance_of
from shuffledp.audit.trials import audit_plan
from shuffledp.errors import InfeasibleError, ParameterError
from shuffledp.protocols.catalogue import plan_from_document
from shuffledp.protocols.domains.categories import Names
from shuffledp.protocols.domains.grouped import GroupedBits
from shuffledp.protocols.domains.grouped_rows import GroupedRowBits, GroupedRows
from shuffledp.protocols.grouped.families import GroupedCountFamily, GroupedRateFamily, GroupedSumFamily
from shuffledp.protocols.grouped.moments import (
    GroupedMomentsFamily,
    GroupedRowsMeanFamily,
    GroupedRowsMomentsFamily,
    GroupedRowsRateFamily,
)
from shuffledp.protocols.grouped.rows import GroupedRowsCountFamily, GroupedRowsSumFamily
from shuffledp.protocols.plan import changed
from shuffledp.testing.protocols import check_protocol
from shuffledp.testing.statistics import assert_mean

PRIVACY = Privacy(1, 1e-6)
GROUPS = ["A", "B", "C"]
RANGE = {"low": -1, "high": 3}
# Each family with what it is told, and the method of shares in it.
METHODS: list[tuple[Any, dict[str, Any]]] = [
    (GroupedCountFamily, {"method": "shares"}),
    (GroupedRateFamily, {"method": "shares"}),
    (GroupedSumFamily, {"method": "totals", **RANGE}),
    (GroupedRowsCountFamily, {"at_most": 3}),
    (GroupedRowsSumFamily, {"at_most": 3, **RANGE}),
    (GroupedMomentsFamily, RANGE),
    (GroupedRowsRateFamily, {"at_most": 3}),
    (GroupedRowsMeanFamily, {"at_most": 3, **RANGE}),
    (GroupedRowsMomentsFamily, {"at_most": 3, **RANGE}),
]
# How many numbers a group has, where it is not one.
PARTS = {
    "grouped-rate": 2,
    "grouped-moments": 3,
    "grouped-rows-rate": 2,
    "grouped-rows-mean": 2,
    "grouped-rows-moments": 3,
}
NAMED = [family.name for family, _ in METHODS]


# --- which method --------------------------------------------------------------------------------


def test_a_count_of_two_groups_is_as_exact_as_two_counts_at_half_epsilon() -> None:
    """By hand: a count of each group, at half of epsilon and delta."""
    plan: Any = BinarySum.plan(users=500, privacy=Privacy(1, 1e-4), groups=["A", "B"])
    by_hand = BinarySum.plan(users=500, privacy=Privacy(0.5, 5e-5))
    assert plan.protocol == "grouped-count" and plan.method == "shares"
    assert plan.standard_error <= by_hand.standard_error * (1 + 1e-9) and plan.messages_per_user_max <= 32


def test_auto_keeps_to_few_messages_and_a_live_plan_to_what_nobody_can_void() -> None:
    many = [f"g{place}" for place in range(40)]
    asked: dict[str, Any] = {"users": 500, "privacy": PRIVACY}
    found = GroupedCountFamily.choose(**asked, groups=many)
    assert found.plan.method == "decoys" and found.plan.messages_per_user_max <= 32
    assert GroupedCountFamily.plan(**asked, groups=many, method="shares").messages_per_user_max > 32
    for family, told in METHODS:
        with pytest.raises(InfeasibleError, match="one client"):
            family.plan(**asked, groups=GROUPS, live=True, **told)


@pytest.mark.parametrize("ends", [(0, 5), (-1, 3), (18, 99), (-7, -2)])
def test_one_number_a_group_is_never_worse_for_a_sum_and_half_the_messages(ends: tuple[float, float]) -> None:
    asked: dict[str, Any] = {"users": 3000, "privacy": PRIVACY, "groups": GROUPS, "low": ends[0], "high": ends[1]}
    totals, both = (GroupedSumFamily.plan(**asked, method=method) for method in ("totals", "shares"))
    assert BoundedSum.plan(**asked).method == "totals"
    assert totals.standard_error <= both.standard_error * 1.001 and totals.error_bound <= both.error_bound
    assert totals.messages_per_user_max < 0.6 * both.messages_per_user_max


# --- accuracy ------------------------------------------------------------------------------------


def test_counts_and_rates_keep_every_promise() -> None:
    privacy = Privacy(3, 1e-3)
    count: Any = GroupedCountFamily.plan(users=12, privacy=privacy, groups=GROUPS, method="shares")
    people = count.encode([("A", 1), ("B", 0), ("C", 1), ("C", 0)] * 3)
    assert count.true_value(people).tolist() == [3, 0, 3]
    check_protocol(count, people, [[6] * 12, [-1] * 12], runs=400)
    rate: Any = GroupedRateFamily.plan(users=12, privacy=privacy, groups=GROUPS, method="shares")
    estimate = simulate(rate, people, bits=RandomBits.seeded(1))
    assert len(estimate.ends) == 3 and not simulate(count, people, bits=RandomBits.seeded(1)).ends
    # Independent noise: nothing is added where two ends are combined.
    assert estimate.ends_error == rate.sum_plan.standard_error


def test_rows_by_group_keep_every_promise() -> None:
    plan: Any = GroupedRowsCountFamily.plan(users=12, privacy=Privacy(3, 1e-3), groups=GROUPS, at_most=2)
    people = plan.encode([[("A", 1), ("B", 1)], [("B", 1), ("B", 1)], [("C", 0)], []] * 3)
    assert plan.true_value(people).tolist() == [3, 9, 0]
    check_protocol(plan, people, [np.full((12, 4), 4.0), np.full((12, 3), 0.0), np.full((12, 4), 2.0)], runs=400)


@pytest.mark.parametrize("method", ["one row", "two rows"])
def test_sums_are_unbiased_and_their_intervals_hold(method: str) -> None:
    rows = 1 if method == "one row" else 2
    asked: dict[str, Any] = {"users": 300, "privacy": PRIVACY, "groups": GROUPS, **RANGE}
    plan = GroupedSumFamily.plan(**asked) if rows == 1 else GroupedRowsSumFamily.plan(**asked, at_most=rows)
    generator, bits = np.random.default_rng(2), RandomBits.seeded(2)
    columns = [(generator.integers(0, 3, 300), generator.uniform(-1, 3, 300)) for _ in range(rows)]
    people = np.column_stack([column for pair in columns for column in pair])
    truth = plan.true_value(people)
    estimates = [plan.sample_estimate(people, bits=bits) for _ in range(600)]
    errors = np.array([each.value - truth for each in estimates])
    assert_mean(errors.reshape(-1), 0.0, plan.standard_error, false_alarm=1e-9)
    # Rounding is counted at its worst: the error claimed is an upper bound, and not a loose one.
    assert 0.9 * plan.standard_error < float(errors.std()) < 1.05 * plan.standard_error
    held = [bool(((each.lower <= truth) & (truth <= each.upper)).all()) for each in estimates]
    assert np.mean(held) > 0.92
    by_messages = simulate(plan, people, bits=RandomBits.seeded(3))
    assert (np.abs(by_messages.value - truth) < 10 * plan.standard_error).all()


# --- privacy -------------------------------------------------------------------------------------


@pytest.mark.parametrize(("family", "told"), METHODS, ids=NAMED)
def test_a_twin_with_a_fifth_less_noise_is_refused(family: Any, told: dict[str, Any]) -> None:
    plan = family.plan(users=300, privacy=PRIVACY, groups=GROUPS, **told)
    assert plan.guarantee().holds and not plan.twin(0.8).guarantee().holds
    assert plan_from_document(json.loads(json.dumps(plan.document()))) == plan


@pytest.mark.parametrize(("family", "told"), METHODS, ids=NAMED)
def test_noise_for_half_of_what_is_moved_is_refused(family: Any, told: dict[str, Any]) -> None:
    """The ratio that hides a person in one number, where a replaced one moves two."""
    sums = family.plan(users=300, privacy=PRIVACY, groups=GROUPS, **told).sum_plan
    assert not changed(sums, ratio=sums.ratio**2).guarantee().holds


def exact_delta(ratio: float, shift: Any, epsilon: float) -> float:
    """The hockey-stick of two independent discrete Laplace noises against their shift, from their tables."""
    law, reach = DiscreteLaplace(ratio), 80
    points = np.arange(-reach, reach + 1, dtype=np.float64)
    first, second = (
        np.multiply.outer(*(np.exp(law.log_pmf(points - moved)) for moved in by)) for by in ((0, 0), shift)
    )
    return float(np.maximum(first - math.exp(epsilon) * second, 0).sum())


def test_the_pair_of_a_count_is_exact() -> None:
    """From tables: two ones moved, in either direction, and every epsilon; one that is moved shows less."""
    plan: Any = GroupedCountFamily.plan(users=300, privacy=PRIVACY, groups=GROUPS, method="shares")
    pair, ratio = plan.pair(300), plan.sum_plan.ratio
    for epsilon in (0.0, 0.1, 0.3, 0.7, 0.95):
        for shift in ((1, -1), (1, 1), (-1, 1)):
            exact = exact_delta(ratio, shift, epsilon)
            # The composition is rounded up to its grid of losses.
            assert exact * (1 - 1e-9) <= pair.delta(epsilon) <= 1.02 * exact + 1e-9
        one = exact_delta(ratio, (1, 0), epsilon)
        # At epsilon 0 one that is moved shows as much as two: the losses of two are those of one, or cancel.
        assert one < exact if epsilon else one == pytest.approx(exact, rel=1e-12)
    assert pair.delta(1.0) == 0.0


def steps_of(domain: Any, people: list[Any]) -> list[np.ndarray]:
    return [domain.to_steps(domain.encode([person]), bits=RandomBits.seeded(1))[0] for person in people]


def test_no_two_people_are_further_apart_than_the_noise_hides() -> None:
    """By brute force, over all that a person may contribute."""
    names = Names(("A", "B", "C"))
    bits = GroupedBits(names)
    ones = steps_of(bits, [(group, bit) for group in names.listed for bit in (0, 1)])
    assert max(np.abs(a - b).max() for a, b in itertools.product(ones, ones)) == 1
    assert max(np.abs(a - b).sum() for a, b in itertools.product(ones, ones)) == 2
    every = [("A", 1), ("B", 1), ("C", 1), ("A", 0)]
    for domain, single in (
        (GroupedRowBits(names, at_most=2), every),
        (GroupedRows(names, -1.0, 2.0, 2, 4), [(group, number) for group in "AB" for number in (-1.0, 0.3, 2.0)]),
        (GroupedRows(names, 5.0, 7.0, 2, 4), [(group, number) for group in "ABC" for number in (5.0, 7.0)]),
    ):
        people = [list(rows) for size in (0, 1, 2) for rows in itertools.product(single, repeat=size)]
        steps = steps_of(domain, people)
        assert max(np.abs(a - b).sum() for a, b in itertools.product(steps, steps)) == domain.furthest
        assert all(domain.lowest <= each.min() and each.max() <= domain.highest for each in steps)


@pytest.mark.parametrize(("family", "told"), METHODS, ids=NAMED)
def test_every_number_is_paid_for_in_the_transport(family: Any, told: dict[str, Any]) -> None:
    sums = family.plan(users=300, privacy=PRIVACY, groups=[f"g{k}" for k in range(300)], **told).sum_plan
    assert sums.coordinates == 300 * PARTS.get(family.name, 1)
    every = mixing_distance_of([(300, sums.shares, 1 << sums.modulus_bits, sums.coordinates)])
    assert every > 0.9 * math.sqrt(sums.coordinates) * mixing_distance(300, sums.shares, 1 << sums.modulus_bits)
    transport = {term.name: term.value for term in sums.delta_terms(1.0, 300)}["transport"]
    assert transport >= (1 + math.e) * every * (1 - 1e-12) and sums.guarantee().holds


@pytest.mark.parametrize(("family", "told"), [METHODS[0], METHODS[3]], ids=[NAMED[0], NAMED[3]])
def test_an_audit_finds_half_the_noise(family: Any, told: dict[str, Any]) -> None:
    plan = family.plan(users=6, privacy=Privacy(1, 1e-3), groups=["A", "B"], **told)
    assert audit_plan(plan, bits=RandomBits.seeded(1), trials=60_000).verdict == "stands"
    assert audit_plan(plan, bits=RandomBits.seeded(2), trials=60_000, sabotage=0.5).verdict == "refuted"


# --- what is refused ------------------------------------------------------------------------------


def test_rows_by_group_refuse_what_nobody_can_contribute() -> None:
    rows = GroupedRows(Names(("A", "B")), 5.0, 7.0, 2, 4)
    for wrong, words in (
        ([[("A", 5), ("A", 6), ("B", 7)]], "at most 2 rows"),
        ([[("A", 8)]], "must lie in"),
        ([[("Z", 5)]], "must be one of the 2"),
        ([[("A", "x")]], "must be a number beside each group"),
        ([["A"]], "must be pairs"),
    ):
        with pytest.raises(ParameterError, match=words):
            rows.encode(wrong)
    for numbers, words in (
        ([[0.0, 5.0]], "2 pairs"),
        ([[3.0, 0.0, 0.0, 5.0]], "groups' numbers in"),
        ([[2.0, 5.0, 0.0, 5.0]], "must be 0 where there is no row"),
        ([[0.0, 4.0, 2.0, 0.0]], "must lie in"),
    ):
        with pytest.raises(ParameterError, match=words):
            rows.check_values(np.array(numbers))
    clipped, many = rows.clip_values(np.array([[0.0, 9.0, 2.0, 0.0]]))
    assert clipped.tolist() == [[0.0, 7.0, 2.0, 0.0]] and many == 1
    assert rows.encode(np.array(["A,5;B,6", "", "B,7"])).tolist() == [[0, 5, 1, 6], [2, 0, 2, 0], [1, 7, 2, 0]]


def test_where_rows_of_groups_cannot_be_asked_for_the_way_out_is_no_danger() -> None:
    """Leaving out whose a row is would make a person of every row."""
    asked: dict[str, Any] = {"users": 400, "privacy": PRIVACY, "groups": Names(("A", "B")), "at_most": 3}
    with pytest.raises(ParameterError, match="make one row a person first") as refused:
        Histogram.plan(**asked, categories=3)
    assert "leave" not in str(refused.value) and "Names" not in str(refused.value)
