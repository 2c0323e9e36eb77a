"""What people's numbers may be, as declared beforehand: nothing is scaled by what the data are."""

import math
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from shuffledp.errors import ParameterError
from shuffledp.learn.spec import check_positive

Floats = NDArray[np.float64]
Changed = NDArray[np.bool_]
"""Which rows had to be cut off or shortened."""

# So that rounding makes no row longer than 1.
HAIR = 1 + 1e-12
# Products of a few declared numbers must still be numbers.
_SMALLEST, _LARGEST, _NARROWEST = 1e-30, 1e30, 1e-100
# How long the constant of the intercept is beside the longest row of features. A longer one leaves less of a gradient
# to the features, with a shorter one rare classes are far away: benchmarks/intercepts.py measures it.
INTERCEPT = 0.5
# How long intercepts may be beside the rest of a model: an intercept alone reaches half of the largest score.
INTERCEPT_RADIUS = math.hypot(1.0, INTERCEPT)


def check_moderate(name: str, value: Any, way_out: str) -> float:
    """A positive number that can be multiplied with a few others.

    >>> check_moderate("radius", 1e200, "say how long a model may be")
    Traceback (most recent call last):
        ...
    shuffledp.errors.ParameterError: radius must be in 1e-30..1e+30, got 1e+200: choose other units.
    """
    number = float(check_positive(name, value, way_out))
    if not _SMALLEST <= number <= _LARGEST:
        raise ParameterError(name, value, f"must be in {_SMALLEST:g}..{_LARGEST:g}", "choose other units")
    return number


@dataclass(frozen=True, slots=True, eq=False)
class DeclaredFeatures:
    """Rows of numbers, made no longer than 1 as a solver wants them.

    A number is cut off at its bounds, which become -1 and 1; a row that is then longer than `norm` is shortened to it.
    With an intercept a constant is appended.

    >>> declared = DeclaredFeatures.of([(0, 10), (-1, 1)], norm=2 ** 0.5, intercept=False)
    >>> rows, changed = declared.rows(np.array([[10.0, 0.0], [12.0, 0.0]]))
    >>> (rows * np.sqrt(2)).round(6).tolist(), changed.tolist()
    ([[1.0, 0.0], [1.0, 0.0]], [False, True])
    >>> declared.natural(np.array([[12.0, 0.5]])).tolist()
    [[10.0, 0.5]]
    """

    lows: Floats
    highs: Floats
    norm: float
    intercept: bool
    bounded: bool = True

    @classmethod
    def of(cls, bounds: ArrayLike, *, norm: float, intercept: bool, bounded: bool = True) -> Self:
        """From a pair (low, high) for every number, the longest row, and whether there is an intercept."""
        lows, highs = np.array(bounds, dtype=np.float64).reshape(-1, 2).T
        if not isinstance(intercept, bool | np.bool_):
            raise ParameterError("fit_intercept", intercept, "must be True or False", "True adds one")
        return cls(lows, highs, float(norm), bool(intercept), bounded)

    @property
    def dimension(self) -> int:
        """Numbers of a model: one for each of a row's, and the intercept's."""
        return self.lows.size + self.intercept

    @property
    def _centre(self) -> Floats:
        return self.lows / 2 + self.highs / 2

    @property
    def _half(self) -> Floats:
        return self.highs / 2 - self.lows / 2

    @property
    def _longest(self) -> float:
        return float(self.norm * HAIR * (np.hypot(1.0, INTERCEPT) if self.intercept else 1.0))

    def rows(self, values: Floats) -> tuple[Floats, Changed]:
        """What a solver is given, and which rows had to be cut off or shortened."""
        count, width = values.shape
        rows = np.empty((count, self.dimension))
        rows[:, width:] = self.norm * INTERCEPT
        rows[:, :width], cut, long = self._within(values)
        rows /= self._longest
        return rows, cut | long

    def natural(self, values: Floats) -> Floats:
        """Rows in the units in which they came: those that needed no change are what they were."""
        inner, _, long = self._within(values)
        cut = np.clip(values, self.lows, self.highs) if self.bounded else np.array(values)
        cut[long] = self._centre + inner[long] * self._half
        return cut

    def _within(self, values: Floats) -> tuple[Floats, Changed, Changed]:
        """Rows with bounds at -1 and 1, which were cut off there, and which are shortened."""
        with np.errstate(over="ignore"):
            inner = (values - self._centre) / self._half
        cut = np.zeros(len(inner), dtype=np.bool_)
        if self.bounded:
            # A bound itself may be a hair beyond 1 here.
            cut |= (np.abs(inner) > HAIR).any(axis=1)
            np.clip(inner, -1.0, 1.0, out=inner)
        # By the largest number first: squares of huge ones would overflow.
        largest = np.maximum(np.abs(inner).max(axis=1), np.finfo(np.float64).tiny)
        shape = inner / largest[:, np.newaxis]
        lengths = np.sqrt(np.einsum("ij,ij->i", shape, shape))
        with np.errstate(over="ignore"):
            long = lengths * largest > self.norm * HAIR
        inner[long] = shape[long] * (self.norm / lengths[long])[:, np.newaxis]
        return inner, cut, long

    def model(self, theta: Floats) -> tuple[Floats, float]:
        """The coefficients and the intercept of natural rows."""
        width = self.lows.size
        coefficients = theta[:width] / self._half / self._longest
        constant = float(theta[-1]) * self.norm * INTERCEPT / self._longest if self.intercept else 0.0
        return coefficients, constant - float(coefficients @ self._centre)


def pairs_of(bounds: ArrayLike, features: int, name: str = "feature_bounds") -> tuple[Floats, Floats]:
    """The lows and the highs of so many features, from one (low, high) for all or a pair for each.

    Raises:
        ParameterError: under this name, what is no such pair, not finite, or too narrow to divide by.
    """
    wanted = "must be one pair (low, high)" + (f", or one for each of {features} features" if features > 1 else "")
    try:
        pairs = np.array(bounds, dtype=np.float64)
        lows, highs = np.broadcast_to(pairs, (features, 2)).T if pairs.ndim else (pairs, pairs)
    except (TypeError, ValueError):
        raise ParameterError(name, bounds, wanted, "for instance (0, 1)") from None
    # The widest range must still be a number, and so must what is divided by the narrowest.
    with np.errstate(over="ignore", invalid="ignore"):
        apart = highs - lows
    if not (np.isfinite(apart).all() and (apart > 0).all()):
        raise ParameterError(name, bounds, f"{wanted}, finite, with low below high", "for instance (0, 1)")
    if apart.size and apart.min() < _NARROWEST:
        raise ParameterError(name, bounds, f"must be {_NARROWEST:g} apart or more", "choose other units")
    return lows, highs
