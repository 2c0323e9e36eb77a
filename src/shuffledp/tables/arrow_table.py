"""CSV and Parquet files by pyarrow, in batches that hold little memory."""

import math
import os
import re
from abc import abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from copy import copy
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from shuffledp.errors import DataError
from shuffledp.tables.complaints import no_rows, unreadable, wrong_kind
from shuffledp.tables.csv_source import CsvSource, not_utf8, ragged
from shuffledp.tables.plain_csv import check_quotes
from shuffledp.tables.spelling import FALSE, NOTHING, TRUE, first_text
from shuffledp.tables.table import Numbers, OpenTable
from shuffledp.tables.words import Texts

# Types are guessed from the first block, so it is larger than pyarrow's own 1 MiB; a row must fit in one.
_BLOCK = 1 << 21
_RAGGED = re.compile(r"(?:Row #(\d+): )?Expected (\d+) columns?, got (\d+)")
_MISREAD = re.compile(r"column #(\d+): (?:Row #\d+: )?CSV conversion error to (.+?): invalid value", re.DOTALL)
# A column that is not what its first block tells is the next of these.
_WIDER = {"null": "int64", "int64": "bool", "bool": "double"}


class _ArrowTable(OpenTable):
    """What CSV and Parquet share: batches of pyarrow, and its failures told as a `DataError`."""

    kinds: dict[str, Any]

    def words(self, name: str | None) -> Texts:
        import pyarrow as pa
        from pyarrow import types

        kind = self._kind_of_words(str(name))
        kind = kind.value_type if types.is_dictionary(kind) else kind
        tests = (types.is_string, types.is_large_string, types.is_integer, types.is_boolean, types.is_temporal)
        if not (any(test(kind) for test in tests) or types.is_null(kind)):
            raise wrong_kind(name, self.where, str(kind), names=True)
        with self._blaming():
            pieces = [cells.cast(kind).cast(pa.large_string()) for (cells,) in self._batches_of_words(str(name), kind)]
            cells = pa.chunked_array(pieces, type=pa.large_string()).combine_chunks()
        return texts_of(cells)

    def _kind_of_words(self, name: str) -> Any:
        return self.kinds[name]

    @abstractmethod
    def _batches_of_words(self, name: str, kind: Any) -> Iterator[list[Any]]:
        """A column as it is written, a list of one piece a batch."""

    @contextmanager
    def _blaming(self) -> Iterator[None]:
        from pyarrow import ArrowException

        try:
            yield
        except (ArrowException, OSError, UnicodeDecodeError) as broken:
            raise self._unreadable(broken) from broken

    def _unreadable(self, broken: Exception) -> DataError:
        """What pyarrow or the system could not read: a file that is gone is not a damaged one."""
        number = getattr(broken, "errno", None)
        if number is None:
            return self._error(broken)
        problem = f"must be there and readable ({os.strerror(number)})"
        return DataError("file", self.where, problem, "put it back, or name another")

    @abstractmethod
    def _error(self, broken: Exception) -> DataError:
        """What a failure of pyarrow says about the file."""


