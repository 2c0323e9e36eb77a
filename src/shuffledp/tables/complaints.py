"""What can be wrong with a table, each as one sentence: who reads it names the table, the column and the way out."""

import re
from typing import Any

from numpy.typing import NDArray

from shuffledp.errors import DataError

CONVERT = "choose another column or convert this one to numbers"
"""The way out of a column of text where numbers are wanted."""

_LONGEST_SHOWN = 40
_DAY = re.compile(r"\s*\d{4}-\d{2}-\d{2}", re.ASCII)
_WITH_COMMA = re.compile(r"\s*[-+]?\d*,\d+\s*", re.ASCII)


def wrong_kind(
    column: str | None, where: str, kind: str, text: str = "", row: int = 0, *, names: bool = False
) -> DataError:
    """Blame a column that holds no numbers, and the first text in it if that is known; or one that holds no `names`.

    >>> wrong_kind("age", "people.csv", "string", "old", 2).value
    "string, first 'old' in row 2"
    >>> print(wrong_kind("length", "people.parquet", "double", names=True))
    column length of people.parquet must hold names, whole numbers or dates, got double: choose another column.
    >>> wrong_kind("minutes", "people.csv", "string", "62,61", 1).way_out
    'add --decimal , if the comma stands before decimals, or choose another column'
    >>> wrong_kind("day", "orders.csv", "string", "2024-05-14", 1).way_out
    'say which days there may be, --low 2024-01-01 --high 2024-12-31, or choose another column'
    """
    held = "names, whole numbers or dates" if names else "integers, floats or booleans"
    value = f"{shown(kind)}, first {quoted(text)} in row {row}" if row else shown(kind)
    way_out = "choose another column" if names else CONVERT
    if row and not names and _WITH_COMMA.fullmatch(text):
        way_out = "add --decimal , if the comma stands before decimals, or choose another column"
    if row and not names and _DAY.match(text):
        way_out = "say which days there may be, --low 2024-01-01 --high 2024-12-31, or choose another column"
    return DataError("column", value, f"{named(column, where)} must hold {held}", way_out)


def no_rows(table: str) -> DataError:
    """Blame a table for holding nobody's data."""
    return DataError("file", table, "must hold at least one row of data", "write a row for each user")


def no_matrix(where: str, values: NDArray[Any]) -> DataError:
    """Blame an array of another shape than a row a user and a column a value."""
    problem, way_out = f"{where} must hold a matrix", "save a row for each user, a column for each value"
    return DataError("file", f"shape {values.shape}", problem, way_out)


def no_column(where: str, values: NDArray[Any]) -> DataError:
    """Blame an array of another shape than one value a user."""
    return DataError("file", f"shape {values.shape}", f"{where} must hold one dimension", "save one column by itself")


def unreadable(table: str, kind: str, way_out: str) -> DataError:
    """Blame a file that is damaged or of another format."""
    return DataError("file", table, f"must be a complete and undamaged {kind} file", way_out)


def no_extra(what: str, value: str, package: str, extra: str, otherwise: str) -> DataError:
    """Say which extra must be installed, and what can be done without it.

    >>> print(no_extra("file", "a.parquet", "pyarrow", "tables", "save it as CSV"))
    file needs pyarrow, got a.parquet: pip install 'shuffledp[tables]', or save it as CSV.
    """
    return DataError(what, value, f"needs {package}", f"pip install 'shuffledp[{extra}]', or {otherwise}")


def named(column: str | None, where: str) -> str:
    """A column of a table as it is called in a sentence."""
    return f"of {where}" if column is None else f"{shown(column)} of {where}"


def quoted(text: str) -> str:
    """A text in quotes, cut where it is long."""
    return repr(text if len(text) <= _LONGEST_SHOWN else text[:_LONGEST_SHOWN] + "…")


def shown(name: str) -> str:
    """A name as it is, or in quotes where that would not be seen well."""
    return name if name and name.isprintable() and len(name) <= _LONGEST_SHOWN else quoted(name)
