"""The difference of two groups in one line of Python."""

import numpy as np
import pytest

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
    assert found.plan.protocol == "grouped-mean" and abs(float(found) - 1.0) <= found.estimate.bound


@pytest.mark.parametrize(
    ("changes", "parameter"),
    [
        ({"by": VARIANT[:-1]}, "by"),
        ({"low": 0, "method": "auto"}, "high"),
        ({"between": ("A", "Z")}, "second"),
        ({"groups": ["A"]}, "domain"),
        ({"by": ["A", None] * 200}, "by"),
        ({"by": ["A", "Z"] * 200}, "by"),
    ],
)
def test_what_is_refused(changes: dict[str, object], parameter: str) -> None:
    with pytest.raises(ParameterError) as refused:
        shuffledp.difference(CLICKED, **({"by": VARIANT} | ASKED | changes))
    assert refused.value.parameter == parameter


def test_people_without_a_group_are_in_that_of_all_others() -> None:
    found = shuffledp.difference(CLICKED, by=["A", "B", None, "Z"] * 100, other="rest", **ASKED)
    assert found.plan.group_names == ("A", "B", "rest")
