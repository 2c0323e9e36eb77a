"""The smoothing error: sums of Gaussian weights over the whole numbers beside their integrals, term by term."""

import itertools
import math

import mpmath
import numpy as np
import pytest

from shuffledp.accounting.smoothing import smoothing_error
from shuffledp.errors import ParameterError

WIDTHS = [0.05, 0.2, 0.398, 0.4, 0.5, 0.6, 0.7, 1.0, 2.0, 5.5]


def relative_sum(width: float, centre: float) -> mpmath.mpf:
    """The sum over the whole numbers, divided by the integral, in many digits."""
    reach = math.ceil(40 * width) + 2
    weights = (
        mpmath.exp(-((n - mpmath.mpf(centre)) ** 2) / (2 * mpmath.mpf(width) ** 2)) for n in range(-reach, reach + 1)
    )
    return mpmath.fsum(weights) / (width * mpmath.sqrt(2 * mpmath.pi))


@pytest.mark.parametrize("width", [0.4, 0.5, 0.6, 0.7, 1.0, 2.0])
def test_in_one_dimension_the_bound_holds_and_is_attained(width: float) -> None:
    error = smoothing_error(width)
    with mpmath.workdps(400):  # weights beyond 40 widths are below 1e-340
        errors = [relative_sum(width, centre) - 1 for centre in (0, 0.1, 0.25, 0.5, 0.77, 3.4)]
        assert all(abs(each) <= error for each in errors)
        assert errors[0] > error * (1 - 1e-10)  # at the centre 0 the sum is 1 + e(r), exactly
        # Between two whole numbers it is 1 - e(r) but for the even terms, which are above.
        even = 2 * mpmath.nsum(lambda j: mpmath.exp(-2 * mpmath.pi**2 * width**2 * 4 * j**2), [1, 40])
        assert errors[3] < -(error * (1 - 1e-10) - 2 * even)
        # A bound with 20% less than this is refuted.
        assert abs(errors[0]) > 0.8 * error and abs(errors[3]) > 0.8 * error * (width > 0.4)


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("dimensions", [1, 2, 17, 1000])
def test_it_is_rounded_up_and_by_little(width: float, dimensions: int) -> None:
    with mpmath.workdps(400):
        square = 2 * (mpmath.pi * mpmath.mpf(width)) ** 2
        one = 2 * mpmath.fsum(mpmath.exp(-square * j * j) for j in range(1, 60))
        exact = (1 + one) ** dimensions - 1
        computed = smoothing_error(width, dimensions)
        if computed < math.inf:
            assert exact <= computed <= exact * (1 + dimensions * mpmath.mpf(10) ** -10) + 1e-322
        else:
            assert exact > 1e307


@pytest.mark.parametrize(("dimensions", "reach"), [(2, 14), (3, 9)])
@pytest.mark.parametrize("width", [0.4, 0.5, 0.7])
def test_in_several_dimensions_the_bound_holds_for_any_matrix_and_centre(
    dimensions: int, reach: int, width: float
) -> None:
    generator = np.random.default_rng(dimensions)
    grid = np.array(list(itertools.product(range(-reach, reach + 1), repeat=dimensions)), dtype=np.float64)
    bound, worst, worst_rotated = smoothing_error(width, dimensions), 0.0, 0.0
    for trial in range(40):
        # Standard deviations along random axes, the smallest of which is the width; at first all are, along the grid's.
        deviations = width * np.exp(generator.uniform(0, 0.7, dimensions) * (trial > 0))
        deviations[0] = width
        axes = np.linalg.qr(generator.standard_normal((dimensions, dimensions)))[0] if trial else np.eye(dimensions)
        precision = axes @ np.diag(deviations**-2) @ axes.T
        for centre in (np.zeros(dimensions), np.full(dimensions, 0.5), generator.uniform(-0.5, 0.5, dimensions)):
            apart = grid - centre
            total = np.exp(-np.einsum("ni,ij,nj->n", apart, precision, apart) / 2).sum()
            error = abs(total / (math.prod(deviations) * (2 * math.pi) ** (dimensions / 2)) - 1)
            assert error <= bound * (1 + 1e-9)
            worst = max(worst, error)
            worst_rotated = max(worst_rotated, error * (trial > 0))
    # The first matrix attains it: a bound for fewer dimensions, or a larger width, is refuted.
    assert worst > bound * (1 - 1e-9) > smoothing_error(width, dimensions - 1)
    assert worst > smoothing_error(1.05 * width, dimensions) and worst_rotated > 0.05 * bound


def test_extremes_are_neither_0_nor_an_error() -> None:
    assert 0 < smoothing_error(1e200) < 1e-300 and smoothing_error(1e200, 10**6) > 0
    assert smoothing_error(1e-3) == pytest.approx(1e3 / math.sqrt(2 * math.pi) - 1)
    assert smoothing_error(1e-300) > 1e299 and smoothing_error(1e-9, 10**9) == math.inf
    assert smoothing_error(2.0, 10**30) == pytest.approx(10**30 * smoothing_error(2.0), rel=1e-3)


def test_it_grows_with_dimensions_and_falls_with_the_width() -> None:
    assert smoothing_error(0.9, 2) > 2 * smoothing_error(0.9) > smoothing_error(0.9) > smoothing_error(0.91)
    # No step where the sum and its dual meet.
    meeting = 1 / math.sqrt(2 * math.pi)
    assert smoothing_error(meeting * (1 - 1e-9)) == pytest.approx(smoothing_error(meeting * (1 + 1e-9)), rel=1e-7)


@pytest.mark.parametrize(("width", "dimensions"), [(0.0, 1), (-1.0, 1), (math.nan, 1), (math.inf, 1)])
def test_bad_widths_are_named(width: float, dimensions: int) -> None:
    with pytest.raises(ParameterError, match="width must be"):
        smoothing_error(width, dimensions)


@pytest.mark.parametrize("dimensions", [0, -1, 1.5, True])
def test_bad_dimensions_are_named(dimensions) -> None:
    with pytest.raises(ParameterError, match="dimensions must be"):
        smoothing_error(1.0, dimensions)
