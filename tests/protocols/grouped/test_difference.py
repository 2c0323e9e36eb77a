"""The difference of two groups: its two intervals hold as often as they say, and narrower ones would not."""

from typing import Any

import numpy as np
import pytest
from scipy.stats import binom

from shuffledp import Privacy, RandomBits
from shuffledp.errors import ParameterError
from shuffledp.protocols.grouped.difference import Difference, difference
from shuffledp.protocols.grouped.families import GroupedMeanFamily, GroupedRateFamily

FALSE_ALARM = 1e-6
GROUPS = ["A", "B"]


def too_rarely(share: float, runs: int) -> bool:
    """Whether so few runs were covered that intervals of 95% would do that with FALSE_ALARM at most."""
    return round(share * runs) < binom.ppf(FALSE_ALARM, runs, 0.95)


def rates_of(
    users: int, rates: tuple[float, float], runs: int, privacy: Privacy, method: str
) -> tuple[list[Difference], list[float]]:
    """Differences of samples from a population, and the true ones of the sampled people."""
    plan: Any = GroupedRateFamily.plan(users=users, privacy=privacy, groups=GROUPS, method=method)
    generator, bits = np.random.default_rng(1), RandomBits.seeded(1)
    found, truths = [], []
    for _ in range(runs):
        group = generator.integers(0, 2, users)
        ones = generator.random(users) < np.array(rates)[group]
        codes = 2 * group + ones
        found.append(difference(plan.sample_estimate(codes, bits=bits), "A", "B"))
        truths.append(ones[group == 1].mean() - ones[group == 0].mean())
    return found, truths


def covered(intervals: list[tuple[float, float]], truths: list[float]) -> float:
    return float(np.mean([low <= truth <= high for (low, high), truth in zip(intervals, truths, strict=True)]))


@pytest.mark.parametrize(
    ("users", "rates", "privacy", "method"),
    [
        (4000, (0.3, 0.35), Privacy(1, 1e-6), "decoys"),
        (400, (0.05, 0.05), Privacy(1, 1e-4), "decoys"),
        (300, (0.9, 0.5), Privacy(0.5, 1e-3), "decoys"),
        (200, (0.5, 0.5), Privacy(0.5, 1e-2), "correlated"),
    ],
)
def test_both_intervals_of_rates_hold_as_often_as_they_say(
    users: int, rates: tuple[float, float], privacy: Privacy, method: str
) -> None:
    runs = 800
    found, truths = rates_of(users, rates, runs, privacy, method)
    true = rates[1] - rates[0]
    assert not too_rarely(covered([each.people for each in found], truths), runs)
    bounds = [(each.estimate.lower, each.estimate.upper) for each in found]
    assert not too_rarely(covered(bounds, truths), runs)
    assert not too_rarely(covered([each.population for each in found], [true] * runs), runs)
    # Wrong twins: intervals of half the width.
    halves = [
        tuple(sum(each.population) / 2 + (end - sum(each.population) / 2) / 2 for end in each.population)
        for each in found
    ]
    assert too_rarely(covered(halves, [true] * runs), runs)


def test_the_interval_for_these_people_does_not_hold_for_the_population() -> None:
    """Sampling is more than noise where there are many people: leaving it out would be seen."""
    found, _ = rates_of(4000, (0.3, 0.35), 600, Privacy(1, 1e-6), "decoys")
    assert too_rarely(covered([each.people for each in found], [0.05] * 600), 600)
    width = [(each.people[1] - each.people[0]) / (each.population[1] - each.population[0]) for each in found]
    assert np.mean(width) < 0.8


def test_means_of_numbers() -> None:
    users, runs = 600, 500
    plan: Any = GroupedMeanFamily.plan(users=users, privacy=Privacy(1, 1e-6), groups=GROUPS, low=-10, high=30)
    generator, bits = np.random.default_rng(3), RandomBits.seeded(3)
    found, truths = [], []
    for _ in range(runs):
        group = generator.integers(0, 2, users)
        numbers = -10 + 40 * generator.beta(2 + group, 5, users)
        points = np.column_stack((group, numbers))
        found.append(difference(plan.sample_estimate(points, bits=bits), "A", "B", low=-10, high=30))
        truths.append(numbers[group == 1].mean() - numbers[group == 0].mean())
    true = 40 * (3 / 8 - 2 / 7)
    assert not too_rarely(covered([each.people for each in found], truths), runs)
    assert not too_rarely(covered([each.population for each in found], [true] * runs), runs)
    assert np.mean([each.estimate.value for each in found]) == pytest.approx(true, abs=0.3)


