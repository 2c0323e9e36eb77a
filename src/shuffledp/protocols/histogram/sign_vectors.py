"""Signs of categories in pseudorandomly chosen Hadamard columns, and how many of them fit each category.

A seed's bits are a Toeplitz matrix over GF(2): its i-th row, and the i-th Hadamard column, is the window of
`index_bits` bits that begins at bit i. The sign of category x in a column h is the parity of x & h. For x other than x'
the signs differ by the matrix times x ^ x', which is uniform: each row has a bit of the seed that no earlier row
multiplied with the highest one of x ^ x'.
"""

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from shuffledp.sampling.walsh import walsh_hadamard

Integers = NDArray[np.int64]
# Words held at a time.
_BLOCK = 1 << 20
# Passes over a word that solving takes for each entry of the matrix; the transform's scattering takes one.
_SOLVING_PASSES = 6


def seed_bits(index_bits: int, signs: int) -> int:
    """Bits of a seed: one for every diagonal of the matrix."""
    return index_bits + signs - 1


def column(seeds: Integers, index_bits: int, row: int) -> Integers:
    """The Hadamard column of a given row of every seed's matrix."""
    return (seeds >> row) & ((1 << index_bits) - 1)


def sign_vectors(seeds: Integers, codes: Integers | int, index_bits: int, signs: int) -> Integers:
    """The signs of each code under each seed, a bit each: 1 stands for -1.

    >>> sign_vectors(np.array([0b10110]), 0b011, 3, 3).tolist() == [0b101]
    True
    """
    vectors = np.zeros(seeds.size, dtype=np.int64)
    for row in range(signs):
        vectors |= _parity(column(seeds, index_bits, row) & codes) << row
    return vectors


def fitting_counts(seeds: Integers, vectors: Integers, index_bits: int, signs: int) -> Integers:
    """For every code below 2^index_bits the number of messages whose sign vector is the code's.

    By one transform where there are few signs, by solving for the codes where there are many.
    """
    scattered = seeds.size * (1 << signs) + index_bits * (1 << index_bits)
    solved = seeds.size * (_SOLVING_PASSES * signs * index_bits + (1 << index_bits - signs))
    count = counts_by_transform if scattered <= solved else counts_by_solving
    return count(seeds, vectors, index_bits, signs)


def counts_by_transform(seeds: Integers, vectors: Integers, index_bits: int, signs: int) -> Integers:
    """M x = z is indicated by the mean over all s of (-1)^(s.z) (-1)^((M' s).x): the transform of scattered signs.

    A sign rides as the lowest bit of its index.
    """
    scattered = np.zeros(2 << index_bits, dtype=np.int64)
    rows = max(1, _BLOCK >> signs)
    for start in range(0, seeds.size, rows):
        here, z = seeds[start : start + rows], vectors[start : start + rows]
        words = [column(here, index_bits, row) << 1 | (z >> row & 1) for row in range(signs)]
        scattered += np.bincount(_spanned(np.zeros_like(here), words).reshape(-1), minlength=2 << index_bits)
    spectrum = scattered[0::2] - scattered[1::2]
    return np.asarray(walsh_hadamard(spectrum) >> signs)


def counts_by_solving(seeds: Integers, vectors: Integers, index_bits: int, signs: int) -> Integers:
    """All solutions of M x = z of each message, counted."""
    counts = np.zeros(1 << index_bits, dtype=np.int64)
    rows = max(1, _BLOCK // (8 * index_bits))
    for start in range(0, seeds.size, rows):
        for codes in _solutions(seeds[start : start + rows], vectors[start : start + rows], index_bits, signs):
            counts += np.bincount(codes, minlength=counts.size)
    return counts


def _solutions(seeds: Integers, vectors: Integers, index_bits: int, signs: int) -> Iterator[Integers]:
    """A solution and a basis of what may be added to it, kept up row after row for all messages at once.

    A basis vector with an odd product with the new row is added to the others that have one, and dropped.
    """
    solution = np.zeros(seeds.size, dtype=np.uint32)
    basis = np.repeat(np.uint32(1) << np.arange(index_bits, dtype=np.uint32)[:, np.newaxis], seeds.size, axis=1)
    solvable = np.ones(seeds.size, dtype=np.bool_)
    everybody = np.arange(seeds.size)
    for row in range(signs):
        h = column(seeds, index_bits, row).astype(np.uint32)
        odd = np.bitwise_count(basis & h) & np.uint8(1)
        first = odd.argmax(axis=0)
        dropped = basis[first, everybody] * odd[first, everybody]
        wrong = ((np.bitwise_count(solution & h) ^ (vectors >> row)) & 1).astype(np.bool_)
        solvable &= ~wrong | (dropped != 0)
        solution[wrong] ^= dropped[wrong]
        basis ^= dropped * odd
    basis.sort(axis=0)  # what was dropped is 0 now, and comes first
    freedom = np.count_nonzero(basis, axis=0)
    for size in np.unique(freedom[solvable]).tolist():
        chosen = np.flatnonzero(solvable & (freedom == size))
        at_a_time = max(1, _BLOCK >> size)
        for start in range(0, chosen.size, at_a_time):
            some = chosen[start : start + at_a_time]
            free = basis[index_bits - size :, some].astype(np.int64)
            yield _spanned(solution[some].astype(np.int64), list(free)).reshape(-1)


def _spanned(start: Integers, vectors: list[Integers]) -> Integers:
    """The sums of `start` and every subset of the vectors, a row a subset."""
    spanned = np.empty((1 << len(vectors), start.size), dtype=np.int64)
    spanned[0] = start
    for place, vector in enumerate(vectors):
        np.bitwise_xor(spanned[: 1 << place], vector, out=spanned[1 << place : 2 << place])
    return spanned


def _parity(words: Integers) -> Integers:
    return np.bitwise_count(words).astype(np.int64) & 1
