"""Splits of a random set among blocks have the multivariate hypergeometric law."""

from math import comb
from typing import Any

import numpy as np
import pytest

from shuffledp.errors import ParameterError
from shuffledp.randomness import RandomBits
from shuffledp.sampling import split
from shuffledp.sampling.split import random_split

SIZES, COUNT, DRAWS = np.array([3, 0, 2, 3]), 4, 1500


def far_off(draw: Any) -> float:
    """Chi-square of so many draws against the exact law, in standard deviations of it."""
    bits = RandomBits.seeded(11)
    seen: dict[tuple[int, ...], int] = {}
    for _ in range(DRAWS):
        key = tuple(draw(bits).tolist())
        seen[key] = seen.get(key, 0) + 1
    laws = {
        (a, 0, b, COUNT - a - b): comb(3, a) * comb(2, b) * comb(3, COUNT - a - b) / comb(8, COUNT)
        for a in range(4)
        for b in range(3)
        if 0 <= COUNT - a - b <= 3
    }
    assert set(seen) <= set(laws)
    chi = sum((seen.get(key, 0) - DRAWS * p) ** 2 / (DRAWS * p) for key, p in laws.items())
    return float((chi - len(laws) + 1) / np.sqrt(2 * (len(laws) - 1)))


def test_splits_are_those_of_a_random_set(monkeypatch: pytest.MonkeyPatch) -> None:
    # Six deviations of chi-square with 10 degrees of freedom: a false alarm in 1e6 runs, of a fixed seed.
    assert far_off(lambda bits: random_split(SIZES, COUNT, bits=bits)) < 6
    # A wrong twin: what is too much or too little is made good in the first blocks that have it.
    monkeypatch.setattr(split, "_among", in_the_first)
    assert far_off(lambda bits: random_split(SIZES, COUNT, bits=bits)) > 10


def in_the_first(sizes: Any, count: int, bits: RandomBits) -> Any:
    before = np.cumsum(sizes) - sizes
    return np.clip(count - before, 0, sizes)


def test_large_splits_add_up_and_impossible_ones_are_refused() -> None:
    sizes = np.full(1000, 1 << 16)
    sizes[-1] = 77
    found = random_split(sizes, 5_000_000, bits=RandomBits.seeded(1))
    assert found.sum() == 5_000_000 and (found <= sizes).all() and (found >= 0).all()
    assert random_split(sizes, 0, bits=RandomBits.seeded(1)).sum() == 0
    with pytest.raises(ParameterError, match="must lie in 0"):
        random_split(np.array([1, 2]), 4, bits=RandomBits.seeded(1))
