from fractions import Fraction

import numpy as np
import pytest
from scipy import stats

from shuffledp.randomness import RandomBits
from shuffledp.sampling.coins import binomial, coin_bits, fair_coin_sums
from shuffledp.testing.statistics import assert_law, assert_not_law


@pytest.mark.parametrize("coins", [0, 1, 3, 8, 9, 63, 64, 65, 80, 128, 200, 4000])
def test_fair_coin_sums(coins: int) -> None:
    samples = fair_coin_sums(coins, 100_000, bits=RandomBits.seeded(coins))
    assert_law(samples, 0, stats.binom.pmf(np.arange(coins + 1), coins, 0.5))


def test_one_coin_too_few_in_five_is_caught() -> None:
    samples = fair_coin_sums(64, 100_000, bits=RandomBits.seeded(1))
    assert_not_law(samples, 0, stats.binom.pmf(np.arange(81), 80, 0.5))


def test_very_many_coins_in_one_draw() -> None:
    coins = 64 * (1 << 16) * 3 + 17
    samples = fair_coin_sums(coins, 4, bits=RandomBits.seeded(1))
    assert (np.abs(samples - coins / 2) < 7 * np.sqrt(coins) / 2).all() and np.unique(samples).size > 1


@pytest.mark.parametrize(
    ("trials", "p"), [(1, 0.3), (10, 0.5), (80, 0.1), (300, 0.034), (1000, 1 / 3), (5000, 0.9), (100_000, 3.4e-4)]
)
def test_binomial(trials: int, p: float) -> None:
    samples = binomial(trials, p, 20_000, bits=RandomBits.seeded(trials))
    assert_law(samples, 0, stats.binom.pmf(np.arange(trials + 1), trials, p))


def test_a_binomial_with_20_percent_less_is_caught() -> None:
    samples = binomial(10_000, 0.8 * 0.0034, 20_000, bits=RandomBits.seeded(1))
    assert_not_law(samples, 0, stats.binom.pmf(np.arange(10_001), 10_000, 0.0034))


def test_certain_binomials() -> None:
    assert binomial(7, 1, 3, bits=RandomBits.seeded(1)).tolist() == [7, 7, 7]
    assert binomial(7, 0, 3, bits=RandomBits.seeded(1)).tolist() == [0, 0, 0]
    assert binomial(7, 0.5, 0, bits=RandomBits.seeded(1)).size == 0


@pytest.mark.parametrize("p", [0.5, 0.25, Fraction(1, 3), 0.75, 0, 1])
def test_coin_bits(p: float | Fraction) -> None:
    drawn = coin_bits(p, 40_001, bits=RandomBits.seeded(3))
    assert drawn.size == 40_001 and drawn.dtype == np.uint8
    assert_law(drawn, 0, [float(1 - p), float(p)])


def test_a_binomial_of_a_probability_whose_first_digits_are_all_zero() -> None:
    trials, p = 1 << 22, Fraction(3, 1 << 23)
    samples = binomial(trials, p, 200, bits=RandomBits.seeded(4))
    assert_law(samples, 0, stats.binom.pmf(np.arange(60), trials, float(p)))
