"""What a running sum adds up: bits, numbers in [0, 1], vectors in a ball, or categories, as whole numbers of steps."""

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from shuffledp.accounting.rounding import TOLERANCE, RoundedDifference, rounded_difference
from shuffledp.errors import DataError, ParameterError
from shuffledp.protocols.histogram.categories import AnyCategories, as_categories
from shuffledp.protocols.histogram.categories import Categories as NamedCategories
from shuffledp.protocols.vector_sum.ball import LARGEST_DIMENSION, Ball, check_ball
from shuffledp.randomness import RandomBits
from shuffledp.sampling.rounding import LARGEST, round_randomly

Floats = NDArray[np.float64]


class Domain(ABC):
    """A user's value as whole numbers of steps, lowest..highest in each coordinate."""

    kind: ClassVar[str]
    coordinates: int = 1
    lowest: int = 0
    highest: int = 1
    rounds: ClassVar[bool] = False
    """Whether values are rounded to steps at random."""

    @property
    def step(self) -> float:
        """One step, in the values' own unit."""
        return 1.0

    @property
    def middle(self) -> float:
        """What each coordinate of a user counts as until its batch is complete."""
        return 0.5

    @property
    def reach(self) -> float:
        """How far off that is, at most."""
        return 0.5

    @property
    @abstractmethod
    def diameter(self) -> float:
        """How far apart two users' values are, at most."""

    @property
    def moved(self) -> int | None:
        """In how many coordinates two users differ, by at most `largest_shift` each; None if in any number."""
        return 1

    @abstractmethod
    def difference(self, failure: float) -> RoundedDifference:
        """How far apart two users' steps are, but for a probability of at most `failure`."""

    @property
    def largest_shift(self) -> int:
        """How far apart they are in one coordinate."""
        return self.highest - self.lowest

    def rounding_bound(self, users: int, failure: float) -> float:
        """No coordinate of any running sum is further off by rounding, but for this probability.

        Rounding errors are independent, have mean 0 and lie in an interval of one step, so their running sum
        is a martingale: the maximal form of Hoeffding's inequality needs no union over time. Beside it: fixed
        point has 32 bits, and values may be too large by a hair, which is clipped.
        """
        if not self.rounds:
            return 0.0
        likely = self.step * math.sqrt(users * math.log(2 * self.coordinates / failure) / 2)
        return likely + users * (self.step * 2.0**-33 + TOLERANCE * self.reach)

    @abstractmethod
    def check_values(self, values: ArrayLike) -> NDArray[Any]:
        """The values as an array with an entry or a row a user, or an error that names the first bad one."""

    @abstractmethod
    def to_steps(self, values: NDArray[Any], *, bits: RandomBits) -> NDArray[Any]:
        """Checked values in steps."""

    @property
    @abstractmethod
    def parameters(self) -> dict[str, Any]:
        """What makes the domain again."""

    def document(self) -> dict[str, Any]:
        """The domain as JSON."""
        return {"kind": self.kind, **self.parameters}


@dataclass(frozen=True)
class Bits(Domain):
    """0 or 1: a running count."""

    kind: ClassVar[str] = "bits"

    @property
    def diameter(self) -> float:
        return 1.0

    def difference(self, failure: float) -> RoundedDifference:
        return RoundedDifference(1.0, 0.0)

    @property
    def parameters(self) -> dict[str, Any]:
        return {}

    def check_values(self, values: ArrayLike) -> NDArray[np.uint8]:
        """The values as 0s and 1s in bytes."""
        array = _column(values)
        if array.dtype == np.bool_:
            return array.view(np.uint8)
        if array.dtype != np.uint8 or int(array.max()) > 1:
            bad = np.flatnonzero(~((array == 0) | (array == 1)))
            if bad.size:
                row = int(bad[0])
                raise DataError("values", f"{array[row]} in row {row + 1}", "must be 0 or 1", "a count counts ones")
        return array.astype(np.uint8, copy=False)

    def to_steps(self, values: NDArray[Any], *, bits: RandomBits) -> NDArray[Any]:
        return values


