"""Closed convex sets that a model lies in: each knows its nearest point to anywhere, and how wide it is."""

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from shuffledp.errors import ParameterError
from shuffledp.protocols.domains.ball import LARGEST_DIMENSION

Floats = NDArray[np.float64]


def check_positive(name: str, value: Any, way_out: str) -> float:
    """A positive number that is finite."""
    if isinstance(value, bool) or not isinstance(value, int | float | np.floating) or not 0 < value < math.inf:
        raise ParameterError(name, value, "must be a positive number", way_out)
    return float(value)


@dataclass(frozen=True, slots=True, kw_only=True)
class ConvexSet(ABC):
    """A closed convex set of vectors with so many numbers."""

    kind: ClassVar[str]
    dimension: int

    def __post_init__(self) -> None:
        size = self.dimension
        if isinstance(size, bool) or not isinstance(size, int) or not 1 <= size <= LARGEST_DIMENSION:
            limits = f"must be a whole number in 1..{LARGEST_DIMENSION}"
            raise ParameterError("dimension", size, limits, "count the model's parameters")
        self._check()

    @abstractmethod
    def _check(self) -> None:
        """Refuse what is no set."""

    @abstractmethod
    def project(self, theta: Floats) -> Floats:
        """The nearest point of the set."""

    @property
    @abstractmethod
    def centre(self) -> Floats:
        """Where a solver starts."""

    @property
    @abstractmethod
    def reach(self) -> float:
        """No point of the set is further from the centre."""

    @property
    @abstractmethod
    def diameter(self) -> float:
        """No two points are further apart."""

    @property
    @abstractmethod
    def largest_norm(self) -> float:
        """No point is longer."""

    @abstractmethod
    def document(self) -> dict[str, Any]:
        """The set as JSON."""


@dataclass(frozen=True, slots=True, kw_only=True)
class L2Ball(ConvexSet):
    """All vectors of length at most `radius`.

    >>> L2Ball(dimension=2, radius=1).project(np.array([3.0, 4.0])).round(6).tolist()
    [0.6, 0.8]
    """

    kind: ClassVar[str] = "ball"
    radius: float

    def _check(self) -> None:
        check_positive("radius", self.radius, "say how long a model may be")

    def project(self, theta: Floats) -> Floats:
        largest = float(np.abs(theta).max())
        # By the largest number first: squares of huge ones would overflow.
        shape = theta / largest if largest > 1e100 else theta
        length = float(np.linalg.norm(shape))
        inside = length <= self.radius and shape is theta
        return theta if inside else shape * (self.radius / length)

    @property
    def centre(self) -> Floats:
        return np.zeros(self.dimension)

    @property
    def reach(self) -> float:
        return float(self.radius)

    @property
    def diameter(self) -> float:
        return 2.0 * self.radius

    @property
    def largest_norm(self) -> float:
        return float(self.radius)

    def document(self) -> dict[str, Any]:
        return {"kind": self.kind, "dimension": self.dimension, "radius": float(self.radius)}


@dataclass(frozen=True, slots=True, kw_only=True)
class Box(ConvexSet):
    """All vectors whose numbers lie in [low, high].

    >>> Box(dimension=2, low=0, high=1).project(np.array([3.0, -4.0])).tolist()
    [1.0, 0.0]
    """

    kind: ClassVar[str] = "box"
    low: float
    high: float

    def _check(self) -> None:
        if not -math.inf < self.low < self.high < math.inf:
            raise ParameterError("low", self.low, f"must be finite and below high, {self.high}", "swap them")

    def project(self, theta: Floats) -> Floats:
        return np.asarray(np.clip(theta, self.low, self.high))

    @property
    def centre(self) -> Floats:
        return np.full(self.dimension, (self.low + self.high) / 2)

    @property
    def reach(self) -> float:
        return self.diameter / 2

    @property
    def diameter(self) -> float:
        return (self.high - self.low) * math.sqrt(self.dimension)

    @property
    def largest_norm(self) -> float:
        return max(abs(self.low), abs(self.high)) * math.sqrt(self.dimension)

    def document(self) -> dict[str, Any]:
        return {"kind": self.kind, "dimension": self.dimension, "low": float(self.low), "high": float(self.high)}


@dataclass(frozen=True, slots=True, kw_only=True)
class Simplex(ConvexSet):
    """All vectors of numbers >= 0 that add up to `total`.

    >>> Simplex(dimension=3).project(np.array([0.9, 0.5, -1.0])).round(6).tolist()
    [0.7, 0.3, 0.0]
    """

    kind: ClassVar[str] = "simplex"
    total: float = 1.0

    def _check(self) -> None:
        check_positive("total", self.total, "1 makes probabilities")

    def project(self, theta: Floats) -> Floats:
        # Held, Wolfe, Crowder 1974: subtract one threshold from all and cut at 0. Only differences matter.
        theta = np.maximum(theta - theta.max(), -self.total)
        largest_first = np.sort(theta)[::-1]
        thresholds = (np.cumsum(largest_first) - self.total) / np.arange(1, self.dimension + 1)
        kept = np.flatnonzero(largest_first > thresholds)
        return np.asarray(np.maximum(theta - thresholds[kept[-1]], 0.0))

    @property
    def centre(self) -> Floats:
        return np.full(self.dimension, self.total / self.dimension)

    @property
    def reach(self) -> float:
        return self.total * math.sqrt(1 - 1 / self.dimension)

    @property
    def diameter(self) -> float:
        return self.total * math.sqrt(2) if self.dimension > 1 else 0.0

    @property
    def largest_norm(self) -> float:
        return float(self.total)

    def document(self) -> dict[str, Any]:
        return {"kind": self.kind, "dimension": self.dimension, "total": float(self.total)}
