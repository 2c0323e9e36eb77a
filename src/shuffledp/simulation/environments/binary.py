"""Synthetic bits."""

import numpy as np
from numpy.typing import NDArray


def synthetic_bits(users: int, *, share: float = 0.3, seed: int | None = None) -> NDArray[np.uint8]:
    """A bit for each user, 1 with probability `share`.

    >>> synthetic_bits(4, share=1.0)
    array([1, 1, 1, 1], dtype=uint8)
    """
    return (np.random.default_rng(seed).random(users) < share).astype(np.uint8)
