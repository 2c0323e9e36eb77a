"""One column of a table, chunk by chunk, from a CSV, Parquet or .npy file.

What comes out is complete: booleans, integers in their own width, or floats as float64, with no value
missing. Whether a value is in range is the protocol's to say. Rows are counted from 1 below the header.
"""

import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from shuffledp.errors import DataError, ParameterError

_SUFFIXES = (".csv", ".csv.gz", ".parquet", ".npy")
_MOST_LISTED = 10
_LONGEST_SHOWN = 40

# Types are inferred from the first block, so it is larger than pyarrow's own 1 MiB; a row must fit in one.
_BLOCK = 1 << 21

_NUMBER = re.compile(r"\s*[-+]?((\d+\.?\d*|\.\d+)(e[-+]?\d+)?|inf(inity)?|nan)\s*", re.ASCII | re.IGNORECASE)
_RAGGED = re.compile(r"(?:Row #(\d+): )?Expected (\d+) columns?, got (\d+)")
_MISREAD = re.compile(r"Row #(\d+): CSV conversion error to (\w+): invalid value '(.*)'", re.DOTALL)


def stream_column(path: Path, column: str | None = None, *, rows: int = 1 << 18) -> Iterator[NDArray[Any]]:
    r"""Read one column in chunks of `rows` values (the last may be shorter), holding little more than one.

    A file with one column need not have it named; a plain one-dimensional .npy has no name to give, and
    ignores one. The file and its columns are checked at the call, the values as they are read.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = Path(folder) / "clicks.csv"
    ...     _ = file.write_text("user,clicked\na,1\nb,0\nc,1\n")
    ...     [chunk.tolist() for chunk in stream_column(file, "clicked", rows=2)]
    [[1, 0], [1]]
    """
    if rows < 1:
        raise ParameterError("rows", rows, "must be >= 1", f"{1 << 18} is a good size")
    _check_file(path)
    name = path.name.lower()
    if name.endswith(".npy"):
        pieces = _open_npy(path, column, rows)
    elif name.endswith(".parquet"):
        pieces = _open_parquet(path, column, rows)
    else:
        pieces = _open_csv(path, column)
    return _rechunk(pieces, rows, path)


def read_column(path: Path, column: str | None = None) -> NDArray[Any]:
    """Read one column whole: the chunks of `stream_column` put together.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     np.save(Path(folder) / "ages.npy", np.array([41, 7, 23], dtype=np.uint8))
    ...     read_column(Path(folder) / "ages.npy")
    array([41,  7, 23], dtype=uint8)
    """
    return np.concatenate(list(stream_column(path, column)))


def _check_file(path: Path) -> None:
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


def _rechunk(pieces: Iterator[NDArray[Any]], rows: int, path: Path) -> Iterator[NDArray[Any]]:
    held: list[NDArray[Any]] = []
    room = rows
    empty = True
    for piece in pieces:
        empty = empty and not piece.size
        while piece.size >= room:
            yield np.concatenate([*held, piece[:room]])
            held, piece, room = [], piece[room:], rows
        if piece.size:
            held.append(piece)
            room -= piece.size
    if held:
        yield np.concatenate(held)
    if empty:
        raise _no_rows(path)


def _choose(names: list[str], column: str | None, path: Path) -> str:
    if not names:
        raise _no_rows(path)
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


def _open_npy(path: Path, column: str | None, rows: int) -> Iterator[NDArray[Any]]:
    try:
        # What np.load does for mmap_mode="r" and allow_pickle=False, less its guesses at zip and pickle.
        values: NDArray[Any] = np.lib.format.open_memmap(path, mode="r")
    except Exception as broken:  # a damaged header raises whatever its parser stumbles over
        if "Python objects" in str(broken):
            raise _wrong_kind(column, path, "object") from broken
        raise _unreadable(path, ".npy", "save it again with numpy.save") from broken
    if values.ndim != 1:
        problem = f"{path.name} must hold one dimension"
        raise DataError("file", f"shape {values.shape}", problem, "save one column by itself")
    if values.dtype.names is not None:
        column = _choose(list(values.dtype.names), column, path)
        values = values[column]
    if values.dtype.kind not in "biuf":
        raise _wrong_kind(column, path, str(values.dtype))
    return _npy_pieces(values, column, rows, path)


def _npy_pieces(values: NDArray[Any], column: str | None, rows: int, path: Path) -> Iterator[NDArray[Any]]:
    is_float = values.dtype.kind == "f"
    native = np.dtype(np.float64) if is_float else values.dtype.newbyteorder("=")
    for start in range(0, len(values), rows):
        piece = np.array(values[start : start + rows], dtype=native)
        if is_float and (missing := np.isnan(piece)).any():
            raise _missing(column, path, start + int(missing.argmax()) + 1)
        yield piece


def _open_parquet(path: Path, column: str | None, rows: int) -> Iterator[NDArray[Any]]:
    from pyarrow import parquet

    with _blaming_parquet(path):
        # A buffer for each page, and none ahead: left to itself, pyarrow holds the whole column.
        memory = {"pre_buffer": False, "buffer_size": 1 << 20}
        file = parquet.ParquetFile(path, page_checksum_verification=True, **memory)
        schema = file.schema_arrow
        name = _choose(list(schema.names), column, path)
        kind = schema.field(name).type
        if not _is_numeric(kind):
            raise _wrong_kind(name, path, str(kind))
    return _parquet_pieces(file, name, rows, path)


def _parquet_pieces(file: Any, name: str, rows: int, path: Path) -> Iterator[NDArray[Any]]:
    with _blaming_parquet(path):
        yield from _arrow_pieces(file.iter_batches(batch_size=rows, columns=[name]), name, path)


