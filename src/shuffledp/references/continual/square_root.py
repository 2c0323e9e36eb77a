"""The trusted curator's best known running count: the square root of the summing matrix, and Gaussian noise."""

import math
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike
from scipy import signal, special

from shuffledp.accounting.gaussian import gaussian_standard_deviation
from shuffledp.errors import ParameterError
from shuffledp.privacy import Privacy
from shuffledp.references.continual.horizon import (
    Floats,
    bits_of,
    check_time,
    check_users,
    failure_of,
    gaussian_factor,
)

# From here on the expansion's next term, of the order of N^-4, is below 1e-12.
_EXPANSION_FROM = 1024


def _coefficients(count: int) -> Floats:
    """C(2k, k) / 4^k for k = 0, 1, ...: the power series of (1 - x)^(-1/2), whose square sums."""
    factors: Floats = np.concatenate(([1.0], 1 - 1 / (2 * np.arange(1.0, count))))
    return np.asarray(np.cumprod(factors), dtype=np.float64)


_FIRST_SUMS = np.concatenate(([0.0], np.cumsum(_coefficients(_EXPANSION_FROM) ** 2)))


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


@dataclass(frozen=True, slots=True, kw_only=True)
class CuratorSquareRoot:
    """A curator that adds R z to the running count, with R the square root of the summing matrix and z Gaussian.

    One user moves R's input of z by a column of R, whose length is the sensitivity. With batch > 1 the curator
    counts slots of so many users, and inside a slot adds half of the users since.

    For a running sum of vectors R is applied to each of the `coordinates`: two users' vectors are at most
    `sensitivity` apart, the users since are off by at most `reach` each in a coordinate, and the bound holds for all
    coordinates at once.

    Law: after t users the noise is Gaussian with deviation `standard_error_at(t)`, and jointly Gaussian.

    Reference: Henzinger, Upadhyay, Upadhyay 2023; Fichtenberger, Henzinger, Upadhyay 2023.

    >>> count = CuratorSquareRoot(users=1_000_000, privacy=Privacy(1, 1e-6))
    >>> round(count.standard_error, 2), round(count.error_bound(0.95), 1)
    (23.08, 125.8)
    """

    users: int
    privacy: Privacy
    batch: int = 1
    sensitivity: float = 1.0
    coordinates: int = 1
    reach: float = 0.5

    def __post_init__(self) -> None:
        check_users(self.users)
        if not 1 <= self.batch <= self.users + 1:
            raise ParameterError("batch", self.batch, f"must be in 1..{self.users + 1:,}", "best_batch picks one")

    @property
    def slots(self) -> int:
        """Full slots: what is counted with noise."""
        return self.users // self.batch

    @property
    def standard_error(self) -> float:
        """The largest of all times."""
        return self.standard_error_at(self.users)

    def standard_error_at(self, time: int) -> float:
        """Of the estimate after so many users."""
        check_time(time, self.users)
        rows, column = sum_of_squares([time // self.batch, self.slots])
        return gaussian_standard_deviation(self.privacy, self.sensitivity) * math.sqrt(float(rows) * float(column))

    def error_bound(self, confidence: float) -> float:
        """What no estimate of the whole horizon is off by more, but for 1 - confidence."""
        failure = failure_of(confidence)
        noise = gaussian_factor(self.slots * self.coordinates, failure) * self.standard_error if self.slots else 0.0
        return noise + (self.batch - 1) * self.reach

    def run(self, values: ArrayLike, *, generator: np.random.Generator) -> Floats:
        """The estimate after every user, of a count."""
        if (self.sensitivity, self.coordinates, self.reach) != (1.0, 1, 0.5):
            raise ParameterError("coordinates", self.coordinates, "has a bound, but only counts run", "count bits")
        bits = bits_of(values, self.users)
        after = np.arange(1, self.users + 1)
        prefixes = np.zeros(self.slots + 1)
        if self.slots:
            full = bits[: self.slots * self.batch].reshape(self.slots, self.batch)
            sigma = gaussian_standard_deviation(self.privacy, math.sqrt(float(sum_of_squares(self.slots))))
            noise = signal.fftconvolve(_coefficients(self.slots), sigma * generator.standard_normal(self.slots))
            prefixes[1:] = np.cumsum(full.sum(axis=1)) + noise[: self.slots]
        return np.asarray(prefixes[after // self.batch] + (after % self.batch) / 2)


def best_curator(
    users: int,
    privacy: Privacy,
    confidence: float,
    *,
    sensitivity: float = 1.0,
    coordinates: int = 1,
    reach: float = 0.5,
) -> CuratorSquareRoot:
    """The curator whose batch has the smallest error bound.

    >>> best_curator(1_000_000, Privacy(1, 1e-6), 0.95).batch
    21
    >>> histogram = best_curator(1_000_000, Privacy(1, 1e-6), 0.95, sensitivity=math.sqrt(2), coordinates=20)
    >>> histogram.batch, round(histogram.error_bound(0.95), 1)
    (30, 155.3)
    """
    single = CuratorSquareRoot(
        users=users, privacy=privacy, sensitivity=sensitivity, coordinates=coordinates, reach=reach
    )
    # A batch whose rest alone is above the bound without batches cannot be better.
    most = min(users + 1, math.ceil(single.error_bound(confidence) / reach) + 2)
    batches = np.arange(1, most + 1)
    slots = users // batches
    failures = failure_of(confidence) / 2 / np.maximum(slots, 1) / coordinates
    factors = np.where(slots > 0, -special.ndtri(failures), 0.0)
    deviation = gaussian_standard_deviation(privacy, sensitivity)
    bounds = factors * deviation * sum_of_squares(slots) + (batches - 1) * reach
    return replace(single, batch=int(batches[np.argmin(bounds)]))


def best_batch(users: int, privacy: Privacy, confidence: float) -> int:
    """The batch with the smallest error bound of a count.

    >>> best_batch(1_000_000, Privacy(1, 1e-6), 0.95)
    21
    """
    return best_curator(users, privacy, confidence).batch
