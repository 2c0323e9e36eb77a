from fractions import Fraction

import numpy as np
import pytest

from shuffledp.errors import ParameterError
from shuffledp.randomness import RandomBits
from shuffledp.sampling.bernoulli import bernoulli
from shuffledp.testing.statistics import assert_law, assert_not_law


@pytest.mark.parametrize("p", [0.5, 0.25, Fraction(1, 3), 0.1, Fraction(1, 65536), Fraction(3, 65537), 3.4e-5, 0.9999])
def test_probability(p) -> None:
    samples = bernoulli(p, 1_000_000, bits=RandomBits.seeded(1))
    assert_law(samples, 0, [1 - float(p), float(p)])


def test_a_coin_with_20_percent_less_is_caught() -> None:
    samples = bernoulli(0.8 * 0.034, 200_000, bits=RandomBits.seeded(1))
    assert_not_law(samples, 0, [1 - 0.034, 0.034])


def test_certain_outcomes() -> None:
    assert not bernoulli(0, 1000, bits=RandomBits.seeded(1)).any()
    assert bernoulli(1, 1000, bits=RandomBits.seeded(1)).all()


class ScriptedBits(RandomBits):
    """Bits that are all those of a given 16-bit and then a given 64-bit number."""

    def __init__(self, first: int, then: list[int]) -> None:
        super().__init__(bytes(32))
        self.first, self.then = first, then

    def fill(self, out) -> None:
        out[...] = self.first if out.dtype == np.uint16 else self.then.pop(0)


@pytest.mark.parametrize(
    ("first", "then", "expected"),
    [
        (0x5555, [0x5555555555555555, 0x5555555555555554], True),
        (0x5555, [0x5555555555555555, 0x5555555555555556], False),
        (0x5555, [0x5555555555555554], True),
        (0x5554, [], True),
        (0x5556, [], False),
    ],
)
def test_ties_are_decided_by_further_digits_of_one_third(first, then, expected) -> None:
    assert bool(bernoulli(Fraction(1, 3), 1, bits=ScriptedBits(first, then))[0]) is expected


def test_a_tie_with_a_dyadic_number_means_not_below() -> None:
    assert not bernoulli(Fraction(0x5555, 1 << 16), 1, bits=ScriptedBits(0x5555, []))[0]


@pytest.mark.parametrize("p", [-0.1, 1.1, Fraction(5, 4)])
def test_bad_probabilities_are_named(p) -> None:
    with pytest.raises(ParameterError, match="p must lie in"):
        bernoulli(p, 1, bits=RandomBits.seeded(1))


class Digits(RandomBits):
    """Bits that are written down: 16 of the first draw, then words."""

    first, later = 0x1234, (0,)

    def unsigned(self, shape, width: int):
        return np.full(shape, self.first, dtype=np.uint16)

    def words(self, count: int):
        word, *rest = self.later
        self.later = tuple(rest)
        return np.full(count, word, dtype=np.uint64)


@pytest.mark.parametrize(
    ("first", "later", "below"),
    [
        (0x1233, (), True),
        (0x1235, (), False),
        (0x1234, (4,), True),
        (0x1234, (6,), False),
        (0x1234, (5, 0), True),
        (0x1234, (5, 7 << 60), False),
        (0x1234, (5, 1 << 60), False),
    ],
)
def test_every_digit_decides_and_equal_digits_to_the_end_are_not_below(first, later, below) -> None:
    """P has digits 0x1234, then 5 in the last place of the next 64, then 1 in the next four: 84 in all."""
    p = Fraction(((0x1234 << 64) + 5 << 4) + 1, 1 << 84)
    bits = Digits(bytes(32))
    bits.first, bits.later = first, later
    assert bernoulli(p, 3, bits=bits).tolist() == [below] * 3
