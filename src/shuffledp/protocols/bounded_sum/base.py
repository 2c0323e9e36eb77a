"""What all bounded sums share: reals in [low, high] on a grid of whole numbers, and the same references."""

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from shuffledp.accounting.gaussian import gaussian_standard_deviation
from shuffledp.protocols.bounded_sum.paper import paper_standard_error
from shuffledp.protocols.domains.summed import Reals, check_range
from shuffledp.protocols.fields import domain, noise
from shuffledp.protocols.sums.plan import SumPlan
from shuffledp.references.local_bounded import local_bounded_standard_error
from shuffledp.sampling.rounding import LARGEST

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True, kw_only=True)
class BoundedSumPlan(SumPlan):
    """A sum of reals in [low, high], rounded at random to `grid` steps: unbiased, and whole from there on."""

    protocol: ClassVar[str] = "bounded-sum"
    file_command: ClassVar[str] = "sum"
    theory_page: ClassVar[str] = "docs/theory/001-sums.md"

    low: float = domain(read=float)
    high: float = domain(read=float)
    grid: int = noise(f"[1, {LARGEST}]")

    @property
    def width(self) -> float:
        """The length of the range: how far one user can move the sum."""
        return self.high - self.low

    def _check_domain(self) -> None:
        check_range(self.low, self.high)

    @property
    def domain(self) -> Reals:
        return Reals(self.grid, self.low, self.high)

    def reference(self) -> dict[str, float | None]:
        return {
            "paper_standard_error": paper_standard_error(self.users, self.privacy, self.width),
            "central_standard_error": gaussian_standard_deviation(self.privacy, self.width),
            "central_laplace_standard_error": math.sqrt(2) * self.width / self.privacy.epsilon,
            "local_standard_error": local_bounded_standard_error(self.users, self.privacy, self.low, self.high),
        }

    def true_value(self, values: ArrayLike) -> float:
        return math.fsum(self.check_values(values).tolist())

    @property
    def question(self) -> str:
        return f"add up the numbers of {self.users:,} users, each in [{self.low:g}, {self.high:g}]"

    @property
    def neighbours(self) -> tuple[Floats, Floats, Floats]:
        """The values of one user that are hardest to hide, and everybody else's."""
        return np.array([self.low]), np.array([self.high]), np.array([self.low])
