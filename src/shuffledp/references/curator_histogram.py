"""The trusted curator's histogram: discrete Laplace noise in every bin, for two bins that move."""

import math
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from shuffledp.accounting.curves import smallest_meeting
from shuffledp.accounting.laws import DiscreteLaplace
from shuffledp.accounting.pairs import ShiftPair
from shuffledp.accounting.two_bins import TwoBinsPair
from shuffledp.privacy import Privacy

CONFIDENCE = 0.95


@lru_cache(maxsize=256)
def _smallest_ratio(privacy: Privacy) -> float:
    """The least noise that the same two-bin accounting allows: delta helps, if only a little."""
    pure = math.exp(-privacy.epsilon / 2)

    def delta(ratio: float) -> float:
        return 0.0 if ratio >= pure else TwoBinsPair(ShiftPair(DiscreteLaplace(ratio))).delta(privacy.epsilon)

    return smallest_meeting(delta, privacy.delta, 0.0, pure / 2, relative=1e-6)


@dataclass(frozen=True, slots=True, kw_only=True)
class CuratorHistogram:
    """A curator's counts with independent discrete Laplace noise: the error to come close to.

    >>> curator = CuratorHistogram(privacy=Privacy(1, 1e-6), bins=1000)
    >>> round(curator.standard_error, 2), curator.l_inf_error
    (2.8, 20.0)
    """

    privacy: Privacy
    bins: int

    @property
    def noise(self) -> DiscreteLaplace:
        """The law of a bin's error: the least noise for this privacy."""
        return DiscreteLaplace(_smallest_ratio(self.privacy))

    @property
    def standard_error(self) -> float:
        """The standard error of one bin's count."""
        return self.noise.standard_deviation

    @property
    def l_inf_error(self) -> float:
        """All bins are within this with probability 95%: they are independent."""
        return float(self.noise.deviation_quantile(-math.expm1(math.log(CONFIDENCE) / self.bins)))

    def sample_estimate(self, counts: NDArray[np.int64], *, generator: np.random.Generator) -> NDArray[np.int64]:
        """The counts plus differences of geometric variables."""
        stop = 1 - self.noise.p
        return np.asarray(counts + generator.geometric(stop, counts.size) - generator.geometric(stop, counts.size))
