"""LinUCB with a trusted curator: the binary tree and the square-root factorization, with Gaussian noise.

References for comparison. The noise is a deviation here; `shuffledp.references.bandits` draws it, in floating point.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, ClassVar, Self

import numpy as np

from shuffledp.learn.bandits.linear.confidence import Floats, ReleaseNoise
from shuffledp.learn.bandits.linear.guarantee import LinearGuarantee
from shuffledp.learn.bandits.linear.planning import planning_bound
from shuffledp.learn.bandits.linear.setting import LinearSetting
from shuffledp.privacy import Privacy
from shuffledp.randomness import RandomBits
from shuffledp.references.bandits.prefix_noise import (
    square_root_deviations,
    square_root_noise,
    tree_deviation,
    tree_deviations,
    tree_noise,
)
from shuffledp.references.bandits.slots import GaussianPolicy
from shuffledp.references.continual.square_root import sum_of_squares


@dataclass(frozen=True, kw_only=True)
class CuratorPolicy(GaussianPolicy):
    """A curator sees all data and releases noisy sums; what one user is shown tells little of any other.

    A user who visits M times moves a node, or the factor's input, by at most M times as much, wherever the visits fall.
    """

    @property
    def sensitivity(self) -> float:
        """How far all of a user's visits move a node."""
        return self.setting.joint.apart * self.visits

    def _guarantee(self, shift: float, deviation: float, because: str) -> LinearGuarantee:
        words = f"the curve of Gaussian noise of deviation {deviation:.6g} against a shift of {shift:.6g}"
        seen = "the curator, who sees all data"
        return self._gaussian("joint", deviation, shift, words, seen, because)


@dataclass(frozen=True, kw_only=True)
class TreeLinUCB(CuratorPolicy):
    """Shariff and Sheffet's LinUCB: a binary tree over the users, updated every round.

    Reference: Shariff, Sheffet 2018, with the analytic Gaussian mechanism in place of their constants.
    """

    name: ClassVar[str] = "jdp-tree"

    @property
    def node_deviation(self) -> float:
        """The noise of every node."""
        if self.setting.constants == "paper":
            # s^2 = 16 m L^4 ln(4/delta)^2 / epsilon^2 with L^2 = 1 + 1; (Z + Z^T)/sqrt(2) has s on the diagonal, twice.
            levels = self.releases.bit_length()
            spread = 8 * math.sqrt(levels) * math.log(4 / self.privacy.delta) / self.privacy.epsilon
            return math.sqrt(2) * spread * self.visits
        return tree_deviation(self.releases, self.privacy, self.sensitivity)

    @property
    def release_noise(self) -> ReleaseNoise:
        exact = tree_deviations(self.releases, self.privacy, self.sensitivity)
        return ReleaseNoise.gaussian(exact * (self.node_deviation / exact[0]))

    def sample_noise(self, shape: tuple[int, int], *, bits: RandomBits, generator: Any) -> Iterator[Floats]:
        return tree_noise(self.releases, self.node_deviation, shape, generator=generator)

    def guarantee(self) -> LinearGuarantee:
        levels = max(1, self.releases.bit_length())
        because = (
            f"A visit is in one node of each of {levels} levels; what others are shown is computed from the nodes."
        )
        return self._guarantee(self.sensitivity * math.sqrt(levels), self.node_deviation, because)


@dataclass(frozen=True, kw_only=True)
class SquareRootLinUCB(CuratorPolicy):
    """LinUCB with a curator who takes the square root of the summing matrix, on slots of `batch` users.

    Reference: Henzinger, Upadhyay, Upadhyay 2023, for the sums.
    """

    name: ClassVar[str] = "jdp-sqrt"

    @classmethod
    def planned(cls, setting: LinearSetting, privacy: Privacy, *, visits: int = 1) -> Self:
        """With the batch whose regret bound is the smallest."""
        return cls(setting=setting, privacy=privacy, batch=_best_batch(setting, privacy, visits), visits=visits)

    @property
    def release_noise(self) -> ReleaseNoise:
        return ReleaseNoise.gaussian(square_root_deviations(self.releases, self.privacy, self.sensitivity))

    def sample_noise(self, shape: tuple[int, int], *, bits: RandomBits, generator: Any) -> Iterator[Floats]:
        first = float(self.release_noise.deviations[1])
        return square_root_noise(self.releases, first, shape, generator=generator)

    def guarantee(self) -> LinearGuarantee:
        deviations = square_root_deviations(self.releases, self.privacy, self.sensitivity)
        column = math.sqrt(float(sum_of_squares(self.releases)))
        because = "A visit moves the factor's input by a column of the factor; releases are computed from that."
        return self._guarantee(self.sensitivity * column, float(deviations[0]), because)


@lru_cache(maxsize=64)
def _best_batch(setting: LinearSetting, privacy: Privacy, visits: int) -> int:
    def bound(batch: int) -> float:
        releases = setting.users // batch
        deviations = square_root_deviations(releases, privacy, setting.joint.apart * visits)
        return planning_bound(setting, deviations[[0, -1]], batch, releases)

    most = max(1, setting.users // 4)
    tried = np.unique(np.geomspace(max(1, setting.users // 4000), most, 24).astype(np.int64))
    return int(min(tried.tolist(), key=bound))
