"""Synthetic categories, of any number."""

import numpy as np
from numpy.typing import NDArray


def synthetic_codes(users: int, bins: int, *, seed: int | None = None) -> NDArray[np.int64]:
    """A code in 0..bins-1 for each user, code i in proportion to log((i + 2)/(i + 1)), about 1/(i + 1).

    No table of the bins is made, so that there may be any number of them.

    >>> (np.bincount(synthetic_codes(12_000, 3, seed=1)) / 12_000).round(1).tolist()
    [0.5, 0.3, 0.2]
    """
    drawn = np.exp(np.log(bins + 1.0) * np.random.default_rng(seed).random(users))
    return np.asarray(np.clip(drawn.astype(np.int64) - 1, 0, bins - 1))
