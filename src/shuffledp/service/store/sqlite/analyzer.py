"""An analyzer's records in SQLite."""

import json
import math
import sqlite3
from typing import Any

from shuffledp.service.store.contract import BatchTotal, Progress, Release
from shuffledp.service.store.sqlite import pieces
from shuffledp.service.store.sqlite.pieces import RECEIVED, SqlitePieces
from shuffledp.service.wire import SignedText

LABEL = "analyzer 1"

SCHEMA = """
CREATE TABLE tasks (task_id TEXT PRIMARY KEY, text TEXT NOT NULL, state TEXT) WITHOUT ROWID;
CREATE TABLE batches (
    task_id TEXT NOT NULL, batch_id TEXT NOT NULL, digest TEXT NOT NULL, body BLOB,
    total TEXT, dropped INTEGER NOT NULL DEFAULT 0, void INTEGER NOT NULL DEFAULT 0,
    PRIMARY KEY (task_id, batch_id)
);
CREATE INDEX unread ON batches (task_id, batch_id) WHERE body IS NOT NULL;
CREATE TABLE releases (
    task_id TEXT NOT NULL, time INTEGER NOT NULL, estimate TEXT NOT NULL, standard_error REAL NOT NULL,
    bound REAL NOT NULL, confidence REAL NOT NULL, dropped INTEGER NOT NULL, void INTEGER NOT NULL,
    PRIMARY KEY (task_id, time)
) WITHOUT ROWID;
"""
# Of later versions, beside a store of version 1: an older program does not look for them.
LATER = f"""{pieces.LATER}
CREATE TABLE IF NOT EXISTS models (
    campaign_id TEXT NOT NULL, number INTEGER NOT NULL, text TEXT NOT NULL, signature TEXT NOT NULL,
    PRIMARY KEY (campaign_id, number)
) WITHOUT ROWID;
"""
# A task's own, or a campaign's rounds': a round's id is its campaign's, a dot and more; "/" comes after the dot.
_OWN = "(task_id = ?1 OR (task_id > ?1 || '.' AND task_id < ?1 || '/'))"
# Of a task that has ended: that a batch was taken is all that is known of it.
_FORGOTTEN = "(body IS NULL AND total IS NULL)"
_MODEL = "SELECT text, signature FROM models WHERE campaign_id = ?"
_RELEASE = "SELECT time, estimate, standard_error, bound, confidence, dropped, void FROM releases WHERE task_id = ?"


