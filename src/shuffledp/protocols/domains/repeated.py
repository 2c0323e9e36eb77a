"""Values of people who have several rows: everybody contributes the same number of them, filled up with nothing."""

from abc import abstractmethod
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from shuffledp.accounting.rounding import RoundedDifference
from shuffledp.errors import DataError, ParameterError
from shuffledp.protocols.domains.axes import Axes, Axis
from shuffledp.protocols.domains.categories import as_categories, split_names
from shuffledp.protocols.domains.domain import Categories, Codes, Domain, Floats, Generator, numbers_of, refuse_first
from shuffledp.protocols.domains.steps import SummedDomain
from shuffledp.protocols.domains.summed import BITS, SYNTHETIC_SHARE, Reals

LARGEST_AT_MOST = 1000
NONE = "(none)"


def check_at_most(at_most: Any) -> int:
    """How many rows of one person may count, as a whole number in 1..1000."""
    if isinstance(at_most, bool) or not isinstance(at_most, int) or not 1 <= at_most <= LARGEST_AT_MOST:
        problem = f"must be a whole number in 1..{LARGEST_AT_MOST}"
        raise ParameterError("at_most", at_most, problem, "say how many rows of one person may count")
    return at_most


class RepeatedDomain(Domain):
    """What one person contributes with up to `at_most` rows; what it does not have counts as nothing."""

    at_most: int

    @property
    def most_rows(self) -> int:
        return self.at_most

    def encode(self, values: ArrayLike) -> NDArray[Any]:
        """What people contribute, from a list of each person's own rows, at most `at_most` of them.

        A text is the rows of one person, with commas between. What is an array of numbers already is taken for what
        people contribute, as `gathered` makes it.
        """
        if isinstance(values, np.ndarray):
            if values.dtype.kind != "U" or values.ndim != 1:
                return values
            values = [split_names(str(rows), "values") if rows else () for rows in values]
        lists: Any = list(values)  # type: ignore[arg-type]
        if not all(isinstance(rows, list | tuple | np.ndarray) for rows in lists):
            return np.asarray(values)
        sizes = np.array([len(rows) for rows in lists], dtype=np.int64)
        problem = f"must have at most {self.at_most} rows, as every person"
        refuse_first(sizes, sizes > self.at_most, problem, "keep the first so many of them")
        person = np.repeat(np.arange(sizes.size), sizes)
        place = np.arange(person.size) - np.repeat(np.cumsum(sizes) - sizes, sizes)
        rows = [value for rows in lists for value in rows]
        own = self.row.check_values(self.row.encode(rows)) if rows else np.zeros(0, dtype=np.int64)
        return self.gathered(own, person, place, sizes.size)


@dataclass(frozen=True)
class RowCounts(SummedDomain, RepeatedDomain):
    """0, 1, ..., at_most: how many of a person's rows are a yes. Whole numbers: nothing is rounded.

    >>> RowCounts(3).encode([[1, 0, 1], [], [1]]).tolist()
    [2, 0, 1]
    """

    kind: ClassVar[str] = "counts"
    at_most: int

    def __post_init__(self) -> None:
        most = check_at_most(self.at_most)
        self._set(highest=most, middle=most / 2, reach=most / 2, diameter=float(most))

    @property
    def people(self) -> str:
        return f"users, each with at most {self.at_most:,} rows"

    row = BITS

    def difference(self, failure: float) -> RoundedDifference:
        return RoundedDifference(float(self.at_most), 0.0)

    def check_values(self, values: ArrayLike) -> NDArray[np.int64]:
        """Whole numbers in 0..at_most."""
        array = numbers_of(values)
        known = (array >= 0) & (array <= self.at_most) & (array == np.floor(array))
        refuse_first(array, ~known, f"must be a whole number in 0..{self.at_most}", "count a person's own rows")
        return array.astype(np.int64, copy=False)

    def gathered(self, rows: ArrayLike, person: Codes, place: Codes, people: int) -> NDArray[np.int64]:
        ones = np.asarray(rows, dtype=np.int64)
        return np.bincount(person[ones == 1], minlength=people).astype(np.int64)

    def to_steps(self, values: NDArray[Any], *, bits: Any) -> NDArray[Any]:
        return values

    def numbers(self, values: NDArray[Any]) -> NDArray[Any]:
        return values.astype(np.int64)

    @property
    def options(self) -> str:
        return f"--at-most {self.at_most}"

    def synthesize(self, users: int, generator: Generator) -> NDArray[np.int64]:
        found = np.zeros(users, dtype=np.int64)
        for _ in range(self.at_most):
            found += generator.random(users) < SYNTHETIC_SHARE
        return found


@dataclass(frozen=True)
class RowSums(RepeatedDomain):
    """The sum of a person's rows, each in [low, high] and at most `at_most` of them: none at all is a sum of 0.

    >>> RowSums(18.0, 99.0, 3).encode([[20.0, 30.5], []]).tolist()
    [50.5, 0.0]
    """

    kind: ClassVar[str] = "row sums"
    low: float
    high: float
    at_most: int

    def __post_init__(self) -> None:
        check_at_most(self.at_most)

    @property
    def row(self) -> Reals:
        return Reals(1, self.low, self.high)

    @property
    def total(self) -> Reals:
        """Where a person's sum lies: every row missing is a 0."""
        return Reals(1, *ends_of_sum(self.low, self.high, self.at_most))

    @property
    def options(self) -> str:
        return f"--low {self.low!r} --high {self.high!r} --at-most {self.at_most}"

    def check_values(self, values: ArrayLike) -> Floats:
        """People's sums as floats in their range."""
        return self.total.check_values(values)

    def clip_values(self, values: ArrayLike) -> tuple[Floats, int]:
        return self.total.clip_values(values)

    def gathered(self, rows: ArrayLike, person: Codes, place: Codes, people: int) -> Floats:
        total = self.total
        sums = np.bincount(person, weights=np.asarray(rows, dtype=np.float64), minlength=people)
        # Adding floats may round a hair beyond the ends.
        return np.clip(sums, total.low, total.high)

    def synthesize(self, users: int, generator: Generator) -> Floats:
        rows = (self.row.synthesize(users, generator) for _ in range(self.at_most))
        total = self.total
        return np.clip(sum(rows), total.low, total.high)


