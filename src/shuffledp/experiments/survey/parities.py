"""Learning parities in three models: users hold random bits and the parity of a hidden few of them.

A candidate agrees with a user or does not; the hidden parity agrees with all, another one with half of them. A user
moves the agreement of every candidate at once, which is what the shuffle model pays for and a curator's exponential
mechanism does not.
"""

import itertools
import math
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from shuffledp.experiments.survey.measuring import Setting
from shuffledp.privacy import Privacy
from shuffledp.protocols.vector_sum import VectorSum
from shuffledp.protocols.vector_sum.base import VectorSumPlan
from shuffledp.references.local import LocalRandomizedResponse

ORDER = 3
"""Bits in a parity, at most."""
TARGET = 0.9

Signs = NDArray[np.int8]


@lru_cache(maxsize=16)
def candidates(bits: int) -> tuple[tuple[int, ...], ...]:
    """All sets of one to ORDER of so many bits.

    >>> len(candidates(4)), len(candidates(10))
    (14, 175)
    """
    return tuple(
        chosen for size in range(1, min(ORDER, bits) + 1) for chosen in itertools.combinations(range(bits), size)
    )


def agreements(bits: int, users: int, generator: np.random.Generator) -> tuple[Signs, int]:
    """Each user's vector of +1 where a candidate agrees with its label and -1 elsewhere, and the hidden candidate."""
    seen = generator.integers(0, 2, (users, bits), dtype=np.int8) * np.int8(2) - np.int8(1)
    values = np.stack([seen[:, chosen].prod(axis=1, dtype=np.int8) for chosen in candidates(bits)], axis=1)
    hidden = int(generator.integers(len(candidates(bits))))
    return np.asarray(values * values[:, [hidden]]), hidden


@lru_cache(maxsize=256)
def vector_plan(users: int, privacy: Privacy, dimension: int) -> VectorSumPlan:
    """A vector of N signs has length sqrt(N): that is all that the vector sum has to be told."""
    return VectorSum.plan(
        users=users, privacy=privacy, dimension=dimension, radius=math.sqrt(dimension), method="shares"
    )


def shuffle_successes(setting: Setting, bits: int, users: int, runs: int) -> int:
    """By a shuffled vector sum of all candidates' agreements."""
    plan = vector_plan(users, setting.privacy, len(candidates(bits)))
    words = ("parity", bits, users)
    generator, coins = setting.generator(*words), setting.bits(*words)
    found = 0
    for _ in range(runs):
        signs, hidden = agreements(bits, users, generator)
        found += int(np.argmax(plan.sample_estimate(signs.astype(np.float64), bits=coins).value)) == hidden
    return found


def central_successes(setting: Setting, bits: int, users: int, runs: int) -> int:
    """By the exponential mechanism on the number of users who agree, which one user moves by at most 1.

    Gumbel noise of scale 2 / epsilon and the largest: the same law. Reference: Kasiviswanathan et al. 2011, [43].
    """
    generator = setting.generator("central parity", bits, users)
    found = 0
    for _ in range(runs):
        signs, hidden = agreements(bits, users, generator)
        scores = (signs > 0).sum(axis=0) + generator.gumbel(scale=2 / setting.privacy.epsilon, size=signs.shape[1])
        found += int(np.argmax(scores)) == hidden
    return found


def local_successes(setting: Setting, bits: int, users: int, runs: int) -> int:
    """By randomized response: each user says of one candidate, a public random one, whether it agrees."""
    generator = setting.generator("local parity", bits, users)
    lie = LocalRandomizedResponse(users=users, privacy=setting.privacy).lie_probability
    size = len(candidates(bits))
    asked = generator.multinomial(users, np.full(size, 1 / size), runs)
    # Disjoint users are asked about each candidate; of all but the hidden one, each agrees with probability 1/2.
    yes = generator.binomial(asked, 0.5)
    yes[:, 0] = generator.binomial(asked[:, 0], 1 - lie)
    rates = np.where(asked > 0, yes / np.maximum(asked, 1), 0.5)
    return int(np.count_nonzero(np.argmax(rates, axis=1) == 0))
