"""Bits transport: a whole number as so many ones among the bits of a grid, and noise bits beside them.

Reference: [001] Algorithm 1.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from shuffledp.accounting.laws import Binomial
from shuffledp.errors import ParameterError
from shuffledp.randomness import RandomBits
from shuffledp.sampling.coins import coin_bits


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

    def messages(self, numbers: NDArray[np.int64], *, bits: RandomBits) -> NDArray[np.uint8]:
        """The bits of each number, along a new last axis."""
        messages = np.empty((*numbers.shape, self.length), dtype=np.uint8)
        np.less(np.arange(self.grid), numbers[..., np.newaxis], out=messages[..., : self.grid].view(np.bool_))
        noise = coin_bits(self.probability, numbers.size * self.coins, bits=bits)
        messages[..., self.grid :] = noise.reshape(*numbers.shape, self.coins)
        return messages
