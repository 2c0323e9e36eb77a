"""Groups by public coins: what they keep of a distance, by enumeration."""

import itertools

import numpy as np
import pytest

from shuffledp.errors import ParameterError
from shuffledp.protocols.distribution_test.groups import Groups
from shuffledp.protocols.distribution_test.local import local_users_needed
from shuffledp.randomness import RandomBits


@pytest.mark.parametrize("groups", [2, 3])
@pytest.mark.parametrize(
    "shape", [(1, -1, 0, 0, 0, 0), (1, 1, 1, -1, -1, -1), (5, -1, -1, -1, -1, -1), (3, 1, -1, 0, -2, -1)]
)
def test_mean_and_variance_over_all_partitions(groups: int, shape: tuple[int, ...]) -> None:
    off = np.array(shape, dtype=float)
    partition = Groups(cells=6, groups=groups, seed=1)
    orders = np.array(list(itertools.permutations(range(6))))
    kept = np.square(off[orders].reshape(-1, groups, 6 // groups).sum(axis=2)).sum(axis=1) / np.square(off).sum()
    assert kept.mean() == pytest.approx(partition.mean_kept)
    assert kept.var() <= partition.variance_kept + 1e-12
    if set(shape) == {1, -1}:
        assert kept.var() == pytest.approx(partition.variance_kept)
    for part in (0.2, 0.5, 0.9):
        assert np.mean(kept <= part * partition.mean_kept) <= partition.shortfall(part) + 1e-12


def test_groups_have_equal_weight_whatever_divides() -> None:
    for cells, groups in ((12, 4), (10, 4), (7, 3)):
        partition = Groups(cells=cells, groups=groups, seed=5)
        everyone = np.repeat(np.arange(cells), 3000)
        counts = np.bincount(partition.assign(everyone, bits=RandomBits.seeded(1)), minlength=groups)
        assert counts.size == groups
        assert np.abs(counts - everyone.size / groups).max() <= 7 * np.sqrt(everyone.size / groups)
        if partition.splits == 1:
            assert (counts == everyone.size // groups).all()


def test_public_coins_are_public() -> None:
    one, same, other = (Groups(cells=100, groups=10, seed=seed) for seed in (1, 1, 2))
    codes, bits = np.arange(100), RandomBits.seeded(1)
    assert (one.assign(codes, bits=bits) == same.assign(codes, bits=bits)).all()
    assert (one.assign(codes, bits=bits) != other.assign(codes, bits=bits)).any()


@pytest.mark.parametrize(
    "given", [{"groups": 1}, {"groups": 11}, {"seed": -1}, {"cells": 1_048_573, "groups": 1_000_003}]
)
def test_what_cannot_be_is_refused(given) -> None:
    with pytest.raises(ParameterError):
        Groups(**{"cells": 10, "groups": 5, "seed": 1, **given})


def test_local_users_grow_like_d_with_public_coins_and_faster_without() -> None:
    def slope(public_coins: bool) -> float:
        few, many = (
            local_users_needed(epsilon=1, bins=d, distance=0.25, public_coins=public_coins) for d in (512, 4096)
        )
        return float(np.log(many / few) / np.log(8))

    assert slope(True) == pytest.approx(1.0, abs=0.05)
    assert slope(False) == pytest.approx(1.5, abs=0.05)
