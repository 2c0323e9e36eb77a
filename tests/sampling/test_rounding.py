"""Rounding at random: the law of the rounding bit, exactly, at any sign and size."""

import math
from fractions import Fraction

import numpy as np
import pytest

from shuffledp.errors import ParameterError
from shuffledp.randomness import RandomBits
from shuffledp.sampling.rounding import FRACTION_BITS, LARGEST, ColumnSums, round_randomly
from shuffledp.testing.statistics import assert_law, assert_mean, assert_not_law

WORD = 1 << FRACTION_BITS


class ScriptedBits(RandomBits):
    """The same secret for every number."""

    def __init__(self, secret: int) -> None:
        super().__init__(bytes(32))
        self.secret = secret

    def fill(self, out) -> None:
        out.view(np.uint32)[...] = self.secret


def rounded(value: float, secret: int) -> int:
    return int(round_randomly(np.array([value]), bits=ScriptedBits(secret))[0])


NUMBERS = [
    0.0,
    0.5,
    1 / 3,
    2.25,
    1 - 2.0**-32,
    2.0**-32,
    2.0**-33,
    3 * 2.0**-33,
    -0.25,
    -1 / 3,
    -7.75,
    -(2.0**-32),
    1e-300,
    2.0**19 - 1 / 7,
    2.0**19 + 1 / 7,
    -(2.0**19) + 0.3,
    -(2.0**19) - 0.3,
    123456.789,
    2.0**30 - 1 / 3,
    -(2.0**30) + 1 / 3,
    2.0**30,
    -(2.0**30),
]


@pytest.mark.parametrize("value", NUMBERS)
def test_exactly_the_right_secrets_round_up(value: float) -> None:
    """Of 2^32 secrets as many as the fraction has units round up: the law of the bit, without sampling."""
    fixed = round(Fraction(value) * WORD)  # to the nearest, ties to even
    assert abs(Fraction(fixed, WORD) - Fraction(value)) <= Fraction(1, 2 * WORD)
    floor, units = divmod(fixed, WORD)
    assert rounded(value, 0) == floor
    assert rounded(value, WORD - 1) == floor + (units > 0)
    assert rounded(value, WORD - units - (units == 0)) == floor + (units > 0)
    if units:
        assert rounded(value, WORD - units - 1) == floor


def test_both_ways_of_taking_a_whole_number_agree() -> None:
    """Numbers beyond 2^19 take another way; one of them in an array sends all of them that way."""
    rng = np.random.default_rng(1)
    values = np.concatenate((rng.uniform(-1e5, 1e5, 5000), rng.integers(-9, 9, 100) + 2.0**-33, [0.0, -0.5]))
    together = np.append(values, 2.0**19)
    alone = round_randomly(values, bits=RandomBits.seeded(4))
    assert np.array_equal(round_randomly(together, bits=RandomBits.seeded(4))[:-1], alone)
    assert (np.abs(alone - values) < 1).all()


@pytest.mark.parametrize("value", [0.5, 0.1, 2.25, -0.1, -3.7, 2.0**19 + 0.3, -(2.0**29) - 0.125])
def test_the_law_of_the_bit(value: float) -> None:
    samples = round_randomly(np.full(200_000, value), bits=RandomBits.seeded(2))
    floor = math.floor(value)
    assert_law(samples, floor, [floor + 1 - value, value - floor])
    assert_mean(samples, value, math.sqrt((value - floor) * (floor + 1 - value)))


def test_a_fraction_that_is_20_percent_off_is_caught() -> None:
    samples = round_randomly(np.full(200_000, 0.8 * 0.1), bits=RandomBits.seeded(2))
    assert_not_law(samples, 0, [0.9, 0.1])


def test_rounding_towards_zero_is_caught() -> None:
    """The twin: what a cast does to negative numbers."""
    u = RandomBits.seeded(2).unsigned(200_000, 32) / WORD
    assert_not_law(np.trunc(-0.3 + u).astype(np.int64), -1, [0.3, 0.7])


def test_numbers_are_rounded_independently() -> None:
    samples = round_randomly(np.full((100_000, 2), 0.5), bits=RandomBits.seeded(3))
    assert_law(2 * samples[:, 0] + samples[:, 1], 0, [0.25] * 4)


def test_shapes_and_strides_do_not_matter() -> None:
    values = np.arange(12.0).reshape(3, 4) / 7
    plain = round_randomly(values, bits=RandomBits.seeded(5))
    assert np.array_equal(round_randomly(np.asfortranarray(values), bits=RandomBits.seeded(5)), plain)
    assert np.array_equal(round_randomly(np.repeat(values, 2, axis=1)[:, ::2], bits=RandomBits.seeded(5)), plain)
    assert values[0, 1] == 1 / 7
    assert round_randomly(np.empty((0, 3)), bits=RandomBits.seeded(5)).shape == (0, 3)


@pytest.mark.parametrize("value", [LARGEST + 1e-6, -LARGEST - 1e-6, 1e300, math.inf, -math.inf, math.nan])
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_what_is_too_large_is_refused(value: float) -> None:
    with pytest.raises(ParameterError, match="values"):
        round_randomly(np.array([0.5, value]), bits=RandomBits.seeded(1))


@pytest.mark.parametrize(("scale", "offset"), [(1.0, 0.0), (37.0, 18.5), (0.125, 0.0), (2.0**18, 2.0**17)])
def test_column_sums_are_sums_of_rounded_columns(scale: float, offset: float) -> None:
    """Draw for draw, on numbers that scaling and moving leave exact."""
    values = np.random.default_rng(1).integers(-(2**12), 2**12 + 1, size=(700, 5)) / 2.0**12
    sums, bits = ColumnSums(5, scale=scale, offset=offset, rows=200), RandomBits.seeded(6)
    for start in range(0, 700, 200):
        sums.add(values[start : start + 200], bits=bits)
    assert np.array_equal(sums.totals, round_randomly(values * scale + offset, bits=RandomBits.seeded(6)).sum(axis=0))


def test_column_sums_near_their_largest_number() -> None:
    value = ColumnSums.LARGEST - 1 / 3
    for sign in (1, -1):
        sums = ColumnSums(1, scale=1.0, rows=50_000)
        sums.add(np.full((50_000, 1), sign * value), bits=RandomBits.seeded(7))
        assert abs(int(sums.totals[0]) - sign * value * 50_000) < 7 * math.sqrt(50_000 * 2 / 9)


def test_column_sums_start_again_from_nothing() -> None:
    sums = ColumnSums(2, scale=1.0, rows=10)
    sums.add(np.full((10, 2), 3.0), bits=RandomBits.seeded(8))
    sums.clear()
    assert sums.totals.tolist() == [0, 0]
    sums.add(np.full((4, 2), 2.0), bits=RandomBits.seeded(8))
    assert sums.totals.tolist() == [8, 8]
