"""Synthetic numbers and vectors."""

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]


def synthetic_reals(users: int, low: float, high: float, *, seed: int | None = None) -> Floats:
    """A number in the range for each user, more often small than large.

    >>> float(synthetic_reals(1000, 10, 20, seed=1).mean().round())
    13.0
    """
    return np.asarray(low + (high - low) * np.random.default_rng(seed).beta(2, 5, users))


def synthetic_vectors(users: int, dimension: int, radius: float, *, seed: int | None = None) -> Floats:
    """A vector in the ball for each user, around a common direction.

    >>> synthetic_vectors(3, 2, 1.0, seed=1).shape
    (3, 2)
    """
    generator = np.random.default_rng(seed)
    vectors = generator.normal(size=(users, dimension))
    vectors[:, 0] += np.sqrt(dimension)
    vectors *= (0.999999 * radius / np.linalg.norm(vectors, axis=1))[:, np.newaxis]
    vectors *= generator.random((users, 1))
    return vectors
