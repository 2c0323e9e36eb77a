"""A client's outbox in SQLite: a file, or memory for as long as the process lives."""

import sqlite3
import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TypeVar

from shuffledp.errors import ParameterError
from shuffledp.service.store.outboxes import Outbox, Visit
from shuffledp.service.store.sqlite.engine import SqliteStore
from shuffledp.service.wire import SentReport

T = TypeVar("T")
Work = Callable[[sqlite3.Connection], T]

LABEL = "outbox 1"
WAITING, REFUSED = "waiting", "refused"
SCHEMA = """
CREATE TABLE reports (
    report_id BLOB PRIMARY KEY, task_id TEXT NOT NULL, seat BLOB NOT NULL, body BLOB NOT NULL, state TEXT NOT NULL,
    stream TEXT, row INTEGER
) WITHOUT ROWID;
CREATE INDEX states ON reports (task_id, state);
CREATE TABLE streams (
    task_id TEXT NOT NULL, stream TEXT NOT NULL, done INTEGER NOT NULL, PRIMARY KEY (task_id, stream)
) WITHOUT ROWID;
"""


# Of later versions, beside an outbox of version 1.
LATER = """
CREATE TABLE IF NOT EXISTS visits (
    campaign_id TEXT NOT NULL, number INTEGER NOT NULL, seating INTEGER NOT NULL, round INTEGER NOT NULL,
    slot INTEGER NOT NULL, PRIMARY KEY (campaign_id, number)
) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS seen (campaign_id TEXT PRIMARY KEY, number INTEGER NOT NULL) WITHOUT ROWID;
"""


