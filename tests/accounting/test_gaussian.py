import math

import pytest
from dp_accounting.pld import privacy_loss_distribution

from shuffledp.accounting.gaussian import gaussian_delta, gaussian_standard_deviation
from shuffledp.privacy import Privacy


@pytest.mark.parametrize(("epsilon", "delta"), [(0.1, 1e-6), (1, 1e-6), (1, 1e-12), (8, 1e-6)])
def test_the_smallest_deviation_just_meets_delta(epsilon: float, delta: float) -> None:
    sd = gaussian_standard_deviation(Privacy(epsilon, delta))
    assert gaussian_delta(epsilon, sd) <= delta < gaussian_delta(epsilon, sd * (1 - 1e-6))


def test_it_scales_with_the_sensitivity() -> None:
    privacy = Privacy(1, 1e-6)
    assert gaussian_standard_deviation(privacy, 2) == pytest.approx(2 * gaussian_standard_deviation(privacy))


def test_against_dp_accounting() -> None:
    pld = privacy_loss_distribution.from_gaussian_mechanism(4.225, value_discretization_interval=1e-4)
    assert pld.get_delta_for_epsilon(1.0) == pytest.approx(gaussian_delta(1.0, 4.225), rel=1e-3)


def test_a_delta_too_small_to_show_is_zero() -> None:
    assert gaussian_delta(50.0, 100.0) == 0.0
    assert math.isfinite(gaussian_delta(0.0, 1e-3))