@dataclass(frozen=True)
class Reals(Domain):
    """Numbers in [0, 1], rounded at random to multiples of 1/grid.

    >>> Reals(10).to_steps(np.array([0.3, 1.0]), bits=RandomBits.seeded(0)).tolist()
    [3, 10]
    """

    kind: ClassVar[str] = "reals"
    rounds: ClassVar[bool] = True
    grid: int

    def __post_init__(self) -> None:
        _check_grid(self.grid)

    @property
    def highest(self) -> int:  # type: ignore[override]
        return self.grid

    @property
    def step(self) -> float:
        return 1 / self.grid

    @property
    def diameter(self) -> float:
        return 1.0

    def difference(self, failure: float) -> RoundedDifference:
        return RoundedDifference(float(self.grid), 0.0)

    @property
    def parameters(self) -> dict[str, Any]:
        return {"grid": self.grid}

    def check_values(self, values: ArrayLike) -> Floats:
        array = _column(values).astype(np.float64, copy=False)
        bad = np.flatnonzero(~((array >= 0) & (array <= 1)))
        if bad.size:
            row = int(bad[0])
            raise DataError(
                "values", f"{array[row]} in row {row + 1}", "must lie in [0, 1]", "scale or clip the values first"
            )
        return array

    def to_steps(self, values: NDArray[Any], *, bits: RandomBits) -> NDArray[np.int64]:
        return round_randomly(np.clip(values * float(self.grid), 0.0, float(self.grid)), bits=bits)


@dataclass(frozen=True)
class Vectors(Domain):
    """Vectors of length at most `radius`, every coordinate rounded at random to a multiple of radius/grid.

    Where vectors come from a set of which no two are further apart than `apart`, less noise is enough: whoever
    makes the vectors answers for that, as nothing here can check it. Twice the radius if left out.
    """

    kind: ClassVar[str] = "vectors"
    rounds: ClassVar[bool] = True
    dimension: int
    radius: float
    grid: int
    apart: float | None = None

    def __post_init__(self) -> None:
        check_ball(self.dimension, self.radius)
        _check_grid(self.grid)
        object.__setattr__(self, "radius", float(self.radius))
        if self.apart is not None:
            is_number = isinstance(self.apart, int | float) and not isinstance(self.apart, bool)
            if not is_number or not self.radius <= self.apart <= 2 * self.radius:
                problem = "must lie between the radius and twice the radius"
                raise ParameterError("apart", self.apart, problem, "leave it out for twice the radius")
            object.__setattr__(self, "apart", float(self.apart))

    @property
    def coordinates(self) -> int:  # type: ignore[override]
        return self.dimension

    @property
    def lowest(self) -> int:  # type: ignore[override]
        return -self.grid

    @property
    def highest(self) -> int:  # type: ignore[override]
        return self.grid

    @property
    def step(self) -> float:
        return self.radius / self.grid

    @property
    def middle(self) -> float:
        return 0.0

    @property
    def reach(self) -> float:
        return self.radius

    @property
    def diameter(self) -> float:
        return 2 * self.radius if self.apart is None else self.apart

    @property
    def moved(self) -> int | None:
        return 1 if self.dimension == 1 else None

    def difference(self, failure: float) -> RoundedDifference:
        return rounded_difference(self.diameter / self.step, self.dimension, failure)

    @property
    def parameters(self) -> dict[str, Any]:
        apart = {} if self.apart is None else {"apart": self.apart}
        return {"dimension": self.dimension, "radius": self.radius, "grid": self.grid, **apart}

    def check_values(self, values: ArrayLike) -> Floats:
        return Ball(self.dimension, self.radius).check_values(values)

    def to_steps(self, values: NDArray[Any], *, bits: RandomBits) -> NDArray[np.int64]:
        # Floats may be longer than the radius by a hair.
        scaled = np.clip(values * (1 / self.step), -float(self.grid), float(self.grid))
        # One coordinate is a number a user, as everywhere.
        return round_randomly(scaled if self.dimension > 1 else scaled[:, 0], bits=bits)


