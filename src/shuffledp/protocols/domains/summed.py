"""What a sum adds up: bits, numbers in a range, vectors in a ball, or categories, as whole numbers of steps."""

import math
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from shuffledp.accounting.rounding import RoundedDifference, rounded_difference
from shuffledp.errors import DataError, ParameterError
from shuffledp.protocols.domains.ball import LARGEST_DIMENSION, Ball, check_ball
from shuffledp.protocols.domains.categories import AnyCategories, as_categories
from shuffledp.protocols.domains.domain import Categories, Generator, numbers_of, refuse_first
from shuffledp.protocols.domains.steps import SummedDomain as SummedDomain
from shuffledp.protocols.fields import forwarded
from shuffledp.randomness import RandomBits
from shuffledp.sampling.rounding import LARGEST, round_randomly

Floats = NDArray[np.float64]

SYNTHETIC_SHARE = 0.3
# Squares and sums of values stay finite, and steps of the grid above 0.
_LARGEST_VALUE, _SMALLEST_WIDTH = 1e150, 1e-150


@dataclass(frozen=True)
class Bits(SummedDomain):
    """0 or 1: a running count."""

    kind: ClassVar[str] = "bits"

    def difference(self, failure: float) -> RoundedDifference:
        return RoundedDifference(1.0, 0.0)

    def check_values(self, values: ArrayLike) -> NDArray[np.uint8]:
        """The values as 0s and 1s in bytes."""
        array = numbers_of(values)
        if array.dtype == np.bool_:
            return array.view(np.uint8)
        if array.dtype != np.uint8 or int(array.max()) > 1:
            refuse_first(array, ~((array == 0) | (array == 1)), "must be 0 or 1", "a count counts ones")
        return array.astype(np.uint8, copy=False)

    def to_steps(self, values: NDArray[Any], *, bits: RandomBits) -> NDArray[Any]:
        return values

    def numbers(self, values: NDArray[Any]) -> NDArray[Any]:
        return values.astype(np.int64)

    def synthesize(self, users: int, generator: Generator) -> NDArray[np.uint8]:
        return (generator.random(users) < SYNTHETIC_SHARE).astype(np.uint8)


@dataclass(frozen=True)
class Reals(SummedDomain):
    """Numbers in [low, high], rounded at random to steps of 1/grid of the range.

    >>> Reals(10).to_steps(np.array([0.3, 1.0]), bits=RandomBits.seeded(0)).tolist()
    [3, 10]
    """

    kind: ClassVar[str] = "reals"
    rounds: ClassVar[bool] = True
    running: ClassVar[str] = "running sum"
    total: ClassVar[str] = "sum"
    grid: int
    low: float = 0.0
    high: float = 1.0

    def __post_init__(self) -> None:
        check_grid(self.grid)
        check_range(self.low, self.high)
        low, high, diameter = float(self.low), float(self.high), float(self.high) - float(self.low)
        self._set(low=low, high=high, highest=self.grid, step=diameter / self.grid)
        self._set(origin=low, middle=low + diameter / 2, reach=diameter / 2, diameter=diameter)

    @property
    def people(self) -> str:
        return f"users' numbers in [{self.low:g}, {self.high:g}]"

    def difference(self, failure: float) -> RoundedDifference:
        return RoundedDifference(float(self.grid), 0.0)

    @property
    def parameters(self) -> dict[str, Any]:
        ends = {} if (self.low, self.high) == (0.0, 1.0) else {"low": self.low, "high": self.high}
        return {"grid": self.grid, **ends}

    @property
    def options(self) -> str:
        return f"--low {self.low!r} --high {self.high!r}"

    def check_values(self, values: ArrayLike) -> Floats:
        """The values as floats in the range."""
        array = self._finite(values)
        problem = f"must lie in [{self.low:g}, {self.high:g}]"
        way_out = "clip it (--clip, clip=True) or plan a wider range"
        for row in np.flatnonzero((array < self.low) | (array > self.high))[:1].tolist():
            raise DataError("values", f"{array[row]:g} in row {row + 1}", problem, way_out)
        return array

    def clip_values(self, values: ArrayLike) -> tuple[Floats, int]:
        array = self._finite(values)
        clipped = np.clip(array, self.low, self.high)
        return clipped, int(np.count_nonzero(clipped != array))

    def _finite(self, values: ArrayLike) -> Floats:
        array = numbers_of(values).astype(np.float64, copy=False)
        refuse_first(array, ~np.isfinite(array), "must be finite", "drop or fill such values first")
        return array

    def to_steps(self, values: NDArray[Any], *, bits: RandomBits) -> NDArray[np.int64]:
        # Clipping keeps what floats round beyond the grid.
        scaled = np.clip((values - self.low) * (self.grid / self.diameter), 0.0, float(self.grid))
        return round_randomly(scaled, bits=bits)

    def synthesize(self, users: int, generator: Generator) -> Floats:
        """More often small than large."""
        return np.asarray(self.low + self.diameter * generator.beta(2, 5, users))


