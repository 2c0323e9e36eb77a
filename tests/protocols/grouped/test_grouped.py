"""Numbers by group: everybody reports over all groups in one batch, and all intervals hold at once."""

import itertools
import json
import math
from typing import Any

import numpy as np
import pytest

from shuffledp import BinarySum, BoundedSum, Histogram, Privacy, RandomBits, simulate
from shuffledp.accounting.laws import DiscreteLaplace
from shuffledp.accounting.mixing import mixing_distance
from shuffledp.errors import InfeasibleError, ParameterError
from shuffledp.protocols.catalogue import plan_from_document
from shuffledp.protocols.domains.categories import Names
from shuffledp.protocols.domains.grouped import GroupedReals
from shuffledp.protocols.grouped.ends import EndsShares
from shuffledp.protocols.grouped.estimates import means_in_range
from shuffledp.protocols.grouped.families import (
    GroupedCountFamily,
    GroupedHistogramFamily,
    GroupedMeanFamily,
    GroupedRateFamily,
    GroupedSumFamily,
)
from shuffledp.protocols.plan import changed
from shuffledp.protocols.statistics import MeanFamily
from shuffledp.testing.protocols import check_protocol
from shuffledp.testing.statistics import assert_deviation, assert_mean

PRIVACY = Privacy(1, 1e-6)
GROUPS = ["A", "B", "C"]
RANGE = {"low": -1, "high": 3}


def test_groups_ask_for_the_family_of_groups() -> None:
    asked: dict[str, Any] = {"users": 400, "privacy": PRIVACY, "groups": GROUPS}
    assert BinarySum.plan(**asked, method="decoys").protocol == "grouped-count"
    assert BoundedSum.plan(**asked, **RANGE).protocol == "grouped-sum"
    assert MeanFamily.plan(**asked, **RANGE).protocol == "grouped-mean"
    assert Histogram.plan(**asked, categories=3, method="decoys").protocol == "grouped-histogram"
    assert BinarySum.plan(**asked, at_most=3).protocol == "grouped-rows-count"
    assert BoundedSum.plan(**asked, **RANGE, at_most=3).protocol == "grouped-rows-sum"


def test_counts_by_group_keep_every_promise() -> None:
    plan: Any = GroupedCountFamily.plan(users=40, privacy=Privacy(3, 1e-3), groups=GROUPS, method="decoys")
    people = plan.encode([("A", 1), ("B", 0), ("C", 1), ("C", 0)] * 10)
    truth = plan.true_value(people)
    assert truth.tolist() == [10, 0, 10]
    estimates = [simulate(plan, people, bits=RandomBits.seeded(k)) for k in range(600)]
    errors = np.array([each.value - truth for each in estimates])
    for column in errors.T:
        assert_mean(column, 0.0, plan.standard_error, false_alarm=1e-9)
        assert_deviation(column / plan.standard_error, 1.0, false_alarm=1e-9)
    held = [(each.lower <= truth).all() and (truth <= each.upper).all() for each in estimates]
    assert np.mean(held) > 0.9
    assert plan_from_document(json.loads(json.dumps(plan.document()))) == plan


def test_ends_keep_every_promise() -> None:
    # Values on the grid are not rounded, so that the error claimed is an upper bound: the noise alone is exact.
    plan = EndsShares.plan(users=30, privacy=Privacy(2, 1e-4), groups=GROUPS, low=0, high=1)
    people = plan.encode([("A", 0.5), ("B", 1.0), ("C", 0.25)] * 10)
    runs = [plan.sample_estimate(people, bits=RandomBits.seeded(k)).value for k in range(800)]
    by_messages = [simulate(plan, people, bits=RandomBits.seeded(k)).value for k in range(200)]
    for found in (np.array(runs), np.array(by_messages)):
        errors = found - plan.true_value(people)
        assert_mean(errors.reshape(-1), 0.0, plan.standard_error, false_alarm=1e-9)
        assert float(np.sqrt(np.mean(errors**2))) <= 1.15 * plan.standard_error
        assert np.mean((np.abs(errors) <= plan.error_bound).all(axis=1)) > 0.9
    assert plan.true_value(people).tolist() == [5, 5, 0, 10, 7.5, 2.5]


