"""Several columns of a table as a matrix, a row for each user, from a CSV, Parquet or .npy file.

What comes out is float64 and complete: booleans become 0 and 1, integers the nearest float, and everybody has every
number. Whether a value is in range is the protocol's to say. Rows are counted from 1 below the header.
"""

from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from shuffledp.errors import DataError
from shuffledp.tables.complaints import no_rows
from shuffledp.tables.reading import Reading

Matrix = NDArray[np.float64]


def read_matrix(path: Path, columns: Sequence[str] | None = None, *, reading: Reading | None = None) -> Matrix:
    """Read the named columns, or all. A .npy file has no names to choose by; one dimension in it is one column.

    Args:
        path: the file; - is standard input.
        columns: their names, in the order of the matrix's columns.
        reading: what is between cells, and what is reported in place of a number that somebody does not have.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     np.save(Path(folder) / "votes.npy", np.array([[True, False], [True, True]]))
    ...     read_matrix(Path(folder) / "votes.npy")
    array([[1., 0.],
           [1., 1.]])
    """
    reading = Reading() if reading is None else reading
    _check_distinct(columns)
    table = reading.open(path)
    found = table.several(columns)
    rows = len(next(iter(found.values()))[0])
    if not rows:
        raise no_rows(table.source)
    matrix = np.empty((rows, len(found)))
    for place, (name, (values, blank)) in enumerate(found.items()):
        matrix[:, place] = reading.missing.fill_numbers(values, blank, name, table.where)
    return matrix


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