def test_the_verdict_names_what_leaves_it_open() -> None:
    """Noise of a small epsilon, or sampling; of numbers that it counts with their largest variance."""
    codes = np.tile([0, 1, 2, 3], 100)
    said = {}
    for epsilon in (0.2, 4.0):
        plan: Any = GroupedRateFamily.plan(users=400, privacy=Privacy(epsilon, 1e-4), groups=GROUPS, method="decoys")
        found = plan.difference(plan.sample_estimate(codes, bits=RandomBits.seeded(5)), "A", "B")
        assert found.knows_variance and not found.differs
        said[epsilon] = found.verdict
    assert "a larger epsilon" in said[0.2] and "a larger epsilon" not in said[4.0]
    assert "more people" in said[4.0] and "variance" not in said[4.0]
    means: Any = GroupedMeanFamily.plan(users=400, privacy=Privacy(4, 1e-4), groups=GROUPS, low=0, high=10)
    points = np.column_stack((np.arange(400) % 2, np.full(400, 5.0)))
    found = means.difference(means.sample_estimate(points, bits=RandomBits.seeded(5)), "A", "B")
    assert not found.knows_variance and "the largest variance" in found.verdict
    # What is said is what the interval is made of: both in quadrature.
    reach = np.hypot(1.959964 * found.sampling_error, np.log(20) / np.sqrt(2) * found.estimate.standard_error)
    assert (found.population[1] - found.population[0]) / 2 == pytest.approx(reach)
    assert found.verdict in found._repr_html_().replace("&#x27;", "'") and found.chart("mean", "t").kind == "difference"


def test_a_group_without_people_says_nothing() -> None:
    plan: Any = GroupedRateFamily.plan(users=300, privacy=Privacy(1, 1e-6), groups=GROUPS, method="decoys")
    found = difference(plan.sample_estimate(np.ones(300, dtype=np.int64), bits=RandomBits.seeded(1)), "A", "B")
    assert found.population == (-1.0, 1.0) and found.people[0] == -1.0
    assert not found.differs and "a group may be empty" in found.verdict
    assert "for these people" in str(found)


def test_two_groups_of_the_estimate_are_compared() -> None:
    plan: Any = GroupedRateFamily.plan(users=300, privacy=Privacy(1, 1e-6), groups=GROUPS, method="decoys")
    estimate = plan.sample_estimate(np.ones(300, dtype=np.int64), bits=RandomBits.seeded(1))
    for pair, parameter in ((("A", "C"), "second"), (("C", "A"), "first"), (("A", "A"), "second")):
        with pytest.raises(ParameterError) as refused:
            difference(estimate, *pair)
        assert refused.value.parameter == parameter


@pytest.mark.parametrize(("epsilon", "small"), [(5.0, 8), (3.0, 12), (10.0, 6)])
def test_the_interval_for_these_people_holds_in_a_small_group_at_a_large_epsilon(epsilon: float, small: int) -> None:
    """Where noise is nobody or one person, and people who are added for the population would hide it."""
    users, runs, bits = 600, 1000, RandomBits.seeded(3)
    plan: Any = GroupedRateFamily.plan(users=users, privacy=Privacy(epsilon, 1e-6), groups=GROUPS, method="shares")
    people = np.arange(users)
    group = (people < small).astype(int)
    ones = np.where(group == 1, people % 4 > 0, people % 10 == 0).astype(int)
    truth = ones[group == 1].mean() - ones[group == 0].mean()
    codes = plan.encode([(GROUPS[place], one) for place, one in zip(group.tolist(), ones.tolist(), strict=True)])
    estimates = [plan.sample_estimate(codes, bits=bits) for _ in range(runs)]
    intervals = [difference(each, "A", "B").people for each in estimates]
    assert not too_rarely(covered(intervals, [truth] * runs), runs)
