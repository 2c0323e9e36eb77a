"""The values of a file as a plan takes them: read whole, or in pieces by the tasks of an engine."""

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from shuffledp.cli.domains import read_values
from shuffledp.cli.people import Rows, read_groups
from shuffledp.engines.sources import Source, Stretch
from shuffledp.errors import ParameterError
from shuffledp.files import is_there
from shuffledp.tables.pieces import Cut, Kinds, PieceReader, agreed, cut
from shuffledp.tables.reading import Reading

if TYPE_CHECKING:
    from shuffledp.cli.days import DayRange
    from shuffledp.protocols.domains.domain import Categories
    from shuffledp.protocols.plan import Plan

# Cells that are read at a time, and bytes of a CSV file.
_CELLS, _BYTES = 1 << 16, 1 << 22
# What the values are after those that were missing have been filled in: no column has such a name.
_FILLED = "\0filled"


@dataclass(frozen=True)
class FileValues:
    """What is read of a file, and what is made of it.

    Attributes:
        file: CSV, Parquet or .npy.
        column: the only column that is read.
        columns: several columns, where a person's value has several numbers.
        named: the categories that values are looked up in.
        in_rows: whether a person's value has several numbers.
        words: whether a column without named categories is text.
        days: the range of days that a column of days is read as numbers of.
        clip: whether values outside the domain are brought into it.
        by: the column of groups.
        groups: all groups there are.
    """

    file: Path
    column: str | None
    columns: str | None
    named: "Categories | None"
    in_rows: bool
    words: bool
    days: "DayRange | None"
    clip: bool
    by: str | None = None
    groups: "Categories | None" = None

    def own(self, reading: Reading | None) -> Any:
        """People's own values, a row each."""
        values = read_values(
            self.file,
            self.column,
            self.columns,
            named=self.named,
            in_rows=self.in_rows,
            words=self.words,
            reading=reading,
        )
        return values if self.days is None else self.days.numbers(values, clip=self.clip)

    def group_codes(self, reading: Reading | None) -> Any:
        """The code of the group in every row; None where groups are not asked for."""
        return read_groups(self.file, self.by, self.groups, reading)

    def checked(self, plan: "Plan", values: Any, groups: Any = None, rows: Rows | None = None) -> tuple[Any, int]:
        """People's own values as the plan takes them, and how many were brought into its range.

        Args:
            plan: says what its values are.
            values: people's own.
            groups: the code of the group in every row.
            rows: whose rows they are, where a person may have several.
        """
        # Codes of categories were made while the file was read; nothing can be outside of them.
        one = plan.domain.row
        own, clipped = one.clip_own_values(values) if self.clip and self.named is None else (values, 0)
        if rows is None and groups is None:
            return plan.check_values(own if self.named is not None else plan.encode(own)), clipped
        checked = one.check_values(own if self.named is not None else one.encode(own))
        if groups is not None:
            checked = plan.domain.with_groups(groups, checked)
        if rows is not None:
            checked = rows.gathered(plan.domain, checked)
        return plan.check_values(checked), clipped

    @property
    def bytes_a_row(self) -> int:
        """About what a row takes while it is read and encoded."""
        return 400 if self.words or (self.named is not None and self.named.reads == "words") else 80


@dataclass(frozen=True)
class FileSource(Source):
    """A file's values in pieces.

    Attributes:
        values: what is read, and what is made of it.
        cut: the file's pieces.
        reading: how the file is read.
        plan: what values are checked by.
        kinds: what columns of numbers are in the whole file, where pieces did not agree.
    """

    values: FileValues
    cut: Cut
    reading: Reading
    plan: "Plan"
    kinds: Kinds = field(default_factory=dict)

    @property
    def rows(self) -> int:
        return self.cut.rows

    @property
    def unit(self) -> int:
        return self.cut.each

    @property
    def row_bytes(self) -> int:
        return self.values.bytes_a_row * max(1, int(getattr(self.plan.domain.row, "columns", 1) or 1))

    def part(self, first: int, last: int) -> "FileStretch":
        return FileStretch(self, first, last)

    def agreeing(self, noticed: frozenset[Any]) -> "FileSource | None":
        kinds = {
            name: kind for name, kind in agreed(noticed).items() if name != _FILLED or kind == np.dtype(float).name
        }
        return None if {**self.kinds, **kinds} == {**self.kinds} else replace(self, kinds={**self.kinds, **kinds})


@dataclass(eq=False)
class FileStretch(Stretch):
    """Rows of a file that one task reads.

    Attributes:
        source: the file.
        first: the first row.
        last: the first row behind them.
    """

    source: FileSource
    first: int
    last: int
    noticed: frozenset[Any] = frozenset()
    clipped: int = 0

    def blocks(self, rows: int) -> Iterator[tuple[int, Any]]:
        waiting: list[Any] = []
        row, held = self.first, 0
        for values in self._pieces():
            waiting.append(values)
            held += len(values)
            while held >= rows:
                together = waiting[0] if len(waiting) == 1 else np.concatenate(waiting)
                yield row, together[:rows]
                row, held = row + rows, held - rows
                waiting = [together[rows:]] if held else []
        if held:
            yield row, waiting[0] if len(waiting) == 1 else np.concatenate(waiting)

    def _pieces(self) -> Iterator[Any]:
        """The checked values of every piece, as far as its rows are among these."""
        source = self.source
        source.cut.check_unchanged()
        reader = PieceReader(source.cut, source.reading, source.kinds)
        for piece in range(self.first // source.cut.each, -(-self.last // source.cut.each)):
            try:
                values = self._checked(reader, piece)
            except ParameterError as refused:
                raise reader.blamed(piece, refused) from None
            start, _ = source.cut.rows_of(piece)
            yield values[max(0, self.first - start) : self.last - start]
        source.cut.check_unchanged()
        self.noticed = frozenset(reader.seen)

    def _checked(self, reader: PieceReader, piece: int) -> Any:
        source, reading = self.source, reader.reading(piece)
        own = source.values.own(reading)
        if own.dtype.kind in "buif" and own.ndim == 1:
            reader.seen.add((_FILLED, own.dtype.name))
            own = own.astype(source.kinds.get(_FILLED, own.dtype.name), copy=False)
        checked, clipped = source.values.checked(source.plan, own, source.values.group_codes(reading))
        self.clipped += clipped
        return checked


def cut_for(values: FileValues, reading: Reading) -> Cut | None:
    """The pieces of a file that are read at a time; None where it must be read whole.

    Args:
        values: what is read.
        reading: how.
    """
    width = 1
    if values.in_rows and values.columns:
        width = len(values.columns.split(","))
    elif values.in_rows:
        from shuffledp.errors import DataError
        from shuffledp.tables.names import column_names

        try:
            width = len(column_names(values.file, reading=reading))
        except DataError:
            # What has no columns is read whole, and refused by what needs them.
            return None
    rows = max(1, _CELLS // width)
    suffixes = values.file.name.lower()
    if not suffixes.endswith((".npy", ".parquet")) and is_there(values.file):
        # A line is as long as the first ones are.
        with values.file.open("rb") as stream:
            looked_at = stream.read(1 << 16)
        rows = min(rows, max(1, _BYTES * (1 + looked_at.count(b"\n")) // max(1, len(looked_at))))
    return cut(values.file, reading, 1 << (rows.bit_length() - 1))


def first_piece(found: Cut, reading: Reading) -> Reading:
    """How the first piece of a file is read: what it is like is known before a plan is made."""
    return PieceReader(found, reading, {}).reading(0)
