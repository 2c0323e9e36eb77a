"""The tests' own tests: how often they cry wolf, and what they see."""

import numpy as np
import pytest
from scipy import stats

from shuffledp.testing.statistics import (
    assert_deviation,
    assert_law,
    assert_mean,
    assert_not_law,
    assert_same_law,
    judge_law,
)

MASSES = stats.binom.pmf(np.arange(21), 20, 0.3)


def test_p_values_are_not_smaller_than_they_should_be() -> None:
    rng = np.random.default_rng(1)
    p_values = np.array([judge_law(rng.binomial(20, 0.3, 3000), 0, MASSES).p_value for _ in range(2000)])
    for level in (0.2, 0.05, 0.01):
        assert (p_values < level).mean() <= level + 4 * np.sqrt(level / 2000)


def test_wrong_laws_are_seen() -> None:
    rng = np.random.default_rng(2)
    assert_law(rng.binomial(20, 0.3, 50_000), 0, MASSES)
    assert_not_law(rng.binomial(20, 0.28, 50_000), 0, MASSES)
    assert_not_law([25], 0, MASSES)
    assert_not_law([], 0, MASSES)
    with pytest.raises(AssertionError, match="refute"):
        assert_law(rng.binomial(20, 0.28, 50_000), 0, MASSES)
    with pytest.raises(AssertionError, match="passed"):
        assert_not_law(rng.binomial(20, 0.3, 50_000), 0, MASSES)


def test_one_impossible_value_in_many_is_seen() -> None:
    masses = np.array([0.5, 0.5, 0.0])
    assert judge_law([0, 1] * 5000 + [2], 0, masses).p_value == 0


def test_mean_deviation_and_two_samples() -> None:
    rng = np.random.default_rng(3)
    sample = rng.normal(5, 2, 20_000)
    assert_mean(sample, 5, 2)
    assert_deviation(sample, 2)
    assert_same_law(sample, rng.normal(5, 2, 20_000))
    for wrong in (
        lambda: assert_mean(sample, 5.2, 2),
        lambda: assert_deviation(sample, 2 * 0.8),
        lambda: assert_same_law(sample, rng.normal(5, 1.6, 20_000)),
    ):
        with pytest.raises(AssertionError):
            wrong()


def test_two_constant_samples_are_the_same() -> None:
    assert_same_law([1.0] * 1000, [1.0] * 1000)


def test_small_samples_of_two_laws_differ() -> None:
    """Below 600 samples there was one cell, in which everything is alike."""
    assert_same_law([1.0] * 250 + [2.0] * 250, [1.0] * 20 + [2.0] * 20)
    with pytest.raises(AssertionError, match="two laws differ"):
        assert_same_law([1.0] * 500, [0.0] * 50)
