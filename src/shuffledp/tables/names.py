"""The names of a table's columns."""

from pathlib import Path

from shuffledp.tables.opening import OpenTable, is_npy, no_matrix, open_npy


def column_names(path: Path) -> list[str]:
    r"""Of a CSV or Parquet file; a matrix in a .npy file has numbers, from 1 on.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = Path(folder) / "people.csv"
    ...     _ = file.write_text("age,income\n41,7\n")
    ...     column_names(file)
    ['age', 'income']
    """
    if not is_npy(path):
        return OpenTable.open(path).names
    values = open_npy(path)
    if values.ndim != 2 or values.dtype.names is not None:
        raise no_matrix(path, values)
    return [str(place + 1) for place in range(values.shape[1])]
