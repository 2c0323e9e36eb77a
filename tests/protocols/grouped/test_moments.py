"""Means by group with their variances, and rates and means of several rows a person: A/B tests that are honest."""

import itertools
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from scipy.stats import binom

from shuffledp import Privacy, RandomBits, simulate
from shuffledp.audit.trials import audit_plan
from shuffledp.errors import ParameterError
from shuffledp.protocols.domains.categories import Names
from shuffledp.protocols.domains.row_parts import RowEnds, RowMoments, RowPairs
from shuffledp.protocols.grouped.difference import Difference
from shuffledp.protocols.grouped.estimates import means_in_range, part_of_range
from shuffledp.protocols.grouped.families import GroupedMeanFamily, GroupedRateFamily
from shuffledp.protocols.grouped.moments import (
    GroupedMomentsFamily,
    GroupedRowsMeanFamily,
    GroupedRowsMomentsFamily,
    GroupedRowsRateFamily,
)
from shuffledp.protocols.statistics import MeanFamily

FALSE_ALARM = 1e-6
PRIVACY = Privacy(1, 1e-6)
NAMES = Names(("A", "B"))
ASKED: dict[str, Any] = {"privacy": PRIVACY, "groups": ["A", "B"]}
RANGE = {"low": -10, "high": 30}
SHAPES: dict[str, Any] = {
    "constant": lambda generator, size: np.full(size, 0.25),
    "bell": lambda generator, size: generator.beta(4, 8, size),
    "skewed": lambda generator, size: np.where(generator.random(size) < 0.02, 1.0, 0.05),
}
MEANS = {"constant": 0.25, "bell": 1 / 3, "skewed": 0.02 + 0.98 * 0.05}


def too_rarely(held: list[bool]) -> bool:
    """Whether intervals of 95% would hold so rarely with FALSE_ALARM at most."""
    return sum(held) < binom.ppf(FALSE_ALARM, len(held), 0.95)


def test_what_is_said_asks_for_the_family() -> None:
    asked: dict[str, Any] = ASKED | {"users": 400}
    assert GroupedRateFamily.plan(**asked, **RANGE).protocol == "grouped-moments"
    assert GroupedRateFamily.plan(**asked, at_most=3).protocol == "grouped-rows-rate"
    assert GroupedRateFamily.plan(**asked, **RANGE, at_most=3).protocol == "grouped-rows-moments"
    assert MeanFamily.plan(**asked, **RANGE, at_most=3).protocol == "grouped-rows-mean"
    for missing in ("low", "high"):
        with pytest.raises(ParameterError) as refused:
            GroupedRateFamily.plan(**asked, at_most=3, **{name: RANGE[name] for name in RANGE if name != missing})
        assert refused.value.parameter == missing


# --- accuracy ------------------------------------------------------------------------------------


def differences(plan: Any, shape: str, sizes: tuple[int, int], runs: int) -> tuple[list[Difference], list[float]]:
    """Differences of samples of one shape in both groups, and the true ones of the sampled people."""
    generator, bits = np.random.default_rng(7), RandomBits.seeded(7)
    group, found, truths = np.repeat([0, 1], sizes), [], []
    for _ in range(runs):
        numbers = -10 + 40 * SHAPES[shape](generator, group.size)
        estimate = plan.sample_estimate(np.column_stack((group, numbers)), bits=bits)
        found.append(plan.difference(estimate, "A", "B"))
        truths.append(numbers[group == 1].mean() - numbers[group == 0].mean())
    return found, truths


