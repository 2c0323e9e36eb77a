"""The names of a table's columns."""

from pathlib import Path

from shuffledp.tables.reading import Reading


def column_names(path: Path, *, reading: Reading | None = None) -> list[str]:
    r"""The names of a CSV or Parquet file's columns; those of a matrix in a .npy file are numbers, from 1 on.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = Path(folder) / "people.csv"
    ...     _ = file.write_text("age,income\n41,7\n")
    ...     column_names(file)
    ['age', 'income']
    """
    return list((Reading() if reading is None else reading).open(path).names)
