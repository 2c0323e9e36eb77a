"""What is promised: (epsilon, delta) between neighbours."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from shuffledp.errors import ParameterError

Neighbours = Literal["replacement"]
"""Two data sets are neighbours when one user's value is replaced: the papers' notion and ours."""

LARGEST_EPSILON = 100.0


def _is_huge(value: int | float) -> bool:
    """Whether a whole number is too large for a float."""
    return isinstance(value, int) and abs(value) > 10**300


@dataclass(frozen=True, slots=True)
class Privacy:
    """The target of a plan: for neighbours x, x' and any event A, P[A|x] <= e^epsilon P[A|x'] + delta.

    >>> Privacy(epsilon=1, delta=1e-6)
    Privacy(epsilon=1.0, delta=1e-06, neighbours='replacement')
    """

    epsilon: float
    delta: float
    neighbours: Neighbours = "replacement"

    def __post_init__(self) -> None:
        for name in ("epsilon", "delta"):
            value = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, int | float):
                raise ParameterError(name, repr(value), "must be a number", "pass a float such as 1.0 or 1e-6")
            if _is_huge(value):
                raise ParameterError(name, "a larger one", "must be a number below 1e300", "pass a float such as 1.0")
            object.__setattr__(self, name, float(value))
        if not (self.epsilon > 0 and math.isfinite(self.epsilon)):
            raise ParameterError("epsilon", self.epsilon, "must be > 0", "1 is a common choice, smaller is safer")
        if self.epsilon > LARGEST_EPSILON:
            raise ParameterError(
                "epsilon",
                self.epsilon,
                f"must be <= {LARGEST_EPSILON:g}",
                "beyond that nobody is protected; 1 is a common choice",
            )
        if not 0 < self.delta < 1:
            raise ParameterError(
                "delta",
                self.delta,
                "must lie strictly between 0 and 1",
                "1e-6 is a common choice, below 1/users",
            )

    def __str__(self) -> str:
        """The target in words.

        >>> print(Privacy(1, 1e-6))
        epsilon 1, delta 1e-06
        """
        return f"epsilon {self.epsilon:g}, delta {self.delta:g}"


def as_privacy(given: Any) -> Privacy:
    """The privacy that is meant: a `Privacy`, or the pair (epsilon, delta).

    >>> as_privacy((1, 1e-6)) == Privacy(epsilon=1, delta=1e-6)
    True
    >>> as_privacy(1.0)
    Traceback (most recent call last):
        ...
    shuffledp.errors.ParameterError: privacy must be epsilon and delta, got 1.0: pass Privacy(1, 1e-6) or (1, 1e-6).
    """
    if isinstance(given, Privacy):
        return given
    if isinstance(given, tuple | list) and len(given) == 2:
        return Privacy(*given)
    if isinstance(given, Mapping) and {"epsilon", "delta"} == set(given):
        return Privacy(**given)
    raise ParameterError("privacy", repr(given), "must be epsilon and delta", "pass Privacy(1, 1e-6) or (1, 1e-6)")
