"""The names of a table's columns."""

from pathlib import Path

from shuffledp.tables.opening import blaming_parquet, by_format, no_matrix, open_npy, open_parquet, read_csv_schema


def column_names(path: Path) -> list[str]:
    r"""Of a CSV or Parquet file; a matrix in a .npy file has numbers, from 1 on.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = Path(folder) / "people.csv"
    ...     _ = file.write_text("age,income\n41,7\n")
    ...     column_names(file)
    ['age', 'income']
    """
    return by_format(
        path, npy=lambda: _numbers(path), parquet=lambda: _names(path), csv=lambda: read_csv_schema(path)[0]
    )


def _numbers(path: Path) -> list[str]:
    values = open_npy(path)
    if values.ndim != 2 or values.dtype.names is not None:
        raise no_matrix(path, values)
    return [str(place + 1) for place in range(values.shape[1])]


def _names(path: Path) -> list[str]:
    file = open_parquet(path)
    with blaming_parquet(path):
        return list(file.schema_arrow.names)
