"""One column of numbers of a table from a CSV, Parquet or .npy file.

What comes out is complete: booleans, integers in their own width, or floats as float64, and everybody has a value.
Whether a value is in range is the protocol's to say. Rows are counted from 1 below the header.
"""

from pathlib import Path
from typing import Any

from numpy.typing import NDArray

from shuffledp.tables.complaints import no_rows
from shuffledp.tables.reading import Reading


def read_column(path: Path, column: str | None = None, *, reading: Reading | None = None) -> NDArray[Any]:
    r"""Read one column of numbers whole.

    A file with one column need not have it named; a plain one-dimensional .npy has no name to give, and
    ignores one.

    Args:
        path: the file; - is standard input.
        column: its name; the only one if left out.
        reading: what is between cells, and what people without a value report; as the header says, and refused,
            if left out.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = Path(folder) / "clicks.csv"
    ...     _ = file.write_text("user,clicked\na,1\nb,0\nc,1\n")
    ...     read_column(file, "clicked")
    array([1, 0, 1])
    """
    reading = Reading() if reading is None else reading
    table = reading.open(path)
    name = table.choose(column)
    if column is None:
        table.check_header([name], "column's name", "that column's name")
    ((values, blank),) = table.numbers([name])
    if not values.size:
        raise no_rows(table.source)
    filled: NDArray[Any] = reading.missing.fill_numbers(values, blank, name, table.where)
    return filled
