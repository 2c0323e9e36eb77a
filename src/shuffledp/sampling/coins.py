"""Sums of fair coins by counting bits, and sums of any coins by the digits of their probability."""

import numpy as np
from numpy.typing import NDArray

from shuffledp.randomness import RandomBits
from shuffledp.sampling.bernoulli import Probability, bernoulli, exact_probability
from shuffledp.sampling.uniform import smallest_width

# Words drawn at a time: enough to be fast, few enough to stay in the cache.
_BLOCK = 1 << 16


def fair_coin_sums(coins: int, count: int, *, bits: RandomBits) -> NDArray[np.int64]:
    """`count` draws of Bin(coins, 1/2), exactly: the number of ones among `coins` random bits.

    >>> fair_coin_sums(80, 100_000, bits=RandomBits.seeded(0)).mean().round(1)
    np.float64(40.0)
    """
    if coins == 0:
        return np.zeros(count, dtype=np.int64)
    if coins <= 64:
        width = smallest_width(coins)
        words = bits.unsigned(count, width)
        if coins < width:
            np.bitwise_and(words, np.array((1 << coins) - 1, dtype=words.dtype), out=words)
        return np.asarray(np.bitwise_count(words), dtype=np.int64)
    full_words, rest = divmod(coins, 64)
    sums = fair_coin_sums(rest, count, bits=bits)
    if full_words >= _BLOCK:
        # Few draws of very many coins: go along the coins.
        for row in range(count):
            for start in range(0, full_words, _BLOCK):
                words = bits.words(min(_BLOCK, full_words - start))
                sums[row] += int(np.bitwise_count(words).sum(dtype=np.int64))
        return sums
    rows = max(1, _BLOCK // full_words)
    for start in range(0, count, rows):
        here = sums[start : start + rows]
        words = bits.words(here.size * full_words).reshape(here.size, full_words)
        here += np.bitwise_count(words).sum(axis=1, dtype=np.int64)
    return sums


def coin_bits(p: Probability, count: int, *, bits: RandomBits) -> NDArray[np.uint8]:
    """`count` bits that are 1 with probability exactly p, a byte each."""
    if p == 0.5:
        return np.unpackbits(bits.unsigned((count + 7) // 8, 8), count=count)
    return bernoulli(p, count, bits=bits).view(np.uint8)


def _fair_coin_sums_of(coins: NDArray[np.int64], *, bits: RandomBits) -> NDArray[np.int64]:
    """One draw of Bin(coins[i], 1/2) for each i."""
    if coins.size == 0:
        return np.zeros(0, dtype=np.int64)
    # What all have in common is drawn at once, the rest in masked words of at most 64 coins.
    common = int(coins.min())
    sums = fair_coin_sums(common, coins.size, bits=bits)
    pending = np.flatnonzero(coins > common)
    left = coins[pending] - common
    while pending.size:
        drawn = np.minimum(left, 64)
        mask = np.uint64(0xFFFF_FFFF_FFFF_FFFF) >> (64 - drawn).astype(np.uint64)
        sums[pending] += np.bitwise_count(bits.words(pending.size) & mask)
        keep = left > 64
        pending, left = pending[keep], left[keep] - 64
    return sums


def binomial(trials: int, p: Probability, count: int, *, bits: RandomBits) -> NDArray[np.int64]:
    """`count` draws of Bin(trials, p), exactly, for any rational p.

    Each trial compares a uniform number with p digit by digit; trials whose digits are equal so far
    are interchangeable, so only their number is kept and a fair-coin sum splits it at each digit:
    about two random bits a trial, and no table.

    >>> binomial(1_000_000, 3.4e-5, 5, bits=RandomBits.seeded(0))
    array([...])
    """
    rest = exact_probability(p)
    if rest == 1:
        return np.full(count, trials, dtype=np.int64)
    successes = np.zeros(count, dtype=np.int64)
    tied = np.full(count, trials, dtype=np.int64)
    while rest and tied.any():
        zeros = _fair_coin_sums_of(tied, bits=bits)  # trials whose next digit is 0
        rest *= 2
        if rest >= 1:
            rest -= 1
            successes += zeros  # p has a 1 here: a 0 is below p
            tied -= zeros
        else:
            tied = zeros  # p has a 0 here: a 1 is above p
    return successes
