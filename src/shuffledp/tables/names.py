"""The names of a table's columns."""

from pathlib import Path

from shuffledp.errors import DataError
from shuffledp.tables.opening import blaming_parquet, check_file, open_npy, open_parquet, read_csv_schema


def column_names(path: Path) -> list[str]:
    r"""Of a CSV or Parquet file; a matrix in a .npy file has numbers, from 1 on.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = Path(folder) / "people.csv"
    ...     _ = file.write_text("age,income\n41,7\n")
    ...     column_names(file)
    ['age', 'income']
    """
    check_file(path)
    name = path.name.lower()
    if name.endswith(".npy"):
        values = open_npy(path)
        if values.ndim != 2 or values.dtype.names is not None:
            problem = f"{path.name} must hold a matrix"
            raise DataError(
                "file", f"shape {values.shape}", problem, "save a row for each user, a column for each value"
            )
        return [str(place + 1) for place in range(values.shape[1])]
    if name.endswith(".parquet"):
        file = open_parquet(path)
        with blaming_parquet(path):
            return list(file.schema_arrow.names)
    return read_csv_schema(path)[0]
