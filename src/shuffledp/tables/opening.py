"""Opening tables: what reading one column and reading a matrix share.

Files are checked and opened here, columns found by name, and whatever a format's parser stumbles over is
told as a `DataError` that names the file, the column or the row. Rows are counted from 1 below the header.
"""

import os
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from shuffledp.errors import DataError

_SUFFIXES = (".csv", ".csv.gz", ".parquet", ".npy")
_MOST_LISTED = 10
_LONGEST_SHOWN = 40

# Types are inferred from the first block, so it is larger than pyarrow's own 1 MiB; a row must fit in one.
_BLOCK = 1 << 21

_NUMBER = re.compile(r"\s*[-+]?((\d+\.?\d*|\.\d+)(e[-+]?\d+)?|inf(inity)?|nan)\s*", re.ASCII | re.IGNORECASE)
_RAGGED = re.compile(r"(?:Row #(\d+): )?Expected (\d+) columns?, got (\d+)")
_MISREAD = re.compile(r"column #(\d+): Row #(\d+): CSV conversion error to (\w+): invalid value '(.*)'", re.DOTALL)


def check_file(path: Path) -> None:
    """Refuse a path that is no readable file of a known format.

    >>> check_file(Path("missing.csv"))
    Traceback (most recent call last):
        ...
    shuffledp.errors.DataError: file must exist, got missing.csv: check the path.
    """
    if path.is_dir():
        raise DataError("file", str(path), "must be a file, not a directory", "name one file in it")
    if not path.exists():
        raise DataError("file", str(path), "must exist", "check the path")
    if not path.name.lower().endswith(_SUFFIXES):
        known = f"{', '.join(_SUFFIXES[:-1])} or {_SUFFIXES[-1]}"
        raise DataError("file", str(path), f"must end in {known}", "save the table as one of these")
    if not os.access(path, os.R_OK):
        raise DataError("file", str(path), "must be readable", "check its permissions")
    if path.stat().st_size == 0:
        raise DataError("file", str(path), "must not be empty", "write a row for each user")


def is_npy(path: Path) -> bool:
    """Whether a file is an array of NumPy's own, and not a table; any other must be one that can be read."""
    check_file(path)
    return path.name.lower().endswith(".npy")


def choose_column(names: Sequence[str], column: str | None, path: Path) -> str:
    """Find the one column meant: the one of that name, or the only one there is.

    >>> choose_column(["user", "clicked"], "click", Path("clicks.csv"))
    Traceback (most recent call last):
        ...
    shuffledp.errors.DataError: column must be a column of clicks.csv, got click: it has user, clicked.
    """
    if not names:
        raise no_rows(path)
    if column is None and len(names) == 1:
        return names[0]
    listed = ", ".join(map(_shown, names[:_MOST_LISTED]))
    if len(names) > _MOST_LISTED:
        listed += f" and {len(names) - _MOST_LISTED} more"
    if column is None:
        raise DataError("column", None, f"must be given for {path.name}", f"choose one of {listed}")
    if column not in names:
        raise DataError("column", column, f"must be a column of {path.name}", f"it has {listed}")
    if (times := names.count(column)) > 1:
        problem = f"must be the name of one column of {path.name}"
        raise DataError("column", column, problem, f"{times} columns have it, so rename all but one")
    return column


def joined(pieces: Sequence[NDArray[Any]], path: Path) -> NDArray[Any]:
    """A copy of a file's pieces, one after the other; a file without a row is refused."""
    if not any(map(len, pieces)):
        raise no_rows(path)
    return np.concatenate(pieces)


def open_npy(path: Path, column: str | None = None) -> NDArray[Any]:
    """Map a .npy file into memory, blaming `column` if it holds Python objects."""
    try:
        # What np.load does for mmap_mode="r" and allow_pickle=False, less its guesses at zip and pickle.
        return np.lib.format.open_memmap(path, mode="r")
    except Exception as broken:  # a damaged header raises whatever its parser stumbles over
        if "Python objects" in str(broken):
            raise wrong_kind(column, path, "object") from broken
        raise _unreadable(path, ".npy", "save it again with numpy.save") from broken


def npy_column(path: Path, column: str | None) -> tuple[NDArray[Any], str | None]:
    """One column of a .npy file, and its name if it has one."""
    values = open_npy(path, column)
    if values.ndim != 1:
        problem = f"{path.name} must hold one dimension"
        raise DataError("file", f"shape {values.shape}", problem, "save one column by itself")
    if values.dtype.names is not None:
        column = choose_column(values.dtype.names, column, path)
        values = values[column]
    return values, column