@pytest.mark.parametrize(
    ("shape", "sizes", "epsilon"),
    [("constant", (150, 150), 1.0), ("bell", (900, 300), 1.0), ("skewed", (300, 300), 4.0)],
)
def test_all_intervals_of_means_hold(shape: str, sizes: tuple[int, int], epsilon: float) -> None:
    runs, users = 400, sum(sizes)
    plan = GroupedMomentsFamily.plan(**ASKED | {"privacy": Privacy(epsilon, 1e-6)}, users=users, **RANGE)
    found, truths = differences(plan, shape, sizes, runs)
    held = [low <= truth <= high for (low, high), truth in zip([each.people for each in found], truths, strict=True)]
    assert not too_rarely(held)
    bound = [abs(each.estimate.value - truth) <= each.estimate.bound for each, truth in zip(found, truths, strict=True)]
    assert not too_rarely(bound)
    assert not too_rarely([low <= 0 <= high for low, high in (each.population for each in found)])
    # A wrong twin: the interval of half the width.
    halves = [abs(sum(each.population) / 2) <= (each.population[1] - each.population[0]) / 4 for each in found]
    assert too_rarely(halves)
    spread = 40 * SHAPES[shape](np.random.default_rng(1), 200_000).std()
    assert np.mean([each.deviations for each in found]) == pytest.approx(spread, abs=2.5)


def test_sampling_left_out_or_the_variance_halved_would_be_seen() -> None:
    """Twins of the interval for the population: for these people alone, and with half of the variance."""
    plan = GroupedMomentsFamily.plan(**ASKED, users=3000, **RANGE)
    found, _ = differences(plan, "bell", (1500, 1500), 200)
    assert too_rarely([low <= 0 <= high for low, high in (each.people for each in found)])
    quarter = [abs(float(each)) <= 1.96 * each.sampling_error / 2 for each in found]
    assert too_rarely(quarter)


def test_the_interval_is_narrower_than_by_the_largest_variance() -> None:
    """By the private variance, and hardly wider than that of somebody who sees all numbers."""
    generator = np.random.default_rng(3)
    group, numbers = np.repeat([0, 1], 2000), -10 + 40 * generator.beta(4, 8, 4000)
    people = np.column_stack((group, numbers))
    widths = []
    for family in (GroupedMomentsFamily, GroupedMeanFamily):
        plan: Any = family.plan(**ASKED, users=4000, **RANGE)
        found = plan.difference(plan.sample_estimate(people, bits=RandomBits.seeded(4)), "A", "B")
        widths.append(found.population[1] - found.population[0])
        assert found.knows_variance == (family is GroupedMomentsFamily)
    seen = 2 * 1.96 * np.sqrt(sum(numbers[group == each].var() / 2000 for each in (0, 1)))
    assert widths[0] < 0.45 * widths[1] and seen < widths[0] < 1.25 * seen


def test_rows_of_one_person_that_are_alike_are_counted_so() -> None:
    """Three equal rows of everybody: the interval holds, and one that takes rows for people would not."""
    users, runs, rows = 400, 250, 3
    plan: Any = GroupedRowsMomentsFamily.plan(**ASKED | {"privacy": Privacy(8, 1e-6)}, users=users, **RANGE, at_most=3)
    generator, bits = np.random.default_rng(5), RandomBits.seeded(5)
    group, held, as_people = np.arange(users) % 2, [], []
    for _ in range(runs):
        pair = np.column_stack((group, -10 + 40 * generator.beta(2, 5, users)))
        found = plan.difference(plan.sample_estimate(np.tile(pair, (1, rows)), bits=bits), "A", "B")
        held.append(found.population[0] <= 0 <= found.population[1])
        as_people.append(abs(float(found)) <= 1.96 * found.sampling_error / np.sqrt(rows))
    assert not too_rarely(held) and too_rarely(as_people)
    assert found.rows == 3


def test_rows_are_counted_where_they_are() -> None:
    """By messages: rates and means of rows, people without any among them."""
    people = [[("A", 1), ("B", 0)], [("B", 1), ("B", 1)], [], [("A", 0)]] * 100
    for family, more, truth in (
        (GroupedRowsRateFamily, {}, [0.5, 2 / 3]),
        (GroupedRowsMeanFamily, {"low": 0, "high": 4}, [0.5, 2 / 3]),
        (GroupedRowsMomentsFamily, {"low": -1, "high": 4}, [0.5, 2 / 3]),
    ):
        plan: Any = family.plan(**ASKED | {"privacy": Privacy(4, 1e-6)}, users=400, at_most=2, **more)
        own = plan.encode(people)
        assert plan.true_value(own) == pytest.approx(truth)
        for estimate in (
            simulate(plan, own, bits=RandomBits.seeded(1)),
            plan.sample_estimate(own, bits=RandomBits.seeded(1)),
        ):
            assert (np.abs(estimate.value - truth) <= 6 * np.array(estimate.standard_errors)).all()
        # Nothing that is sent says how many rows one has.
        sizes = [set(plan.randomize(plan.encode([rows] * 400), bits=RandomBits.seeded(1)).sizes) for rows in people[:3]]
        assert sizes[0] == sizes[1] == sizes[2] and len(sizes[0]) == 1


