"""The contract of a domain: everything that a caller may ask about the values of one user."""

import dataclasses
import shlex
from abc import ABC, abstractmethod
from typing import Any, ClassVar, Literal, Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

from shuffledp.errors import DataError

Codes = NDArray[np.int64]
Floats = NDArray[np.float64]
# Options that are longer than this are not shown.
_LONGEST_TYPED = 300


class Generator(Protocol):
    """What synthetic data are drawn from: made by whoever asks, as it protects nobody."""

    def random(self, size: Any) -> NDArray[np.float64]:
        """Numbers uniform in [0, 1)."""
        ...

    def normal(self, *, size: Any) -> NDArray[np.float64]:
        """Numbers of a standard normal law."""
        ...

    def beta(self, a: float, b: float, size: Any) -> NDArray[np.float64]:
        """Numbers of a beta law."""
        ...

    def gamma(self, shape: float, scale: float, size: Any) -> NDArray[np.float64]:
        """Numbers of a gamma law."""
        ...


class Domain(ABC):
    """The set of values that a user may have. It is public: one that is read from the data answers about the data."""

    kind: ClassVar[str]
    reads: ClassVar[Literal["numbers", "words"]] = "numbers"
    """How a table's column is read: as numbers, or as words exactly as they are written."""

    columns: int = 1
    """How many numbers make one user's value: a table has as many columns of them."""

    @property
    def most_rows(self) -> int | None:
        """How many rows of one person count, and are one value together; None where a person has one row."""
        return None

    @property
    def row(self) -> "Domain":
        """The domain of one row of a table: itself, unless a person has several."""
        return self

    def gathered(self, rows: ArrayLike, person: Codes, place: Codes, people: int) -> NDArray[Any]:
        """What people contribute, an entry or a row a person, as `check_values` takes it.

        Args:
            rows: a value a row, encoded and checked by `row`; as `with_groups` makes them where groups are asked, too.
            person: whose row it is, 0..people-1.
            place: which of its owner's rows it is, 0..at_most-1: no two rows have both alike.
            people: how many there are, those without a row included.
        """
        raise DataError("at_most", None, "must say how many rows of one person count", "plan with at_most=")

    @property
    def group_list(self) -> "Categories | None":
        """The public list of groups that people belong to, where that is asked, too; which one is private."""
        return None

    def with_groups(self, groups: Codes, rows: ArrayLike) -> NDArray[Any]:
        """People's groups and values as one value each, as `check_values` takes it.

        Args:
            groups: the code of each person's group; of each row's, where a person has several.
            rows: a value for each of them, encoded and checked by `row`.
        """
        raise DataError("groups", None, "must say which groups there are", "plan with groups=")

    @property
    def is_row(self) -> bool:
        """Whether one user's value is a row of numbers, and not a single one."""
        return self.columns > 1

    @property
    def named(self) -> "Categories | None":
        """The categories whose counts an estimate holds, in its order; None where it holds other numbers."""
        return None

    @property
    def options(self) -> str:
        """The options of the command line that ask for this domain again; empty where it is the default."""
        return ""

    def encode(self, values: ArrayLike) -> NDArray[Any]:
        """People's own values as `check_values` takes them, on their own devices.

        Args:
            values: one entry a user, or one row a user where a value has several columns.

        Returns:
            The values themselves, or their codes where a plan counts codes.

        Raises:
            DataError: a value lies outside the domain; the message names its row.
        """
        return np.asarray(values)

    @abstractmethod
    def check_values(self, values: ArrayLike) -> NDArray[Any]:
        """Encoded values as an array with an entry or a row a user, or a DataError that names the first bad one."""

    def clip_values(self, values: ArrayLike) -> tuple[NDArray[Any], int]:
        """The values brought into the domain, and how many had to be; none can be where they are bits or codes."""
        return self.check_values(values), 0

    def clip_own_values(self, values: ArrayLike) -> tuple[NDArray[Any], int]:
        """People's own values, before they are encoded, brought into the domain, and how many had to be."""
        return self.clip_values(values)

    @abstractmethod
    def synthesize(self, users: int, generator: Generator) -> NDArray[Any]:
        """Made-up encoded values for so many users."""

    @property
    def parameters(self) -> dict[str, Any]:
        """What makes the domain again, as JSON: its fields, without those that were left out."""
        fields = ((each.name, getattr(self, each.name)) for each in dataclasses.fields(self))  # type: ignore[arg-type]
        return {
            name: value.document() if isinstance(value, Domain) else value
            for name, value in fields
            if value is not None
        }

    def document(self) -> dict[str, Any]:
        """The domain as JSON: its kind and its parameters."""
        return {"kind": self.kind, **self.parameters}