@pytest.mark.parametrize("family", [GroupedSumFamily, GroupedMeanFamily])
def test_intervals_of_sums_and_means_hold_at_once(family: Any) -> None:
    plan = family.plan(users=600, privacy=PRIVACY, groups=GROUPS, **RANGE)
    generator, bits = np.random.default_rng(2), RandomBits.seeded(2)
    held = []
    for _ in range(300):
        people = np.column_stack((generator.integers(0, 3, 600), generator.uniform(-1, 3, 600)))
        estimate, truth = plan.sample_estimate(people, bits=bits), plan.true_value(people)
        held.append(bool(((estimate.lower <= truth) & (truth <= estimate.upper)).all()))
    assert np.mean(held) > 0.9
    assert plan_from_document(json.loads(json.dumps(plan.document()))) == plan


def test_the_part_at_the_high_end_covers_its_whole_box() -> None:
    """Against brute force: no pair within the bound, and not below 0, has a part outside."""
    generator = np.random.default_rng(1)
    for low, high, bound in generator.uniform([-5, -5, 0], [30, 30, 20], (200, 3)).tolist():
        _, least, most = means_in_range(np.array([[low, high]]), bound)
        sides = [np.maximum(np.linspace(end - bound, end + bound, 21), 0.0) for end in (low, high)]
        for l, h in itertools.product(*sides):  # noqa: E741
            if l + h > 0:
                assert least[0] - 1e-12 <= h / (l + h) <= most[0] + 1e-12


def test_histograms_by_group_are_histograms_of_pairs() -> None:
    plan = GroupedHistogramFamily.plan(
        users=40, privacy=Privacy(3, 1e-3), groups=["A", "B"], categories=["x", "y"], method="decoys"
    )
    values = plan.encode([("A", "x"), ("B", "y"), ("B", "x"), ("A", "x")] * 10)
    check_protocol(plan, values, [[4] * 40, [-1] * 40], runs=600)
    assert plan.domain.names() == ["A: x", "A: y", "B: x", "B: y"]


# --- privacy -------------------------------------------------------------------------------------


@pytest.mark.parametrize("grid", [1, 2])
def test_two_people_are_at_most_twice_the_grid_apart(grid: int) -> None:
    """Every pair of rounded points of three groups, by brute force, under Laplace noise: no loss beyond epsilon."""
    domain = GroupedReals(Names(("A", "B", "C")), 0.0, 1.0, grid)
    points = [domain.encode([(group, part / grid)]) for group in "ABC" for part in range(grid + 1)]
    steps = [domain.to_steps(point, bits=RandomBits.seeded(1))[0] for point in points]
    assert {int(each.sum()) for each in steps} == {grid}
    furthest = max(int(np.abs(a - b).sum()) for a, b in itertools.product(steps, steps))
    assert furthest == 2 * grid
    plan = EndsShares.plan(users=50, privacy=PRIVACY, groups=GROUPS, low=0, high=1)
    # The largest log ratio of a product of Laplace laws is the sum over coordinates, whatever the coordinates.
    law = DiscreteLaplace(plan.ratio)
    assert 2 * plan.grid * law.largest_log_ratio <= PRIVACY.epsilon * (1 + 1e-12)
    assert plan.pair(50).delta(PRIVACY.epsilon) == 0.0 < plan.pair(50).delta(0.99 * PRIVACY.epsilon)


@pytest.mark.parametrize("family", [GroupedCountFamily, GroupedRateFamily, GroupedSumFamily, GroupedHistogramFamily])
def test_a_twin_with_less_noise_is_refused(family: Any) -> None:
    more: dict[str, Any] = {
        "grouped-sum": RANGE,
        "grouped-histogram": {"categories": 3, "method": "decoys"},
    }.get(family.name, {"method": "decoys"})
    plan = family.plan(users=300, privacy=PRIVACY, groups=GROUPS, **more)
    assert plan.guarantee().holds and not plan.twin(0.8).guarantee().holds


def test_noise_for_one_coordinate_does_not_hide_two() -> None:
    """The ratio of a bounded sum, which hides the grid in one number, is not enough where two numbers move."""
    plan = EndsShares.plan(users=300, privacy=PRIVACY, groups=GROUPS, low=0, high=1)
    louder = math.exp(-PRIVACY.epsilon / plan.grid)
    assert not changed(plan, ratio=louder).guarantee().holds
    with pytest.raises(InfeasibleError, match="must reach delta"):
        EndsShares(
            **plan.common,
            groups=GROUPS,
            low=0,
            high=1,
            **{
                name: louder if name == "ratio" else getattr(plan, name)
                for name in ("ratio", "grid", "shares", "modulus_bits", "largest_deviation")
            },
        )


