"""Widths against brute force: two arms of fair bits, noise by its exact law."""

import math

import numpy as np
import pytest
from scipy import stats

from shuffledp.accounting.laws import Binomial, DiscreteLaplace
from shuffledp.learn.bandits.arms.widths import ArmError, _chernoff, difference_quantile
from shuffledp.randomness import RandomBits
from shuffledp.sampling.laws import sample_polya_difference


def exact_tail(rewards: int, law, batches: int, a: float) -> float:
    """P[error of the difference of two arms' sums > a] for fair bits, by convolution of all masses."""
    one = stats.binom.pmf(np.arange(rewards + 1), rewards, 0.5)
    total = np.convolve(one, one[::-1])
    low, high = law.window(1e-18)
    noise = np.exp(law.log_pmf(np.arange(low, high + 1, dtype=np.float64)))
    for _ in range(batches):
        total = np.convolve(np.convolve(total, noise), noise[::-1])
    places = np.arange(total.size) - total.size // 2
    return float(total[places > a].sum())


LAWS = [DiscreteLaplace(math.exp(-1)), DiscreteLaplace(math.exp(-0.2)), Binomial(80, 0.5), Binomial(1000, 0.034)]


@pytest.mark.parametrize("law", LAWS, ids=str)
@pytest.mark.parametrize("batches", [1, 2, 5])
@pytest.mark.parametrize("failure", [0.05, 1e-4, 1e-7])
def test_a_width_is_passed_no_more_often_than_stated(law, batches: int, failure: float) -> None:
    for rewards in (1, 20, 300):
        error = ArmError(0.0).plus(rewards, law, batches)
        a = difference_quantile(error, failure)
        assert exact_tail(rewards, law, batches, a) <= failure
        # Not looser than what Hoeffding leaves: without rewards it is the noise's own quantile.
        if rewards == 1:
            assert exact_tail(rewards, law, batches, 0.8 * a - 3) > failure


@pytest.mark.parametrize("law", LAWS, ids=str)
def test_less_noise_than_there_is_gives_a_width_that_fails(law) -> None:
    less = {
        DiscreteLaplace: lambda: DiscreteLaplace(law.p**1.25),
        Binomial: lambda: Binomial(round(0.64 * law.trials), law.p),
    }[type(law)]()
    a = difference_quantile(ArmError(0.0).plus(0.01, less, 3), 1e-6)
    assert exact_tail(1, law, 3, a + 1) > 1e-6


@pytest.mark.parametrize("law", LAWS, ids=str)
def test_never_wider_than_hoeffding_and_the_noises_quantile_apart(law) -> None:
    for rewards in (10, 100, 10_000):
        joint = difference_quantile(ArmError(0.0).plus(rewards, law, 2), 1e-6)
        noise_only = difference_quantile(ArmError(1e-9).plus(0.0, law, 2), 5e-7)
        assert joint <= difference_quantile(ArmError(rewards), 5e-7) + noise_only + 1e-3


@pytest.mark.parametrize("law", LAWS, ids=str)
def test_chernoffs_bound_is_above_the_exact_one_and_near_it(law) -> None:
    error = ArmError(0.0).plus(500.0, law, 40)
    exact, bound = difference_quantile(error, 1e-8), _chernoff(error, 1e-8)
    assert exact <= bound <= 1.12 * exact


@pytest.mark.parametrize("failure", [1e-15, 1e-30, 1e-90])
def test_failures_below_a_tables_error_have_chernoffs_bound(failure: float) -> None:
    # Convolved by a transform, and its masses left out at 1e-26.
    for law in (Binomial(4_000_000, 0.5), Binomial(10_000_000, 0.3), DiscreteLaplace(math.exp(-0.02)), *LAWS):
        error = ArmError(0.0).plus(1e6, law, 2)
        a = difference_quantile(error, failure)
        gaussian = stats.norm.isf(failure) * math.sqrt(2 * (1e6 / 4 + 2 * law.variance))
        assert gaussian < a < 1.5 * gaussian


def test_very_many_batches_have_a_bound_too() -> None:
    law = DiscreteLaplace(math.exp(-1))
    a = difference_quantile(ArmError(0.0).plus(1e5, law, 50_000), 1e-9)
    gaussian = stats.norm.isf(1e-9) * math.sqrt(2 * (1e5 / 4 + 50_000 * law.variance))
    assert gaussian < a < 1.15 * gaussian


def test_simulated_sums_stay_within() -> None:
    count, failure = 200_000, 1e-3
    bits, generator = RandomBits.seeded(3), np.random.default_rng(3)
    ratio = math.exp(-0.5)
    sums = [generator.binomial(50, 0.5, count) + sample_polya_difference(3, ratio, count, bits=bits) for _ in range(2)]
    a = difference_quantile(ArmError(0.0).plus(50.0, DiscreteLaplace(ratio), 3), failure)
    passed = int(np.count_nonzero(sums[1] - sums[0] > a))
    assert stats.binom.sf(passed - 1, count, failure) > 1e-9
    assert np.count_nonzero(sums[1] - sums[0] > 0.6 * a) > failure * count
