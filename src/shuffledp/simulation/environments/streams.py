"""Made-up values for a running sum."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from shuffledp.protocols.domains.summed import OneHot, Reals, SummedDomain, Vectors
from shuffledp.simulation.environments.binary import synthetic_bits
from shuffledp.simulation.environments.reals import synthetic_reals, synthetic_vectors


def synthetic_stream(domain: SummedDomain, users: int, *, seed: int | None = None) -> NDArray[Any]:
    """Values of the domain, an entry or a row a user.

    >>> synthetic_stream(OneHot(5), 3, seed=1).shape, synthetic_stream(Vectors(2, 1.0, 4), 3, seed=1).shape
    ((3,), (3, 2))
    """
    if isinstance(domain, Reals):
        return synthetic_reals(users, 0.0, 1.0, seed=seed)
    if isinstance(domain, Vectors):
        return synthetic_vectors(users, domain.dimension, domain.radius, seed=seed)
    if isinstance(domain, OneHot):
        return synthetic_categories(users, domain.count, seed=seed)
    return synthetic_bits(users, seed=seed)


def synthetic_categories(users: int, count: int, *, seed: int | None = None) -> NDArray[np.int64]:
    """A category for each user, the one with number i in proportion to 1/(i + 1).

    >>> np.bincount(synthetic_categories(1100, 3, seed=1)).round(-2).tolist()
    [600, 300, 200]
    """
    shares = np.cumsum(1 / np.arange(1.0, count + 1))
    drawn = shares[-1] * np.random.default_rng(seed).random(users)
    return np.asarray(np.searchsorted(shares, drawn, side="right"), dtype=np.int64)