@contextmanager
def _blaming_parquet(path: Path) -> Iterator[None]:
    from pyarrow import ArrowException

    try:
        yield
    except (ArrowException, OSError, UnicodeDecodeError) as broken:
        raise _unreadable(path, "Parquet", "write it again") from broken


def _open_csv(path: Path, column: str | None) -> Iterator[NDArray[Any]]:
    with _blaming_csv(path, column):
        names = list(_csv_reader(path).schema.names)
        name = _choose(names, column, path)
        if column is None and _NUMBER.fullmatch(name):
            # Taken for a name, a first value without a header above it would be lost in silence.
            problem = f"{path.name} must have its column's name in the first line"
            raise DataError("file", name, problem, "add a line above the values, or give that column's name")
        # In a file of one column a blank line is a value left out; in a wider one it is no row at all.
        alone = len(names) == 1
        reader = _csv_reader(path, skip_blank=not alone, include_columns=[name])
        kind = reader.schema.field(0).type
        if not _is_numeric(kind):
            raise _wrong_kind(name, path, str(kind), *_first_text(path, name, skip_blank=not alone))
    return _csv_pieces(reader, name, path)


def _csv_pieces(reader: Any, name: str, path: Path) -> Iterator[NDArray[Any]]:
    with _blaming_csv(path, name):
        yield from _arrow_pieces(reader, name, path)


def _csv_reader(path: Path, *, skip_blank: bool = True, **convert: Any) -> Any:
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


def _first_text(path: Path, name: str, *, skip_blank: bool) -> tuple[str, int]:
    """Find the first value of the first block that is not a number, and its row."""
    import pyarrow as pa

    # As bytes, since the text need not be UTF-8.
    convert = {"include_columns": [name], "column_types": {name: pa.binary()}, "strings_can_be_null": True}
    block = next(iter(_csv_reader(path, skip_blank=skip_blank, **convert)))
    texts = ["" if cell is None else cell.decode(errors="replace") for cell in block.column(0).to_pylist()]
    rows = (i for i, text in enumerate(texts) if text and not _NUMBER.fullmatch(text))
    first = next(rows, 0)
    return texts[first], first + 1


@contextmanager
def _blaming_csv(path: Path, column: str | None) -> Iterator[None]:
    from pyarrow import ArrowException

    try:
        yield
    except UnicodeDecodeError as broken:
        raise DataError("file", str(path), "must be UTF-8 text", "save it with that encoding") from broken
    except (ArrowException, OSError) as broken:
        raise _csv_error(path, column, str(broken)) from broken


def _csv_error(path: Path, column: str | None, message: str) -> DataError:
    if "Empty CSV" in message:
        return _no_rows(path)
    if ragged := _RAGGED.search(message):
        line, expected, actual = ragged.groups()
        where = f" in row {int(line) - 1}" if line else ""
        problem = f"{path.name} must have as many values in every row as in its header ({expected})"
        return DataError("file", f"{actual}{where}", problem, "correct the row, or quote values with commas")
    if misread := _MISREAD.search(message):
        line, kind, text = misread.groups()
        problem = f"{_named(column, path)} must be {kind} throughout, as its first rows are"
        where = f"{_quoted(text)} in row {int(line) - 1}"
        return DataError("column", where, problem, "correct the value, or write all values alike")
    return _unreadable(path, "CSV", "look for a quote that is not closed, or write it again")


def _is_numeric(kind: Any) -> bool:
    from pyarrow import types

    # A column of nulls is let through to be refused for its first row.
    tests = (types.is_boolean, types.is_integer, types.is_floating, types.is_null)
    return any(test(kind) for test in tests)


def _arrow_pieces(batches: Any, name: str, path: Path) -> Iterator[NDArray[Any]]:
    row = 0
    for batch in batches:
        cells = batch.column(batch.schema.get_field_index(name))
        values = cells.to_numpy(zero_copy_only=False)
        # A float can be missing in two ways, null and NaN; the first row of either is the one to name.
        if cells.null_count or values.dtype.kind == "f":
            missing = cells.is_null(nan_is_null=True).to_numpy(zero_copy_only=False)
            if missing.any():
                raise _missing(name, path, row + int(missing.argmax()) + 1)
        yield values.astype(np.float64) if values.dtype.kind == "f" else values
        row += len(values)


def _missing(column: str | None, path: Path, row: int) -> DataError:
    problem = f"{_named(column, path)} must have a value in every row"
    return DataError("column", f"none in row {row}", problem, "fill or remove the rows without one")


def _wrong_kind(column: str | None, path: Path, kind: str, text: str = "", row: int = 0) -> DataError:
    problem = f"{_named(column, path)} must hold integers, floats or booleans"
    value = f"{_shown(kind)}, first {_quoted(text)} in row {row}" if row else _shown(kind)
    return DataError("column", value, problem, "choose another column or convert this one to numbers")


def _no_rows(path: Path) -> DataError:
    return DataError("file", str(path), "must hold at least one row of data", "write a row for each user")


def _unreadable(path: Path, kind: str, way_out: str) -> DataError:
    return DataError("file", str(path), f"must be a complete and undamaged {kind} file", way_out)


def _named(column: str | None, path: Path) -> str:
    return f"of {path.name}" if column is None else f"{_shown(column)} of {path.name}"


def _quoted(text: str) -> str:
    return repr(text if len(text) <= _LONGEST_SHOWN else text[:_LONGEST_SHOWN] + "…")


def _shown(name: str) -> str:
    return name if name and name.isprintable() and len(name) <= _LONGEST_SHOWN else _quoted(name)
