"""One column of a table from a CSV, Parquet or .npy file.

What comes out is complete: booleans, integers in their own width, or floats as float64, with no value
missing. Whether a value is in range is the protocol's to say. Rows are counted from 1 below the header.
"""

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from shuffledp.tables.opening import OpenTable, choose_column, is_npy, joined, missing, npy_column, wrong_kind


def read_column(path: Path, column: str | None = None) -> NDArray[Any]:
    r"""Read one column whole.

    A file with one column need not have it named; a plain one-dimensional .npy has no name to give, and
    ignores one.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = Path(folder) / "clicks.csv"
    ...     _ = file.write_text("user,clicked\na,1\nb,0\nc,1\n")
    ...     read_column(file, "clicked")
    array([1, 0, 1])
    """
    return joined([_npy_values(path, column)] if is_npy(path) else _table_values(path, column), path)


def _npy_values(path: Path, column: str | None) -> NDArray[Any]:
    values, name = npy_column(path, column)
    if values.dtype.kind not in "biuf":
        raise wrong_kind(name, path, str(values.dtype))
    is_float = values.dtype.kind == "f"
    native = np.array(values, dtype=np.float64 if is_float else values.dtype.newbyteorder("="))
    if is_float and (blank := np.isnan(native)).any():
        raise missing(name, path, int(blank.argmax()) + 1)
    return native


def _table_values(path: Path, column: str | None) -> list[NDArray[Any]]:
    table = OpenTable.open(path)
    name = choose_column(table.names, column, path)
    if column is None:
        table.check_header([name], "column's name", "that column's name")
    table.check_numbers([name])
    pieces: list[NDArray[Any]] = []
    with table.blaming():
        for batch in table.batches([name]):
            cells = batch.column(batch.schema.get_field_index(name))
            values = cells.to_numpy(zero_copy_only=False)
            # A float can be missing in two ways, null and NaN; the first row of either is the one to name.
            if cells.null_count or values.dtype.kind == "f":
                blank = cells.is_null(nan_is_null=True).to_numpy(zero_copy_only=False)
                if blank.any():
                    raise missing(name, path, sum(map(len, pieces)) + int(blank.argmax()) + 1)
            pieces.append(values.astype(np.float64) if values.dtype.kind == "f" else values)
    return pieces
