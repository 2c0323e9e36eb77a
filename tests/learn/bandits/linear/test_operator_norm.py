"""The exact law of a Gaussian matrix's norm, beside closed forms, simulation and a proved bound."""

import math

import numpy as np
import pytest
from scipy import stats

from shuffledp.errors import ParameterError
from shuffledp.learn.bandits.linear.operator_norm import (
    operator_norm_quantile,
    operator_norm_tail,
    proved_operator_norm,
    vector_norm_quantile,
)

FALSE_ALARM = 1e-9


def test_one_dimension_is_a_normal() -> None:
    for failure in (0.5, 0.05, 1e-6, 1e-10):
        assert operator_norm_quantile(1, failure) == pytest.approx(stats.norm.isf(failure / 2), rel=1e-6)


def test_two_dimensions_by_integration() -> None:
    # Trace / sqrt(2) is normal, half the difference of eigenvalues times sqrt(2) a Rayleigh variable, independent.
    x = 2.5
    grid = np.linspace(-math.sqrt(2) * x, math.sqrt(2) * x, 200_001)
    inside = stats.norm.pdf(grid) * stats.rayleigh.cdf(math.sqrt(2) * x - np.abs(grid))
    assert operator_norm_tail(2, x) == pytest.approx(1 - np.trapezoid(inside, grid), rel=1e-7)


@pytest.mark.parametrize("dimension", [3, 5, 10])
def test_simulated_matrices(dimension: int) -> None:
    runs, failure = 20_000, 0.02
    squares = np.random.default_rng(dimension).standard_normal((runs, dimension, dimension))
    norms = np.abs(np.linalg.eigvalsh((squares + squares.transpose(0, 2, 1)) / 2)).max(axis=1)
    beyond = int((norms > operator_norm_quantile(dimension, failure)).sum())
    low, high = stats.binom.ppf([FALSE_ALARM / 2, 1 - FALSE_ALARM / 2], runs, failure)
    assert low <= beyond <= high
    # A twin with noise scaled by 0.95 must fail.
    assert not low <= int((0.95 * norms > operator_norm_quantile(dimension, failure)).sum()) <= high


def test_the_proved_bound_is_above_and_takes_over() -> None:
    for dimension in (1, 2, 5, 15):
        for failure in (0.3, 1e-3, 1e-8, 1e-10):
            assert operator_norm_quantile(dimension, failure) < proved_operator_norm(dimension, failure)
    assert operator_norm_quantile(5, 1e-14) == proved_operator_norm(5, 1e-14)
    assert operator_norm_quantile(200, 3e-10) == proved_operator_norm(200, 3e-10)
    with pytest.raises(ParameterError, match="failure"):
        operator_norm_quantile(5, 0.0)


@pytest.mark.parametrize("dimension", [3, 20, 60])
def test_rounding_is_far_below_what_tails_are_trusted_for(dimension: int) -> None:
    # Where nothing is left, what is computed is rounding alone.
    far = proved_operator_norm(dimension, 1e-22)
    noise = [abs(operator_norm_tail(dimension, far * (1 + part / 1000))) for part in range(-5, 6)]
    assert 0 < max(noise) < 2e-15 * dimension


def test_a_vector_is_shorter_than_that() -> None:
    assert vector_norm_quantile(1, 0.05) == pytest.approx(stats.norm.isf(0.025))