class SqliteOutbox(Outbox):
    """A file (WAL, synchronous=FULL, what is deleted is overwritten), held by one process; None: in memory.

    >>> outbox = SqliteOutbox(None)
    >>> outbox.put("task", [SentReport("00" * 16, "ff" * 16, b"sealed")])
    >>> outbox.waiting("task"), outbox.first("task", 10, 1 << 20)[0].body
    (1, b'sealed')
    >>> outbox.remove(["00" * 16]); outbox.waiting("task")
    0
    """

    def __init__(self, path: Path | None) -> None:
        self.path = path
        self._closed = False
        self._store: SqliteStore[sqlite3.Connection] | _Memory = (
            _Memory() if path is None else SqliteStore(path, SCHEMA, label=LABEL, parameter="outbox", later=LATER)
        )

    def close(self) -> None:
        self._closed = True
        self._store.close()

    def _write(self, work: Work[T]) -> T:
        if self._closed:
            raise ParameterError("outbox", str(self.path), "must be open", "it was closed: make a new client")
        return self._store.write(work)

    def put(
        self, task_id: str, reports: Sequence[SentReport], stream: str | None = None, rows: Sequence[int] = ()
    ) -> None:
        places: Sequence[int | None] = rows if stream is not None else [None] * len(reports)
        new = [
            (bytes.fromhex(report.report_id), task_id, bytes.fromhex(report.seat), report.body, WAITING, stream, row)
            for report, row in zip(reports, places, strict=True)
        ]

        def insert(db: sqlite3.Connection) -> None:
            if stream is not None and rows:
                # A row that was refused is now under way again.
                db.executemany(
                    "DELETE FROM reports WHERE task_id = ? AND state = ? AND stream = ? AND row = ?",
                    [(task_id, REFUSED, stream, row) for row in rows],
                )
                db.execute(
                    "INSERT INTO streams VALUES (?, ?, ?) "
                    "ON CONFLICT (task_id, stream) DO UPDATE SET done = MAX(done, excluded.done)",
                    (task_id, stream, max(rows) + 1),
                )
            db.executemany("INSERT INTO reports VALUES (?, ?, ?, ?, ?, ?, ?)", new)

        self._write(insert)

    def first(self, task_id: str, most: int, most_bytes: int) -> list[SentReport]:
        def select(db: sqlite3.Connection) -> list[SentReport]:
            found: list[SentReport] = []
            length = 0
            for report_id, seat, body in db.execute(
                "SELECT report_id, seat, body FROM reports WHERE task_id = ? AND state = ? ORDER BY report_id LIMIT ?",
                (task_id, WAITING, most),
            ):
                length += len(body)
                if found and length > most_bytes:
                    break
                found.append(SentReport(report_id.hex(), seat.hex(), body))
            return found

        return self._write(select)

    def remove(self, report_ids: Sequence[str]) -> None:
        ids = [(bytes.fromhex(report_id),) for report_id in report_ids]
        if ids:
            self._write(lambda db: db.executemany("DELETE FROM reports WHERE report_id = ?", ids))
            self._store.forget_deleted()

    def refuse(self, report_ids: Sequence[str]) -> None:
        ids = [(bytes.fromhex(report_id),) for report_id in report_ids]

        def update(db: sqlite3.Connection) -> None:
            db.executemany("DELETE FROM reports WHERE report_id = ? AND stream IS NULL", ids)
            db.executemany(f"UPDATE reports SET state = '{REFUSED}', body = x'' WHERE report_id = ?", ids)

        if ids:
            self._write(update)
            # The bytes are in the log, too.
            self._store.forget_deleted()

    def waiting(self, task_id: str) -> int:
        query = "SELECT COUNT(*) FROM reports WHERE task_id = ? AND state = ?"
        return int(self._write(lambda db: db.execute(query, (task_id, WAITING)).fetchone()[0]))

    def rows_done(self, task_id: str, stream: str) -> int:
        query = "SELECT done FROM streams WHERE task_id = ? AND stream = ?"
        row = self._write(lambda db: db.execute(query, (task_id, stream)).fetchone())
        return 0 if row is None else int(row[0])

    def rows_refused(self, task_id: str, stream: str) -> list[int]:
        query = "SELECT row FROM reports WHERE task_id = ? AND state = ? AND stream = ? ORDER BY row"
        rows = self._write(lambda db: db.execute(query, (task_id, REFUSED, stream)).fetchall())
        return [int(row[0]) for row in rows]

    def visits(self, campaign_id: str) -> list[Visit]:
        query = "SELECT number, seating, round, slot FROM visits WHERE campaign_id = ? ORDER BY number"
        return [Visit(*row) for row in self._write(lambda db: db.execute(query, (campaign_id,)).fetchall())]

    def sit(self, campaign_id: str, visit: Visit, instead_of: Visit | None = None) -> bool:
        query = "SELECT number, seating, round, slot FROM visits WHERE campaign_id = ? AND number = ?"
        row = (campaign_id, visit.number, visit.seating, visit.round, visit.slot)

        def write(db: sqlite3.Connection) -> bool:
            known = db.execute(query, (campaign_id, visit.number)).fetchone()
            if known is not None and Visit(*known) != instead_of:
                return False
            db.execute("INSERT OR REPLACE INTO visits VALUES (?, ?, ?, ?, ?)", row)
            return True

        return self._write(write)

    def newest_seen(self, campaign_id: str) -> int:
        query = "SELECT number FROM seen WHERE campaign_id = ?"
        row = self._write(lambda db: db.execute(query, (campaign_id,)).fetchone())
        return 0 if row is None else int(row[0])

    def see(self, campaign_id: str, number: int) -> None:
        more = "INSERT INTO seen VALUES (?, ?) ON CONFLICT (campaign_id) DO UPDATE SET number = excluded.number"
        self._write(lambda db: db.execute(f"{more} WHERE excluded.number > number", (campaign_id, number)))

    def waiting_tasks(self) -> list[str]:
        query = "SELECT DISTINCT task_id FROM reports WHERE state = ? ORDER BY task_id"
        return [row[0] for row in self._write(lambda db: db.execute(query, (WAITING,)).fetchall())]


class _Memory:
    """A store that lasts as long as the process."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._db = sqlite3.connect(":memory:", isolation_level=None, check_same_thread=False)
        self._db.executescript(SCHEMA + LATER)

    def write(self, work: Work[T]) -> T:
        with self._lock, self._db:
            return work(self._db)

    def forget_deleted(self) -> None:
        """Nothing of it is on any disk."""

    def close(self) -> None:
        self._db.close()
