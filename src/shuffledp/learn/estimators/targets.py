"""What people's numbers may be, as declared beforehand."""

from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from shuffledp.learn.estimators.declared import HAIR, Floats, check_moderate, pairs_of


@dataclass(frozen=True, slots=True)
class DeclaredTargets:
    """Targets, cut off at their bounds, which become -1 and 1.

    >>> DeclaredTargets.of((0, 10)).scaled(np.array([0.0, 5.0, 20.0]))
    (array([-1.,  0.,  1.]), 1)
    """

    centre: float
    half: float

    @classmethod
    def of(cls, bounds: Any) -> Self:
        """From one (low, high)."""
        lows, highs = pairs_of(bounds, 1, "target_bounds")
        half = check_moderate("target_bounds", float(highs[0] - lows[0]) / 2, "for instance (0, 1)")
        return cls(float(lows[0]) / 2 + float(highs[0]) / 2, half)

    def scaled(self, targets: Floats) -> tuple[Floats, int]:
        """The targets, and how many had to be cut off."""
        with np.errstate(over="ignore"):
            scaled = (targets - self.centre) / self.half
        return np.clip(scaled, -1.0, 1.0), int(np.count_nonzero(np.abs(scaled) > HAIR))
