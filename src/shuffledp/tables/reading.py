"""How a table is read: what stands between its cells, a query, and what people without a value report."""

import importlib.util
import os
import shlex
import sys
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from shuffledp.errors import DataError
from shuffledp.tables.complaints import no_extra, no_rows
from shuffledp.tables.csv_source import POINT, CsvSource, parse_decimal, parse_delimiter, parse_encoding, recoded
from shuffledp.tables.missing import Missing
from shuffledp.tables.table import OpenTable

STANDARD_INPUT = Path("-")
_SUFFIXES = (".csv", ".csv.gz", ".tsv", ".tsv.gz", ".parquet", ".npy")
_DATABASE = ".duckdb"


@dataclass(frozen=True)
class Reading:
    r"""How a table is read.

    Attributes:
        delimiter: what stands between cells of a CSV file; None if its header says so.
        sql: a query for DuckDB, whose answer has a row a person; None to read the file itself.
        missing: what people without a value report.
        decimal: what stands before decimals in a CSV file, a comma or a point; None for a point.
        encoding: of a CSV file; None for UTF-8.

    >>> Reading(delimiter=r"\t").delimiter
    '\t'
    """

    delimiter: str | None = None
    sql: str | None = None
    missing: Missing = field(default_factory=Missing)
    decimal: str | None = None
    encoding: str | None = None
    _kept: dict[str, Any] = field(default_factory=dict, repr=False, compare=False)

    def __post_init__(self) -> None:
        if self.delimiter is not None:
            object.__setattr__(self, "delimiter", parse_delimiter(self.delimiter))
        if self.decimal is not None:
            parse_decimal(self.decimal)
        if self.encoding is not None:
            parse_encoding(self.encoding)

    @property
    def said(self) -> dict[str, str]:
        """What is not left to the file, by the names of its options, as it is typed."""
        typed = {
            "delimiter": r"\t" if self.delimiter == "\t" else self.delimiter,
            "decimal": self.decimal,
            "encoding": self.encoding,
            "sql": self.sql,
            "missing": self.missing.typed if self.missing.is_said else None,
        }
        return {name: value for name, value in typed.items() if value is not None}

    @property
    def options(self) -> str:
        """The options of the command line that read a table in this way; empty where all is left to the file."""
        return " ".join(f"--{name} {shlex.quote(value)}" for name, value in self.said.items())

    def open(self, path: Path) -> OpenTable:
        """Open a table; - is standard input, which holds CSV.

        Raises:
            DataError: the file is not there, damaged, or of a format that is not known or needs an extra.
            ParameterError: a value is said for people without one in a column that is not there.
        """
        table = self._opened(path)
        if self.missing.each:
            self.missing.check_columns(table.names, table.where)
        return table

    def _opened(self, path: Path) -> OpenTable:
        """The table itself, whatever is said of its columns."""
        if self.sql is not None:
            from shuffledp.tables.queries import QueryTable

            if path == STANDARD_INPUT:
                raise DataError("sql", self.sql, "cannot read standard input", "name a file")
            if self.encoding is not None:
                way_out = "save the file in UTF-8, and leave it out"
                raise DataError("encoding", self.encoding, "cannot be said beside sql", way_out)
            check_file(path, (*_SUFFIXES[:-1], _DATABASE))
            # Asked once: two answers of one query need not have their rows in one order.
            answer: OpenTable = self._once(
                str(path), lambda: QueryTable(path, str(self.sql), self.delimiter, self.decimal)
            )
            return answer
        if path != STANDARD_INPUT:
            check_file(path, _SUFFIXES)
        name = path.name.lower()
        for option in ("delimiter", "decimal", "encoding") if name.endswith((".npy", ".parquet")) else ():
            if (value := getattr(self, option)) is not None:
                raise DataError(option, repr(value), f"is for CSV files, not for {path.name}", "leave it out")
        if name.endswith(".npy"):
            from shuffledp.tables.npy_table import NpyTable

            return NpyTable(path)
        has_pyarrow = is_installed("pyarrow")
        if name.endswith(".parquet"):
            if not has_pyarrow:
                raise no_extra("file", str(path), "pyarrow", "tables", "save it as CSV")
            from shuffledp.tables.arrow_table import ParquetTable

            return ParquetTable(path)
        if has_pyarrow:
            from shuffledp.tables.arrow_table import ArrowCsv

            return ArrowCsv(self._csv(path))
        from shuffledp.tables.plain_csv import PlainCsv

        return PlainCsv(self._csv(path))

    def _csv(self, path: Path) -> CsvSource:
        if path == STANDARD_INPUT:
            # It can be read only once, and a table is looked at twice.
            content = self._once("-", lambda: sys.stdin.buffer.read())
            if not content:
                raise no_rows("standard input")
            file = CsvSource("standard input", "standard input", None, content)
        else:
            file = CsvSource(str(path), path.name, path)
        file = replace(file, decimal=self.decimal or POINT)
        if self.encoding is not None:
            name, encoding, coded = f"{path} in {self.encoding}", self.encoding, file
            file = replace(file, path=None, content=self._once(name, lambda: recoded(coded, encoding)))
        return replace(file, delimiter=file.guessed_delimiter() if self.delimiter is None else self.delimiter)

    def _once(self, name: str, made: Callable[[], Any]) -> Any:
        if name not in self._kept:
            self._kept[name] = made()
        return self._kept[name]

    def refusing(self) -> "Reading":
        """How a column is read in which nobody may be without a value, such as whose a row is."""
        return replace(self, missing=replace(self.missing, rule="refuse", value=None, each=()))


def check_file(path: Path, suffixes: tuple[str, ...] = _SUFFIXES) -> None:
    """Refuse a path that is no readable file of a known format.

    >>> check_file(Path("missing.csv"))
    Traceback (most recent call last):
        ...
    shuffledp.errors.DataError: file must exist, got missing.csv: check the path.
    """
    try:
        is_folder, is_there = path.is_dir(), path.exists()
    except OSError as refused:
        raise DataError("file", str(path), f"must be a file's name ({refused.strerror})", "check the path") from None
    if is_folder:
        raise DataError("file", str(path), "must be a file, not a directory", "name one file in it")
    if not is_there:
        raise DataError("file", str(path), "must exist", "check the path")
    name = path.name.lower()
    if name.endswith(_DATABASE) and _DATABASE not in suffixes:
        way_out = "add --sql 'select ... from ...' with a row a person"
        raise DataError("sql", None, f"must say what to read from {path.name}", way_out)
    if not name.endswith(suffixes):
        known = f"{', '.join(suffixes[:-1])} or {suffixes[-1]}"
        raise DataError("file", str(path), f"must end in {known}", "save the table as one of these")
    if not os.access(path, os.R_OK):
        raise DataError("file", str(path), "must be readable", "check its permissions")
    if path.stat().st_size == 0:
        raise DataError("file", str(path), "must not be empty", "write a row for each user")


def is_installed(package: str) -> bool:
    """Whether a package can be imported; one that was blocked cannot."""
    if package in sys.modules:
        return sys.modules[package] is not None
    return importlib.util.find_spec(package) is not None
