"""What all bounded sums share: reals in [low, high] on a grid of whole numbers, and the same references."""

import math
from abc import abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from shuffledp.accounting.laws import IntegerLaw
from shuffledp.errors import DataError, ParameterError
from shuffledp.estimates import Estimate
from shuffledp.messages import Batch
from shuffledp.protocols.base import Plan
from shuffledp.protocols.bounded_sum.paper import paper_standard_error
from shuffledp.protocols.error_bounds import CONFIDENCE, noise_and_rounding_bound
from shuffledp.randomness import RandomBits
from shuffledp.references.curator_gaussian import CuratorGaussian
from shuffledp.references.local_bounded import LocalBounded
from shuffledp.sampling.rounding import LARGEST, round_randomly

Floats = NDArray[np.float64]

# Users rounded at a time: their numbers stay in the cache.
_AT_A_TIME = 1 << 16
# Squares and sums of values stay finite, and steps of the grid above 0.
_LARGEST_VALUE, _SMALLEST_WIDTH = 1e150, 1e-150


@lru_cache(maxsize=64)
def _bound_in_steps(noise: IntegerLaw, users: int) -> float:
    return noise_and_rounding_bound(noise, users)


@dataclass(frozen=True, slots=True, kw_only=True)
class BoundedSumPlan(Plan):
    """A sum of reals in [low, high], rounded at random to `grid` steps: unbiased, and whole from there on."""

    protocol: ClassVar[str] = "bounded-sum"
    domain_names: ClassVar[tuple[str, ...]] = ("low", "high")

    low: float
    high: float
    grid: int

    @property
    @abstractmethod
    def noise_law(self) -> IntegerLaw:
        """The law of what is added, in steps of the grid, when everybody follows the protocol."""

    @property
    @abstractmethod
    def influence(self) -> float | None:
        """How far one client that lies can move the sum; None if as far as it likes."""

    @property
    def width(self) -> float:
        """The length of the range: how far one user can move the sum."""
        return self.high - self.low

    @property
    def step(self) -> float:
        """One step of the grid."""
        return self.width / self.grid

    def _check_domain(self) -> None:
        check_range(self.low, self.high)
        object.__setattr__(self, "low", float(self.low))
        object.__setattr__(self, "high", float(self.high))
        if not 1 <= self.grid <= LARGEST:
            raise ParameterError("grid", self.grid, f"must lie in 1..{LARGEST}", "make the plan again")

    @property
    def standard_error(self) -> float:
        # Rounding to neighbouring whole numbers has a variance of at most 1/4.
        return self.step * math.sqrt(self.noise_law.variance + self.users / 4)

    @property
    def error_bound(self) -> float:
        """The error is at most this with probability CONFIDENCE, whatever the data."""
        return self.step * _bound_in_steps(self.noise_law, self.users)

    def reference(self) -> dict[str, float | None]:
        local = LocalBounded(users=self.users, privacy=self.privacy, low=self.low, high=self.high)
        return {
            "paper_standard_error": paper_standard_error(self.users, self.privacy, self.width),
            "central_standard_error": CuratorGaussian(privacy=self.privacy, sensitivity=self.width).standard_error,
            "central_laplace_standard_error": math.sqrt(2) * self.width / self.privacy.epsilon,
            "local_standard_error": local.standard_error,
        }

    def check_values(self, values: ArrayLike) -> Floats:
        """The values as floats in the range."""
        array = _finite_column(values)
        outside = np.flatnonzero((array < self.low) | (array > self.high))
        if outside.size:
            row = int(outside[0])
            raise DataError(
                "values",
                f"{array[row]:g} in row {row + 1}",
                f"must lie in [{self.low:g}, {self.high:g}]",
                "clip it (--clip, clip=True) or plan a wider range",
            )
        return array

    def clip_values(self, values: ArrayLike) -> tuple[Floats, int]:
        array = _finite_column(values)
        clipped = np.clip(array, self.low, self.high)
        return clipped, int(np.count_nonzero(clipped != array))

    @abstractmethod
    def analyze(self, batch: Batch) -> Estimate: ...

    @abstractmethod
    def sample_estimate(self, values: ArrayLike, *, bits: RandomBits) -> Estimate: ...

    def true_value(self, values: ArrayLike) -> float:
        return math.fsum(self.check_values(values).tolist())

    @property
    def question(self) -> str:
        return f"add up the numbers of {self.users:,} users, each in [{self.low:g}, {self.high:g}]"

    @property
    def neighbours(self) -> tuple[Floats, Floats, Floats]:
        """The values of one user that are hardest to hide, and everybody else's."""
        return np.array([self.low]), np.array([self.high]), np.array([self.low])

    def _rounded(self, values: Floats, bits: RandomBits) -> NDArray[np.int64]:
        """Whole numbers of steps above low, in 0..grid; clipping keeps what floats round beyond it."""
        scaled = np.clip((values - self.low) * (self.grid / self.width), 0.0, float(self.grid))
        return round_randomly(scaled, bits=bits)

    def _rounded_total(self, values: ArrayLike, bits: RandomBits) -> int:
        array = self.check_values(values)
        self.check_reports(array.size)
        return sum(int(self._rounded(part, bits).sum()) for part in _parts(array))

    def _estimate(self, steps: float, *, dropped: int = 0, simulated: bool = False) -> Estimate:
        return Estimate(
            value=self.users * self.low + self.step * steps,
            standard_error=self.standard_error,
            bound=self.error_bound + self.step * dropped,
            confidence=CONFIDENCE,
            dropped=dropped,
            simulated=simulated,
        )

    def _coarse(self, sums: NDArray[np.int64]) -> NDArray[np.int64]:
        """Sums in a fiftieth of the noise's deviation: a post-processing with fewer outcomes to count."""
        return (sums // max(1, int(self.noise_law.standard_deviation / 50))).reshape(-1, 1)


def check_range(low: Any, high: Any) -> None:
    """Refuse what is no range."""
    for name, value in (("low", low), ("high", high)):
        if isinstance(value, bool) or not isinstance(value, int | float) or not abs(value) <= _LARGEST_VALUE:
            raise ParameterError(
                name, value, f"must be a number within {_LARGEST_VALUE:g} of 0", "say what the ends of the range are"
            )
    if not high - low >= _SMALLEST_WIDTH:
        raise ParameterError("high", high, f"must be larger than low, {low:g}", "check both")


def _finite_column(values: ArrayLike) -> Floats:
    array = np.asarray(values)
    if array.ndim != 1 or array.size == 0:
        raise DataError("values", f"shape {array.shape}", "must be a column of at least one value", "pass one a user")
    if array.dtype.kind not in "buif":
        raise DataError("values", f"dtype {array.dtype}", "must be numbers", "convert them, e.g. x.astype(float)")
    array = array.astype(np.float64, copy=False)
    bad = np.flatnonzero(~np.isfinite(array))
    if bad.size:
        row = int(bad[0])
        raise DataError("values", f"{array[row]} in row {row + 1}", "must be finite", "drop or fill such values first")
    return array


def _parts(array: Floats) -> Iterator[Floats]:
    return (array[start : start + _AT_A_TIME] for start in range(0, array.size, _AT_A_TIME))
