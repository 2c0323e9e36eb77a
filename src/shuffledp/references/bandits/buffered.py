"""LinUCB with the strongest trusted curator that is known: noise that is carried on in a few buffers.

The filters are those of our windows, with up to one window more than four shufflers have, whatever number of shufflers
it is compared with; a curator needs neither whole weights nor rounding nor shares.

Reference: Dvijotham, McMahan, Pillutla, Steinke, Thakurta 2024, for the sums.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, ClassVar, Self

import numpy as np

from shuffledp.accounting.filter_designs import MOST_WINDOWS, Design, design_for
from shuffledp.accounting.gaussian import gaussian_standard_deviation
from shuffledp.learn.bandits.linear.carried import extremes
from shuffledp.learn.bandits.linear.confidence import Floats, ReleaseNoise
from shuffledp.learn.bandits.linear.guarantee import LinearGuarantee
from shuffledp.learn.bandits.linear.planning import planning_bound
from shuffledp.learn.bandits.linear.setting import LinearSetting
from shuffledp.learn.spec import check_whole, declared
from shuffledp.privacy import Privacy
from shuffledp.randomness import RandomBits
from shuffledp.references.bandits.curator import CuratorPolicy
from shuffledp.references.bandits.prefix_noise import buffered_noise

# Batches that are compared, and the most releases of one.
_TRIED, _MOST_RELEASES = 40, 1 << 17


def _check_windows(name: str, windows: Any) -> int:
    return check_whole(name, windows, 2, MOST_WINDOWS, "4 is a common choice")


@dataclass(frozen=True, kw_only=True)
class BufferedLinUCB(CuratorPolicy):
    """LinUCB with a curator whose noise is a rational filter's, with few poles, on slots of `batch` users."""

    name: ClassVar[str] = "jdp-buffers"

    windows: int = declared(_check_windows, default=MOST_WINDOWS)

    @classmethod
    def planned(cls, setting: LinearSetting, privacy: Privacy, *, visits: int = 1) -> Self:
        """With the filter and the batch whose regret bound is the smallest."""
        windows, batch = _best(setting, privacy, visits)
        return cls(setting=setting, privacy=privacy, batch=batch, windows=windows, visits=visits)

    @property
    def design(self) -> Design:
        """The filter."""
        return design_for(self.windows, max(1, self.releases))

    @property
    def deviation(self) -> float:
        """With which one user may move all that is released by 1."""
        return gaussian_standard_deviation(self.privacy, self.sensitivity)

    @property
    def release_noise(self) -> ReleaseNoise:
        return ReleaseNoise.gaussian(self.deviation * self.design.deviations(self.releases))

    def sample_noise(self, shape: tuple[int, int], *, bits: RandomBits, generator: Any) -> Iterator[Floats]:
        return buffered_noise(self.design, self.releases, self.deviation, shape, generator=generator)

    def guarantee(self) -> LinearGuarantee:
        because = "A visit moves the noise before the filter by a weighed column, as long as any; releases follow."
        return self._guarantee(self.sensitivity, self.deviation, because)

    def _decides(self) -> dict[str, Any]:
        return {**super()._decides(), "windows": self.windows}


@lru_cache(maxsize=64)
def _best(setting: LinearSetting, privacy: Privacy, visits: int) -> tuple[int, int]:
    deviation = gaussian_standard_deviation(privacy, setting.joint.apart * visits)

    def bound(choice: tuple[int, int]) -> float:
        windows, batch = choice
        releases = setting.users // batch
        ends = extremes(design_for(windows, releases).deviations(releases))
        return planning_bound(setting, deviation * ends, batch, releases)

    least = max(1, setting.users // 4000, -(-setting.users // _MOST_RELEASES))
    batches = np.unique(np.geomspace(least, max(1, setting.users // 4), _TRIED).astype(np.int64)).tolist()
    return min(((windows, batch) for windows in range(2, MOST_WINDOWS + 1) for batch in batches), key=bound)
