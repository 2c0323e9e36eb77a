"""Several columns of a table as a matrix, a row for each user, from a CSV, Parquet or .npy file.

What comes out is float64 and complete: booleans become 0 and 1, integers the nearest float, and no value is
missing. Whether a value is in range is the protocol's to say. Rows are counted from 1 below the header.
"""

from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from shuffledp.errors import DataError
from shuffledp.tables.opening import (
    OpenTable,
    choose_column,
    is_npy,
    joined,
    missing,
    no_matrix,
    no_rows,
    open_npy,
    wrong_kind,
)

Matrix = NDArray[np.float64]

_VALUES_AT_A_TIME = 1 << 20


def read_matrix(path: Path, columns: Sequence[str] | None = None) -> Matrix:
    """Read the named columns, or all. A .npy file has no names to choose by; one dimension in it is one column.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     np.save(Path(folder) / "votes.npy", np.array([[True, False], [True, True]]))
    ...     read_matrix(Path(folder) / "votes.npy")
    array([[1., 0.],
           [1., 1.]])
    """
    is_array = is_npy(path)
    _check_distinct(columns)
    return joined([_npy_matrix(path, columns)] if is_array else _table_matrices(path, columns), path)


def _check_distinct(columns: Sequence[str] | None) -> None:
    if columns is None:
        return
    if isinstance(columns, str):
        raise DataError("columns", columns, "must be a list of names", f"for one column write [{columns!r}]")
    if not columns:
        raise DataError("columns", "none", "must name at least one column", "leave them out to read all")
    name, times = Counter(columns).most_common(1)[0]
    if times > 1:
        raise DataError("columns", f"{name} {times} times", "must name each column once", "remove the repetition")


def _choose(names: Sequence[str], columns: Sequence[str] | None, path: Path) -> list[str]:
    if not names:
        raise no_rows(path)
    times = Counter(names)
    # A name that stands once in the file needs no search: thousands of columns would make it slow.
    return [name if times[name] == 1 else choose_column(names, name, path) for name in columns or names]


def _npy_matrix(path: Path, columns: Sequence[str] | None) -> Matrix:
    if columns is not None:
        way_out = "its columns have no names, so all of them are read"
        raise DataError("columns", ", ".join(columns), f"must be left out for {path.name}", way_out)
    values = open_npy(path)
    if values.dtype.names is not None:
        found = f"fields {', '.join(values.dtype.names)}"
        raise DataError("file", found, f"{path.name} must hold a plain array", "save named columns as Parquet")
    if values.ndim not in (1, 2) or 0 in values.shape[1:]:
        raise no_matrix(path, values)
    if values.dtype.kind not in "biuf":
        raise wrong_kind(None, path, str(values.dtype))
    if not len(values):
        raise no_rows(path)
    names = [None] if values.ndim == 1 else [str(place + 1) for place in range(values.shape[1])]
    matrix = np.array(values.reshape(len(values), -1), dtype=np.float64, order="C", subok=False)
    _check_complete(matrix, names, 0, path)
    return matrix


def _table_matrices(path: Path, columns: Sequence[str] | None) -> list[Matrix]:
    import pyarrow as pa

    table = OpenTable.open(path)
    if columns is None:
        table.check_header(table.names, "columns' names", "those columns' names")
    chosen = _choose(table.names, columns, path)
    table.check_numbers(chosen)
    # A column may begin with integers and go on with fractions; only "true" is no float.
    types = {name: pa.bool_() if pa.types.is_boolean(table.kinds[name]) else pa.float64() for name in chosen}
    pieces: list[Matrix] = []
    with table.blaming():
        for batch in table.batches(chosen, rows=max(1, _VALUES_AT_A_TIME // len(chosen)), column_types=types):
            piece = np.empty((batch.num_rows, len(chosen)))
            for place, name in enumerate(chosen):
                # A null of any type becomes NaN here, so one check finds all that is missing.
                piece[:, place] = batch.column(batch.schema.get_field_index(name)).to_numpy(zero_copy_only=False)
            _check_complete(piece, chosen, sum(map(len, pieces)), path)
            pieces.append(piece)
    return pieces


def _check_complete(piece: Matrix, names: Sequence[str | None], rows_before: int, path: Path) -> None:
    blank = np.isnan(piece)
    if blank.any():
        row, place = divmod(int(blank.argmax()), len(names))
        raise missing(names[place], path, rows_before + row + 1)
