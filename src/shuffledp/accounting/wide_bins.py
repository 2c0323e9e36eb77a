"""Bins whose noise is too wide for tables: a Gaussian pair dominates them, by the noise's steepest normal score.

A table of one bin's outcomes grows with the deviation of its noise, and a grid of losses with it; the steepest normal
score does not (see `normal_scores`), and wide noise loses next to nothing by it.
"""

import math
from dataclasses import dataclass, replace
from functools import cached_property

from shuffledp.accounting.gaussian import GaussianPair
from shuffledp.accounting.laws import IntegerLaw
from shuffledp.accounting.normal_scores import normal_scores
from shuffledp.accounting.pairs import WINDOW_TAIL, Atoms, DominatingPair

# From this variance on noise is wide: a normal score is within some millionths of its straight line.
WIDE = 1 << 24
# Windows of more values are looked at in blocks, which makes a score steeper by a thousandth at most.
_LONGEST_WINDOW = 1 << 17


@dataclass(frozen=True, eq=False)
class WideBinsPair(DominatingPair):
    """Independent noise of one log-concave law in so many bins, each of which goes up or down by one.

    The shift has the length sqrt(bins). What the windows of scores leave out is added as mass that never meets, in both
    directions: then the curve is at least the exact one at every epsilon, and so it is in compositions.

    >>> from shuffledp.accounting.laws import Binomial
    >>> 1 < WideBinsPair(Binomial(10**9, 0.5), 2).gaussian.shift / math.sqrt(8e-9) < 1.001
    True
    """

    noise: IntegerLaw
    bins: int

    @cached_property
    def gaussian(self) -> GaussianPair:
        """What dominates the bins, but for what lies outside."""
        scores = normal_scores(self.noise, 1, WINDOW_TAIL, _LONGEST_WINDOW)
        return GaussianPair(math.sqrt(self.bins) * scores.steepest)

    @property
    def _outside(self) -> float:
        return self.bins * WINDOW_TAIL

    def forward(self, epsilon: float) -> float:
        return self.gaussian.forward(epsilon) + self._outside

    def reverse(self, epsilon: float) -> float:
        return self.forward(epsilon)

    def atoms(self) -> Atoms:
        one = self.gaussian.atoms()
        return replace(one, p_outside=one.p_outside + self._outside, q_outside=one.q_outside + self._outside)

    def describe(self) -> str:
        return f"{self.gaussian.describe()}, which dominates {self.bins} bins of {self.noise} that move by one"