def test_means_of_three_parts_cover_their_whole_box() -> None:
    """Against brute force: no three parts within the bound, and not below 0, have a mean outside."""
    generator = np.random.default_rng(1)
    for *parts, bound in generator.uniform([-5, -5, -5, 0], [30, 30, 30, 20], (60, 4)).tolist():
        _, least, most = means_in_range(np.array([parts]), bound)
        sides = [np.maximum(np.linspace(part - bound, part + bound, 9), 0.0) for part in parts]
        every = np.array([box for box in itertools.product(*sides) if sum(box) > 0])
        means = part_of_range(every, 0.5)
        assert least[0] - 1e-12 <= means.min() and means.max() <= most[0] + 1e-12


# --- privacy -------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", [RowEnds, RowMoments])
def test_parts_of_a_row_are_not_below_0_and_add_up_to_the_grid(kind: Any) -> None:
    """Whatever the number and the rounding, so that two people are at most twice at_most grids apart."""
    domain = kind(NAMES, 0.0, 1.0, 1, 5)
    places = np.concatenate([np.linspace(0, 1, 4001), 10.0 ** -np.arange(1, 300.0), 1 - 10.0 ** -np.arange(1, 17.0)])
    people = np.column_stack((np.zeros(places.size), places))
    bits = RandomBits.seeded(2)
    runs = np.array([domain.to_steps(people, bits=bits) for _ in range(40)])
    assert runs.min() == 0 and (runs.sum(axis=2) == 5).all() and (runs[:, :, kind.parts :] == 0).all()
    # Without bias: the mean of all roundings is each person's own parts.
    exact = np.array([domain.sums(people[row : row + 1]) for row in range(0, 4001, 500)])
    many = np.array([domain.to_steps(np.repeat(people[0:4001:500], 4000, axis=0), bits=bits)]).reshape(9, 4000, -1)
    assert np.abs(many.mean(axis=1) / 5 - exact).max() < 6 * 0.5 / 5 / np.sqrt(4000)


def test_no_two_people_are_further_apart_than_the_noise_hides() -> None:
    """By brute force, over all that a person may contribute."""
    single = [(group, number) for group in "AB" for number in (-1.0, 0.3, 2.0)]
    for domain, rows in (
        (RowEnds(NAMES, -1.0, 2.0, 2, 4), single),
        (RowMoments(NAMES, -1.0, 2.0, 2, 4), single),
        (RowPairs(NAMES, at_most=2), [(group, bit) for group in "AB" for bit in (0, 1)]),
    ):
        people = [list(each) for size in (0, 1, 2) for each in itertools.product(rows, repeat=size)]
        steps = [domain.to_steps(domain.encode([person]), bits=RandomBits.seeded(1))[0] for person in people]
        assert max(np.abs(a - b).sum() for a, b in itertools.product(steps, steps)) == domain.furthest
        assert all(each.min() >= 0 and each.max() <= domain.highest for each in steps)


def test_an_audit_finds_half_the_noise() -> None:
    plan = GroupedRowsRateFamily.plan(users=6, privacy=Privacy(1, 1e-3), groups=["A", "B"], at_most=2)
    assert audit_plan(plan, bits=RandomBits.seeded(1), trials=20_000).verdict == "stands"
    assert audit_plan(plan, bits=RandomBits.seeded(2), trials=20_000, sabotage=0.5).verdict == "refuted"


def test_a_plan_of_bits_has_no_grid() -> None:
    sums = GroupedRowsRateFamily.plan(**ASKED, users=300, at_most=2).sum_plan
    with pytest.raises(ParameterError, match="must be 1 for ones"):
        replace(sums, grid=2)
