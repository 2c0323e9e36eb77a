"""A shuffler's records in SQLite."""

import json
import sqlite3
from collections import Counter

from shuffledp.service.shuffler.records import Counts, KeptReport, Lease, SealedBatch
from shuffledp.service.wire import position_of

KIND, VERSION = "shuffler", 1

# Ordered by random ids, or deleted when a batch is sealed: nothing keeps the order in which reports came.
SCHEMA = """
CREATE TABLE tasks (
    task_id TEXT PRIMARY KEY, routing TEXT NOT NULL, next_position INTEGER NOT NULL, reports INTEGER NOT NULL
) WITHOUT ROWID;
CREATE TABLE leases (
    task_id TEXT NOT NULL, position INTEGER NOT NULL, seat TEXT NOT NULL, ends REAL NOT NULL,
    PRIMARY KEY (task_id, position)
) WITHOUT ROWID;
CREATE INDEX ends ON leases (task_id, ends);
CREATE TABLE accepted (
    task_id TEXT NOT NULL, report_id BLOB NOT NULL, PRIMARY KEY (task_id, report_id)
) WITHOUT ROWID;
CREATE TABLE arrived (
    task_id TEXT NOT NULL, report_id BLOB NOT NULL, PRIMARY KEY (task_id, report_id)
) WITHOUT ROWID;
CREATE TABLE batches (
    task_id TEXT NOT NULL, batch_id TEXT NOT NULL, size INTEGER NOT NULL, filled INTEGER NOT NULL,
    PRIMARY KEY (task_id, batch_id)
) WITHOUT ROWID;
CREATE INDEX full_ones ON batches (task_id, batch_id) WHERE filled = size;
CREATE TABLE parts (
    task_id TEXT NOT NULL, batch_id TEXT NOT NULL, seat INTEGER NOT NULL, body BLOB NOT NULL,
    PRIMARY KEY (task_id, batch_id, seat)
) WITHOUT ROWID;
CREATE TABLE sealed (
    task_id TEXT NOT NULL, batch_id TEXT NOT NULL, bytes INTEGER NOT NULL, body BLOB,
    PRIMARY KEY (task_id, batch_id)
);
CREATE INDEX unsent ON sealed (task_id, batch_id) WHERE body IS NOT NULL;
"""


