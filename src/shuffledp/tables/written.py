"""Columns of numbers as a table: CSV or Parquet, whole or not at all."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from numpy.typing import NDArray

from shuffledp.errors import ParameterError
from shuffledp.files import whole_file

_SUFFIXES = (".csv", ".parquet")


def check_table_path(path: Path, parameter: str = "out") -> None:
    """Refuse a name from which no format can be told, before any work is done."""
    if path.suffix.lower() not in _SUFFIXES:
        raise ParameterError(parameter, str(path), f"must end in {' or '.join(_SUFFIXES)}", "name a table")
    if not path.absolute().parent.is_dir():
        raise ParameterError(parameter, str(path), "must be in a directory that exists", "create it, or name another")


def write_table(path: Path, columns: Mapping[str, NDArray[Any]]) -> None:
    """Write columns of equal length.

    >>> import tempfile, numpy as np
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write_table(Path(folder) / "t.csv", {"time": np.array([1, 2]), "estimate": np.array([0.5, 1.0])})
    ...     (Path(folder) / "t.csv").read_text().splitlines()
    ['"time","estimate"', '1,0.5', '2,1']
    """
    import pyarrow as pa
    from pyarrow import csv, parquet

    check_table_path(path)
    table = pa.table(dict(columns))
    with whole_file(path) as file:
        if path.suffix.lower() == ".csv":
            csv.write_csv(table, file)
        else:
            parquet.write_table(table, file)
