"""The contract of a table that is open, whatever its format: names of columns, and columns of numbers or words."""

from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from shuffledp.errors import DataError
from shuffledp.tables.complaints import no_rows, shown
from shuffledp.tables.spelling import is_number
from shuffledp.tables.words import Texts

Numbers = tuple[NDArray[Any], NDArray[np.bool_]]
"""A column of numbers and which of its rows have none; where there is none the number says nothing."""

_MOST_LISTED = 10


class OpenTable(ABC):
    """An open table.

    Attributes:
        source: the path, as a refusal of the whole file shows it.
        where: what the table is called in sentences.
        names: of the columns, in order; a name may be there twice.
        header: whether names were read from a first line, which may be a row of values in truth.
    """

    source: str
    where: str
    names: Sequence[str]
    header: bool = False

    @abstractmethod
    def numbers(self, names: Sequence[str | None]) -> list[Numbers]:
        """Columns of numbers, in this order: booleans, whole numbers in their own width, or float64.

        Raises:
            DataError: a column holds something else; of a CSV file, the first text is named.
        """

    @abstractmethod
    def words(self, name: str | None) -> Texts:
        """A column as text, exactly as it is written; rows without a value are at place -1."""

    def check_header(self, names: Sequence[str | None], whose: str, which: str) -> None:
        """Refuse a first line of numbers: taken for names, a row without a header above it would be lost in silence.

        Args:
            names: the columns that nobody has named.
            whose: whose name is missing, in words.
            which: what may be named instead, in words.
        """
        numbers = [name for name in names if self.header and is_number(str(name))]
        if numbers:
            problem = f"{self.where} must have its {whose} in the first line"
            raise DataError("file", numbers[0], problem, f"add a line above the values, or give {which}")

    def choose(self, column: str | None) -> str | None:
        """Find the one column meant: the one of that name, or the only one there is; None where it has no name."""
        if not self.names:
            raise no_rows(self.source)
        return choose_column(self.names, column, self.where)

    def several(self, columns: Sequence[str] | None) -> dict[str | None, Numbers]:
        """Columns of numbers by their names, in the order asked for; all of the table's if none are named."""
        if columns is None:
            self.check_header(self.names, "columns' names", "those columns' names")
        if not self.names:
            raise no_rows(self.source)
        times = Counter(self.names)
        # A name that stands once in the file needs no search: thousands of columns would make it slow.
        chosen = [name if times[name] == 1 else self.choose(name) for name in columns or self.names]
        return dict(zip(chosen, self.numbers(chosen), strict=True))


def choose_column(names: Sequence[str], column: str | None, where: str) -> str:
    """Find the one column meant: the one of that name, or the only one there is.

    >>> choose_column(["user", "clicked"], "click", "clicks.csv")
    Traceback (most recent call last):
        ...
    shuffledp.errors.DataError: column must be a column of clicks.csv, got click: it has user, clicked.
    """
    if not names:
        raise no_rows(where)
    if column is None and len(names) == 1:
        return names[0]
    listed = ", ".join(map(shown, names[:_MOST_LISTED]))
    if len(names) > _MOST_LISTED:
        listed += f" and {len(names) - _MOST_LISTED} more"
    if column is None:
        raise DataError("column", None, f"must be given for {where}", f"choose one of {listed}")
    if column not in names:
        raise DataError("column", column, f"must be a column of {where}", f"it has {listed}")
    if (times := names.count(column)) > 1:
        problem = f"must be the name of one column of {where}"
        raise DataError("column", column, problem, f"{times} columns have it, so rename all but one")
    return column
