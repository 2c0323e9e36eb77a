"""Pointer chasing in three models: how many users tell where two permutations lead, one after the other.

Half of the users hold the first permutation, half the second, and the answer is the second's value at the first's value
at 1. One round: nobody knows where to look in the second permutation before the first is known.
"""

import numpy as np

from shuffledp.experiments.pointer_chasing import fullest, universe_size
from shuffledp.experiments.pointers import measured_shuffle_success
from shuffledp.experiments.survey.measuring import Setting
from shuffledp.references.curator_histogram import CuratorHistogram
from shuffledp.references.local_histograms import LocalHistogram

TARGET = 0.9


def shuffle_successes(setting: Setting, method: str, length: int, users: int, runs: int) -> int:
    """By a shuffled histogram over all permutations, whose fullest bin in either half is read.

    Reference: [004] Theorem 18 (Balcer, Cheu 2020).
    """
    seed = setting.number("pointers", method, length, users)
    return measured_shuffle_success(length, users, setting.privacy, method, runs=runs, seed=seed)[0]


def central_successes(setting: Setting, length: int, users: int, runs: int) -> int:
    """By a curator's histogram over all permutations."""
    size = universe_size(length)
    curator = CuratorHistogram(privacy=setting.privacy, bins=size)
    generator = setting.generator("central pointers", length, users)
    found = 0
    for _ in range(runs):
        first, second = (part * size // 2 + int(generator.integers(size // 2)) for part in range(2))
        holds_first = int(generator.binomial(users, 0.5))
        counts = np.zeros(size, dtype=np.int64)
        counts[first], counts[second] = holds_first, users - holds_first
        found += fullest(curator.sample_estimate(counts, generator=generator)) == (first, second)
    return found


def local_successes(setting: Setting, length: int, users: int, runs: int) -> int:
    """One round in the local model: those with the first permutation report its value at 1, those with the second
    its value at a place that is public and random for each; the fullest bin is read, then that of the right place.

    Only the place that the first one leads to helps: the users needed grow like l.
    """
    generator = setting.generator("local pointers", length, users)
    first = generator.binomial(users, 0.5, runs)
    here = generator.binomial(users - first, 1 / length)
    return sum(
        _plurality(setting, length, int(one), generator) and _plurality(setting, length, int(two), generator)
        for one, two in zip(first, here, strict=True)
    )


def _plurality(setting: Setting, length: int, users: int, generator: np.random.Generator) -> bool:
    """Whether a local histogram of users who all have one value shows that value."""
    if users == 0:
        return int(generator.integers(length)) == 0
    # Bits of a unary encoding are independent, so that each bin's law is that of all of them together.
    local = LocalHistogram(encoding="optimized-unary", users=users, privacy=setting.privacy, bins=length)
    counts = np.zeros(length, dtype=np.int64)
    counts[0] = users
    return int(np.argmax(local.sample_estimate(counts, generator=generator))) == 0
