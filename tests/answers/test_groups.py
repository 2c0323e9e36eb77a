"""The difference of two groups in one line of Python."""

import numpy as np
import pytest
from scipy import stats

import shuffledp
from shuffledp.errors import ParameterError

CLICKED = [0, 0, 1, 0, 1, 1, 0, 1] * 50
VARIANT = ["A", "A", "A", "A", "B", "B", "B", "B"] * 50
ASKED = {"epsilon": 4, "delta": 1e-6, "groups": ["A", "B"], "method": "decoys", "seed": 1}


def test_a_difference_of_rates_from_lists_arrays_and_tables() -> None:
    found = shuffledp.difference(CLICKED, by=VARIANT, **ASKED)
    assert abs(float(found) - 0.5) <= found.estimate.bound and found.plan.protocol == "grouped-rate"
    assert found.estimate.simulated and "B less A" in str(found)
    arrays = shuffledp.difference(np.array(CLICKED), by=np.array(VARIANT), **ASKED)
    assert arrays.population == found.population
    pyarrow = pytest.importorskip("pyarrow")
    table = pyarrow.table({"clicked": CLICKED, "variant": VARIANT})
    assert shuffledp.difference(table, "clicked", by="variant", **ASKED).people == found.people


def test_a_difference_of_means_between_two_of_three() -> None:
    spent = np.array([1.0, 2.0, 3.0, 99.0] * 100)
    groups = ["A", "B", "C", "A"] * 100
    asked = ASKED | {"groups": ["A", "B", "C"], "method": "auto"}
    found = shuffledp.difference(spent, by=groups, low=0, high=10, clip=True, between=("B", "C"), **asked)
    assert found.plan.protocol == "grouped-moments" and abs(float(found) - 1.0) <= found.estimate.bound


@pytest.mark.parametrize(
    ("changes", "parameter"),
    [
        ({"by": VARIANT[:-1]}, "by"),
        ({"low": 0, "method": "auto"}, "high"),
        ({"between": ("A", "Z")}, "second"),
        ({"groups": ["A"]}, "groups"),
        ({"by": ["A", None] * 200}, "by"),
        ({"by": ["A", "Z"] * 200}, "by"),
    ],
)
def test_what_is_refused(changes: dict[str, object], parameter: str) -> None:
    with pytest.raises(ParameterError) as refused:
        shuffledp.difference(CLICKED, **({"by": VARIANT} | ASKED | changes))
    assert refused.value.parameter == parameter


def test_people_without_a_group_are_in_that_of_all_others() -> None:
    found = shuffledp.difference(CLICKED, by=["A", "B", None, "Z"] * 100, other_group="rest", **ASKED)
    assert found.plan.group_names == ("A", "B", "rest")


# --- people with several rows, and numbers by group ----------------------------------------------

MANY = {"epsilon": 4, "delta": 1e-6, "seed": 1}
WHO = [f"u{row % 100}" for row in range(400)]


def test_rows_of_repeat_users_count_as_often_as_they_may() -> None:
    ones = [1] * 400
    found = shuffledp.count(ones, user=WHO, at_most=3, **MANY)
    assert found.plan.protocol == "repeated-count" and found.plan.users == 100
    assert abs(float(found) - 300) <= found.bound
    spent = shuffledp.total(np.full(400, 9.0), user=WHO, at_most=2, low=0, high=5, clip=True, **MANY)
    assert abs(float(spent) - 1000) <= spent.bound
    cities = shuffledp.histogram(
        ["Oslo"] * 400, user=np.array(WHO), at_most=2, categories=["Oslo", "Rome"], method="decoys", **MANY
    )
    assert abs(float(cities["Oslo"]) - 200) <= cities.bound
    running = shuffledp.running_count(ones, user=WHO, at_most=3, shufflers=2, **MANY)
    assert running.plan.users == 100 and abs(float(running.last) - 300) <= running.bound


def test_the_error_of_repeat_users_holds_for_one_number() -> None:
    """200 runs, of which at least 95% are within the bound but for a false alarm of 1e-6.

    A twin that draws rows at random has a standard deviation of 5 rows where the noise has 0.6, and fails.
    """
    clicked = ([1] * 100 + [0] * 300, [f"u{row % 100}" for row in range(400)])
    asked = {"at_most": 1, "epsilon": 2, "delta": 1e-4, "method": "shares"}
    found = [shuffledp.count(clicked[0], user=clicked[1], seed=run, **asked) for run in range(200)]
    within = sum(abs(float(each) - 100) <= each.bound for each in found)
    assert stats.binom.cdf(within, 200, 0.95) > 1e-6


def test_numbers_of_every_group() -> None:
    asked = MANY | {"by": ["A", "B"] * 200, "groups": ["A", "B"]}
    count = shuffledp.count([1, 0] * 200, **asked, method="decoys")
    assert count.names == ("A", "B") and abs(float(count.of("A")) - 200) <= count.bound
    assert abs(float(shuffledp.total([2.0, 1.0] * 200, low=0, high=5, **asked).of("A")) - 400) < 100
    mean = shuffledp.mean([2.0, 1.0] * 200, low=0, high=5, **asked)
    assert abs(float(mean.of("B")) - 1.0) <= mean.bounds[1]
    pairs = shuffledp.histogram(["x", "y"] * 200, categories=["x", "y"], method="decoys", **asked)
    assert abs(float(pairs["B", "y"]) - 200) <= pairs.bound


@pytest.mark.parametrize(
    ("more", "parameter"),
    [
        ({"user": WHO}, "at_most"),
        ({"at_most": 3}, "user"),
        ({"by": WHO}, "groups"),
        ({"groups": ["A", "B"]}, "by"),
        ({"user": WHO[:-1], "at_most": 3}, "user"),
    ],
)
def test_what_goes_together_is_asked_for(more: dict[str, object], parameter: str) -> None:
    with pytest.raises(ParameterError) as refused:
        shuffledp.count([1] * 400, **MANY, **more)
    assert refused.value.parameter == parameter


def test_rows_of_repeat_users_by_group() -> None:
    """Everybody has four rows, two of each group; the first three count."""
    asked = MANY | {"user": WHO, "at_most": 3, "by": ["A", "B"] * 200, "groups": ["A", "B"]}
    who = [f"u{row // 4}" for row in range(400)]
    count = shuffledp.count([1] * 400, **asked | {"user": who})
    assert count.plan.protocol == "grouped-rows-count" and count.plan.users == 100
    assert np.abs(count.value - [200, 100]).max() <= count.bound
    total = shuffledp.total([2.0, -1.0] * 200, low=-1, high=2, **asked | {"user": who})
    assert np.abs(total.value - [400, -100]).max() <= total.bound
    with pytest.raises(ParameterError, match="must be one a row, 400 in all"):
        shuffledp.count([1] * 400, **asked | {"by": ["A", "B"]})
    with pytest.raises(ParameterError, match="make one row a person first") as refused:
        shuffledp.histogram([1] * 400, categories=2, **asked)
    assert "Names(" not in str(refused.value) and "got A, B" in str(refused.value)
