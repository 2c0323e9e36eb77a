"""Numpy's generators for references: they protect nobody."""

import numpy as np

from shuffledp.randomness import RandomBits


def generator_from(bits: RandomBits) -> np.random.Generator:
    """A generator seeded by these bits, so that a run can be repeated.

    >>> generator_from(RandomBits.seeded(1)).random() == generator_from(RandomBits.seeded(1)).random()
    True
    """
    return np.random.default_rng(bits.words(4).tolist())
