"""Several columns of a table as a matrix, a row for each user, from a CSV, Parquet or .npy file.

What comes out is float64 and complete: booleans become 0 and 1, integers the nearest float, and no value is
missing. Whether a value is in range is the protocol's to say. Rows are counted from 1 below the header.
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from shuffledp.errors import DataError, ParameterError
from shuffledp.tables.opening import (
    OpenTable,
    choose_column,
    is_npy,
    missing,
    no_matrix,
    no_rows,
    open_npy,
    rechunk,
    wrong_kind,
)

Matrix = NDArray[np.float64]

_VALUES_IN_A_CHUNK = 1 << 20


def stream_matrix(path: Path, columns: Sequence[str] | None = None, *, rows: int | None = None) -> Iterator[Matrix]:
    r"""Read the named columns, or all, in chunks of `rows` rows (the last may be shorter), holding few at once.

    Without `rows` a chunk has about a million values, however many columns there are. A .npy file has no names
    to choose by; one dimension in it is one column. The file and its columns are checked at the call, the values
    as they are read.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = Path(folder) / "steps.csv"
    ...     _ = file.write_text("user,monday,tuesday\na,1,0.5\nb,0,0.25\nc,1,1\n")
    ...     [chunk.tolist() for chunk in stream_matrix(file, ["tuesday", "monday"], rows=2)]
    [[[0.5, 1.0], [0.25, 0.0]], [[1.0, 1.0]]]
    """
    if rows is not None and rows < 1:
        raise ParameterError("rows", rows, "must be >= 1", "leave it out for a good size")
    is_array = is_npy(path)
    _check_distinct(columns)
    return _npy_chunks(path, columns, rows) if is_array else _table_chunks(path, columns, rows)


def read_matrix(path: Path, columns: Sequence[str] | None = None) -> Matrix:
    """Read a matrix whole: the chunks of `stream_matrix` put together.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     np.save(Path(folder) / "votes.npy", np.array([[True, False], [True, True]]))
    ...     read_matrix(Path(folder) / "votes.npy")
    array([[1., 0.],
           [1., 1.]])
    """
    return np.concatenate(list(stream_matrix(path, columns)))


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


def _rows_or_default(rows: int | None, width: int) -> int:
    return rows or max(1, _VALUES_IN_A_CHUNK // width)


def _npy_chunks(path: Path, columns: Sequence[str] | None, rows: int | None) -> Iterator[Matrix]:
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
    matrix, size = values.reshape(len(values), -1), _rows_or_default(rows, len(names))

    def chunks() -> Iterator[Matrix]:
        for start in range(0, len(matrix), size):
            chunk = np.array(matrix[start : start + size], dtype=np.float64, order="C", subok=False)
            _check_complete(chunk, names, start, path)
            yield chunk

    return chunks()


def _table_chunks(path: Path, columns: Sequence[str] | None, rows: int | None) -> Iterator[Matrix]:
    import pyarrow as pa

    table = OpenTable.open(path)
    if columns is None:
        table.check_header(table.names, "columns' names", "those columns' names")
    chosen = _choose(table.names, columns, path)
    table.check_numbers(chosen)
    size = _rows_or_default(rows, len(chosen))
    # A column may begin with integers and go on with fractions; only "true" is no float.
    types = {name: pa.bool_() if pa.types.is_boolean(table.kinds[name]) else pa.float64() for name in chosen}
    batches = table.batches(chosen, rows=size, column_types=types)

    def pieces() -> Iterator[Matrix]:
        row = 0
        with table.blaming():
            for batch in batches:
                piece = np.empty((batch.num_rows, len(chosen)))
                for place, name in enumerate(chosen):
                    # A null of any type becomes NaN here, so one check finds all that is missing.
                    piece[:, place] = batch.column(batch.schema.get_field_index(name)).to_numpy(zero_copy_only=False)
                _check_complete(piece, chosen, row, path)
                yield piece
                row += len(piece)

    return rechunk(pieces(), size, path)


def _check_complete(piece: Matrix, names: Sequence[str | None], rows_before: int, path: Path) -> None:
    blank = np.isnan(piece)
    if blank.any():
        row, place = divmod(int(blank.argmax()), len(names))
        raise missing(names[place], path, rows_before + row + 1)