@dataclass(frozen=True)
class Categories(Domain):
    """One of 0, 1, ..., count - 1: a running histogram. A user adds one to one coordinate.

    What the numbers stand for may be said by `named`: it turns people's own values into them.

    >>> Categories.of(["red", "green"]).codes(["green", "red"]).tolist()
    [1, 0]
    """

    kind: ClassVar[str] = "categories"
    count: int
    named: NamedCategories | None = None

    @classmethod
    def of(cls, categories: AnyCategories) -> "Categories":
        """A running histogram of these categories."""
        named = as_categories(categories)
        return cls(named.size, named)

    def __post_init__(self) -> None:
        if self.named is not None:
            object.__setattr__(self, "named", as_categories(self.named))
        if isinstance(self.count, bool) or not isinstance(self.count, int) or not 2 <= self.count <= LARGEST_DIMENSION:
            raise ParameterError(
                "categories", self.count, f"must be a whole number in 2..{LARGEST_DIMENSION}", "count the categories"
            )
        if self.named is not None and self.named.size != self.count:
            raise DataError("plan.domain", self.count, f"must be {self.named.size}, as many as named", "make it again")

    @property
    def coordinates(self) -> int:  # type: ignore[override]
        return self.count

    @property
    def diameter(self) -> float:
        return math.sqrt(2)

    @property
    def moved(self) -> int:
        return 2

    def difference(self, failure: float) -> RoundedDifference:
        return RoundedDifference(math.sqrt(2) * (1 + 1e-15), 0.0)

    @property
    def parameters(self) -> dict[str, Any]:
        named = {} if self.named is None else {"named": self.named.document()}
        return {"count": self.count, **named}

    def codes(self, values: ArrayLike) -> NDArray[Any]:
        """The numbers of people's own values; without names they are the numbers already."""
        return np.asarray(values) if self.named is None else self.named.encode(values)

    def check_values(self, values: ArrayLike) -> NDArray[np.int64]:
        array = _column(values)
        bad = np.flatnonzero(~((array >= 0) & (array < self.count) & (array == np.floor(array))))
        if bad.size:
            row = int(bad[0])
            raise DataError(
                "values",
                f"{array[row]} in row {row + 1}",
                f"must be one of 0..{self.count - 1}",
                "number the categories from 0",
            )
        return array.astype(np.int64, copy=False)

    def to_steps(self, values: NDArray[Any], *, bits: RandomBits) -> NDArray[np.int64]:
        steps = np.zeros((values.size, self.count), dtype=np.int64)
        steps[np.arange(values.size), values] = 1
        return steps


BITS = Bits()
KINDS: dict[str, type[Domain]] = {kind.kind: kind for kind in (Bits, Reals, Vectors, Categories)}


def domain_from(document: Any) -> Domain:
    """The domain that a JSON document describes."""
    kind = KINDS.get(str(document.get("kind"))) if isinstance(document, Mapping) else None
    if kind is None:
        raise DataError("plan.domain", document, f"must have a kind, one of {', '.join(KINDS)}", "make the plan again")
    return kind(**{name: value for name, value in document.items() if name != "kind"})


def _check_grid(grid: Any) -> None:
    if isinstance(grid, bool) or not isinstance(grid, int) or not 1 <= grid <= LARGEST:
        raise ParameterError("grid", grid, f"must be a whole number in 1..{LARGEST}", "leave it to the planner")


def _column(values: ArrayLike) -> NDArray[Any]:
    array = np.asarray(values)
    if array.ndim != 1 or array.size == 0:
        raise DataError("values", f"shape {array.shape}", "must be a column of at least one value", "pass one a user")
    if array.dtype.kind not in "buif":
        raise DataError("values", f"dtype {array.dtype}", "must be numbers", "convert them, e.g. x.astype(int)")
    return array
