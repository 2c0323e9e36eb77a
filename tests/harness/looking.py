"""What is in a store, whatever keeps it: what the model compares with what clients were told."""

import sqlite3
from collections.abc import Iterable
from typing import Any, Protocol

from harness.world import batch_rows, known_ids, rows
from shuffledp.service.store.sqlite import shuffler as sqlite_shuffler

TIDYING, READY, SENT, GONE = range(4)


class Look(Protocol):
    """How to look into stores of one kind."""

    def parts(self, store: Any) -> list[tuple[str, str, int, bytes]]:
        """Task, batch, seat and bytes of all parts."""

    def sealed(self, store: Any) -> list[tuple[str, str, int, bytes]]:
        """Task, batch, state and bytes of every sealed batch."""

    def accepted(self, store: Any, report_ids: Iterable[str]) -> set[str]:
        """Which of these ids the shuffler knows."""

    def read(self, store: Any) -> list[tuple[Any, ...]]:
        """Of every batch at the analyzer: task, batch, digest, bytes, total, dropped, void."""

    def delete(self, store: Any, task_id: str) -> None:
        """A finished task's rows, so that checking stays quick."""


class SqliteLook:
    """Into SQLite files."""

    def parts(self, store: Any) -> list[tuple[str, str, int, bytes]]:
        return batch_rows(store, "parts")

    def sealed(self, store: Any) -> list[tuple[str, str, int, bytes]]:
        bodies: dict[tuple[str, str], bytes] = {}
        for task_id, batch_id, _, body in sorted(batch_rows(store, "pieces")):
            bodies[task_id, batch_id] = bodies.get((task_id, batch_id), b"") + body
        states = rows(store, "SELECT task_id, batch_id, state FROM sealed")
        return [(task_id, batch_id, state, bodies.get((task_id, batch_id), b"")) for task_id, batch_id, state in states]

    def accepted(self, store: Any, report_ids: Iterable[str]) -> set[str]:
        ids = known_ids(store)
        return {report_id.hex() for report_id in ids} & set(report_ids)

    def read(self, store: Any) -> list[tuple[Any, ...]]:
        return rows(store, "SELECT task_id, batch_id, digest, body, total, dropped, void FROM batches")

    def delete(self, store: Any, task_id: str) -> None:
        store.write(lambda records: _delete(records.db, task_id))


def _delete(db: sqlite3.Connection, task_id: str) -> None:
    for (table,) in db.execute("SELECT name FROM sqlite_master WHERE type = 'table'").fetchall():
        columns = {row[1] for row in db.execute(f"PRAGMA table_info({table})")}
        if table != "tasks" and "task_id" in columns:
            if table in ("batches", "sealed") and "number" in columns:
                for (number,) in db.execute(f"SELECT number FROM {table} WHERE task_id = ?", (task_id,)).fetchall():
                    db.execute(f"DROP TABLE IF EXISTS parts_{number}")
                    db.execute(f"DROP TABLE IF EXISTS pieces_{number}")
                    db.execute(f"DROP TABLE IF EXISTS buckets_{number}")
            db.execute(f"DELETE FROM {table} WHERE task_id = ?", (task_id,))


assert (TIDYING, READY, SENT, GONE) == (
    sqlite_shuffler.TIDYING, sqlite_shuffler.READY, sqlite_shuffler.SENT, sqlite_shuffler.GONE,
)  # fmt: skip
