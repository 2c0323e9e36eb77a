"""How many of a random set fall into each of several blocks, without drawing the set: exactly."""

from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from shuffledp.errors import ParameterError
from shuffledp.randomness import RandomBits
from shuffledp.sampling.coins import binomial
from shuffledp.sampling.subset import random_subset


def random_split(sizes: NDArray[np.int64], count: int, *, bits: RandomBits) -> NDArray[np.int64]:
    """How many of `count` people fall into each block, where every set of so many people is equally likely.

    That is the multivariate hypergeometric law. Everybody tosses the same coin, so that each block has a binomial
    number of heads; given how many heads there are, every set of that size is equally likely. Where they are too many,
    a random set of them is put back, where they are too few, a random set of the others is added: about the square root
    of all are drawn one by one.

    Args:
        sizes: people of each block.
        count: how many are chosen of all of them.
        bits: where the draws come from.

    Raises:
        ParameterError: there are not so many.

    >>> random_split(np.array([3, 0, 5]), 8, bits=RandomBits.seeded(0)).tolist()
    [3, 0, 5]
    """
    total = int(sizes.sum())
    if not 0 <= count <= total:
        raise ParameterError("count", count, f"must lie in 0..{total}", "choose fewer")
    if count in (0, total):
        return sizes * int(count > 0)
    chosen = np.zeros(sizes.size, dtype=np.int64)
    for size in np.unique(sizes[sizes > 0]):
        same = np.flatnonzero(sizes == size)
        chosen[same] = binomial(int(size), Fraction(count, total), same.size, bits=bits)
    surplus = int(chosen.sum()) - count
    if surplus > 0:
        chosen -= _among(chosen, surplus, bits)
    elif surplus < 0:
        chosen += _among(sizes - chosen, -surplus, bits)
    return chosen


def _among(sizes: NDArray[np.int64], count: int, bits: RandomBits) -> NDArray[np.int64]:
    """How many of `count` people fall into each block, drawn one by one."""
    ends = np.cumsum(sizes)
    drawn = random_subset(int(ends[-1]), count, bits=bits)
    return np.bincount(np.searchsorted(ends, drawn, side="right"), minlength=sizes.size)
