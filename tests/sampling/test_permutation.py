from itertools import permutations

import numpy as np
import pytest

from shuffledp.errors import ParameterError
from shuffledp.randomness import RandomBits
from shuffledp.sampling import permutation
from shuffledp.sampling.permutation import uniform_permutation
from shuffledp.testing.statistics import assert_law, assert_not_law

NUMBERS = {order: number for number, order in enumerate(permutations(range(4)))}


class CoarseBits(RandomBits):
    """Bits whose high 61 are all 0 in 64-bit words drawn for keys: nearly every key ties."""

    def words(self, count: int):
        drawn = super().words(count)
        return drawn & np.uint64(1 << 63) if count == 4 and self.coarse else drawn

    coarse = True


@pytest.mark.parametrize("size", [0, 1, 2, 3, 17, 1000, 100_000])
def test_every_item_comes_once(size: int) -> None:
    assert (np.sort(uniform_permutation(size, bits=RandomBits.seeded(1))) == np.arange(size)).all()


def test_all_orders_are_equally_likely() -> None:
    bits = RandomBits.seeded(2)
    seen = [NUMBERS[tuple(uniform_permutation(4, bits=bits).tolist())] for _ in range(24_000)]
    assert_law(seen, 0, np.full(24, 1 / 24))


def test_ties_are_broken_uniformly(monkeypatch) -> None:
    bits = CoarseBits(bytes(32))
    plain = RandomBits.seeded(3)
    exact = permutation.uniform_permutation_of_few
    monkeypatch.setattr(permutation, "uniform_permutation_of_few", lambda size, *, bits: exact(size, bits=plain))
    seen = [NUMBERS[tuple(uniform_permutation(4, bits=bits).tolist())] for _ in range(24_000)]
    assert_law(seen, 0, np.full(24, 1 / 24))
    monkeypatch.setattr(permutation, "uniform_permutation_of_few", lambda size, *, bits: np.arange(size))
    seen = [NUMBERS[tuple(uniform_permutation(4, bits=bits).tolist())] for _ in range(24_000)]
    assert_not_law(seen, 0, np.full(24, 1 / 24))


def test_each_item_reaches_each_place_in_a_large_permutation() -> None:
    bits = RandomBits.seeded(4)
    places = np.array([np.flatnonzero(uniform_permutation(1000, bits=bits) == 0)[0] for _ in range(20_000)])
    assert_law(places // 10, 0, np.full(100, 1 / 100))


def test_bad_sizes_are_named() -> None:
    with pytest.raises(ParameterError, match="size"):
        uniform_permutation(-1, bits=RandomBits.seeded(1))
