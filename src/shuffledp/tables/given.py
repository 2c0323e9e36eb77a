"""Data that a program holds already: frames, series, arrays and lists, as the columns that plans take.

Whatever speaks the Arrow C stream interface (pandas, polars, DuckDB relations, pyarrow) is taken by way of it where
pyarrow is installed, and as NumPy arrays where it is not.
"""

import datetime
from collections.abc import Mapping, Sequence
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from shuffledp.errors import DataError
from shuffledp.tables.complaints import no_extra, wrong_kind
from shuffledp.tables.missing import Missing
from shuffledp.tables.table import choose_column
from shuffledp.tables.words import Texts

WHERE = "the data"
_ARROW = ("__arrow_c_stream__", "__arrow_c_array__")


def column_of(
    data: Any,
    column: str | None = None,
    *,
    missing: str | Missing = "refuse",
    words: bool | None = None,
    other: str | None = None,
) -> NDArray[Any] | Texts:
    """One value a person, complete: numbers as a NumPy array, words as `Texts`.

    Args:
        data: a series, an array or a list; or a frame, a DuckDB relation or a mapping of columns.
        column: which column of a frame; its only one if left out.
        missing: what people without a value report: `refuse`, `other`, or `default=VALUE`.
        words: whether values are words, whatever they are; as they are if left out.
        other: the category that `missing="other"` means; "missing" if left out.

    Returns:
        Booleans, whole numbers in their own width, or float64; or words, each different one once.

    Raises:
        DataError: there is no such column, it holds something else, or somebody has no value.

    >>> column_of([1, None, 0], missing="default=0")
    array([1, 0, 0])
    >>> texts = column_of({"city": ["Kyōto", "", "Kyōto"]}, missing="other")
    >>> texts.distinct[texts.where].tolist()
    ['Kyōto', 'missing', 'Kyōto']
    """
    policy = Missing.of(missing)
    values, blank, name = _found(data, column)
    is_words = values.dtype.kind not in "buif" if words is None else words
    if is_words:
        return as_texts(values, blank, name, WHERE).complete(policy, other, name, WHERE)
    if values.dtype.kind not in "buif":
        raise wrong_kind(name, WHERE, str(values.dtype))
    filled: NDArray[Any] = policy.fill_numbers(values, blank, name, WHERE)
    return filled.astype(np.float64, copy=False) if filled.dtype.kind == "f" else filled


def matrix_of(
    data: Any, columns: Sequence[str] | None = None, *, missing: str | Missing = "refuse"
) -> NDArray[np.float64]:
    """A row of numbers a person, complete: a matrix of float64.

    Args:
        data: a frame, a DuckDB relation, a mapping of columns, a matrix or a list of rows.
        columns: which columns of a frame, in this order; all if left out.
        missing: what is reported in place of a number that somebody does not have: `refuse`, `default=VALUE`, or
            `COLUMN=VALUE,COLUMN=VALUE` for the columns of a frame, with `default=VALUE` behind them for all others.

    Raises:
        DataError: a column is not there or holds something else, or somebody has no value.

    >>> matrix_of({"a": [1, 2], "b": [0.5, None]}, missing="default=0").tolist()
    [[1.0, 0.5], [2.0, 0.0]]
    """
    policy = Missing.of(missing, several=True)
    frame = _as_frame(data)
    if frame is None:
        if columns is not None:
            raise DataError("columns", ", ".join(columns), f"of {WHERE} have no names", "leave them out")
        values, blank = as_cells(data, None, WHERE)
        if values.ndim != 2 or 0 in values.shape:
            raise _no_people(values, "pass a row a person, a column a value")
        if values.dtype.kind not in "buif":
            raise wrong_kind(None, WHERE, str(values.dtype))
        return np.asarray(policy.fill_numbers(values, blank, None, WHERE), dtype=np.float64, order="C")
    names = list(frame) if columns is None else list(columns)
    if not names:
        raise DataError("data", "no columns", "must hold a row of numbers a person", "pass a column a value")
    policy.check_columns([str(name) for name in frame], WHERE)
    found = [column_of(frame, name, missing=policy, words=False) for name in names]
    return np.column_stack([np.asarray(each, dtype=np.float64) for each in found])