@dataclass(frozen=True, slots=True)
class OpenTable:
    """A CSV or Parquet file that is open: the names and types of its columns, and batches of some of them.

    Attributes:
        path: the file, to be named in errors.
        names: of the columns, in order; a name may be there twice.
        kinds: pyarrow's type of each column; of a CSV file, as its first block tells.
        parquet: the open Parquet file; None for CSV.
    """

    path: Path
    names: list[str]
    kinds: dict[str, Any]
    parquet: Any = None

    @classmethod
    def open(cls, path: Path) -> Self:
        """Read the names and types of a file that was checked.

        Raises:
            DataError: the file is damaged, or of another format than its name says.
        """
        with cls(path, [], {}).blaming():
            parquet = _open_parquet(path) if _is_parquet(path) else None
            schema = _open_csv(path).schema if parquet is None else parquet.schema_arrow
            return cls(path, list(schema.names), dict(zip(schema.names, schema.types, strict=True)), parquet)

    @contextmanager
    def blaming(self) -> Iterator[None]:
        """Tell a failure of pyarrow on this file as a `DataError`."""
        from pyarrow import ArrowException

        try:
            yield
        except (ArrowException, OSError, UnicodeDecodeError) as broken:
            if _is_parquet(self.path):
                raise _unreadable(self.path, "Parquet", "write it again") from broken
            raise _csv_error(self.path, self.names, broken) from broken

    def batches(self, columns: list[str], *, rows: int = 1 << 18, **convert: Any) -> Any:
        """Batches of some columns, in this order; `rows` are those of a batch of Parquet, `convert` how CSV is read."""
        with self.blaming():
            if self.parquet is not None:
                return self.parquet.iter_batches(batch_size=rows, columns=columns)
            return _open_csv(self.path, skip_blank=self._skips_blank, include_columns=columns, **convert)

    @property
    def _skips_blank(self) -> bool:
        # In a file of one column a blank line is a value left out; in a wider one it is no row at all.
        return len(self.names) > 1

    def check_numbers(self, columns: Sequence[str]) -> None:
        """Refuse columns that hold anything but numbers; of a CSV file, the first text is named."""
        for name in columns:
            if not is_numeric(self.kinds[name]):
                with self.blaming():
                    first = () if self.parquet is not None else self._first_text(name)
                raise wrong_kind(name, self.path, str(self.kinds[name]), *first)

    def _first_text(self, name: str) -> tuple[str, int]:
        """The first value of a CSV file's first block that is not a number, and its row."""
        import pyarrow as pa

        # As bytes, since the text need not be UTF-8.
        block = next(iter(self.batches([name], column_types={name: pa.binary()}, strings_can_be_null=True)))
        texts = ["" if cell is None else cell.decode(errors="replace") for cell in block.column(0).to_pylist()]
        rows = (i for i, text in enumerate(texts) if text and not is_number(text))
        first = next(rows, 0)
        return texts[first], first + 1

    def check_header(self, names: Sequence[str], whose: str, which: str) -> None:
        """Refuse a first line of numbers: taken for names, a row without a header above it would be lost in silence.

        Args:
            names: the columns that nobody has named.
            whose: whose name is missing, in words.
            which: what may be named instead, in words.
        """
        numbers = [name for name in names if self.parquet is None and is_number(name)]
        if numbers:
            problem = f"{self.path.name} must have its {whose} in the first line"
            raise DataError("file", numbers[0], problem, f"add a line above the values, or give {which}")


def _is_parquet(path: Path) -> bool:
    return path.name.lower().endswith(".parquet")


def _open_parquet(path: Path) -> Any:
    """Open a Parquet file such that reading it in batches holds little more than a batch."""
    from pyarrow import parquet

    # A buffer for each page, and none ahead: left to itself, pyarrow holds the whole column.
    memory = {"pre_buffer": False, "buffer_size": 1 << 20}
    return parquet.ParquetFile(path, page_checksum_verification=True, **memory)


