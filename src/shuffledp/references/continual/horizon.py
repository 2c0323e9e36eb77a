"""What all references of a running count share: their input, and bounds for every time at once."""

import math
from collections.abc import Callable

import numpy as np
import scipy
from numpy.typing import ArrayLike, NDArray
from scipy import special

from shuffledp.errors import DataError, ParameterError

Floats = NDArray[np.float64]


def check_users(users: int) -> None:
    """Refuse an empty horizon."""
    if users < 1:
        raise ParameterError("users", users, "must be >= 1", "count somebody")


def failure_of(confidence: float) -> float:
    """What a bound may fail with."""
    if not 0 < confidence < 1:
        raise ParameterError("confidence", confidence, "must lie strictly between 0 and 1", "0.95 is a common choice")
    return 1 - confidence


def bits_of(values: ArrayLike, users: int) -> NDArray[np.int64]:
    """All users' values, 0 or 1."""
    bits = np.asarray(values)
    if bits.shape != (users,):
        raise DataError("values", bits.shape, f"must be {users:,} in one row", "one value for each user")
    if not np.isin(bits, (0, 1)).all():
        raise DataError("values", "others", "must be 0 or 1", "round or clip them first")
    return bits.astype(np.int64)


def gaussian_factor(times: float, failure: float) -> float:
    """How many deviations none of so many Gaussian errors passes, whatever their dependence: a union.

    >>> round(gaussian_factor(1, 0.05), 3), round(gaussian_factor(10**6, 0.05), 3)
    (1.96, 5.451)
    """
    return -float(special.ndtri(failure / 2 / times))


def chernoff_bound(log_moment: Callable[[float], float], log_cost: float, largest_rate: float) -> float:
    """The least (log_cost + log E[e^(rate X)]) / rate: X passes it with probability e^-log_cost at most.

    Every rate gives a proved bound; the search only makes it small.

    >>> round(chernoff_bound(lambda rate: rate**2 / 2, 2.0, 100.0), 6)
    2.0
    """

    def bound(log_rate: float) -> float:
        rate = math.exp(log_rate)
        return (log_cost + log_moment(rate)) / rate

    top = math.log(largest_rate)
    grid = np.linspace(top - 25, top, 200)[:-1]
    start = int(np.argmin([bound(float(at)) for at in grid]))
    around = (float(grid[max(start - 1, 0)]), float(grid[start + 1]) if start + 1 < grid.size else top)
    found = scipy.optimize.minimize_scalar(bound, bounds=around, method="bounded", options={"xatol": 1e-9})
    return min(float(found.fun), bound(float(grid[start])))
