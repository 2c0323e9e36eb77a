"""Where rows of a CSV file begin, found by one look at its bytes that holds little of them."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from shuffledp.tables.csv_source import CsvSource

_BLOCK = 1 << 22
_NEWLINE, _RETURN, _QUOTE = 10, 13, 34
_BOM = b"\xef\xbb\xbf"


@dataclass(frozen=True, slots=True)
class RowStarts:
    """The rows of a CSV file, and where every so many of them begin.

    Attributes:
        rows: how many rows there are below the header.
        starts: the byte at which row 0, `every`, 2 `every`, ... begins, and last of all where the file ends.
        header: the bytes of the header, with the end of its line.
    """

    rows: int
    starts: tuple[int, ...]
    header: bytes


def row_starts(file: CsvSource, every: int, *, one_column: bool) -> RowStarts | None:
    """Find every so many rows of a CSV file; None where only reading it whole tells what its rows are.

    A line's end within quotes is part of a cell. Quotes are only understood where they open at the beginning of a cell:
    a file in which others stand is one that rows cannot be told of by such a look.

    Args:
        file: not packed; in UTF-8.
        every: rows from one place to the next.
        one_column: whether a blank line is a row, in which a value is left out.
    """
    delimiter = ord(file.delimiter)
    lines, offset, inside = 0, 0, False
    # What stood before the block: its last byte, and whether the line that it is in has anything.
    before, line_start = _NEWLINE, 0
    header_end: int | None = None
    places: list[int] = []
    with file.open() as stream:
        pending = b""
        while True:
            block = stream.read(_BLOCK)
            if not block and not pending:
                break
            content = pending + block
            pending = b""
            # A carriage return at the end of a block may be half of a line's end.
            if block and content[-1] == _RETURN:
                pending, content = content[-1:], content[:-1]
                if not content:
                    continue
            cells = np.frombuffer(content, dtype=np.uint8)
            found = _line_ends(cells, delimiter, before, inside, first=offset == 0)
            if found is None:
                return None
            ends, inside = found
            ends = ends + offset + 1
            begins = np.concatenate(([line_start], ends[:-1])) if ends.size else ends
            if ends.size:
                line_start = int(ends[-1])
            if header_end is None and ends.size:
                if _blank_lines(cells, begins[:1] - offset, ends[:1] - offset)[0]:
                    return None
                header_end = int(ends[0])
                begins, ends = begins[1:], ends[1:]
            if ends.size and not one_column:
                begins = begins[~_blank_lines(cells, begins - offset, ends - offset)]
            wanted = np.arange(-lines % every, begins.size, every)
            places += begins[wanted].tolist()
            lines += int(begins.size)
            before = int(cells[-1])
            offset += len(content)
    if header_end is None:
        return None
    if line_start < offset:
        # The last line has no end.
        if lines % every == 0:
            places.append(line_start)
        lines += 1
    with file.open() as stream:
        header = stream.read(header_end)
    return RowStarts(lines, (*places, offset), header)


def _line_ends(
    cells: NDArray[np.uint8], delimiter: int, before: int, inside: bool, *, first: bool
) -> tuple[NDArray[np.int64], bool] | None:
    """The last byte of every line's end that is not within quotes, and whether the block ends within some."""
    returns = cells == _RETURN
    ends = cells == _NEWLINE
    if returns.any():
        # A return alone ends a line, too; of both, the newline does.
        ends |= returns & np.append(cells[1:] != _NEWLINE, True)
    quotes = np.flatnonzero(cells == _QUOTE)
    if not quotes.size:
        return (np.zeros(0, dtype=np.int64) if inside else np.flatnonzero(ends)), inside
    opens = quotes[int(inside) :: 2]
    behind = np.where(opens > 0, cells[opens - 1], before)
    start = opens == len(_BOM) if first and cells[: len(_BOM)].tobytes() == _BOM else np.zeros(opens.size, dtype=bool)
    begins_cell = (behind == delimiter) | (behind == _NEWLINE) | (behind == _RETURN) | (behind == _QUOTE) | start
    if not begins_cell.all():
        return None
    found = np.flatnonzero(ends)
    is_inside = (np.searchsorted(quotes, found) + inside) % 2 == 1
    return found[~is_inside], bool((quotes.size + inside) % 2)


def _blank_lines(cells: NDArray[np.uint8], begins: NDArray[np.int64], ends: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Which lines hold nothing but their end; one that began in an earlier block has what stood there."""
    lengths = ends - begins
    first = np.where(begins >= 0, cells[np.maximum(begins, 0)], 0)
    return np.asarray((lengths == 1) | ((lengths == 2) & (first == _RETURN)))