def _found(data: Any, column: str | None) -> tuple[NDArray[Any], NDArray[np.bool_], str | None]:
    """The values of one column, which of them are missing, and its name if it has one."""
    frame = _as_frame(data)
    if frame is not None and not frame:
        raise DataError("data", "no columns", "must hold one value a person", "pass a column")
    name = column if frame is None else choose_column(list(frame), column, WHERE)
    values, blank = as_cells(data if frame is None else frame[str(name)], name, WHERE)
    if values.ndim != 1 or not values.size:
        raise _no_people(values, "pass one column, with an entry a person")
    return values, blank, name


def _no_people(values: NDArray[Any], way_out: str) -> DataError:
    return DataError("data", f"shape {values.shape}", "must hold the values of at least one person", way_out)


def _as_frame(data: Any) -> Mapping[str, Any] | None:
    """Named columns, if that is what the data are; None for a single one, or for rows without names."""
    if isinstance(data, Mapping):
        return data
    if isinstance(data, np.ndarray):
        return None if data.dtype.names is None else {name: data[name] for name in data.dtype.names}
    # DuckDB gives its rows to NumPy by itself.
    if hasattr(data, "fetchnumpy"):
        found: Mapping[str, Any] = data.fetchnumpy()
        return found
    arrow = _pyarrow()
    if arrow is not None and isinstance(data, arrow.Table | arrow.RecordBatch | arrow.RecordBatchReader):
        return _arrow_frame(data, arrow)
    if hasattr(data, "collect_schema") and hasattr(data, "collect"):
        # Its rows need not come in the same order twice: a second column could be of other people.
        problem = "must be rows that are there, not a query that is still to run"
        raise DataError("data", type(data).__name__, problem, "call its .collect() first")
    # A frame has columns; a series and an array of pyarrow's have not.
    if not hasattr(data, "columns"):
        return None
    if arrow is not None and hasattr(data, "__arrow_c_stream__"):
        return _arrow_frame(data, arrow)
    return {str(name): data[name] for name in data.columns}


def _arrow_frame(data: Any, arrow: Any) -> dict[str, Any]:
    table = arrow.table(data)
    names = table.column_names
    if len(set(names)) < len(names):
        twice = next(name for name in names if names.count(name) > 1)
        raise DataError("column", twice, f"must be the name of one column of {WHERE}", "rename all but one")
    return {name: table.column(name) for name in names}


def _pyarrow() -> Any:
    try:
        import pyarrow
    except ImportError:
        return None
    return pyarrow


def as_cells(data: Any, name: str | None, where: str) -> tuple[NDArray[Any], NDArray[np.bool_]]:
    """Values of one kind, and which of them are missing; where one is, its value says nothing.

    Args:
        data: a series, an array of NumPy's or pyarrow's, or a list.
        name: the column's name, for a refusal.
        where: the table's name, for a refusal.
    """
    if isinstance(data, np.ma.MaskedArray):
        values, blank = _plain(np.asarray(data.filled() if data.dtype.kind == "O" else data.data), name, where)
        return values, blank | np.ma.getmaskarray(data)
    if not isinstance(data, np.ndarray) and any(hasattr(data, each) for each in _ARROW):
        arrow = _pyarrow()
        if arrow is not None:
            return _arrow_cells(data, arrow, name, where)
        if not hasattr(data, "to_numpy"):
            raise no_extra("data", type(data).__name__, "pyarrow", "tables", "pass a NumPy array")
        data = data.to_numpy()
    try:
        array = np.asarray(data)
        if array.dtype.kind == "U" and isinstance(data, Sequence):
            # NumPy would write numbers and nothing at all as words.
            array = np.asarray(data, dtype=object)
    except ValueError:
        raise DataError("data", type(data).__name__, "must hold one value a person", "check the rows") from None
    return _plain(array, name, where)


