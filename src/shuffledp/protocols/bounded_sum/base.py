"""What all bounded sums share: reals in [low, high] on a grid of whole numbers, and the same references."""

import math
from abc import abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from shuffledp.accounting.laws import IntegerLaw
from shuffledp.errors import ParameterError
from shuffledp.estimates import Estimate
from shuffledp.protocols.bounded_sum.paper import paper_standard_error
from shuffledp.protocols.domains.summed import Reals, check_range
from shuffledp.protocols.error_bounds import CONFIDENCE, noise_and_rounding_bound
from shuffledp.protocols.fields import domain, noise
from shuffledp.protocols.rounds import RoundPlan
from shuffledp.protocols.tallies import Tally
from shuffledp.randomness import RandomBits
from shuffledp.references.curator_gaussian import CuratorGaussian
from shuffledp.references.local_bounded import LocalBounded
from shuffledp.sampling.rounding import LARGEST

Floats = NDArray[np.float64]

# Users rounded at a time: their numbers stay in the cache.
_AT_A_TIME = 1 << 16


@lru_cache(maxsize=64)
def _bound_in_steps(noise: IntegerLaw, users: int) -> float:
    return noise_and_rounding_bound(noise, users)


@dataclass(frozen=True, slots=True, kw_only=True)
class BoundedSumPlan(RoundPlan):
    """A sum of reals in [low, high], rounded at random to `grid` steps: unbiased, and whole from there on."""

    protocol: ClassVar[str] = "bounded-sum"

    low: float = domain()
    high: float = domain()
    grid: int = noise("[1, inf)")

    @property
    @abstractmethod
    def noise_law(self) -> IntegerLaw:
        """The law of what is added, in steps of the grid, when everybody follows the protocol."""

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
    def domain(self) -> Reals:
        return Reals(self.grid, self.low, self.high)

    @property
    def message_influence(self) -> float:
        return self.step

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

    @abstractmethod
    def estimate(self, tally: Tally, *, simulated: bool = False) -> Estimate: ...

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
        """Whole numbers of steps above low, in 0..grid."""
        return self.domain.to_steps(values, bits=bits)

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


def _parts(array: Floats) -> Iterator[Floats]:
    return (array[start : start + _AT_A_TIME] for start in range(0, array.size, _AT_A_TIME))