def ends_of_sum(low: float, high: float, at_most: int) -> tuple[float, float]:
    """The least and the largest sum of up to so many numbers in [low, high].

    >>> ends_of_sum(18, 99, 3), ends_of_sum(-1, 2, 2)
    ((0.0, 297.0), (-2.0, 4.0))
    """
    return at_most * min(0.0, float(low)), at_most * max(0.0, float(high))


@dataclass(frozen=True)
class Filled(Categories):
    """Categories and one more, the last, which stands for a row that a person does not have."""

    kind: ClassVar[str] = "filled"
    of: Categories

    def __post_init__(self) -> None:
        object.__setattr__(self, "of", as_categories(self.of))

    @property
    def size(self) -> int:
        return self.of.size + 1

    def encode(self, values: ArrayLike) -> Codes:
        return self.of.encode(values)

    def name(self, code: int) -> str:
        return self.of.name(code) if code < self.of.size else NONE

    @property
    def text(self) -> str:
        return self.of.text


class RowCells(RepeatedDomain):
    """The cells of a person's rows: `at_most` codes a person, where one behind the last cell means no row."""

    is_row = True

    def __post_init__(self) -> None:
        check_at_most(self.at_most)

    @cached_property
    def columns(self) -> int:  # type: ignore[override]
        return self.at_most

    @property
    @abstractmethod
    def row_or_none(self) -> Domain:
        """The domain of a row with one more code, the last, for a row that a person does not have."""

    @property
    @abstractmethod
    def cells(self) -> int:
        """How many cells there are; the code of no row."""

    def check_values(self, values: ArrayLike) -> Codes:
        """A row of `at_most` codes a person."""
        codes = np.asarray(values)
        if codes.ndim != 2 or codes.shape[1] != self.at_most or not codes.size:
            problem = f"must be {self.at_most} codes a person"
            raise DataError("values", f"shape {codes.shape}", problem, "plan.encode(lists of each person's rows)")
        self.row_or_none.check_values(codes.reshape(-1))
        return codes.astype(np.int64, copy=False)

    def gathered(self, rows: ArrayLike, person: Codes, place: Codes, people: int) -> Codes:
        codes = np.full((people, self.at_most), self.cells, dtype=np.int64)
        codes[person, place] = rows
        return codes

    def synthesize(self, users: int, generator: Generator) -> Codes:
        """Every person has a random number of rows."""
        codes = np.stack([self.row.synthesize(users, generator) for _ in range(self.at_most)], axis=1)
        sizes = (generator.random(users) * (self.at_most + 1)).astype(np.int64)
        codes[np.arange(self.at_most) >= sizes[:, np.newaxis]] = self.cells
        return codes


@dataclass(frozen=True)
class RowCodes(RowCells):
    """The categories of a person's rows: `at_most` codes a person, where the size of the list means no row.

    >>> RowCodes(as_categories(["a", "b"]), 3).encode([["b", "a"], [], ["b"]]).tolist()
    [[1, 0, 2], [2, 2, 2], [1, 2, 2]]
    """

    kind: ClassVar[str] = "row codes"
    categories: Categories
    at_most: int

    @property
    def reads(self) -> Literal["numbers", "words"]:  # type: ignore[override]
        return self.categories.reads

    @property
    def row(self) -> Categories:
        return self.categories

    @property
    def row_or_none(self) -> Categories:
        return Filled(self.categories)

    @property
    def cells(self) -> int:
        return self.categories.size

    @property
    def named(self) -> Categories:
        return self.categories

    @property
    def options(self) -> str:
        return f"{self.categories.options} --at-most {self.at_most}"


@dataclass(frozen=True)
class RowPlaces(RowCells):
    """The places of a person's rows on an axis: `at_most` codes a person, where the size of the axis means no row.

    >>> from shuffledp.protocols.domains.axes import Axis
    >>> RowPlaces(Axis(10, 19), 3).encode([[12, 19], [], [10]]).tolist()
    [[2, 9, 10], [10, 10, 10], [0, 10, 10]]
    """

    kind: ClassVar[str] = "row places"
    axis: Axis
    at_most: int

    @property
    def reads(self) -> Literal["numbers", "words"]:  # type: ignore[override]
        return self.axis.reads

    @property
    def row(self) -> Axes:
        return Axes((self.axis,))

    @property
    def row_or_none(self) -> Axes:
        return Axes((Axis(0, self.cells),))

    @property
    def cells(self) -> int:
        return self.axis.size

    @property
    def options(self) -> str:
        return f"{self.row.options} --at-most {self.at_most}"

    @property
    def parameters(self) -> dict[str, Any]:
        return {"axis": self.axis.document(), "at_most": self.at_most}
