"""LinUCB with a trusted curator: the binary tree and the square-root factorization, with Gaussian noise.

References for comparison. The noise is a deviation here; `shuffledp.references.bandits` draws it, in floating point.
"""

import math
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Self

import numpy as np

from shuffledp.accounting.gaussian import gaussian_delta
from shuffledp.accounting.guarantee import DeltaTerm
from shuffledp.learn.bandits.linear.confidence import ReleaseNoise
from shuffledp.learn.bandits.linear.guarantee import BanditGuarantee
from shuffledp.learn.bandits.linear.planning import planning_bound
from shuffledp.learn.bandits.linear.policy import LinearPolicy
from shuffledp.learn.bandits.linear.setting import LinearSetting, check_batch, check_setting, check_visits
from shuffledp.learn.bandits.spec import check_privacy
from shuffledp.privacy import Privacy
from shuffledp.references.bandits.prefix_noise import (
    square_root_deviations,
    tree_deviation,
    tree_deviations,
)
from shuffledp.references.continual.square_root import sum_of_squares


@dataclass(frozen=True, kw_only=True)
class CuratorPolicy(LinearPolicy):
    """A curator sees all data and releases noisy sums; what one user is shown tells little of any other.

    A user who visits M times moves a node, or the factor's input, by at most M times as much, wherever the visits fall.
    """

    privacy: Privacy
    batch: int = 1
    visits: int = 1

    def __post_init__(self) -> None:
        check_setting(self.setting)
        check_privacy(self.privacy)
        object.__setattr__(self, "batch", check_batch(self.batch, self.setting.users))
        object.__setattr__(self, "visits", check_visits(self.visits))

    @property
    def slot_users(self) -> int:
        return self.batch

    @property
    def sensitivity(self) -> float:
        """How far all of a user's visits move a node."""
        return self.setting.joint.apart * self.visits

    def _guarantee(self, shift: float, deviation: float, because: str) -> BanditGuarantee:
        # The deviation was found by bisection: the last digit is left for rounding.
        noise = gaussian_delta(self.privacy.epsilon, deviation * (1 + 1e-12), shift)
        words = f"the curve of Gaussian noise of deviation {deviation:.6g} against a shift of {shift:.6g}"
        return BanditGuarantee(
            model="joint",
            privacy=self.privacy,
            visits=self.visits,
            terms=(DeltaTerm("noise", noise, words),),
            trusted="the curator, who sees all data; reference: noise in floating point",
            because=because,
        )

    def _decides(self) -> dict[str, Any]:
        return {
            "epsilon": self.privacy.epsilon,
            "delta": self.privacy.delta,
            "batch": self.batch,
            "visits": self.visits,
        }


@dataclass(frozen=True, kw_only=True)
class TreeLinUCB(CuratorPolicy):
    """Shariff and Sheffet's LinUCB: a binary tree over the users, updated every round.

    Reference: Shariff, Sheffet 2018, with the analytic Gaussian mechanism in place of their constants.
    """

    @property
    def name(self) -> str:
        return "jdp-tree"

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

    def guarantee(self) -> BanditGuarantee:
        levels = max(1, self.releases.bit_length())
        because = (
            f"A visit is in one node of each of {levels} levels; what others are shown is computed from the nodes."
        )
        return self._guarantee(self.sensitivity * math.sqrt(levels), self.node_deviation, because)


@dataclass(frozen=True, kw_only=True)
class SquareRootLinUCB(CuratorPolicy):
    """LinUCB with the best known curator: the square root of the summing matrix, on slots of `batch` users.

    Reference: Henzinger, Upadhyay, Upadhyay 2023, for the sums.
    """

    @property
    def name(self) -> str:
        return "jdp-sqrt"

    @classmethod
    def planned(cls, setting: LinearSetting, privacy: Privacy, *, visits: int = 1) -> Self:
        """With the batch whose regret bound is the smallest."""
        return cls(setting=setting, privacy=privacy, batch=_best_batch(setting, privacy, visits), visits=visits)

    @property
    def release_noise(self) -> ReleaseNoise:
        return ReleaseNoise.gaussian(square_root_deviations(self.releases, self.privacy, self.sensitivity))

    def guarantee(self) -> BanditGuarantee:
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
