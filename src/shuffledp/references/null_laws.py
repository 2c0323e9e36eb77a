"""What a test's statistic does where the claim is true, simulated before there are any data: it protects nobody."""

import math
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray
from scipy import special

Floats = NDArray[np.float64]
# Numbers drawn at a time.
_AT_A_TIME = 1 << 22


def runs_for(bins: int, runs: int = 4000) -> int:
    """So many runs, or fewer where bins are very many."""
    return max(200, min(runs, (1 << 26) // bins))


def collision_scores(*, users: int, throws: int, probability: float, law: Floats, runs: int, seed: int) -> Floats:
    """Excess of collisions in deviations, of `users` messages of this law and Bin(throws, probability) uniform ones.

    >>> scores = collision_scores(users=500, throws=900, probability=0.5, law=np.full(9, 1 / 9), runs=2000, seed=1)
    >>> bool(abs(scores.mean()) < 0.15 and abs(scores.std() - 1) < 0.1)
    True
    """
    generator, bins = np.random.default_rng(seed), law.size

    def scores(here: int) -> Floats:
        decoys = generator.binomial(throws, probability, here)
        seen = generator.multinomial(users, law, here) + generator.multinomial(decoys, np.full(bins, 1 / bins))
        total = (users + decoys).astype(np.float64)
        squares = np.square(seen.astype(np.float64)).sum(axis=1)
        # Operation by operation what the test computes: scores are discrete, and ties must stay ties.
        share = 1 / bins
        spread = np.sqrt(2 * total * (total - 1) * share * (1 - share))
        return np.asarray((squares - total - total * (total - 1) / bins) / spread)

    return _in_blocks(scores, runs, bins)


def column_scores(
    *, users: int, kept: float, spurious: float, law: Floats, deviation: float, runs: int, seed: int
) -> Floats:
    """The rows' statistic in deviations, of `users` rows of bits, their bins drawn from this law."""
    generator, n = np.random.default_rng(seed), float(users)
    mean = (kept - spurious) / law.size + spurious

    def scores(here: int) -> Floats:
        counts = generator.multinomial(users, law, here)
        sums = generator.binomial(counts, kept) + generator.binomial(users - counts, spurious)
        columns = sums.astype(np.float64)
        terms = columns * (columns - 1) - 2 * (n - 1) * mean * columns + n * (n - 1) * mean**2
        return np.asarray(terms.sum(axis=1) / deviation)

    return _in_blocks(scores, runs, law.size)


def _in_blocks(scores: Callable[[int], Floats], runs: int, bins: int) -> Floats:
    """The scores of all runs, drawn so many runs at a time as memory allows."""
    together = max(1, _AT_A_TIME // bins)
    return np.concatenate([scores(min(together, runs - start)) for start in range(0, runs, together)])


def certified_quantile(scores: Floats, level: float, failure: float) -> float:
    """A score that is exceeded with probability at most `level`, unless the simulation was unlucky (`failure`).

    The k-th smallest of R simulated scores lies below the true quantile with probability P[Bin(R, 1 - level) >= k].

    >>> scores = np.sort(np.random.default_rng(1).normal(size=4000))
    >>> 1.645 < certified_quantile(scores, 0.05, 1e-6) < 2.0
    True
    >>> certified_quantile(scores, 1e-4, 1e-6)
    inf
    """
    runs = scores.size
    ranks = np.arange(1, runs + 1)
    unlucky = special.betainc(ranks, runs - ranks + 1, 1 - level)
    enough = np.flatnonzero(unlucky <= failure)
    return float(np.sort(scores)[enough[0]]) if enough.size else math.inf


def hard_law(distance: float, bins: int) -> Floats:
    """A law at this total variation distance from uniform that is hard to see: pairs of bins, one up and one down.

    Beyond 1/2 there is none like that, and some bins stay empty.

    >>> hard_law(0.25, 4).tolist()
    [0.375, 0.125, 0.375, 0.125]
    """
    even = bins // 2 * 2
    tilt = 2 * distance * bins / even
    law = np.full(bins, 1 / bins)
    if tilt <= 1:
        law[:even:2] += tilt / bins
        law[1:even:2] -= tilt / bins
        return law
    filled = max(1, math.floor(bins * (1 - distance)))
    return np.where(np.arange(bins) < filled, 1 / filled, 0.0)


def hard_departure(claim: Floats, distance: float) -> Floats:
    """A law at this total variation distance from the claim: the likelier half of the categories gives to the other.

    >>> hard_departure(np.array([0.1, 0.2, 0.3, 0.4]), 0.35).round(3).tolist()
    [0.275, 0.375, 0.15, 0.2]
    """
    order = np.argsort(claim, kind="stable")
    half = order.size // 2
    rare, likely = order[:half], order[order.size - half :]
    moved = claim.copy()
    taken = min(distance, float(claim[likely].sum()))
    moved[likely] -= claim[likely] / claim[likely].sum() * taken
    moved[rare] += taken / half
    return moved


def grouped_law(law: Floats, splits: int, groups: int, seed: int) -> Floats:
    """The law over groups of equal numbers of parts, drawn at random, where each bin has so many parts."""
    parts = np.repeat(law / splits, splits)
    return np.asarray(np.random.default_rng(seed).permutation(parts).reshape(groups, -1).sum(axis=1))
