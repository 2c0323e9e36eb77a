"""People's values as an engine's tasks read them: in parts, each of which yields blocks of rows."""

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, overload

from shuffledp.errors import ParameterError


class Stretch(ABC):
    """Consecutive rows that one task reads; it travels to where the task runs."""

    @abstractmethod
    def blocks(self, rows: int) -> Iterator[tuple[int, Any]]:
        """Checked values of so many rows at a time, as the plan takes them, each with the number of its first row.

        Args:
            rows: of a block; the part begins with one, and only the file's last may be shorter.
        """

    @property
    def noticed(self) -> frozenset[Any]:
        """What was noticed of the rows while they were read, so that parts can agree on it; after `blocks` ended."""
        return frozenset()

    @property
    def clipped(self) -> int:
        """How many values were brought into the plan's range; after `blocks` ended."""
        return 0


class Source(ABC):
    """All people's values, a row each."""

    is_held: ClassVar[bool] = False
    """Whether all of them are in memory already."""

    @property
    @abstractmethod
    def rows(self) -> int:
        """How many people there are."""

    @property
    @abstractmethod
    def row_bytes(self) -> int:
        """About how many bytes of memory a row takes while it is read."""

    @property
    def unit(self) -> int:
        """Rows that are read at once, a power of two: parts should begin at multiples of it."""
        return 1

    @abstractmethod
    def part(self, first: int, last: int) -> Stretch:
        """The rows from one to another.

        Args:
            first: the first of them, from 0.
            last: the first behind them.
        """

    def agreeing(self, noticed: frozenset[Any]) -> "Source | None":
        """The source where parts that differ agree on what was noticed in them; None where all agree already.

        Args:
            noticed: what all parts noticed.
        """
        return None


@dataclass(frozen=True, slots=True, eq=False)
class HeldStretch(Stretch):
    """Rows of values that are in memory."""

    first: int
    values: Any

    def blocks(self, rows: int) -> Iterator[tuple[int, Any]]:
        for start in range(0, len(self.values), rows):
            yield self.first + start, self.values[start : start + rows]


@dataclass(frozen=True, slots=True, eq=False)
class Held(Source):
    """Checked values that are in memory."""

    is_held: ClassVar[bool] = True

    values: Any

    @property
    def rows(self) -> int:
        return len(self.values)

    @property
    def row_bytes(self) -> int:
        return int(self.values.nbytes // max(1, len(self.values)))

    def part(self, first: int, last: int) -> HeldStretch:
        return HeldStretch(first, self.values[first:last])


class Stretches(Sequence[Stretch]):
    """The rows of a source from one to another, cut into parts; each is made when it is asked for.

    Args:
        source: the rows.
        first: the first of them.
        last: the first behind them.
        each: rows of a part, a multiple of what is read at a time.
    """

    def __init__(self, source: Source, first: int, last: int, each: int) -> None:
        if not 0 <= first < last <= source.rows:
            raise ParameterError("rows", f"{first}..{last}", f"must lie in 0..{source.rows}", "ask for some people")
        self._source, self._first, self._last, self._each = source, first, last, each

    def __len__(self) -> int:
        return -(-(self._last - self._first) // self._each)

    @overload
    def __getitem__(self, place: int) -> Stretch: ...
    @overload
    def __getitem__(self, place: slice) -> "list[Stretch]": ...
    def __getitem__(self, place: int | slice) -> "Stretch | list[Stretch]":
        if isinstance(place, slice):
            return [self[each] for each in range(*place.indices(len(self)))]
        if not 0 <= place < len(self):
            raise IndexError(place)
        start = self._first + place * self._each
        return self._source.part(start, min(self._last, start + self._each))