class Categories(Domain):
    """A public list of categories, in the order of their codes 0, 1, ..., size - 1."""

    is_ordered: ClassVar[bool] = False
    """Whether neighbouring codes are neighbours: numbers and days, not names."""
    is_open: ClassVar[bool] = False
    """Whether every text has a code, which it may share with others."""

    @property
    @abstractmethod
    def size(self) -> int:
        """How many categories there are."""

    @abstractmethod
    def encode(self, values: ArrayLike) -> Codes:
        """The code of each value; one outside the domain is an error that names its row."""

    @abstractmethod
    def name(self, code: int) -> str:
        """A category in words."""

    @property
    @abstractmethod
    def text(self) -> str:
        """The domain as it is typed after --domain; names with commas in them are quoted as in CSV."""

    @property
    def named(self) -> "Categories | None":
        return self

    @property
    def options(self) -> str:
        # Names with line ends in them, and long lists, can only be in a file.
        typed = "NAMES.txt" if len(self.text) > _LONGEST_TYPED or not self.can_be_typed else self.text
        other = "" if self.other is None else f" --other {shlex.quote(self.other)}"
        return f"--domain {shlex.quote(typed)}{other}"

    @property
    def can_be_typed(self) -> bool:
        """Whether `text` means this domain and no other."""
        return True

    other: str | None = None
    """The category of every value outside the list, if there is one."""

    @property
    def example(self) -> str:
        """A value that can be encoded, as somebody would write it."""
        return self.name(0)

    def lists(self, value: Any) -> bool:
        """Whether a value is a category of its own, not one that falls to a catch-all."""
        try:
            self.encode([value])
        except DataError:
            return False
        return True

    def including(self, name: str) -> "Categories | None":
        """The categories with one of this name among them, added if need be; None where none can be."""
        return self if self.lists(name) else None

    def collision_probability(self, names: int) -> float:
        """The chance that a given name shares its code with one of so many others."""
        return 0.0

    def names(self) -> list[str]:
        """Every category in words, in the order of codes."""
        return [self.name(code) for code in range(self.size)]

    def check_values(self, values: ArrayLike) -> Codes:
        """Codes as whole numbers in 0..size-1."""
        codes = column_of(values)
        if codes.dtype.kind not in "bui":
            problem = "must be codes of categories"
            raise DataError("values", f"dtype {codes.dtype}", problem, "encode them: plan.categories.encode(x)")
        # Two passes over the data and no temporary where all is well.
        if codes.min().item() < 0 or codes.max().item() >= self.size:
            problem = f"must lie in the domain 0:{self.size - 1}"
            refuse_first(codes, (codes < 0) | (codes >= self.size), problem, "encode the values first")
        return codes.astype(np.int64, copy=False)

    def synthesize(self, users: int, generator: Generator) -> Codes:
        """Code i in proportion to log((i + 2)/(i + 1)), about 1/(i + 1); no table of the categories is made."""
        drawn = np.exp(np.log(self.size + 1.0) * generator.random(users))
        return np.asarray(np.clip(drawn.astype(np.int64) - 1, 0, self.size - 1))


def column_of(values: ArrayLike) -> NDArray[Any]:
    """One entry a user as a one-dimensional array, or a DataError."""
    column = np.asarray(values)
    if column.ndim != 1 or column.size == 0:
        raise DataError("values", f"shape {column.shape}", "must be a column of at least one value", "pass one a user")
    return column


def numbers_of(values: ArrayLike) -> NDArray[Any]:
    """One number a user as a one-dimensional array, or a DataError."""
    column = column_of(values)
    if column.dtype.kind not in "buif":
        raise DataError("values", f"dtype {column.dtype}", "must be numbers", "convert them, e.g. x.astype(float)")
    return column


def refuse_first(array: NDArray[Any], bad: NDArray[np.bool_], problem: str, way_out: str) -> None:
    """A DataError that names the first row that is bad; nothing where none is."""
    rows = np.flatnonzero(bad)
    if rows.size:
        row = int(rows[0])
        raise DataError("values", f"{array[row]} in row {row + 1}", problem, way_out)
