from fractions import Fraction

import mpmath
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from shuffledp.randomness import RandomBits
from shuffledp.sampling.exponential import enclose_exponential, uniform_is_below


class ScriptedBits(RandomBits):
    """Bits that are given words, one after another."""

    def __init__(self, words: list[int]) -> None:
        super().__init__(bytes(32))
        self.given = words

    def fill(self, out) -> None:
        out[...] = self.given.pop(0)


def exact(power: int, exponent: Fraction) -> mpmath.mpf:
    return mpmath.ldexp(mpmath.exp(-mpmath.mpf(exponent.numerator) / exponent.denominator), power)


@given(
    exponent=st.fractions(0, 300, max_denominator=10**12),
    precision=st.integers(1, 300),
)
def test_the_enclosure_holds_and_is_narrow(exponent: Fraction, precision: int) -> None:
    low, high = enclose_exponential(exponent, precision)
    with mpmath.workprec(1200):
        true = exact(precision, -exponent)
        assert low <= true <= high
        # At most 70 terms, a few units wide each, doubled as often as the exponent was halved.
        if precision >= 32:
            assert high - low <= 2**9 * (1 + exponent) * true / 2**precision


CASES = [
    (-1, Fraction(0)),
    (0, Fraction(0)),
    (-1, Fraction(-11, 16)),
    (0, Fraction(1, 10**9)),
    (0, Fraction(1)),
    (3, Fraction(29, 7)),
    (11, Fraction(843, 10)),
    (20, Fraction(150)),
]


@pytest.mark.parametrize("words", [0, 1, 3])
@pytest.mark.parametrize(("power", "exponent"), CASES)
def test_a_tie_is_decided_by_the_first_digit_that_differs(power: int, exponent: Fraction, words: int) -> None:
    """The digits of 2^power e^-exponent itself, from 60-digit arithmetic, with one unit more or less at their end."""
    length = 32 + 64 * words
    with mpmath.workprec(2000):
        digits = int(mpmath.floor(exact(power, exponent) * 2**length))
    for wrong in (-2, -1, 1, 2):
        all_digits = digits + wrong
        if 0 <= all_digits < 1 << length:
            given_words = [all_digits >> 64 * i & (1 << 64) - 1 for i in reversed(range(words))]
            # What comes after the digits that differ can change nothing.
            for after in (0, (1 << 64) - 1):
                bits = ScriptedBits([*given_words, *[after] * 3])
                below = uniform_is_below(power, exponent, all_digits >> 64 * words, 32, bits=bits)
                assert below == (wrong < 0)


def test_certain_outcomes() -> None:
    """A probability of 1 is met by every digit, with no more drawn; one of 1/2 by half of them."""
    none = ScriptedBits([])
    assert all(uniform_is_below(0, Fraction(0), digits, 8, bits=none) for digits in range(256))
    assert sum(uniform_is_below(-1, Fraction(0), digits, 8, bits=none) for digits in range(256)) == 128


def test_what_is_all_but_impossible_costs_nothing() -> None:
    """e^-(10^30) has more digits than there is memory: only a first digit of U that is 1 is ever looked at."""
    assert not uniform_is_below(40, Fraction(10**30), 0, 32, bits=ScriptedBits([0, 0, 0, 1]))


def test_it_happens_as_often_as_it_should() -> None:
    digits = RandomBits.seeded(1).unsigned(4000, 8).tolist()
    happened = [uniform_is_below(-1, Fraction(-1, 2), first, 8, bits=RandomBits.seeded(2)) for first in digits]
    assert abs(np.mean(happened) - np.exp(0.5) / 2) < 6.2 * 0.5 / 4000**0.5  # 6.2 deviations: false alarm 1e-9