@dataclass(frozen=True)
class Vectors(SummedDomain):
    """Vectors of length at most `radius`, every coordinate rounded at random to a multiple of radius/grid.

    Where vectors come from a set of which no two are further apart than `apart`, less noise is enough: whoever
    makes the vectors answers for that, as nothing here can check it. Twice the radius if left out.
    """

    kind: ClassVar[str] = "vectors"
    rounds: ClassVar[bool] = True
    running: ClassVar[str] = "running sum of vectors"
    total: ClassVar[str] = "sum"
    each: ClassVar[str] = " in every coordinate"
    is_row = True
    middle = 0.0
    dimension: int
    radius: float
    grid: int
    apart: float | None = None

    def __post_init__(self) -> None:
        check_ball(self.dimension, self.radius)
        check_grid(self.grid)
        radius, apart = float(self.radius), 2 * float(self.radius)
        if self.apart is not None:
            is_number = isinstance(self.apart, int | float) and not isinstance(self.apart, bool)
            if not is_number or not radius <= self.apart <= 2 * radius:
                problem = "must lie between the radius and twice the radius"
                raise ParameterError("apart", self.apart, problem, "leave it out for twice the radius")
            apart = float(self.apart)
            self._set(apart=apart)
        self._set(coordinates=self.dimension, columns=self.dimension, moved=1 if self.dimension == 1 else None)
        self._set(lowest=-self.grid, highest=self.grid, step=radius / self.grid)
        self._set(radius=radius, reach=radius, diameter=apart)

    def difference(self, failure: float) -> RoundedDifference:
        return rounded_difference(self.diameter / self.step, self.dimension, failure)

    @property
    def people(self) -> str:
        return f"users' vectors of {self.dimension:,} numbers, at most {self.radius:g} long"

    @property
    def options(self) -> str:
        return f"--dimension {self.dimension} --radius {self.radius!r}"

    @property
    def neighbours(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        axis = np.zeros(self.dimension, dtype=np.int64)
        axis[0] = math.floor(self.diameter / 2 / self.step)
        return -axis, axis

    @property
    def ball(self) -> Ball:
        """Where the vectors lie."""
        return Ball(self.dimension, self.radius)

    check_values = forwarded("ball.check_values")
    clip_values = forwarded("ball.clip_values")

    def synthesize(self, users: int, generator: Generator) -> Floats:
        """Around a common direction, of any length."""
        vectors = generator.normal(size=(users, self.dimension))
        vectors[:, 0] += np.sqrt(self.dimension)
        vectors *= (0.999999 * self.radius / np.linalg.norm(vectors, axis=1))[:, np.newaxis]
        vectors *= generator.random((users, 1))
        return vectors

    def to_steps(self, values: NDArray[Any], *, bits: RandomBits) -> NDArray[np.int64]:
        # Floats may be longer than the radius by a hair.
        scaled = np.clip(values * (1 / self.step), -float(self.grid), float(self.grid))
        # One coordinate is a number a user, as everywhere.
        return round_randomly(scaled if self.dimension > 1 else scaled[:, 0], bits=bits)


@dataclass(frozen=True)
class OneHot(SummedDomain):
    """One of 0, 1, ..., count - 1: a running histogram. A user adds one to one coordinate.

    What the numbers stand for may be said by `named`: it turns people's own values into them.

    Attributes:
        count: how many categories there are.
        named: what they are called; None where people have the numbers themselves.

    >>> OneHot.of(["red", "green"]).encode(["green", "red"]).tolist()
    [1, 0]
    """

    kind: ClassVar[str] = "categories"
    running: ClassVar[str] = "running histogram"
    total: ClassVar[str] = "histogram"
    each: ClassVar[str] = " in every category"
    diameter = math.sqrt(2)
    moved = 2
    count: int
    named: Categories | None = None

    @classmethod
    def of(cls, categories: AnyCategories) -> "OneHot":
        """A running histogram of these categories."""
        named = as_categories(categories)
        return cls(named.size, named)

    def __post_init__(self) -> None:
        if self.named is not None:
            self._set(named=as_categories(self.named))
        if isinstance(self.count, bool) or not isinstance(self.count, int) or not 2 <= self.count <= LARGEST_DIMENSION:
            raise ParameterError(
                "categories", self.count, f"must be a whole number in 2..{LARGEST_DIMENSION}", "count the categories"
            )
        if self.named is not None and self.named.size != self.count:
            raise DataError("plan.domain", self.count, f"must be {self.named.size}, as many as named", "make it again")
        self._set(coordinates=self.count)

    def difference(self, failure: float) -> RoundedDifference:
        return RoundedDifference(math.sqrt(2) * (1 + 1e-15), 0.0)

    def encode(self, values: ArrayLike) -> NDArray[Any]:
        """The numbers of people's own values; without names they are the numbers already."""
        return np.asarray(values) if self.named is None else self.named.encode(values)

    def check_values(self, values: ArrayLike) -> NDArray[np.int64]:
        array = numbers_of(values)
        known = (array >= 0) & (array < self.count) & (array == np.floor(array))
        refuse_first(array, ~known, f"must be one of 0..{self.count - 1}", "number the categories from 0")
        return array.astype(np.int64, copy=False)

    def to_steps(self, values: NDArray[Any], *, bits: RandomBits) -> NDArray[np.int64]:
        steps = np.zeros((values.size, self.count), dtype=np.int64)
        steps[np.arange(values.size), values] = 1
        return steps

    def numbers(self, values: NDArray[Any]) -> NDArray[Any]:
        return np.asarray(values[:, np.newaxis] == np.arange(self.count), dtype=np.int64)

    @property
    def people(self) -> str:
        return f"users in {self.count:,} categories"

    def coordinate_names(self) -> list[str]:
        return [str(code) for code in range(self.count)] if self.named is None else self.named.names()

    @property
    def neighbours(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        first, second = np.eye(2, self.count, dtype=np.int64)
        return first, second

    @property
    def options(self) -> str:
        return f"--categories {self.count}" if self.named is None else self.named.options

    def synthesize(self, users: int, generator: Generator) -> NDArray[np.int64]:
        """The category with number i in proportion to 1/(i + 1)."""
        shares = np.cumsum(1 / np.arange(1.0, self.count + 1))
        return np.asarray(np.searchsorted(shares, shares[-1] * generator.random(users), side="right"), dtype=np.int64)


BITS = Bits()


def check_grid(grid: Any) -> None:
    """Refuse what is no number of steps."""
    if isinstance(grid, bool) or not isinstance(grid, int) or not 1 <= grid <= LARGEST:
        raise ParameterError("grid", grid, f"must be a whole number in 1..{LARGEST}", "leave it to the planner")


def check_range(low: Any, high: Any) -> None:
    """Refuse what is no range."""
    for name, value in (("low", low), ("high", high)):
        if isinstance(value, bool) or not isinstance(value, int | float) or not abs(value) <= _LARGEST_VALUE:
            raise ParameterError(
                name, value, f"must be a number within {_LARGEST_VALUE:g} of 0", "say what the ends of the range are"
            )
    if not high - low >= _SMALLEST_WIDTH:
        raise ParameterError("high", high, f"must be larger than low, {low:g}", "check both")