def _open_csv(path: Path, *, skip_blank: bool = True, **convert: Any) -> Any:
    """Open a CSV file, packed or not, as a reader of batches with types inferred from its first block."""
    import pyarrow as pa
    from pyarrow import csv

    stream = pa.input_stream(str(path), compression="gzip" if path.suffix.lower() == ".gz" else None)
    return csv.open_csv(
        stream,
        # One thread is as fast for one column, and only then do errors know their row.
        read_options=csv.ReadOptions(use_threads=False, block_size=_BLOCK),
        parse_options=csv.ParseOptions(newlines_in_values=True, ignore_empty_lines=skip_blank),
        convert_options=csv.ConvertOptions(**convert),
    )


def _csv_error(path: Path, names: Sequence[str], broken: Exception) -> DataError:
    if isinstance(broken, UnicodeDecodeError):
        return DataError("file", str(path), "must be UTF-8 text", "save it with that encoding")
    message = str(broken)
    if "Empty CSV" in message:
        return no_rows(path)
    if ragged := _RAGGED.search(message):
        line, expected, actual = ragged.groups()
        where = f" in row {int(line) - 1}" if line else ""
        problem = f"{path.name} must have as many values in every row as in its header ({expected})"
        return DataError("file", f"{actual}{where}", problem, "correct the row, or quote values with commas")
    if misread := _MISREAD.search(message):
        place, line, kind, text = misread.groups()
        problem = f"{_named(names[int(place)], path)} must be {kind} throughout, as its first rows are"
        where = f"{_quoted(text)} in row {int(line) - 1}"
        return DataError("column", where, problem, "correct the value, or write all values alike")
    return _unreadable(path, "CSV", "look for a quote that is not closed, or write it again")


def is_number(text: str) -> bool:
    """Whether a CSV cell reads as a number.

    >>> is_number("-1.5e3"), is_number("1,000")
    (True, False)
    """
    return _NUMBER.fullmatch(text) is not None


def is_numeric(kind: Any) -> bool:
    """Whether pyarrow's type is one of numbers, or of nothing at all.

    >>> import pyarrow as pa
    >>> is_numeric(pa.int8()), is_numeric(pa.string())
    (True, False)
    """
    from pyarrow import types

    # A column of nulls is let through to be refused for its first row.
    tests = (types.is_boolean, types.is_integer, types.is_floating, types.is_null)
    return any(test(kind) for test in tests)


def missing(column: str | None, path: Path, row: int) -> DataError:
    """Blame a row for the value it lacks.

    >>> print(missing("age", Path("people.csv"), 3))
    column age of people.csv must have a value in every row, got none in row 3: fill or remove the rows without one.
    """
    problem = f"{_named(column, path)} must have a value in every row"
    return DataError("column", f"none in row {row}", problem, "fill or remove the rows without one")


def wrong_kind(
    column: str | None, path: Path, kind: str, text: str = "", row: int = 0, *, names: bool = False
) -> DataError:
    """Blame a column that holds no numbers, and the first text in it if that is known; or one that holds no `names`.

    >>> wrong_kind("age", Path("people.csv"), "string", "old", 2).value
    "string, first 'old' in row 2"
    >>> print(wrong_kind("length", Path("people.parquet"), "double", names=True))
    column length of people.parquet must hold names, whole numbers or dates, got double: choose another column.
    """
    held = "names, whole numbers or dates" if names else "integers, floats or booleans"
    value = f"{_shown(kind)}, first {_quoted(text)} in row {row}" if row else _shown(kind)
    way_out = "choose another column" if names else "choose another column or convert this one to numbers"
    return DataError("column", value, f"{_named(column, path)} must hold {held}", way_out)


def no_rows(path: Path) -> DataError:
    """Blame a file for holding nobody's data."""
    return DataError("file", str(path), "must hold at least one row of data", "write a row for each user")


def no_matrix(path: Path, values: NDArray[Any]) -> DataError:
    """Blame a .npy file whose array has another shape than a row a user and a column a value."""
    problem, way_out = f"{path.name} must hold a matrix", "save a row for each user, a column for each value"
    return DataError("file", f"shape {values.shape}", problem, way_out)


def _unreadable(path: Path, kind: str, way_out: str) -> DataError:
    return DataError("file", str(path), f"must be a complete and undamaged {kind} file", way_out)


def _named(column: str | None, path: Path) -> str:
    return f"of {path.name}" if column is None else f"{_shown(column)} of {path.name}"


def _quoted(text: str) -> str:
    return repr(text if len(text) <= _LONGEST_SHOWN else text[:_LONGEST_SHOWN] + "…")


def _shown(name: str) -> str:
    return name if name and name.isprintable() and len(name) <= _LONGEST_SHOWN else _quoted(name)