class SqliteAnalyzerRecords(SqlitePieces):
    """Records on a connection that is inside a transaction."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self.db = connection

    def add_task(self, task_id: str, text: str) -> None:
        self.db.execute("INSERT OR IGNORE INTO tasks VALUES (?, ?, NULL)", (task_id, text))

    def tasks(self) -> dict[str, str]:
        return dict(self.db.execute("SELECT task_id, text FROM tasks ORDER BY task_id").fetchall())

    def task(self, task_id: str) -> str | None:
        row = self.db.execute("SELECT text FROM tasks WHERE task_id = ?", (task_id,)).fetchone()
        return None if row is None else str(row[0])

    def digest(self, task_id: str, batch_id: str) -> str | None:
        row = self._one("SELECT digest FROM batches WHERE task_id = ? AND batch_id = ?", task_id, batch_id)
        return self._coming(task_id, batch_id)[2] if row is None else str(row[0])

    def add_batch(self, task_id: str, batch_id: str, digest: str, body: bytes) -> None:
        self.db.execute(
            "INSERT INTO batches (task_id, batch_id, digest, body) VALUES (?, ?, ?, ?)",
            (task_id, batch_id, digest, body),
        )

    def unread(self, most: int) -> list[tuple[str, str]]:
        whole = "SELECT task_id, batch_id FROM batches WHERE body IS NOT NULL ORDER BY rowid LIMIT ?"
        in_pieces = f"SELECT task_id, batch_id FROM incoming WHERE state = {RECEIVED} ORDER BY number LIMIT ?"
        return [row for query in (whole, in_pieces) for row in self.db.execute(query, (most,))][:most]

    def body(self, task_id: str, batch_id: str) -> bytes | None:
        row = self._one("SELECT body FROM batches WHERE task_id = ? AND batch_id = ?", task_id, batch_id)
        return None if row is None else row[0]

    def add_total(self, task_id: str, total: BatchTotal) -> None:
        if self._read_in_pieces(task_id, total):
            return
        self.db.execute(
            "UPDATE batches SET body = NULL, total = ?, dropped = ?, void = ? WHERE task_id = ? AND batch_id = ?",
            (json.dumps(total.total), total.dropped, total.void, task_id, total.batch_id),
        )

    def totals(self, task_id: str, batch_ids: list[str]) -> dict[str, BatchTotal]:
        found = {}
        for batch_id in batch_ids:
            row = self._one(
                "SELECT total, dropped, void FROM batches "
                "WHERE task_id = ? AND batch_id = ? AND body IS NULL AND total IS NOT NULL",
                task_id,
                batch_id,
            )
            if row is not None:
                found[batch_id] = BatchTotal(batch_id, json.loads(row[0]), row[1], bool(row[2]))
        return found

    def state(self, task_id: str) -> Any:
        row = self.db.execute("SELECT state FROM tasks WHERE task_id = ?", (task_id,)).fetchone()
        return None if row is None or row[0] is None else json.loads(row[0])

    def set_state(self, task_id: str, state: Any) -> None:
        self.db.execute("UPDATE tasks SET state = ? WHERE task_id = ?", (json.dumps(state), task_id))

    def add_release(self, task_id: str, release: Release) -> None:
        # Columns of version 1 are not null: an error or a bound that is infinite was not claimed.
        claimed = (release.standard_error, release.bound, release.confidence)
        numbers = [math.inf if number is None else number for number in claimed]
        row = (task_id, release.time, json.dumps(release.estimate), *numbers, release.dropped, release.void)
        self.db.execute("INSERT INTO releases VALUES (?, ?, ?, ?, ?, ?, ?, ?)", row)

    def last_release(self, task_id: str) -> Release | None:
        row = self.db.execute(f"{_RELEASE} ORDER BY time DESC LIMIT 1", (task_id,)).fetchone()
        return None if row is None else _release(row)

    def releases(self, task_id: str, after: int, most: int) -> list[Release]:
        rows = self.db.execute(f"{_RELEASE} AND time > ? ORDER BY time LIMIT ?", (task_id, after, most))
        return [_release(row) for row in rows]

    def progress(self, task_id: str) -> Progress:
        # A round's id is its campaign's, a dot and more; "/" comes after the dot.
        own = "(task_id = ?1 OR (task_id > ?1 || '.' AND task_id < ?1 || '/'))"
        row = self.db.execute(
            f"SELECT COUNT(*) + (SELECT COUNT(*) FROM incoming WHERE state = {RECEIVED} AND {own}), "
            "COALESCE(SUM(body IS NULL), 0), COALESCE(SUM(void), 0), COALESCE(SUM(dropped), 0), "
            f"(SELECT COUNT(*) FROM releases WHERE task_id = ?1) FROM batches WHERE {own} AND NOT {_FORGOTTEN}",
            (task_id,),
        ).fetchone()
        return Progress(*row)

    def add_model(self, campaign_id: str, number: int, model: SignedText) -> None:
        self.db.execute("INSERT INTO models VALUES (?, ?, ?, ?)", (campaign_id, number, model.text, model.signature))

    def last_model(self, campaign_id: str) -> SignedText | None:
        row = self.db.execute(f"{_MODEL} ORDER BY number DESC LIMIT 1", (campaign_id,)).fetchone()
        return None if row is None else SignedText(*row)

    def models(self, campaign_id: str, after: int, most: int) -> list[SignedText]:
        rows = self.db.execute(f"{_MODEL} AND number > ? ORDER BY number LIMIT ?", (campaign_id, after, most))
        return [SignedText(*row) for row in rows]

    def model(self, campaign_id: str, number: int) -> SignedText | None:
        row = self.db.execute(f"{_MODEL} AND number = ?", (campaign_id, number)).fetchone()
        return None if row is None else SignedText(*row)

    def all_totals(self, campaign_id: str) -> list[tuple[str, BatchTotal]]:
        rows = self.db.execute(
            "SELECT task_id, batch_id, total, dropped, void FROM batches "
            "WHERE task_id > ?1 || '.' AND task_id < ?1 || '/' AND body IS NULL AND total IS NOT NULL",
            (campaign_id,),
        )
        return [(row[0], BatchTotal(row[1], json.loads(row[2]), row[3], bool(row[4]))) for row in rows]

    def mark_ended(self, task_id: str, text: str) -> None:
        self.db.execute("UPDATE tasks SET text = ? WHERE task_id = ?", (text, task_id))

    def drop_unread(self, owner: str) -> int:
        query = f"UPDATE batches SET body = NULL, total = NULL WHERE {_OWN} AND body IS NOT NULL"
        whole = self.db.execute(query, (owner,)).rowcount
        return whole + self._drop_incoming(_OWN, owner)

    def forget_totals(self, owner: str) -> int:
        self.db.execute("UPDATE tasks SET state = NULL WHERE task_id = ?", (owner,))
        query = f"UPDATE batches SET total = NULL, dropped = 0, void = 0 WHERE {_OWN} AND total IS NOT NULL"
        return self.db.execute(query, (owner,)).rowcount

    def forget_answers(self, owner: str) -> int:
        models = self.db.execute("DELETE FROM models WHERE campaign_id = ?", (owner,)).rowcount
        return models + self.db.execute("DELETE FROM releases WHERE task_id = ?", (owner,)).rowcount

    def _one(self, query: str, task_id: str, batch_id: str) -> Any:
        return self.db.execute(query, (task_id, batch_id)).fetchone()


def _release(row: tuple[Any, ...]) -> Release:
    claimed: list[Any] = [None if number == math.inf else number for number in row[2:5]]
    return Release(row[0], json.loads(row[1]), *claimed, *row[5:])
