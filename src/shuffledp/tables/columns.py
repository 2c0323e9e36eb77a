"""One column of a table, chunk by chunk, from a CSV, Parquet or .npy file.

What comes out is complete: booleans, integers in their own width, or floats as float64, with no value
missing. Whether a value is in range is the protocol's to say. Rows are counted from 1 below the header.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from shuffledp.errors import DataError, ParameterError
from shuffledp.tables.opening import (
    blaming_csv,
    blaming_parquet,
    by_format,
    choose_column,
    first_text,
    is_number,
    is_numeric,
    missing,
    npy_column,
    open_csv,
    parquet_column,
    read_csv_schema,
    rechunk,
    wrong_kind,
)


def stream_column(path: Path, column: str | None = None, *, rows: int = 1 << 18) -> Iterator[NDArray[Any]]:
    r"""Read one column in chunks of `rows` values (the last may be shorter), holding little more than one.

    A file with one column need not have it named; a plain one-dimensional .npy has no name to give, and
    ignores one. The file and its columns are checked at the call, the values as they are read.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = Path(folder) / "clicks.csv"
    ...     _ = file.write_text("user,clicked\na,1\nb,0\nc,1\n")
    ...     [chunk.tolist() for chunk in stream_column(file, "clicked", rows=2)]
    [[1, 0], [1]]
    """
    if rows < 1:
        raise ParameterError("rows", rows, "must be >= 1", f"{1 << 18} is a good size")
    pieces = by_format(
        path,
        npy=lambda: _open_npy(path, column, rows),
        parquet=lambda: _open_parquet(path, column, rows),
        csv=lambda: _open_csv(path, column),
    )
    return rechunk(pieces, rows, path)


def read_column(path: Path, column: str | None = None) -> NDArray[Any]:
    """Read one column whole: the chunks of `stream_column` put together.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     np.save(Path(folder) / "ages.npy", np.array([41, 7, 23], dtype=np.uint8))
    ...     read_column(Path(folder) / "ages.npy")
    array([41,  7, 23], dtype=uint8)
    """
    return np.concatenate(list(stream_column(path, column)))


def _open_npy(path: Path, column: str | None, rows: int) -> Iterator[NDArray[Any]]:
    values, column = npy_column(path, column)
    if values.dtype.kind not in "biuf":
        raise wrong_kind(column, path, str(values.dtype))
    return _npy_pieces(values, column, rows, path)


def _npy_pieces(values: NDArray[Any], column: str | None, rows: int, path: Path) -> Iterator[NDArray[Any]]:
    is_float = values.dtype.kind == "f"
    native = np.dtype(np.float64) if is_float else values.dtype.newbyteorder("=")
    for start in range(0, len(values), rows):
        piece = np.array(values[start : start + rows], dtype=native)
        if is_float and (blank := np.isnan(piece)).any():
            raise missing(column, path, start + int(blank.argmax()) + 1)
        yield piece


def _open_parquet(path: Path, column: str | None, rows: int) -> Iterator[NDArray[Any]]:
    file, name, kind = parquet_column(path, column)
    if not is_numeric(kind):
        raise wrong_kind(name, path, str(kind))
    return _parquet_pieces(file, name, rows, path)


def _parquet_pieces(file: Any, name: str, rows: int, path: Path) -> Iterator[NDArray[Any]]:
    with blaming_parquet(path):
        yield from _arrow_pieces(file.iter_batches(batch_size=rows, columns=[name]), name, path)


def _open_csv(path: Path, column: str | None) -> Iterator[NDArray[Any]]:
    names, _ = read_csv_schema(path)
    name = choose_column(names, column, path)
    if column is None and is_number(name):
        # Taken for a name, a first value without a header above it would be lost in silence.
        problem = f"{path.name} must have its column's name in the first line"
        raise DataError("file", name, problem, "add a line above the values, or give that column's name")
    with blaming_csv(path, names):
        # In a file of one column a blank line is a value left out; in a wider one it is no row at all.
        alone = len(names) == 1
        reader = open_csv(path, skip_blank=not alone, include_columns=[name])
        kind = reader.schema.field(0).type
        if not is_numeric(kind):
            raise wrong_kind(name, path, str(kind), *first_text(path, name, skip_blank=not alone))
    return _csv_pieces(reader, name, names, path)


def _csv_pieces(reader: Any, name: str, names: list[str], path: Path) -> Iterator[NDArray[Any]]:
    with blaming_csv(path, names):
        yield from _arrow_pieces(reader, name, path)


def _arrow_pieces(batches: Any, name: str, path: Path) -> Iterator[NDArray[Any]]:
    row = 0
    for batch in batches:
        cells = batch.column(batch.schema.get_field_index(name))
        values = cells.to_numpy(zero_copy_only=False)
        # A float can be missing in two ways, null and NaN; the first row of either is the one to name.
        if cells.null_count or values.dtype.kind == "f":
            blank = cells.is_null(nan_is_null=True).to_numpy(zero_copy_only=False)
            if blank.any():
                raise missing(name, path, row + int(blank.argmax()) + 1)
        yield values.astype(np.float64) if values.dtype.kind == "f" else values
        row += len(values)