def test_every_coordinate_is_paid_for_in_the_transport() -> None:
    two, many = (
        EndsShares.plan(users=300, privacy=PRIVACY, groups=[f"g{k}" for k in range(n)], low=0, high=1) for n in (2, 64)
    )
    assert many.guarantee().holds and many.shares >= two.shares
    # Of too few for a margin of two shares: those of 64 groups are planned for 128 coordinates.
    few = EndsShares.plan(users=5, privacy=PRIVACY, groups=many.groups, low=0, high=1)
    assert few.coordinates * mixing_distance(5, few.shares, 1 << few.modulus_bits) * (1 + math.e) <= 1e-6
    assert few.guarantee().holds
    # Coordinates mix each by itself: 32 times as many show the root of 32 times as much.
    shown = [
        {term.name: term.value for term in plan.guarantee().terms} for plan in (two, changed(two, groups=many.groups))
    ]
    assert shown[1]["transport"] == pytest.approx(math.sqrt(32) * shown[0]["transport"], rel=1e-6)


def test_errors_of_combined_bins_cover_decoys() -> None:
    """Decoys in one bin are missing in the others: the error of a rate counts that."""
    plan: Any = GroupedRateFamily.plan(users=200, privacy=Privacy(2, 1e-3), groups=["A", "B"], method="decoys")
    people, bits = np.tile([0, 1, 2, 3], 50), RandomBits.seeded(9)
    runs = [plan.sample_estimate(people, bits=bits) for _ in range(1500)]
    spread = np.std([each.ends[0][1] - each.ends[0][0] for each in runs])
    claimed = runs[0].ends_error * math.sqrt(2)
    alone = plan.sum_plan.standard_error * math.sqrt(2)
    assert alone * 1.05 < spread < claimed * 1.05


@pytest.mark.parametrize("groups", [[], ["a"], ["a", "a"], 3, None, range(4)])
def test_groups_are_a_list_of_names(groups: Any) -> None:
    with pytest.raises(ParameterError):
        GroupedCountFamily.plan(users=300, privacy=PRIVACY, groups=groups, method="decoys")


def test_others_have_a_group_of_their_own() -> None:
    plan = GroupedCountFamily.plan(
        users=300, privacy=PRIVACY, groups=Names(("A", "B", "rest"), other="rest"), method="decoys"
    )
    assert plan.encode([("A", 1), ("Z", 0), ("rest", 1)]).tolist() == [1, 4, 5]
    assert plan_from_document(json.loads(json.dumps(plan.document()))) == plan
    assert plan.options == "--groups A,B,rest --other-group rest"


def test_a_person_may_write_its_group_and_value() -> None:
    """What `shuffledp report "B,1"` sends."""
    count: Any = GroupedCountFamily.plan(users=300, privacy=PRIVACY, groups=GROUPS, method="decoys")
    assert count.check_values(count.encode(np.array(["B,1", "A,0"]))).tolist() == [3, 0]
    mean: Any = GroupedMeanFamily.plan(users=300, privacy=PRIVACY, groups=GROUPS, **RANGE)
    assert mean.check_values(mean.encode(np.array(["C,2.5"]))).tolist() == [[2.0, 2.5]]
    pairs: Any = GroupedHistogramFamily.plan(
        users=300, privacy=PRIVACY, groups=GROUPS, categories=range(5, 8), method="decoys"
    )
    assert pairs.encode(np.array(["B,6"])).tolist() == [4]
    for wrong in ("B", "B,x", "Z,1", "B,7"):
        with pytest.raises(ParameterError):
            count.check_values(count.encode(np.array([wrong])))


def test_a_mean_is_shown_with_the_error_of_a_group_of_equal_share() -> None:
    """Beforehand a group may be empty: what is shown says of how many people it is."""
    plan: Any = GroupedMeanFamily.plan(users=600, privacy=PRIVACY, groups=GROUPS, **RANGE)
    people = np.column_stack((np.arange(600) % 3, np.full(600, 1.0)))
    bits = RandomBits.seeded(4)
    runs = [plan.sample_estimate(people, bits=bits).value[0] for _ in range(800)]
    assert 0.85 * plan.error_among(200) < np.std(runs) < 1.1 * plan.error_among(200)
    assert "200 people" in plan.compared().title and "200 people" in dict(plan.facts())["standard error"]
    assert plan.error_among(1e-9) == 4.0
