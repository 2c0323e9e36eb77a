"""Closed convex sets that a model lies in: each knows its nearest point to anywhere, and how wide it is."""

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass, fields
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from shuffledp.accounting.rounding import TOLERANCE
from shuffledp.errors import ParameterError
from shuffledp.learn.spec import check_declared, positive, whole
from shuffledp.protocols.domains.ball import LARGEST_DIMENSION
from shuffledp.protocols.states import is_real

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True, kw_only=True)
class ConvexSet(ABC):
    """A closed convex set of vectors with so many numbers.

    Attributes:
        dimension: how many numbers a model has.
    """

    kind: ClassVar[str]
    is_penalized: ClassVar[bool] = True
    """Whether a ridge is on all numbers of a model."""
    dimension: int = whole(1, LARGEST_DIMENSION, "count the model's parameters")

    def __post_init__(self) -> None:
        check_declared(self)

    @abstractmethod
    def project(self, theta: Floats) -> Floats:
        """The nearest point of the set."""

    def penalized(self, theta: Floats) -> Floats:
        """What of a model a ridge is on: all of it, but for intercepts where the set knows of any."""
        return theta

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

    def is_within_reach(self, point: Any) -> bool:
        """Whether this, as JSON has it, is a point no further from the centre than any of the set, but for rounding.

        >>> ball = L2Ball(dimension=1, radius=2)
        >>> ball.is_within_reach([2.0]), ball.is_within_reach([1e300]), ball.is_within_reach(["0"])
        (True, False, False)
        """
        if not isinstance(point, list) or len(point) != self.dimension or not all(map(is_real, point)):
            return False
        return math.dist(point, self.centre) <= self.reach * (1 + TOLERANCE)

    def document(self) -> dict[str, Any]:
        """The set as JSON."""
        numbers = {field.name: getattr(self, field.name) for field in fields(self)}
        return {"kind": self.kind, **numbers, **{name: float(numbers[name]) for name in numbers if name != "dimension"}}


@dataclass(frozen=True, slots=True, kw_only=True)
class L2Ball(ConvexSet):
    """All vectors of length at most `radius`.

    Attributes:
        radius: no model is longer.

    >>> L2Ball(dimension=2, radius=1).project(np.array([3.0, 4.0])).round(6).tolist()
    [0.6, 0.8]
    """

    kind: ClassVar[str] = "ball"
    radius: float = positive("say how long a model may be")

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


@dataclass(frozen=True, slots=True, kw_only=True)
class Box(ConvexSet):
    """All vectors whose numbers lie in [low, high].

    Attributes:
        low: no number of a model is smaller.
        high: no number of a model is larger.

    >>> Box(dimension=2, low=0, high=1).project(np.array([3.0, -4.0])).tolist()
    [1.0, 0.0]
    """

    kind: ClassVar[str] = "box"
    low: float
    high: float

    def __post_init__(self) -> None:
        ConvexSet.__post_init__(self)
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


@dataclass(frozen=True, slots=True, kw_only=True)
class Simplex(ConvexSet):
    """All vectors of numbers >= 0 that add up to `total`.

    Attributes:
        total: what a model's numbers add up to.

    >>> Simplex(dimension=3).project(np.array([0.9, 0.5, -1.0])).round(6).tolist()
    [0.7, 0.3, 0.0]
    """

    kind: ClassVar[str] = "simplex"
    total: float = positive("1 makes probabilities", default=1.0)

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
