"""Columns of people's data as numbers: those that are numbers as they are, categories over public lists as one-hot."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from shuffledp.errors import DataError, ParameterError
from shuffledp.learn.estimators.declared import Floats
from shuffledp.learn.spec import in_row

Levels = tuple[Any, ...]
_MOST_LISTED = 5


@dataclass(frozen=True, slots=True, eq=False)
class Columns:
    """Which input columns are categories, over which levels; all others are numbers.

    A category becomes a number for each of its levels, 1 for the person's own and 0 for the others: together they are
    never longer than 1, however many levels there are. `other` is one more level of every list, for values outside it;
    without it such values are refused.

    >>> columns = Columns.of(2, {1: ["red", "blue"]})
    >>> columns.encode(np.array([[3.5, "blue"], [1, "red"]], dtype=object)).tolist()
    [[3.5, 0.0, 1.0], [1.0, 1.0, 0.0]]
    >>> columns.names(["age", "colour"])
    ('age', 'colour=red', 'colour=blue')
    """

    width: int
    levels: Mapping[int, Levels]
    other: str | None = None

    @classmethod
    def of(cls, columns: int | Sequence[str], categories: Any = None, other: Any = None) -> Self:
        """From how many columns there are, or their names, and lists of categories by name or by number from 0."""
        names = list(range(columns)) if isinstance(columns, int) else [str(name) for name in columns]
        if categories is not None and not isinstance(categories, Mapping):
            way_out = 'for instance {"city": ["Oslo", "Rome"]}'
            raise ParameterError("categories", categories, "must be lists of categories by column", way_out)
        levels = {}
        for key, listed in (categories or {}).items():
            place = place_of(key, names, "categories")
            levels[place] = _levels(key, listed, other)
        if other is not None and not isinstance(other, str):
            raise ParameterError("other", other, "must be a name or None", "name the category of all other values")
        return cls(len(names), dict(sorted(levels.items())), other)

    @property
    def numeric(self) -> list[int]:
        """Input columns that are numbers."""
        return [place for place in range(self.width) if place not in self.levels]

    @property
    def blocks(self) -> int:
        """No row is longer than the root of this, where every number lies in -1 and 1: one a number and a category."""
        return self.width

    def spread(self) -> Iterator[tuple[int, slice]]:
        """Every input column and where its numbers are."""
        start = 0
        for place in range(self.width):
            size = len(self.levels.get(place, (None,)))
            yield place, slice(start, start + size)
            start += size

    @property
    def size(self) -> int:
        """Numbers of a row."""
        return self.width + sum(len(levels) - 1 for levels in self.levels.values())

    def names(self, features: Sequence[str]) -> tuple[str, ...]:
        """A name for every number of a row, from those of the input columns."""
        found: list[str] = []
        for place, name in enumerate(features):
            levels = self.levels.get(place)
            found += [str(name)] if levels is None else [f"{name}={level}" for level in levels]
        return tuple(found)

    def encode(self, values: NDArray[Any], first: int = 0) -> Floats:
        """Rows as numbers, all finite.

        Args:
            values: a row a person, of numbers or of objects.
            first: how many rows came before, for a refusal that names the row.

        Raises:
            DataError: something is no number, or outside its list of categories.
        """
        if not self.levels:
            return np.asarray(values, dtype=np.float64)
        rows = np.zeros((len(values), self.size))
        for place, where in self.spread():
            column = values[:, place]
            if place in self.levels:
                chosen = self._chosen(column, self.levels[place], place, first)
                rows[np.arange(len(rows)), where.start + chosen] = 1.0
            else:
                rows[:, where.start] = numbers_of(column, place, first)
        return rows

    def _chosen(self, column: NDArray[Any], levels: Levels, place: int, first: int) -> NDArray[np.intp]:
        """Which of the levels every value is."""
        if isinstance(levels[0], str):
            known, found = np.array(levels), column.astype(str)
        else:
            known, found = np.array(levels, dtype=np.float64), numbers_of(column, place, first)
        order = np.argsort(known)
        where = np.minimum(np.searchsorted(known[order], found), len(levels) - 1)
        chosen = np.asarray(order[where])
        unknown = known[chosen] != found
        if unknown.any():
            if self.other is None:
                row = int(np.argmax(unknown))
                problem = f"must be one of {_listed(levels)} in column {place + 1}"
                raise DataError("categories", in_row(first + row), problem, _DECLARE)
            chosen[unknown] = levels.index(self.other)
        return chosen

    def document(self) -> dict[str, Any]:
        """The columns as JSON."""
        categories = [[place, list(levels)] for place, levels in self.levels.items()]
        return {"width": self.width, "categories": categories, "other": self.other}

    @classmethod
    def from_document(cls, document: Mapping[str, Any]) -> Self:
        """The columns that a JSON document describes."""
        categories = {place: tuple(levels) for place, levels in document["categories"]}
        return cls(document["width"], categories, document["other"])


_DECLARE = "add it to the list, or name a category for all others with other="


def place_of(key: Any, names: Sequence[Any], parameter: str) -> int:
    """Which column this is, by its name or by its number from 0."""
    if key in names:
        return names.index(key)
    if isinstance(key, int) and not isinstance(key, bool) and 0 <= key < len(names):
        return key
    listed = _listed(names) if names and isinstance(names[0], str) else f"numbers 0..{len(names) - 1}"
    raise ParameterError(parameter, key, "must be a column", f"there are {listed}")


def _listed(names: Sequence[Any]) -> str:
    more = f" and {len(names) - _MOST_LISTED} more" if len(names) > _MOST_LISTED else ""
    return ", ".join(map(str, names[:_MOST_LISTED])) + more


def _levels(key: Any, listed: Any, other: str | None) -> Levels:
    """A public list of categories: all words, or all numbers; `other` is the last."""
    if isinstance(listed, str | bytes) or not isinstance(listed, Sequence | np.ndarray):
        raise ParameterError("categories", listed, f"must be a list of what {key} may be", "list them all")
    levels = tuple(level.item() if isinstance(level, np.generic) else level for level in listed)
    words = all(isinstance(level, str) for level in levels)
    numbers = all(isinstance(level, int | float) and np.isfinite(level) for level in levels)
    if not (words or numbers) or len(set(levels)) < max(len(levels), 1):
        wanted = f"must be different words, or different numbers, that {key} may be"
        raise ParameterError("categories", list(levels), wanted, "list each once")
    if other is not None and other not in levels:
        if not words:
            raise ParameterError("other", other, f"must be one of the numbers that {key} may be", "list it there")
        levels = (*levels, other)
    if len(levels) < 2:
        raise ParameterError("categories", list(levels), f"must be two or more for {key}", "leave the column out")
    return levels


def numbers_of(column: NDArray[Any], place: int, first: int) -> Floats:
    """A column of finite numbers."""
    try:
        found = column.astype(np.float64)
    except (TypeError, ValueError):
        found = np.full(len(column), np.nan)
        for row, value in enumerate(column.tolist()):
            try:
                found[row] = float(value)
            except (TypeError, ValueError):
                break
    bad = ~np.isfinite(found)
    if bad.any():
        row = int(np.argmax(bad))
        way_out = "mend that row, or declare the column's categories"
        problem = f"must be finite numbers in column {place + 1}"
        raise DataError("data", in_row(first + row, column[row]), problem, way_out)
    return found
