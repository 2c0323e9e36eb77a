import numpy as np
import pytest

import shuffledp
from shuffledp import ParameterError
from shuffledp.estimates import Estimate, NamedEstimate, VectorEstimate, answer_document
from shuffledp.protocols.domains.categories import with_other
from shuffledp.protocols.domains.grouped import ByGroup


def test_an_estimate_shows_its_error() -> None:
    estimate = Estimate(value=1234.567, standard_error=5.83, bound=12, confidence=0.95, dropped=2, simulated=True)
    assert str(estimate) == (
        "1,234.6 ± 5.83 (within 12 with 95% confidence; 2 malformed messages dropped; "
        "a simulation: seeded bits protect nobody)"
    )
    assert (estimate.lower, estimate.upper) == (1222.567, 1246.567)


def test_digits_follow_the_error() -> None:
    assert str(Estimate(value=1e6 + 0.4, standard_error=120, bound=1, confidence=0.9)).startswith("1,000,000 ± 120")
    assert str(Estimate(value=0.123456, standard_error=0.01, bound=1, confidence=0.9)).startswith("0.123 ± 0.01")


def test_numbers_of_a_vector_are_asked_for_by_name_or_place() -> None:
    plain = VectorEstimate(value=np.array([3.0, 4.0]), standard_error=1.0, bound=2.0, confidence=0.95, dropped=1)
    assert float(plain[1]) == 4.0 and plain[1].bound == 2.0 and plain[1].dropped == 1
    assert plain.as_dict() == {0: 3.0, 1: 4.0} and list(plain) == [0, 1]
    for wrong in (2, -1, "a"):
        with pytest.raises(ParameterError, match="must be a place from 0 to 1"):
            _ = plain[wrong]
    named = NamedEstimate.together(mean=plain[0], variance=plain[1])
    assert named["variance"] == named.of("variance") and list(named) == ["mean", "variance"]
    with pytest.raises(ParameterError, match="must be one of those found: mean, variance"):
        _ = named["median"]


def test_a_name_that_is_not_listed_is_not_taken_for_all_others() -> None:
    """Whoever mistypes a category is told so, and does not get the number of everybody else."""
    listed = with_other(["Berlin", "Köln"], "else")
    plan = shuffledp.Histogram.plan(users=50, privacy=(4, 1e-3), categories=listed)
    made = VectorEstimate(value=np.array([30.0, 20.0, 5.0]), standard_error=1.0, bound=2.0, confidence=0.95)
    found = made.made_by(plan)
    assert float(found["else"]) == 5.0 and float(found["Berlin"]) == 30.0
    with pytest.raises(ParameterError, match=r"name must be one of the 3 categories.*got 'Berln'.*Berlin") as refused:
        _ = found["Berln"]
    assert "Köln" not in refused.value.way_out
    pairs = ByGroup(with_other(["A"], "rest"), with_other(["red", "green"], "another"))
    assert pairs.lists(("A", "red")) and pairs.lists(("rest", "another"))
    assert not pairs.lists(("A", "gren")) and not pairs.lists(("B", "red"))
    with pytest.raises(ParameterError, match="did you mean variance"):
        _ = NamedEstimate.together(mean=made[0], variance=made[1])["varianz"]


def test_a_plan_is_carried_but_is_no_part_of_the_answer() -> None:
    plan = shuffledp.Histogram.plan(users=50, privacy=(4, 1e-3), categories=["ü", "b"])
    estimate = VectorEstimate(value=np.array([30.0, 20.0]), standard_error=1.0, bound=2.0, confidence=0.95)
    carried = estimate.made_by(plan)
    assert carried == estimate and repr(carried) == repr(estimate) and "plan" not in answer_document(carried)
    assert carried.plan is plan and float(carried["ü"]) == 30.0
    assert str(carried) == "ü 30.0, b 20.0; ± 1 each (all within 2 with 95% confidence)"
    with pytest.raises(ParameterError, match="name must be one of the 2 categories of the domain, got 'x'"):
        _ = carried["x"]