class SqliteRecords:
    """Records on a connection that is inside a transaction."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._db = connection

    def add_task(self, task_id: str, routing: str) -> None:
        self._db.execute("INSERT OR IGNORE INTO tasks VALUES (?, ?, 0, 0)", (task_id, routing))

    def task_ids(self) -> list[str]:
        return [row[0] for row in self._db.execute("SELECT task_id FROM tasks ORDER BY task_id")]

    def routing(self, task_id: str) -> str | None:
        row = self._db.execute("SELECT routing FROM tasks WHERE task_id = ?", (task_id,)).fetchone()
        return None if row is None else str(row[0])

    def next_position(self, task_id: str) -> int:
        return int(self._db.execute("SELECT next_position FROM tasks WHERE task_id = ?", (task_id,)).fetchone()[0])

    def take_position(self, task_id: str) -> int:
        self._db.execute("UPDATE tasks SET next_position = next_position + 1 WHERE task_id = ?", (task_id,))
        return self.next_position(task_id) - 1

    def leases(self, task_id: str, seats: list[str]) -> dict[str, Lease]:
        # People sit side by side: looked up by position, they are on few pages.
        rows = self._db.execute(
            "SELECT seat, position, ends FROM leases "
            "WHERE task_id = ? AND position IN (SELECT value FROM json_each(?))",
            (task_id, json.dumps([position_of(seat) for seat in seats])),
        )
        asked = set(seats)
        return {row[0]: Lease(*row) for row in rows if row[0] in asked}

    def add_lease(self, task_id: str, lease: Lease) -> None:
        self._db.execute("INSERT INTO leases VALUES (?, ?, ?, ?)", (task_id, lease.position, lease.seat, lease.ends))

    def drop_lease(self, task_id: str, seat: str) -> None:
        place = (task_id, position_of(seat), seat)
        self._db.execute("DELETE FROM leases WHERE task_id = ? AND position = ? AND seat = ?", place)

    def ended_lease(self, task_id: str, now: float) -> Lease | None:
        row = self._db.execute(
            "SELECT seat, position, ends FROM leases WHERE task_id = ? AND ends <= ? ORDER BY ends LIMIT 1",
            (task_id, now),
        ).fetchone()
        return None if row is None else Lease(*row)

    def accepted_among(self, task_id: str, report_ids: list[str]) -> set[str]:
        known = set()
        for table in ("arrived", "accepted"):
            query = f"SELECT 1 FROM {table} WHERE task_id = ? AND report_id = ?"
            known |= {e for e in report_ids if self._db.execute(query, (task_id, bytes.fromhex(e))).fetchone()}
        return known

    def keep(self, task_id: str, reports: list[KeptReport]) -> None:
        if not reports:
            return
        # In the order of the keys: pages are touched once.
        parts = sorted((part.batch_id, part.seat, part.body) for report in reports for part in report.parts)
        ids = sorted(bytes.fromhex(report.report_id) for report in reports)
        sizes = {part.batch_id: part.size for report in reports for part in report.parts}
        filled = Counter(batch_id for batch_id, _, _ in parts)
        self._db.executemany("INSERT INTO arrived VALUES (?, ?)", ((task_id, each) for each in ids))
        self._db.executemany("INSERT INTO parts VALUES (?, ?, ?, ?)", ((task_id, *part) for part in parts))
        self._db.executemany(
            "INSERT INTO batches VALUES (?, ?, ?, ?) "
            "ON CONFLICT (task_id, batch_id) DO UPDATE SET filled = filled + excluded.filled",
            [(task_id, batch_id, sizes[batch_id], count) for batch_id, count in filled.items()],
        )
        self._db.execute(
            "DELETE FROM leases WHERE task_id = ? AND position IN (SELECT value FROM json_each(?))",
            (task_id, json.dumps([position_of(report.seat) for report in reports])),
        )
        self._db.execute("UPDATE tasks SET reports = reports + ? WHERE task_id = ?", (len(reports), task_id))

    def full_batches(self) -> list[tuple[str, str]]:
        return self._db.execute("SELECT task_id, batch_id FROM batches WHERE filled = size").fetchall()

    def parts(self, task_id: str, batch_id: str) -> list[bytes]:
        rows = self._db.execute("SELECT body FROM parts WHERE task_id = ? AND batch_id = ?", (task_id, batch_id))
        return [row[0] for row in rows]

    def seal(self, batch: SealedBatch) -> None:
        key = (batch.task_id, batch.batch_id)
        self._db.execute("INSERT INTO sealed VALUES (?, ?, ?, ?)", (*key, len(batch.body), batch.body))
        self._db.execute("DELETE FROM parts WHERE task_id = ? AND batch_id = ?", key)
        self._db.execute("DELETE FROM batches WHERE task_id = ? AND batch_id = ?", key)
        # SQLite lays rows down in a page as they come: ids leave the order of arrival behind with their batch.
        one = (batch.task_id,)
        self._db.execute("INSERT INTO accepted SELECT * FROM arrived WHERE task_id = ? ORDER BY report_id", one)
        self._db.execute("DELETE FROM arrived WHERE task_id = ?", one)

    def waiting(self) -> list[tuple[str, str]]:
        query = "SELECT task_id, batch_id FROM sealed WHERE body IS NOT NULL ORDER BY rowid"
        return self._db.execute(query).fetchall()

    def sealed(self, task_id: str, batch_id: str) -> SealedBatch | None:
        row = self._db.execute(
            "SELECT task_id, batch_id, body FROM sealed WHERE task_id = ? AND batch_id = ? AND body IS NOT NULL",
            (task_id, batch_id),
        ).fetchone()
        return None if row is None else SealedBatch(*row)

    def mark_sent(self, task_id: str, batch_id: str) -> None:
        self._db.execute("UPDATE sealed SET body = NULL WHERE task_id = ? AND batch_id = ?", (task_id, batch_id))

    def waiting_bytes(self) -> int:
        return int(self._db.execute("SELECT COALESCE(SUM(bytes), 0) FROM sealed WHERE body IS NOT NULL").fetchone()[0])

    def counts(self, task_id: str) -> Counts:
        taken, reports = self._db.execute(
            "SELECT next_position, reports FROM tasks WHERE task_id = ?", (task_id,)
        ).fetchone()
        one = (task_id,)
        leases = self._db.execute("SELECT COUNT(*) FROM leases WHERE task_id = ?", one).fetchone()[0]
        still_open = self._db.execute("SELECT COUNT(*) FROM batches WHERE task_id = ?", one).fetchone()[0]
        waiting, sent = self._db.execute(
            "SELECT COALESCE(SUM(body IS NOT NULL), 0), COALESCE(SUM(body IS NULL), 0) FROM sealed WHERE task_id = ?",
            one,
        ).fetchone()
        return Counts(taken, leases, reports, still_open, waiting, sent)
