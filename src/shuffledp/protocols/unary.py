"""Bits transport: a whole number as so many ones among the bits of a grid, and noise bits beside them.

Reference: [001] Algorithm 1.
"""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from shuffledp.accounting.curves import smallest_real
from shuffledp.accounting.laws import Binomial
from shuffledp.errors import BrokenBatchError, ParameterError
from shuffledp.messages import Batch
from shuffledp.protocols.labels import labels_of
from shuffledp.protocols.plan import changed
from shuffledp.protocols.tallies import Tally
from shuffledp.randomness import RandomBits
from shuffledp.sampling.coins import coin_bits


def probability_with(variance: float) -> float:
    """The p <= 1/2 with p (1 - p) = variance: a coin's, for a quieter twin.

    >>> probability_with(0.25)
    0.5
    """
    return (1 - math.sqrt(1 - 4 * variance)) / 2


def least_coin_variance(plan: Any) -> float:
    """The least variance of one coin with which a plan of coins still keeps its word."""
    most = plan.probability * (1 - plan.probability)

    def enough(variance: float) -> bool:
        return variance >= most or bool(changed(plan, probability=probability_with(variance)).guarantee().holds)

    return float(min(smallest_real(enough, 0.0, 0.01, relative=1e-4), most))


@dataclass(frozen=True, slots=True)
class Unary:
    """A number in 0..grid in `grid` bits, and `coins` more that are 1 with `probability`.

    >>> Unary(grid=3, coins=2, probability=0.5).messages(np.array([2, 0]), bits=RandomBits.seeded(0))[:, :3]
    array([[1, 1, 0],
           [0, 0, 0]], dtype=uint8)
    """

    grid: int
    coins: int
    probability: float

    @property
    def length(self) -> int:
        """Bits that carry one number."""
        return self.grid + self.coins

    def check(self) -> None:
        """Refuse what is no noise."""
        if self.grid < 1 or self.coins < 1:
            raise ParameterError("grid", self.grid, "and coins must be >= 1", "make the plan again")
        if not 0 < self.probability <= 0.5:
            raise ParameterError("probability", self.probability, "must lie in (0, 1/2]", "make the plan again")

    def noise(self, users: int) -> Binomial:
        """What so many users add together."""
        return Binomial(users * self.coins, self.probability)

    def tally(self, batch: Batch, malformed: int = 0, coordinates: int = 1, first: int = 0) -> Tally:
        """Of each coordinate from `first` on: how many messages are 0, and how many are 1."""
        labels = labels_of(batch, first)
        good = (batch.payloads <= 1) & (labels >= 0) & (labels < coordinates)
        ones = np.bincount(labels[good & (batch.payloads == 1)], minlength=coordinates)
        seen = np.bincount(labels[good], minlength=coordinates)
        return Tally(np.stack((seen - ones, ones)).astype(np.int64), batch.reports, len(batch), malformed)

    def ones(self, tally: Tally, users: int) -> tuple[NDArray[np.int64], int]:
        """Ones among each coordinate's messages, and how many messages were lost or malformed.

        A message about another coordinate is one too few here and one too many there: it voids nothing.
        """
        expected, coordinates = users * self.length, tally.counts.shape[1]
        if tally.messages > coordinates * expected:
            raise BrokenBatchError(
                f"messages must be at most {coordinates * expected}, got {tally.messages}: "
                "somebody sent more than the plan; a second try costs its privacy again."
            )
        missing = int(np.abs(tally.counts.sum(axis=0) - expected).sum())
        return tally.counts[1], max(missing, tally.malformed)

    def messages(self, numbers: NDArray[np.int64], *, bits: RandomBits) -> NDArray[np.uint8]:
        """The bits of each number, along a new last axis."""
        messages = np.empty((*numbers.shape, self.length), dtype=np.uint8)
        np.less(np.arange(self.grid), numbers[..., np.newaxis], out=messages[..., : self.grid].view(np.bool_))
        noise = coin_bits(self.probability, numbers.size * self.coins, bits=bits)
        messages[..., self.grid :] = noise.reshape(*numbers.shape, self.coins)
        return messages
