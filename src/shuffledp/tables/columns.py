"""One column of a table, chunk by chunk, from a CSV, Parquet or .npy file.

What comes out is complete: booleans, integers in their own width, or floats as float64, with no value
missing. Whether a value is in range is the protocol's to say. Rows are counted from 1 below the header.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from shuffledp.errors import ParameterError
from shuffledp.tables.opening import OpenTable, choose_column, is_npy, missing, npy_column, rechunk, wrong_kind


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
    pieces = _npy_pieces(path, column, rows) if is_npy(path) else _table_pieces(path, column, rows)
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


def _npy_pieces(path: Path, column: str | None, rows: int) -> Iterator[NDArray[Any]]:
    values, name = npy_column(path, column)
    if values.dtype.kind not in "biuf":
        raise wrong_kind(name, path, str(values.dtype))
    is_float = values.dtype.kind == "f"
    native = np.dtype(np.float64) if is_float else values.dtype.newbyteorder("=")

    def pieces() -> Iterator[NDArray[Any]]:
        for start in range(0, len(values), rows):
            piece = np.array(values[start : start + rows], dtype=native)
            if is_float and (blank := np.isnan(piece)).any():
                raise missing(name, path, start + int(blank.argmax()) + 1)
            yield piece

    return pieces()


def _table_pieces(path: Path, column: str | None, rows: int) -> Iterator[NDArray[Any]]:
    table = OpenTable.open(path)
    name = choose_column(table.names, column, path)
    if column is None:
        table.check_header([name], "column's name", "that column's name")
    table.check_numbers([name])
    batches = table.batches([name], rows=rows)

    def pieces() -> Iterator[NDArray[Any]]:
        row = 0
        with table.blaming():
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

    return pieces()
