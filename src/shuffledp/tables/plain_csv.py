"""CSV files by the standard library alone: the same columns and the same refusals as with pyarrow."""

import csv
import gzip
import io
import zlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import chain
from typing import Any

import numpy as np

from shuffledp.tables.complaints import unreadable, wrong_kind
from shuffledp.tables.csv_source import CsvSource, not_utf8, ragged
from shuffledp.tables.spelling import NOTHING, first_text, numbers_of
from shuffledp.tables.table import Numbers, OpenTable
from shuffledp.tables.words import Texts

# As wide as pyarrow allows a row to be.
_LONGEST_CELL = 1 << 21
# No text has it: half of a pair of UTF-16 that stands for no byte.
_END = "\ud800"


class PlainCsv(OpenTable):
    """A CSV file, packed or not, read by Python's own parser."""

    header = True

    def __init__(self, file: CsvSource) -> None:
        self.file, self.source, self.where = file, file.source, file.where
        with self._rows() as rows:
            self.names = next(rows, [])
        if any(_is_broken(name) for name in self.names):
            raise not_utf8(self.source)

    def numbers(self, names: Sequence[str | None]) -> list[Numbers]:
        return [self._numbers(str(name), cells) for name, cells in zip(names, self._columns(names), strict=True)]

    def words(self, name: str | None) -> Texts:
        (cells,) = self._columns([name])
        found = Texts.of(cells)
        if any(map(_is_broken, found.distinct.tolist())):
            raise not_utf8(self.source)
        return found

    def _numbers(self, name: str, cells: list[str]) -> Numbers:
        texts = Texts.of(cells)
        distinct = texts.distinct.tolist()
        values = numbers_of(distinct, self.file.decimal)
        if values is None:
            place = first_text(distinct, self.file.decimal)
            # Words for true and false beside numbers: the first word is the one to name.
            row = int((texts.where == place).argmax())
            text = cells[row].encode(errors="surrogateescape").decode(errors="replace")
            raise wrong_kind(name, self.where, "string", text, row + 1)
        blank = np.array([cell in NOTHING for cell in distinct], dtype=np.bool_)
        if values.dtype.kind == "f":
            blank |= np.isnan(values)
        return values[texts.where], blank[texts.where]

    def _columns(self, names: Sequence[str | None]) -> list[list[str]]:
        places = [self.names.index(str(name)) for name in names]
        width, found = len(self.names), [[] for _ in places]  # type: ignore[var-annotated]
        with self._rows() as rows:
            next(rows, None)
            for number, row in enumerate(rows, 1):
                if len(row) != width:
                    raise ragged(self.where, width, len(row), number)
                for place, cells in zip(places, found, strict=True):
                    cells.append(row[place])
        return found

    @contextmanager
    def _rows(self) -> Iterator[Iterator[list[str]]]:
        """The rows from the header on; in a file of one column a blank line is a value left out, else no row."""
        limit = csv.field_size_limit(_LONGEST_CELL)
        try:
            with self.file.open() as stream:
                # What is not UTF-8 matters only in the columns that are read.
                text = io.TextIOWrapper(stream, encoding="utf-8-sig", errors="surrogateescape", newline="")
                yield _without_blanks(_closed(csv.reader(chain(text, [_END]), delimiter=self.file.delimiter)))
        except (csv.Error, EOFError, gzip.BadGzipFile, zlib.error, OSError) as broken:
            raise unreadable(self.source, "CSV", "look for a quote that is not closed, or write it again") from broken
        finally:
            csv.field_size_limit(limit)


def check_quotes(file: CsvSource) -> None:
    """Refuse a file that ends inside quotes: its last rows, and the people in them, would be part of one cell."""
    with PlainCsv(file)._rows() as rows:
        for _ in rows:
            pass


def _closed(rows: Iterator[list[str]]) -> Iterator[list[str]]:
    """The rows, as long as the line that was added after the last one is a row of its own, and not part of a cell."""
    before: list[str] | None = None
    for row in rows:
        if before is not None:
            yield before
        before = row
    if before != [_END]:
        raise csv.Error("the file ends inside quotes")


def _without_blanks(rows: Any) -> Iterator[list[str]]:
    width = 0
    for row in rows:
        if row:
            width = width or len(row)
            yield row
        elif width == 1:
            yield [""]


def _is_broken(text: str) -> bool:
    """Whether bytes that are not UTF-8 stand in a text."""
    return not text.isascii() and any("\udc80" <= letter <= "\udcff" for letter in text)
