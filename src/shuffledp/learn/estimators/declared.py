"""What people's data may be, as declared beforehand: nothing is scaled by what the data are."""

from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from shuffledp.errors import ParameterError
from shuffledp.learn.spec import check_positive

Floats = NDArray[np.float64]

# Numbers at a time: they stay in the cache.
_AT_A_TIME = 1 << 18
# So that rounding makes no row longer than 1.
HAIR = 1 + 1e-12
# Products of a few declared numbers must still be numbers.
_SMALLEST, _LARGEST, _NARROWEST = 1e-30, 1e30, 1e-100


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
    """Rows of features, made no longer than 1 as a solver wants them.

    A feature is cut off at its bounds, which become -1 and 1; a row that is then longer than `norm` is shortened to it.
    With an intercept a constant is appended that is as long as the longest row.

    >>> declared = DeclaredFeatures.of(2, bounds=[(0, 10), (-1, 1)], norm=None, intercept=False)
    >>> rows, clipped = declared.rows(np.array([[10.0, 0.0], [12.0, 0.0]]))
    >>> (rows * np.sqrt(2)).round(6).tolist(), clipped
    ([[1.0, 0.0], [1.0, 0.0]], 1)
    """

    centre: Floats
    half: Floats
    bounded: bool
    norm: float
    intercept: bool

    @classmethod
    def of(cls, features: int, *, bounds: Any, norm: float | None, intercept: bool) -> Self:
        """Bounds are one (low, high) for all features or a pair for each; a norm without them is 1 if left out."""
        lows, highs = np.full(features, -1.0), np.full(features, 1.0)
        if bounds is not None:
            lows, highs = pairs_of(bounds, features)
        longest = np.sqrt(features) if bounds is not None else 1.0
        length = longest if norm is None else check_moderate("feature_norm", norm, "say how long a row can be")
        if not isinstance(intercept, bool | np.bool_):
            raise ParameterError("fit_intercept", intercept, "must be True or False", "True adds one")
        return cls(lows / 2 + highs / 2, highs / 2 - lows / 2, bounds is not None, float(length), bool(intercept))

    @property
    def dimension(self) -> int:
        """Numbers of a model: one a feature, and the intercept's."""
        return self.centre.size + self.intercept

    @property
    def _longest(self) -> float:
        return float(self.norm * HAIR * (np.sqrt(2) if self.intercept else 1.0))

    def rows(self, features: Floats) -> tuple[Floats, int]:
        """The rows, and how many had to be cut off or shortened."""
        count, width = features.shape
        rows = np.empty((count, self.dimension))
        rows[:, width:] = self.norm
        size = max(1, _AT_A_TIME // self.dimension)
        clipped = 0
        for start in range(0, count, size):
            part = slice(start, start + size)
            rows[part, :width], changed = self._within(features[part])
            clipped += changed
        rows /= self._longest
        return rows, clipped

    def _within(self, features: Floats) -> tuple[Floats, int]:
        with np.errstate(over="ignore"):
            inner = (features - self.centre) / self.half
        changed = np.zeros(len(inner), dtype=np.bool_)
        if self.bounded:
            # A bound itself may be a hair beyond 1 here.
            changed |= (np.abs(inner) > HAIR).any(axis=1)
            np.clip(inner, -1.0, 1.0, out=inner)
        # By the largest number first: squares of huge ones would overflow.
        largest = np.maximum(np.abs(inner).max(axis=1), np.finfo(np.float64).tiny)
        shape = inner / largest[:, np.newaxis]
        lengths = np.sqrt(np.einsum("ij,ij->i", shape, shape))
        with np.errstate(over="ignore"):
            long = lengths * largest > self.norm * HAIR
        inner[long] = shape[long] * (self.norm / lengths[long])[:, np.newaxis]
        return inner, int(np.count_nonzero(changed | long))

    def model(self, theta: Floats) -> tuple[Floats, float]:
        """The coefficients and the intercept of the features as they came."""
        coefficients = theta[: self.centre.size] / self.half / self._longest
        constant = float(theta[-1]) * self.norm / self._longest if self.intercept else 0.0
        return coefficients, constant - float(coefficients @ self.centre)


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
    if apart.min() < _NARROWEST:
        raise ParameterError(name, bounds, f"must be {_NARROWEST:g} apart or more", "choose other units")
    return lows, highs
