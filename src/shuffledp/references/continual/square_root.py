"""The trusted curator's best known running count: the square root of the summing matrix, and Gaussian noise.

The curator adds R z to the running count, with R the square root of the summing matrix and z Gaussian: one user moves
R's input of z by a column of R, whose length is the sensitivity. It may count slots of several users, a batch each, and
inside a slot adds half of the users since.

Reference: Henzinger, Upadhyay, Upadhyay 2023; Fichtenberger, Henzinger, Upadhyay 2023.
"""

import math
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import special

from shuffledp.accounting.gaussian import gaussian_standard_deviation
from shuffledp.privacy import Privacy
from shuffledp.references.continual.horizon import Floats, check_users, failure_of

# From here on the expansion's next term, of the order of N^-4, is below 1e-12.
_EXPANSION_FROM = 1024


def square_root_coefficients(count: int) -> Floats:
    """C(2k, k) / 4^k for k = 0, 1, ...: the power series of (1 - x)^(-1/2), whose square sums."""
    factors: Floats = np.concatenate(([1.0], 1 - 1 / (2 * np.arange(1.0, count))))
    return np.asarray(np.cumprod(factors), dtype=np.float64)


_FIRST_SUMS = np.concatenate(([0.0], np.cumsum(square_root_coefficients(_EXPANSION_FROM) ** 2)))


def sum_of_squares(terms: ArrayLike) -> Floats:
    """The sum of the first (C(2k, k) / 4^k)^2: Landau's constants.

    >>> [round(float(s), 3) for s in sum_of_squares([1, 2**8, 2**12, 2**16, 2**20])]
    [1.0, 2.831, 3.714, 4.596, 5.479]
    """
    counts = np.asarray(terms, dtype=np.float64)
    direct = _FIRST_SUMS[np.minimum(counts, _EXPANSION_FROM).astype(np.int64)]
    shifted = np.maximum(counts, _EXPANSION_FROM) - 0.25
    expansion = (np.log(shifted) + np.euler_gamma + 4 * math.log(2) + 11 / 192 / shifted**2) / math.pi
    return np.where(counts <= _EXPANSION_FROM, direct, expansion)


def curator_bounds(
    users: int,
    batches: NDArray[np.int64],
    privacy: Privacy,
    confidence: float,
    *,
    sensitivity: float = 1.0,
    coordinates: int = 1,
    reach: float = 0.5,
) -> Floats:
    """What no estimate of the horizon is off by more, but for 1 - confidence, with batches of each of these sizes.

    For a running sum of vectors R is applied to each coordinate, and the bound holds for all of them at once.

    Args:
        users: how many people come.
        batches: users of a slot.
        privacy: what every user is promised.
        confidence: with which all estimates hold together.
        sensitivity: how far apart two users' values are at most.
        coordinates: of a value.
        reach: how far a user since the last slot is off in a coordinate at most.

    >>> curator_bounds(1_000_000, np.array([1, 21]), Privacy(1, 1e-6), 0.95).round(1).tolist()
    [125.8, 102.7]
    """
    check_users(users)
    slots = users // batches
    # A union over all slots and coordinates.
    factors = -special.ndtri(failure_of(confidence) / 2 / (np.maximum(slots, 1) * coordinates))
    deviations = gaussian_standard_deviation(privacy, sensitivity) * sum_of_squares(slots)
    return np.asarray(factors * deviations + (batches - 1) * reach)


def best_curator_bound(users: int, privacy: Privacy, confidence: float, *, reach: float = 0.5, **values: Any) -> float:
    """The smallest of the curator's bounds, over all batches; as in `curator_bounds`, whose `values` it takes.

    >>> round(best_curator_bound(1_000_000, Privacy(1, 1e-6), 0.95, sensitivity=math.sqrt(2), coordinates=20), 1)
    155.3
    """

    def bounds(batches: NDArray[np.int64]) -> Floats:
        return curator_bounds(users, batches, privacy, confidence, reach=reach, **values)

    # A batch whose rest alone is above the bound without batches cannot be better.
    most = min(users + 1, math.ceil(float(bounds(np.array([1]))[0]) / reach) + 2)
    return float(bounds(np.arange(1, most + 1)).min())
