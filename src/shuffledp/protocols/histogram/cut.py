"""Histograms whose counts are answered with 0 unless the messages prove that they are not."""

import math
from abc import abstractmethod
from dataclasses import dataclass
from typing import ClassVar

from numpy.typing import ArrayLike

from shuffledp.accounting.laws import Binomial
from shuffledp.protocols.cut import deviations_at, worst_mean_square
from shuffledp.protocols.domains.domain import Floats
from shuffledp.protocols.histogram.base import HistogramPlan


@dataclass(frozen=True, slots=True, kw_only=True)
class CutPlan(HistogramPlan):
    """A histogram that answers 0 where noise could be all that was seen: categories nobody has are answered exactly."""

    theory_page: ClassVar[str] = "docs/theory/parallel-counts.md"
    keeps_zero: ClassVar[bool] = True
    is_unbiased: ClassVar[bool] = False

    @property
    @abstractmethod
    def mean_squares(self) -> Floats:
        """E[error^2] for true counts 0, 1, ...; larger ones are like the last."""

    @property
    @abstractmethod
    def cut_law(self) -> Binomial:
        """How much noise takes away from a count, at most."""

    @property
    def standard_error(self) -> float:
        """The root mean square error of the worst count, which is one that is cut about half of the time."""
        return math.sqrt(worst_mean_square(self.cut_law, lambda: self.mean_squares))

    def standard_errors_for(self, values: ArrayLike) -> Floats:
        return deviations_at(self.true_value(values), self.mean_squares)
