"""The answer of a query as a table: DuckDB reads its own databases, CSV and Parquet files."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from shuffledp.errors import DataError
from shuffledp.tables.complaints import no_extra, wrong_kind
from shuffledp.tables.given import as_cells
from shuffledp.tables.table import Numbers, OpenTable
from shuffledp.tables.words import Texts

VIEW = "data"
"""What the rows of a CSV or Parquet file are called in a query."""


class QueryTable(OpenTable):
    """The rows that a query selects, each a person.

    A query that leaves people out by what they have shows by the number of reports how many those are: it should
    select them all, and say in a column what those without a value report.
    """

    def __init__(self, path: Path, sql: str, delimiter: str | None = None, decimal: str | None = None) -> None:
        try:
            import duckdb
        except ImportError:
            raise no_extra("sql", sql, "duckdb", "duckdb", "leave it out to read a file's own columns") from None
        self.source, self.where = str(path), f"the query on {path.name}"
        database = path.name.lower().endswith(".duckdb")
        try:
            statements = duckdb.extract_statements(sql)
            if len(statements) != 1 or statements[0].type != duckdb.StatementType.SELECT:
                raise DataError(
                    "sql", sql or repr(sql), "must be one query", "write for instance: select age from data"
                )
            with duckdb.connect(str(path) if database else ":memory:", read_only=database) as connection:
                if not database:
                    _file(connection, path, delimiter, decimal).create_view(VIEW)
                answer = connection.execute(statements[0])
                self.names = [each[0] for each in answer.description]
                found = answer.fetchnumpy()
        except duckdb.Error as refused:
            told = " ".join(str(refused).split("\n")[0].split(". ")[0].split())
            raise DataError("sql", sql, f"failed ({told.rstrip('.!')})", "correct the query") from refused
        self._columns: dict[str, Any] = found

    def numbers(self, names: Sequence[str | None]) -> list[Numbers]:
        found = []
        for name in names:
            values, blank = as_cells(self._columns[str(name)], name, self.where)
            if values.dtype.kind not in "buif":
                raise wrong_kind(name, self.where, str(values.dtype))
            found.append((values.astype(np.float64) if values.dtype.kind == "f" else values, blank))
        return found

    def words(self, name: str | None) -> Texts:
        from shuffledp.tables.given import as_texts

        return as_texts(*as_cells(self._columns[str(name)], name, self.where), name, self.where)


def _file(connection: Any, path: Path, delimiter: str | None, decimal: str | None) -> Any:
    if path.name.lower().endswith(".parquet"):
        return connection.read_parquet(str(path))
    said = {"delimiter": delimiter, "decimal": decimal}
    return connection.read_csv(str(path), **{name: each for name, each in said.items() if each is not None})
