"""A file in pieces of a fixed number of rows, each of which can be read by itself, in another process.

What the values of a piece are, the readers of whole files say: a `Reading` of a piece opens a table that has its rows
alone. Only the kind of a column of numbers, which all rows decide together, must be agreed on afterwards (`agreed`).
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from shuffledp.errors import DataError, ParameterError
from shuffledp.files import is_there
from shuffledp.tables.complaints import wrong_kind
from shuffledp.tables.csv_rows import row_starts
from shuffledp.tables.csv_source import CsvSource
from shuffledp.tables.reading import STANDARD_INPUT, Reading, is_installed
from shuffledp.tables.spelling import FALSE, NOTHING, TRUE
from shuffledp.tables.table import Numbers, OpenTable
from shuffledp.tables.words import Texts

Kinds = Mapping[str | None, str]
"""What columns of numbers are, by their names: NumPy's name of their kind, or `null` where nobody has a value."""

_NOBODY = "null"
# A column of a CSV file is the first of these that all its cells are.
_WIDER = (_NOBODY, "int64", "bool", "float64")
_ROW = re.compile(r"\brow (\d+)\b")
_COUNTED = re.compile(r"[\d,]+ of [\d,]+ (rows without one)")


@dataclass(frozen=True, slots=True)
class Cut:
    """A file that can be read in pieces: what every process must know of it.

    Attributes:
        path: the file.
        rows: how many it has.
        each: rows of a piece; the last may have fewer.
        looks: its size and the time of its last change: whoever finds others reads another file.
        starts: of a CSV file, the byte at which each piece begins, and where the file ends.
        header: of a CSV file, the bytes of its first line.
        csv: of a CSV file, how it is written.
    """

    path: Path
    rows: int
    each: int
    looks: tuple[int, int]
    starts: tuple[int, ...] = ()
    header: bytes = b""
    csv: CsvSource | None = None

    @property
    def pieces(self) -> int:
        """How many pieces there are."""
        return -(-self.rows // self.each)

    def rows_of(self, piece: int) -> tuple[int, int]:
        """The first row of a piece, and the first behind it."""
        return piece * self.each, min(self.rows, (piece + 1) * self.each)

    def check_unchanged(self) -> None:
        """Refuse a file that was changed while it is read: its pieces would be of two files.

        Raises:
            DataError: it was.
        """
        if _looks_of(self.path) != self.looks:
            problem, way_out = "must not change while it is read", "run it again when the file is whole"
            raise DataError("file", str(self.path), problem, way_out)


def _looks_of(path: Path) -> tuple[int, int]:
    found = path.stat()
    return found.st_size, found.st_mtime_ns


def cut(path: Path, reading: Reading, each: int) -> Cut | None:
    """Find the pieces of a file; None where it must be read whole: packed, from a query or a pipe, in another encoding.

    Args:
        path: CSV, Parquet or .npy.
        reading: how it is read.
        each: rows of a piece.

    Raises:
        DataError: the file cannot be read.
    """
    if path == STANDARD_INPUT or reading.sql is not None or reading.encoding is not None:
        return None
    looks = _looks_of(path) if is_there(path) else (0, 0)
    table: Any = reading.open(path)
    name = path.name.lower()
    if name.endswith(".npy"):
        array = table.array
        return None if array is None or array.ndim not in (1, 2) else Cut(path, len(array), each, looks)
    if name.endswith(".parquet"):
        return Cut(path, table.parquet.metadata.num_rows, each, looks)
    file: CsvSource = table.file
    if file.is_packed or file.is_wide or not table.names:
        return None
    found = row_starts(file, each, one_column=len(table.names) == 1)
    return None if found is None else Cut(path, found.rows, each, looks, found.starts, found.header, file)


class PieceReader:
    """Reads pieces of one file, one after another: what is open stays open from one to the next.

    Args:
        cut: the file's pieces.
        whole: how the file is read.
        kinds: what columns of numbers are in the whole file, where that is known already.
    """

    def __init__(self, cut: Cut, whole: Reading, kinds: Kinds) -> None:
        self.cut, self.whole, self.kinds = cut, whole, kinds
        self.seen: set[tuple[str | None, str]] = set()
        """Columns of numbers that were read, each with what it was in a piece."""

    def reading(self, piece: int) -> "PieceReading":
        """How one piece is read."""
        said = {name: getattr(self.whole, name) for name in ("delimiter", "missing", "decimal")}
        return PieceReading(**said, reader=self, piece=piece)

    def table(self, piece: int) -> OpenTable:
        """The rows of a piece as a table."""
        if self.cut.csv is None:
            table: OpenTable = self._file.between(*self.cut.rows_of(piece))
            return table
        start, end = self.cut.starts[piece : piece + 2]
        with self.cut.path.open("rb") as stream:
            stream.seek(start)
            content = self.cut.header + stream.read(end - start)
        file = replace(self.cut.csv, path=None, content=content)
        if is_installed("pyarrow"):
            from shuffledp.tables.arrow_table import ArrowCsv

            return ArrowCsv(file)
        from shuffledp.tables.plain_csv import PlainCsv

        return PlainCsv(file)

    @cached_property
    def _file(self) -> Any:
        return self.whole.open(self.cut.path)

    def blamed(self, piece: int, refused: ParameterError) -> ParameterError:
        """What is wrong with a piece, as it is said of the file: its rows are counted from the file's first."""
        before = self.cut.rows_of(piece)[0]

        def of_file(text: Any) -> Any:
            if not isinstance(text, str):
                return text
            return _ROW.sub(lambda found: f"row {int(found[1]) + before}", _COUNTED.sub(r"\1", text))

        if not isinstance(refused, DataError):
            return refused
        return DataError(refused.parameter, of_file(refused.value), of_file(refused.problem), refused.way_out)


@dataclass(frozen=True)
class PieceReading(Reading):
    """How one piece of a file is read: as the whole file is, but for the rows that are there.

    Attributes:
        reader: who reads the file's pieces.
        piece: which of them.
    """

    reader: PieceReader | None = field(default=None, compare=False)
    piece: int = 0

    def _opened(self, path: Path) -> OpenTable:
        if self.reader is None or path != self.reader.cut.path:
            return super()._opened(path)
        return PieceTable(self.reader, self.reader.table(self.piece), self.reader.cut.rows_of(self.piece))


class PieceTable(OpenTable):
    """The rows of one piece of a file; columns of numbers are of the kind that they are in the whole file.

    Args:
        reader: knows those kinds, as far as they are known.
        table: the piece's rows.
        rows: its first row in the file, and the first behind it.
    """

    def __init__(self, reader: PieceReader, table: OpenTable, rows: tuple[int, int]) -> None:
        self._reader, self._table, self._rows = reader, table, rows
        self.source, self.where, self.header = table.source, table.where, table.header

    @property
    def names(self) -> Sequence[str]:  # type: ignore[override]
        """The names of the file's columns, in their order."""
        return self._table.names

    def choose(self, column: str | None) -> str | None:
        return self._table.choose(column)

    def several(self, columns: Sequence[str] | None) -> dict[str | None, Numbers]:
        return {name: self._agreeing(name, found) for name, found in self._table.several(columns).items()}

    def numbers(self, names: Sequence[str | None]) -> list[Numbers]:
        found = zip(names, self._table.numbers(names), strict=True)
        return [self._agreeing(name, each) for name, each in found]

    def words(self, name: str | None) -> Texts:
        found = self._table.words(name)
        self._check_rows(len(found))
        return found

    def _check_rows(self, found: int) -> None:
        first, last = self._rows
        if found != last - first:
            problem = f"rows {first + 1}..{last} of {self.where} must be as many, however they are read"
            raise DataError("file", found, problem, "write it again, with quotes around cells that have some")

    def _agreeing(self, name: str | None, found: Numbers) -> Numbers:
        values, blank = found
        self._check_rows(len(values))
        kind = _NOBODY if blank.all() else values.dtype.name
        self._reader.seen.add((name, kind))
        wanted = self._reader.kinds.get(name, kind)
        if wanted == kind:
            return found
        if kind == _NOBODY or (kind, wanted) == ("int64", "float64"):
            return values.astype(wanted), blank
        if (kind, wanted) == ("int64", "bool"):
            # A column of true and false may have 1 and 0 in it, spelled so.
            distinct = set(self._table.words(name).distinct.tolist())
            if distinct <= {*TRUE, *FALSE, *NOTHING}:
                return values.astype(np.bool_), blank
        raise wrong_kind(name, self.where, "string")


def agreed(seen: Iterable[tuple[str | None, str]]) -> dict[str | None, str]:
    """What columns of numbers are in the whole file, where pieces differ; empty where they do not.

    >>> agreed({("age", "int64"), ("age", "float64"), ("size", "int64")})
    {'age': 'float64'}
    """
    kinds: dict[str | None, set[str]] = {}
    for name, kind in seen:
        kinds.setdefault(name, set()).add(kind)
    order = {kind: place for place, kind in enumerate(_WIDER)}
    return {name: max(each, key=lambda kind: order.get(kind, 1)) for name, each in kinds.items() if len(each) > 1}
