"""A table of numbers that is written as its rows come: CSV or Parquet, whole or not at all."""

import csv
import io
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from shuffledp.files import whole_file
from shuffledp.tables.written import check_table_path


class GrowingTable:
    """Rows that are written so far; made by `growing_table`."""

    def __init__(self, file: BinaryIO, *, as_parquet: bool) -> None:
        self._file, self._as_parquet = file, as_parquet
        self._writer: Any = None
        self.rows = 0

    def write(self, columns: Mapping[str, NDArray[Any]]) -> None:
        """Write some more rows: columns of equal length, the same ones every time."""
        count = len(next(iter(columns.values())))
        if self._as_parquet:
            import pyarrow as pa
            from pyarrow import parquet

            table = pa.table(dict(columns))
            self._writer = self._writer or parquet.ParquetWriter(self._file, table.schema)
            self._writer.write_table(table)
        else:
            text = io.StringIO(newline="")
            writer = csv.writer(text, lineterminator="\n")
            if not self.rows:
                writer.writerow(columns)
            writer.writerows(zip(*(np.asarray(column).tolist() for column in columns.values()), strict=True))
            self._file.write(text.getvalue().encode("utf-8"))
        self.rows += count

    def close(self) -> None:
        """Write what stands at the end of the file."""
        if self._writer is not None:
            self._writer.close()


@contextmanager
def growing_table(path: Path) -> Iterator[GrowingTable]:
    """A table that appears under its name when all of it is written, and not at all if that fails.

    Args:
        path: .csv or .parquet.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     with growing_table(Path(folder) / "t.csv") as table:
    ...         for start in (0, 2):
    ...             table.write({"time": np.arange(start, start + 2)})
    ...     (Path(folder) / "t.csv").read_text().splitlines()
    ['time', '0', '1', '2', '3']
    """
    check_table_path(path)
    with whole_file(path) as file:
        table = GrowingTable(file, as_parquet=path.suffix.lower() == ".parquet")
        yield table
        table.close()
