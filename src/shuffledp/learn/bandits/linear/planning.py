"""Which schedule: the one with the smallest regret bound, as if noise were Gaussian.

The bound that is compared takes ln det(G + low I) to grow from low = 1, which is proved as well, since low >= 1, and a
little larger. The tighter one may not be compared: where noise outweighs the data it tends to a multiple of the users,
however much noise there is, and would prefer a schedule that learns nothing to one that does.
"""

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from shuffledp.learn.bandits.linear.confidence import ConfidenceRule, Floats, ReleaseNoise
from shuffledp.learn.bandits.linear.setting import LinearSetting

# Up to here a quantile of the matrix's norm takes milliseconds; beyond, schedules share them.
_QUICK = 16


@dataclass(frozen=True, eq=False)
class _Few(ConfidenceRule):
    """A rule that is shown some of the deviations of more releases, and rounds nothing: bounds are smooth."""

    in_all: int = 1

    @property
    def _releases(self) -> int:
        if self.setting.dimension <= _QUICK:
            return self.in_all
        return int(2 ** math.ceil(math.log2(max(1, self.in_all)) - 1e-9))

    @cached_property
    def low(self) -> Floats:
        return np.maximum(self.matrix_noise, 1.0)

    def _log_det(self, low: float) -> float:
        return super()._log_det(1.0)


def planning_bound(setting: LinearSetting, deviations: Floats, slot_users: int, releases: int) -> float:
    """The regret bound where these deviations, the smallest and the largest included, are those of so many releases."""
    return _Few(setting, ReleaseNoise.gaussian(deviations), slot_users, in_all=releases).regret_bound
