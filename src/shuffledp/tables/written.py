"""Columns of numbers as a table: CSV or Parquet, whole or not at all."""

import csv
import io
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from shuffledp.errors import ParameterError
from shuffledp.files import whole_file
from shuffledp.tables.complaints import no_extra
from shuffledp.tables.reading import is_installed

_SUFFIXES = (".csv", ".parquet")


def check_table_path(path: Path, parameter: str = "out") -> None:
    """Refuse a name from which no format can be told, or whose format needs an extra, before any work is done."""
    if path.suffix.lower() not in _SUFFIXES:
        raise ParameterError(parameter, str(path), f"must end in {' or '.join(_SUFFIXES)}", "name a table")
    if not path.absolute().parent.is_dir():
        raise ParameterError(parameter, str(path), "must be in a directory that exists", "create it, or name another")
    if path.suffix.lower() == ".parquet" and not is_installed("pyarrow"):
        raise no_extra(parameter, str(path), "pyarrow", "tables", "name a .csv")


def write_table(path: Path, columns: Mapping[str, NDArray[Any]]) -> None:
    """Write columns of equal length.

    >>> import tempfile, numpy as np
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write_table(Path(folder) / "t.csv", {"time": np.array([1, 2]), "estimate": np.array([0.5, 1.0])})
    ...     (Path(folder) / "t.csv").read_text().splitlines()
    ['time,estimate', '1,0.5', '2,1.0']
    """
    check_table_path(path)
    if path.suffix.lower() == ".parquet":
        import pyarrow as pa
        from pyarrow import parquet

        with whole_file(path) as file:
            parquet.write_table(pa.table(dict(columns)), file)
        return
    text = io.StringIO(newline="")
    # One writer whatever is installed: names are quoted where a comma, a quote or a line's end is in them.
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(columns)
    writer.writerows(zip(*(np.asarray(column).tolist() for column in columns.values()), strict=True))
    with whole_file(path) as file:
        file.write(text.getvalue().encode("utf-8"))
