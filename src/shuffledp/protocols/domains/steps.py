"""Values that are added up, as whole numbers of steps: what a sum must know of its domain."""

import math
from abc import abstractmethod
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from shuffledp.accounting.rounding import TOLERANCE, RoundedDifference
from shuffledp.protocols.domains.domain import Domain
from shuffledp.randomness import RandomBits


class SummedDomain(Domain):
    """Values that are added up: each is whole numbers of steps, lowest..highest in each coordinate."""

    coordinates: int = 1
    lowest: int = 0
    highest: int = 1
    rounds: ClassVar[bool] = False
    """Whether values are rounded to steps at random."""

    running: ClassVar[str] = "running count"
    total: ClassVar[str] = "count"
    each: ClassVar[str] = ""
    """A running sum of such values in words: what it is, its total, and where its bound holds."""

    step: float = 1.0
    """One step, in the values' own unit."""
    origin: float = 0.0
    """What a user with 0 steps adds to each coordinate of the sum."""
    middle: float = 0.5
    """What each coordinate of a user counts as until its batch is complete."""
    reach: float = 0.5
    """How far off that is, at most."""
    diameter: float = 1.0
    """How far apart two users' values are, at most."""
    moved: int | None = 1
    """In how many coordinates two users differ, by at most `largest_shift` each; None if in any number."""

    def _set(self, **numbers: Any) -> None:
        """Fill in what follows from the fields of a frozen domain."""
        for name, number in numbers.items():
            object.__setattr__(self, name, number)

    @property
    def people(self) -> str:
        """Whose values are added up, in words."""
        return "users"

    @abstractmethod
    def difference(self, failure: float) -> RoundedDifference:
        """How far apart two users' steps are, but for a probability of at most `failure`."""

    @property
    def largest_shift(self) -> int:
        """How far apart they are in one coordinate."""
        return self.highest - self.lowest

    def rounding_bound(self, users: int, failure: float) -> float:
        """No coordinate of any running sum is further off by rounding, but for this probability.

        Rounding errors are independent, have mean 0 and lie in an interval of one step, so their running sum
        is a martingale: the maximal form of Hoeffding's inequality needs no union over time. Beside it: fixed
        point has 32 bits, and values may be too large by a hair, which is clipped.
        """
        if not self.rounds:
            return 0.0
        likely = self.step * math.sqrt(users * math.log(2 * self.coordinates / failure) / 2)
        return likely + users * (self.step * 2.0**-33 + TOLERANCE * self.reach)

    @abstractmethod
    def to_steps(self, values: NDArray[Any], *, bits: RandomBits) -> NDArray[Any]:
        """Checked values in steps."""

    @property
    def neighbours(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Two users' steps that are the hardest to hide: a number for each coordinate."""
        return np.full(self.coordinates, self.lowest), np.full(self.coordinates, self.highest)

    def coordinate_names(self) -> list[str]:
        """What each number of the sum is called: counted from 1, categories by name or from 0."""
        return [str(number) for number in range(1, self.coordinates + 1)]

    def numbers(self, values: NDArray[Any]) -> NDArray[Any]:
        """What each user with such a checked value adds to the sum, in the values' own unit."""
        return values
