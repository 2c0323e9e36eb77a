"""A random rotation: signs that all parties know, then the Walsh-Hadamard transform.

It keeps lengths, spreads a vector over all coordinates, and is its own inverse up to the signs.
"""

import math
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from shuffledp.randomness import RandomBits
from shuffledp.sampling.walsh import walsh_hadamard

Floats = NDArray[np.float64]


def padded_dimension(dimension: int) -> int:
    """The next power of two.

    >>> padded_dimension(10)
    16
    """
    return 1 << (dimension - 1).bit_length()


@lru_cache(maxsize=16)
def _signs(coordinates: int, seed: int) -> Floats:
    flips = np.unpackbits(RandomBits.seeded(seed).unsigned((coordinates + 7) // 8, 8), count=coordinates)
    return np.asarray(1.0 - 2.0 * flips)


def rotate(vectors: Floats, seed: int) -> Floats:
    """Rows of a matrix, padded with zeros to a power of two and rotated.

    >>> x = np.array([[3.0, 4.0, 0.0]])
    >>> float(np.linalg.norm(rotate(x, 7)).round(9)), np.allclose(rotate_back(rotate(x, 7), 7)[:, :3], x)
    (5.0, True)
    """
    users, dimension = vectors.shape
    rotated = np.zeros((users, padded_dimension(dimension)))
    np.multiply(vectors, _signs(rotated.shape[1], seed)[:dimension], out=rotated[:, :dimension])
    return _isometry(rotated)


def rotate_back(vectors: Floats, seed: int) -> Floats:
    """The inverse, with the padding still there."""
    return _isometry(vectors.copy()) * _signs(vectors.shape[1], seed)


def _isometry(vectors: Floats) -> Floats:
    """In place, with the scale that keeps lengths."""
    walsh_hadamard(vectors)
    vectors *= 1 / math.sqrt(vectors.shape[1])
    return vectors


def likely_range(users: int, coordinates: int, failure: float) -> float:
    """No coordinate of any user's rotated unit vector is larger, but for this probability over the signs.

    Hoeffding's inequality for a sum of signs, for all users' coordinates at once; at most 1.

    >>> round(likely_range(100_000, 1024, 1e-6), 2)
    0.25
    """
    return min(1.0, math.sqrt(2 * math.log(2 * users * coordinates / failure) / coordinates))
