"""Worlds of a few arms whose rewards are 0 or 1."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from shuffledp.errors import ParameterError
from shuffledp.learn.bandits.rewards import check_rewards

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class ArmsWorld:
    """Instances of a bandit, a row each: the probability with which each arm gives 1.

    >>> world = ArmsWorld(np.array([[0.9, 0.5]]))
    >>> world.gaps
    array([[0. , 0.4]])
    """

    means: Floats

    def __post_init__(self) -> None:
        if self.means.ndim != 2 or self.means.shape[1] < 2:
            raise ParameterError("means", f"shape {self.means.shape}", "must be rows of two arms or more", "add arms")
        check_rewards(self.means.reshape(-1))

    @classmethod
    def one(cls, means: ArrayLike) -> "ArmsWorld":
        """A single instance."""
        return cls(np.atleast_2d(np.asarray(means, dtype=np.float64)))

    @property
    def instances(self) -> int:
        """Rows."""
        return len(self.means)

    @property
    def arms(self) -> int:
        """Columns."""
        return int(self.means.shape[1])

    @property
    def gaps(self) -> Floats:
        """How much less than the best arm each gives, on average."""
        return np.asarray(self.means.max(axis=1, keepdims=True) - self.means)

    def rewards(self, arm: int, users: int, *, generator: np.random.Generator) -> NDArray[np.uint8]:
        """The rewards of so many users who play an arm of the first instance."""
        if not 0 <= arm < self.arms:
            raise ParameterError("arm", arm, f"must lie in 0..{self.arms - 1}", "play an arm that there is")
        return np.asarray(generator.random(users) < self.means[0, arm], dtype=np.uint8)


def random_gaps(
    instances: int, arms: int, *, smallest: float, largest: float, best: float = 0.8, seed: int
) -> ArmsWorld:
    """One arm is the best, in any place; all others are behind by gaps whose logarithms are uniform.

    >>> random_gaps(1, 3, smallest=0.1, largest=0.5, seed=1).means.round(2)
    array([[0.8 , 0.69, 0.32]])
    """
    if not 0 < smallest <= largest <= best <= 1:
        raise ParameterError("gaps", (smallest, largest), f"must lie in order between 0 and {best}", "try 0.1 to 0.5")
    generator = np.random.default_rng((seed, instances, arms))
    gaps = smallest * (largest / smallest) ** generator.random((instances, arms - 1))
    means = np.concatenate((np.full((instances, 1), best), best - gaps), axis=1)
    return ArmsWorld(generator.permuted(means, axis=1))


def reward_generator(seed: int) -> np.random.Generator:
    """What draws a world's rewards."""
    return np.random.default_rng(seed)
