"""Which schedule: the one with the smallest regret bound, as if noise were Gaussian."""

import math
from dataclasses import dataclass

from shuffledp.learn.bandits.linear.confidence import ConfidenceRule, Floats, ReleaseNoise
from shuffledp.learn.bandits.linear.setting import LinearSetting


@dataclass(frozen=True, eq=False)
class _Few(ConfidenceRule):
    """A rule that is shown some of the deviations of more releases."""

    in_all: int = 1

    @property
    def _releases(self) -> int:
        # In powers of four, so that many schedules share a quantile, which takes long in high dimensions.
        return int(4 ** math.ceil(math.log(max(1, self.in_all), 4) - 1e-9))


def planning_bound(setting: LinearSetting, deviations: Floats, slot_users: int, releases: int) -> float:
    """The regret bound where these deviations, the smallest and the largest included, are those of so many releases."""
    return _Few(setting, ReleaseNoise.gaussian(deviations), slot_users, releases).regret_bound
