import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from shuffledp.errors import ParameterError
from shuffledp.randomness import RandomBits
from shuffledp.sampling.uniform import uniform_below
from shuffledp.testing.statistics import assert_law, assert_not_law


@pytest.mark.parametrize("modulus", [1, 2, 3, 6, 10, 64, 100, 255, 257])
def test_uniform(modulus: int) -> None:
    samples = uniform_below(modulus, 200_000, bits=RandomBits.seeded(modulus))
    assert_law(samples, 0, np.full(modulus, 1 / modulus))


def test_a_remainder_without_rejection_is_caught() -> None:
    biased = RandomBits.seeded(1).unsigned(200_000, 8) % 100
    assert_not_law(biased, 0, np.full(100, 1 / 100))


@given(modulus=st.integers(1, 2**64))
def test_every_modulus_keeps_its_range(modulus: int) -> None:
    samples = uniform_below(modulus, 50, bits=RandomBits.seeded(3))
    assert int(samples.max()) < modulus and samples.size == 50


def test_wide_moduli_reach_both_ends() -> None:
    samples = uniform_below(2**64, 10_000, bits=RandomBits.seeded(1))
    assert int(samples.min()) < 2**52 and int(samples.max()) > 2**64 - 2**52


@pytest.mark.parametrize("modulus", [0, -1, 2**64 + 1])
def test_bad_moduli_are_named(modulus: int) -> None:
    with pytest.raises(ParameterError, match="modulus"):
        uniform_below(modulus, 1, bits=RandomBits.seeded(1))
