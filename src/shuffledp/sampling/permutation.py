"""Uniform permutations."""

import numpy as np
from numpy.typing import NDArray

from shuffledp.errors import ParameterError
from shuffledp.randomness import RandomBits


def uniform_permutation(size: int, *, bits: RandomBits) -> NDArray[np.intp]:
    """A permutation of range(size), each of the size! with the same probability.

    Sorts items by independent random keys. Key and index share one 64-bit word, so that a plain
    sort, much faster than an indirect one, does the work; items whose keys tie are then permuted
    among themselves, which makes the order exactly uniform.

    >>> sorted(uniform_permutation(5, bits=RandomBits.seeded(0)).tolist())
    [0, 1, 2, 3, 4]
    """
    if not 0 <= size < 1 << 40:
        raise ParameterError("size", size, "must lie in 0..2^40", "shuffle smaller batches")
    index_bits = np.uint64(max(1, (size - 1).bit_length()))
    index_mask = (np.uint64(1) << index_bits) - np.uint64(1)
    words = bits.words(size)
    np.bitwise_and(words, ~index_mask, out=words)
    np.bitwise_or(words, np.arange(size, dtype=np.uint64), out=words)
    words.sort()
    order = (words & index_mask).astype(np.intp)
    keys = np.right_shift(words, index_bits, out=words)
    same_as_next = np.flatnonzero(keys[1:] == keys[:-1])
    if same_as_next.size:
        for first, last in _runs(same_as_next):
            tied = order[first : last + 1]
            order[first : last + 1] = tied[uniform_permutation_of_few(tied.size, bits=bits)]
    return order


def _runs(same_as_next: NDArray[np.intp]) -> list[tuple[int, int]]:
    """First and last position of every run of equal keys."""
    breaks = np.flatnonzero(np.diff(same_as_next) > 1)
    firsts = same_as_next[np.concatenate(([0], breaks + 1))]
    lasts = same_as_next[np.concatenate((breaks, [same_as_next.size - 1]))] + 1
    return list(zip(firsts.tolist(), lasts.tolist(), strict=True))


def uniform_permutation_of_few(size: int, *, bits: RandomBits) -> NDArray[np.intp]:
    """A uniform permutation by 64-bit keys, drawn again as a whole while two are equal."""
    while True:
        keys = bits.words(size)
        if np.unique(keys).size == size:
            return np.argsort(keys)