class ParquetTable(_ArrowTable):
    """A Parquet file, opened such that reading it in batches holds little more than a batch."""

    def __init__(self, path: Path) -> None:
        from pyarrow import parquet

        self.source, self.where = str(path), path.name
        # A buffer for each page, and none ahead: left to itself, pyarrow holds the whole column.
        memory = {"pre_buffer": False, "buffer_size": 1 << 20}
        with self._blaming():
            self.parquet = parquet.ParquetFile(path, page_checksum_verification=True, **memory)
            schema = self.parquet.schema_arrow
            self.names = list(schema.names)
            self.kinds = dict(zip(schema.names, schema.types, strict=True))
        self._rows: tuple[int, int] | None = None
        self._running: dict[tuple[str, ...], Running] = {}

    def between(self, first: int, last: int) -> "ParquetTable":
        """The rows from one to another. Whoever asks for the next ones goes on where these ended.

        Args:
            first: the first of them, from 0.
            last: the first behind them.
        """
        found = copy(self)
        found._rows = first, last
        return found

    def numbers(self, names: Sequence[str | None]) -> list[Numbers]:
        for name in names:
            if not _is_numeric(self.kinds[str(name)]):
                raise wrong_kind(name, self.where, str(self.kinds[str(name)]))
        with self._blaming():
            return _joined(self._batches([str(name) for name in names]), len(names))

    def _batches_of_words(self, name: str, kind: Any) -> Iterator[list[Any]]:
        return self._batches([name])

    def _batches(self, names: list[str]) -> Iterator[list[Any]]:
        at_once = max(1, (1 << 18) // len(names))
        if self._rows is None:
            batches: Iterable[Any] = self.parquet.iter_batches(batch_size=at_once, columns=names)
        else:
            first, last = self._rows
            running = self._running.pop(tuple(names), None)
            if running is None or running.row != first:
                running = Running(self.parquet, first, names, at_once)
            batches = running.until(last)
            self._running[tuple(names)] = running
        for batch in batches:
            yield [batch.column(batch.schema.get_field_index(name)) for name in names]

    def _error(self, broken: Exception) -> DataError:
        return unreadable(self.source, "Parquet", "write it again")


class Running:
    """Batches of a Parquet file from a row on, taken up to one row after another.

    Args:
        parquet: the open file.
        row: the first row.
        names: of the columns.
        at_once: rows of a batch.
    """

    def __init__(self, parquet: Any, row: int, names: list[str], at_once: int) -> None:
        self.row = row
        sizes = [parquet.metadata.row_group(group).num_rows for group in range(parquet.num_row_groups)]
        ends = np.cumsum(sizes)
        group = int(np.searchsorted(ends, row, side="right"))
        groups = list(range(group, len(sizes)))
        self._batches = iter(parquet.iter_batches(batch_size=at_once, row_groups=groups, columns=names))
        self._left: Any = None
        self._skip = row - int(ends[group] - sizes[group]) if groups else 0

    def until(self, last: int) -> list[Any]:
        """The batches up to a row; fewer rows than there should be end where the file does."""
        found = []
        while self.row < last:
            batch, self._left = self._left, None
            if batch is None:
                batch = next(self._batches, None)
            if batch is None:
                break
            skipped = min(self._skip, batch.num_rows)
            self._skip -= skipped
            batch = batch.slice(skipped)
            taken = min(batch.num_rows, last - self.row)
            if taken < batch.num_rows:
                self._left = batch.slice(taken)
            if taken:
                found.append(batch.slice(0, taken))
            self.row += taken
        return found


class ArrowCsv(_ArrowTable):
    """A CSV file, packed or not."""

    header = True

    def __init__(self, file: CsvSource) -> None:
        self.file, self.source, self.where = file, file.source, file.where
        self.names = []
        # pyarrow takes a quote that is never closed for the last cell's, which swallows all people behind it.
        if file.quotes() % 2:
            check_quotes(file)
        with self._blaming():
            schema = self._open(skip_blank=True).schema
            self.names = list(schema.names)
            self.kinds = dict(zip(schema.names, schema.types, strict=True))

    def numbers(self, names: Sequence[str | None]) -> list[Numbers]:
        import pyarrow as pa

        asked = [str(name) for name in names]
        for name in asked:
            if not _is_numeric(self.kinds[name]):
                raise self._no_numbers(name)
        widened: dict[str, str] = {}
        while True:
            types = {name: pa.type_for_alias(kind) for name, kind in widened.items()}
            try:
                return _joined(self._batches(asked, column_types=types), len(asked))
            except (pa.ArrowException, OSError, UnicodeDecodeError) as broken:
                misread = _MISREAD.search(str(broken))
                if misread is None:
                    raise self._unreadable(broken) from broken
                # The first block was not like the rest of the column: what kind it is, all of it says.
                name, kind = self.names[int(misread[1])], misread[2]
                if kind not in _WIDER:
                    raise self._no_numbers(name) from broken
                widened[name] = _WIDER[kind]

    def _no_numbers(self, name: str) -> DataError:
        """Name the first cell that is not a number, and its row."""
        import pyarrow as pa
        from pyarrow import compute

        before = 0
        with self._blaming():
            # As bytes, since the text need not be UTF-8.
            for (cells,) in self._batches([name], column_types={name: pa.binary()}, strings_can_be_null=True):
                encoded = cells.dictionary_encode()
                texts = [cell.decode(errors="replace") for cell in encoded.dictionary.to_pylist()]
                place = first_text(texts, self.file.decimal)
                if place is not None:
                    row = before + compute.index(encoded.indices, place).as_py() + 1
                    return wrong_kind(name, self.where, "string", texts[place], row)
                before += len(cells)
        return wrong_kind(name, self.where, "string")

    def _kind_of_words(self, name: str) -> Any:
        import pyarrow as pa

        return pa.large_string()

    def _batches_of_words(self, name: str, kind: Any) -> Iterator[list[Any]]:
        # Empty is missing; NA, null and the like are names as good as any.
        return self._batches([name], column_types={name: kind}, null_values=[""], strings_can_be_null=True)

    def _batches(self, names: list[str], **convert: Any) -> Iterator[list[Any]]:
        # In a file of one column a blank line is a value left out; in a wider one it is no row at all.
        for batch in self._open(skip_blank=len(self.names) > 1, include_columns=names, **convert):
            yield [batch.column(batch.schema.get_field_index(name)) for name in names]

    def _open(self, *, skip_blank: bool, **convert: Any) -> Any:
        import pyarrow as pa
        from pyarrow import csv

        # Its own handlers lose an interrupt that comes while a file is opened.
        pa.enable_signal_handlers(False)

        spelled = {"null_values": sorted(NOTHING), "true_values": list(TRUE), "false_values": list(FALSE)}
        file = self.file
        if file.path is None:
            stream = file.open()
        else:
            stream = pa.input_stream(str(file.path), compression="gzip" if file.is_packed else None)
        return csv.open_csv(
            stream,
            # One thread is as fast for one column, and only then do errors know their row.
            read_options=csv.ReadOptions(use_threads=False, block_size=_BLOCK),
            parse_options=csv.ParseOptions(
                newlines_in_values=True, ignore_empty_lines=skip_blank, delimiter=file.delimiter
            ),
            convert_options=csv.ConvertOptions(decimal_point=file.decimal, **spelled | convert),
        )

    def _error(self, broken: Exception) -> DataError:
        message = str(broken)
        if isinstance(broken, UnicodeDecodeError) or "invalid UTF8" in message or self.file.is_wide:
            return not_utf8(self.source)
        if "Empty CSV" in message:
            return no_rows(self.source)
        if found := _RAGGED.search(message):
            line, expected, actual = found.groups()
            return ragged(self.where, int(expected), int(actual), int(line) - 1 if line else None)
        return unreadable(self.source, "CSV", "look for a quote that is not closed, or write it again")


def _is_numeric(kind: Any) -> bool:
    from pyarrow import types

    # A column of nulls is let through: all its people have no value.
    tests = (types.is_boolean, types.is_integer, types.is_floating, types.is_null)
    return any(test(kind) for test in tests)


def _joined(batches: Iterator[list[Any]], columns: int) -> list[Numbers]:
    """Columns of pyarrow's batches as arrays, and which rows of each have no value."""
    pieces = [[numbers_of_cells(cells) for cells in batch] for batch in batches]
    if not pieces:
        return [(np.zeros(0), np.zeros(0, dtype=np.bool_)) for _ in range(columns)]
    found = (zip(*column, strict=True) for column in zip(*pieces, strict=True))
    return [(np.concatenate(values), np.concatenate(blank)) for values, blank in found]


def numbers_of_cells(cells: Any) -> Numbers:
    """An array of pyarrow's as numbers, and which of them are missing: null or NaN."""
    from pyarrow import types

    kind = cells.type
    if types.is_null(kind):
        return np.zeros(len(cells)), np.ones(len(cells), dtype=np.bool_)
    blank = _array_of(cells.is_null(nan_is_null=True), False)
    # Nulls would make floats of whole numbers.
    values = _array_of(cells, math.nan if types.is_floating(kind) else 0)
    return (values.astype(np.float64) if values.dtype.kind == "f" else values), blank


def _array_of(cells: Any, instead: float) -> NDArray[Any]:
    """Numbers of pyarrow's as an array, with another instead of nulls.

    Not by pyarrow's `to_numpy` and `fill_null`, which import pandas wherever it is installed: half a second, in which
    an interrupt of the user is lost.
    """
    import pyarrow as pa

    if pa.types.is_boolean(cells.type):
        return _array_of(cells.cast(pa.uint8()), instead).view(np.bool_)
    numbers = pa.Array.from_buffers(cells.type, len(cells), [None, cells.buffers()[1]], offset=cells.offset)
    values: NDArray[Any] = np.from_dlpack(numbers)
    if not cells.null_count:
        return values
    return np.where(_array_of(cells.is_null(), False), np.array(instead, values.dtype), values)


def texts_of(cells: Any) -> Texts:
    """An array of pyarrow's strings; rows without one are at place -1."""
    import pyarrow as pa

    encoded = cells.dictionary_encode()
    return Texts(
        np.array(encoded.dictionary.to_pylist(), dtype=np.str_), _array_of(encoded.indices.cast(pa.int64()), -1)
    )
