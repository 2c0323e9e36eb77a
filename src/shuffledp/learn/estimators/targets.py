"""What people's targets may be, as declared beforehand."""

from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from shuffledp.errors import ParameterError
from shuffledp.learn.estimators.declared import HAIR, Changed, Floats, check_moderate, pairs_of


@dataclass(frozen=True, slots=True)
class DeclaredTargets:
    """Targets, cut off at their bounds, which become -1 and 1.

    >>> DeclaredTargets.of((0, 10)).scaled(np.array([0.0, 5.0, 20.0]))
    (array([-1.,  0.,  1.]), array([False, False,  True]))
    """

    centre: float
    half: float

    @classmethod
    def of(cls, bounds: Any) -> Self:
        """From one (low, high).

        Raises:
            ParameterError: none was declared, or it is no such pair.
        """
        if bounds is None:
            problem = "must say what targets may be: it cannot be read from people's data, nor guessed"
            raise ParameterError("target_bounds", None, problem, "pass (low, high), (-1, 1) for instance")
        lows, highs = pairs_of(bounds, 1, "target_bounds")
        half = check_moderate("target_bounds", float(highs[0] - lows[0]) / 2, "for instance (0, 1)")
        return cls(float(lows[0]) / 2 + float(highs[0]) / 2, half)

    def scaled(self, targets: Floats) -> tuple[Floats, Changed]:
        """The targets, and which of them had to be cut off."""
        with np.errstate(over="ignore"):
            scaled = (targets - self.centre) / self.half
        return np.clip(scaled, -1.0, 1.0), np.abs(scaled) > HAIR
