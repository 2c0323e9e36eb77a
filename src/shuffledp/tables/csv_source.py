"""Where the bytes of a CSV file come from, what stands between its cells, and what can be wrong with its rows."""

import contextlib
import csv
import gzip
import io
import zlib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from shuffledp.errors import DataError, ParameterError
from shuffledp.tables.complaints import unreadable

COMMA, POINT = ",", "."
_DELIMITERS = (COMMA, ";", "\t", "|")
_SPELLED = {"\\t": "\t", "tab": "\t"}
# Enough to see the first rows of any file that people make.
_LOOKED_AT, _ROWS_LOOKED_AT = 1 << 16, 10
_BLOCK = 1 << 20


@dataclass(frozen=True)
class CsvSource:
    """A CSV file, or what standard input held.

    Attributes:
        source: the path, as a refusal of the whole file shows it.
        where: what it is called in sentences.
        path: None where the bytes are here already.
        content: the bytes, if there is no path.
        delimiter: what stands between cells.
        decimal: what stands before decimals, a point or a comma.
    """

    source: str
    where: str
    path: Path | None
    content: bytes = b""
    delimiter: str = COMMA
    decimal: str = POINT

    @property
    def is_packed(self) -> bool:
        """Whether the file is packed by gzip."""
        return self.path is not None and self.path.suffix.lower() == ".gz"

    def open(self) -> Any:
        """The bytes as a stream, unpacked."""
        if self.path is None:
            return io.BytesIO(self.content)
        return gzip.open(self.path) if self.is_packed else self.path.open("rb")

    def quotes(self) -> int:
        """How many quotes the file has; where it is damaged, those before that."""
        found = 0
        with contextlib.suppress(EOFError, OSError, zlib.error), self.open() as stream:
            while block := stream.read(_BLOCK):
                found += block.count(b'"')
        return found

    @property
    def is_wide(self) -> bool:
        """Whether the text is in UTF-16, as its first bytes say."""
        return self._looked_at().startswith((b"\xff\xfe", b"\xfe\xff"))

    def _looked_at(self) -> bytes:
        try:
            with self.open() as stream:
                found: bytes = stream.read(_LOOKED_AT)
        except (EOFError, OSError, zlib.error):
            return b""
        return found

    def guessed_delimiter(self) -> str:
        """What the header says: a comma, or the semicolon, tab or bar that cuts it and the first rows alike."""
        looked_at = self._looked_at()
        text = looked_at.decode("utf-8-sig", errors="replace")
        # The last line may be cut where looking ends.
        lines = text if len(looked_at) < _LOOKED_AT else text[: text.rfind("\n") + 1]
        # Where nothing does there is one column; a comma before decimals must not cut it.
        otherwise = COMMA if self.decimal == POINT else _DELIMITERS[1]
        return next((each for each in _DELIMITERS if _cuts_alike(lines, each)), otherwise)


def _cuts_alike(text: str, delimiter: str) -> bool:
    """Whether a delimiter makes several cells of the header, and as many of every row."""
    widths = set()
    try:
        for row in csv.reader(io.StringIO(text, newline=""), delimiter=delimiter):
            if row:
                widths.add(len(row))
            if len(widths) > 1 or len(widths) >= _ROWS_LOOKED_AT:
                break
    except csv.Error:
        return False
    return len(widths) == 1 and min(widths) > 1


def parse_delimiter(text: str) -> str:
    r"""One character between cells, as it is typed: a tab may be written \t.

    >>> parse_delimiter(";"), parse_delimiter(r"\t")
    (';', '\t')
    """
    found = _SPELLED.get(text, text)
    if len(found) != 1 or not found.isascii() or found in '"\r\n\0':
        way_out = r"write for instance ';' or '\t'"
        raise ParameterError("delimiter", repr(text), "must be one character between cells", way_out)
    return found


def parse_decimal(text: str) -> str:
    """What stands before decimals, as it is typed: a point or a comma."""
    if text not in (POINT, COMMA):
        raise ParameterError("decimal", repr(text), "must be a comma or a point", "write for instance --decimal ,")
    return text


def parse_encoding(text: str) -> str:
    """The name of an encoding of text, as it is typed.

    >>> parse_encoding("latin-1")
    'latin-1'
    """
    try:
        "a".encode(text or "no name")
    except (LookupError, ValueError):
        problem, way_out = "must be the name of one", "latin-1, cp1252 and utf-16 are common"
        raise ParameterError("encoding", text or repr(text), problem, way_out) from None
    return text


def recoded(file: CsvSource, encoding: str) -> bytes:
    """All of a file in UTF-8.

    Raises:
        DataError: it is in another encoding, or damaged.
    """
    try:
        with file.open() as stream:
            text: str = stream.read().decode(encoding)
    except UnicodeError:
        way_out = "give its own --encoding, or leave it out"
        raise DataError("file", file.source, f"must be {encoding} text", way_out) from None
    except (EOFError, OSError, zlib.error):
        raise unreadable(file.source, "CSV", "write it again") from None
    return text.encode("utf-8")


def ragged(where: str, expected: int, found: int, row: int | None) -> DataError:
    """Blame a row that has more or fewer cells than the header."""
    problem = f"{where} must have as many values in every row as in its header ({expected})"
    value = f"{found}" if row is None else f"{found} in row {row}"
    way_out = "correct the row, quote values with commas, or say what is between them with --delimiter"
    return DataError("file", value, problem, way_out)


def not_utf8(source: str) -> DataError:
    """Blame a file in another encoding."""
    return DataError("file", source, "must be UTF-8 text", "save it as that, or say which it is with --encoding")