def _arrow_cells(data: Any, arrow: Any, name: str | None, where: str) -> tuple[NDArray[Any], NDArray[np.bool_]]:
    from pyarrow import compute, types

    cells = arrow.chunked_array(data) if hasattr(data, "__arrow_c_stream__") else arrow.array(data)
    cells = cells.combine_chunks() if isinstance(cells, arrow.ChunkedArray) else cells
    if types.is_dictionary(cells.type):
        cells = cells.cast(cells.type.value_type)
    if types.is_decimal(cells.type):
        cells = cells.cast(arrow.float64())
    kind = cells.type
    blank = np.asarray(compute.is_null(cells, nan_is_null=True).to_numpy(zero_copy_only=False), dtype=np.bool_)
    if types.is_null(kind):
        return np.zeros(len(cells)), blank
    if types.is_integer(kind) or types.is_boolean(kind):
        # Nulls would make floats of whole numbers.
        return cells.fill_null(False if types.is_boolean(kind) else 0).to_numpy(zero_copy_only=False), blank
    known = (types.is_floating, types.is_string, types.is_large_string, types.is_string_view, types.is_temporal)
    if not any(test(kind) for test in known):
        raise wrong_kind(name, where, str(kind))
    values, more = _plain(np.asarray(cells.to_numpy(zero_copy_only=False)), name, where)
    return values, blank | more


def _plain(values: NDArray[Any], name: str | None, where: str) -> tuple[NDArray[Any], NDArray[np.bool_]]:
    """An array of one kind of value: objects are booleans, whole numbers, floats, words or days if all of them are."""
    kind = values.dtype.kind
    if kind in "OT":
        cells = values.reshape(-1).tolist()
        blank = np.array([_is_nothing(cell) for cell in cells], dtype=np.bool_)
        known = [cell for cell, gone in zip(cells, blank.tolist(), strict=True) if not gone]
        numbers = [_as_number(cell) for cell in known]
        is_text = [isinstance(cell, str | datetime.date) for cell in known]
        # Words, or numbers: a mixture would be words that nobody wrote.
        made = np.array([str(cell) for cell in known] if any(is_text) else numbers if known else [0.0])
        if (any(is_text) and not all(is_text)) or made.dtype.kind not in "buifU":
            raise wrong_kind(name, where, "several kinds of values" if any(is_text) else str(values.dtype))
        found = np.zeros(len(cells), dtype=made.dtype)
        found[~blank] = made[: len(known)]
        return found.reshape(values.shape), blank.reshape(values.shape) | _is_empty(found.reshape(values.shape))
    if kind not in "buifUM":
        raise wrong_kind(name, where, str(values.dtype))
    blank = np.isnan(values) if kind == "f" else np.isnat(values) if kind == "M" else _is_empty(values)
    return values, blank


def _is_empty(values: NDArray[Any]) -> NDArray[np.bool_]:
    return np.asarray(values == "") if values.dtype.kind == "U" else np.zeros(values.shape, dtype=np.bool_)


def _as_number(cell: Any) -> Any:
    return float(cell) if isinstance(cell, Decimal | Fraction) else cell


def _is_nothing(cell: Any) -> bool:
    # pandas' NA is neither equal nor unequal to itself.
    return cell is None or type(cell).__name__ in ("NAType", "NaTType") or (isinstance(cell, float) and cell != cell)


def as_texts(values: NDArray[Any], blank: NDArray[np.bool_], name: str | None, where: str) -> Texts:
    """Cells as words, days in ISO form; a missing one is empty.

    Args:
        values: words, whole numbers, booleans or times.
        blank: which of them are missing.
        name: the column's name, for a refusal.
        where: the table's name, for a refusal.
    """
    if values.dtype.kind not in "buiUM" and not blank.all():
        raise wrong_kind(name, where, str(values.dtype), names=True)
    if values.dtype.kind == "M":
        days = values.astype("datetime64[D]")
        values = days if (days == values)[~blank].all() else values
    return Texts.of(np.where(blank, "", values.astype(np.str_)))
