import itertools
import math

import numpy as np
import pytest

from shuffledp.errors import ParameterError
from shuffledp.randomness import RandomBits
from shuffledp.sampling import subset
from shuffledp.sampling.subset import random_subset, rare_events
from shuffledp.testing.statistics import assert_law, assert_not_law


@pytest.mark.parametrize(("size", "count"), [(6, 2), (6, 3), (5, 4), (4, 4), (7, 0)])
def test_every_subset_is_equally_likely(size: int, count: int) -> None:
    """False alarm 1e-9."""
    bits = RandomBits.seeded(1)
    number = {subset: place for place, subset in enumerate(itertools.combinations(range(size), count))}
    drawn = [number[tuple(random_subset(size, count, bits=bits).tolist())] for _ in range(3000)]
    assert_law(drawn, 0, np.full(len(number), 1 / len(number)), false_alarm=1e-9)


@pytest.mark.parametrize(("right", "wrong", "runs"), [(0.3, 0.4, 2000), (0.03, 0.06, 3000)])
def test_events_are_independent_coins(right: float, wrong: float, runs: int) -> None:
    """Three coins as a number of three bits, common or rare; false alarm 1e-9, and a wrong twin."""
    bits = RandomBits.seeded(2)
    drawn = [int(np.sum(1 << rare_events(3, right, bits=bits))) for _ in range(runs)]
    for p, judge in ((right, assert_law), (wrong, assert_not_law)):
        masses = [math.prod(p if word >> i & 1 else 1 - p for i in range(3)) for word in range(8)]
        judge(drawn, 0, masses, false_alarm=1e-9)


def test_refuses_too_many() -> None:
    with pytest.raises(ParameterError):
        random_subset(3, 4, bits=RandomBits.seeded(1))


def test_common_events_in_several_blocks_are_independent_coins(monkeypatch: pytest.MonkeyPatch) -> None:
    """Three coins in blocks of two; false alarm 1e-9."""
    monkeypatch.setattr(subset, "_BLOCK", 2)
    bits = RandomBits.seeded(3)
    drawn = [int(np.sum(1 << rare_events(3, 0.3, bits=bits))) for _ in range(2000)]
    masses = [math.prod(0.3 if word >> i & 1 else 0.7 for i in range(3)) for word in range(8)]
    assert_law(drawn, 0, masses, false_alarm=1e-9)
