"""Batches in pieces at an analyzer, in SQLite: tables of a later version, which an older program does not look for."""

import json
import sqlite3

from shuffledp.service.store.contract import BatchTotal
from shuffledp.service.store.pieces import about

# A batch in pieces: they come; it is received and not read; it is read, and pieces are being deleted.
COMING, RECEIVED, READ = range(3)
LATER = """
CREATE TABLE IF NOT EXISTS incoming (
    number INTEGER PRIMARY KEY AUTOINCREMENT, task_id TEXT NOT NULL, batch_id TEXT NOT NULL,
    digest TEXT, state INTEGER NOT NULL, bytes INTEGER NOT NULL DEFAULT 0, UNIQUE (task_id, batch_id)
);
CREATE TABLE IF NOT EXISTS pieces (
    batch INTEGER NOT NULL, piece INTEGER NOT NULL, digest TEXT NOT NULL, body BLOB NOT NULL,
    PRIMARY KEY (batch, piece)
);
CREATE TABLE IF NOT EXISTS results (
    batch INTEGER NOT NULL, piece INTEGER NOT NULL, result BLOB NOT NULL, PRIMARY KEY (batch, piece)
);
"""
# Deleted in one commit: more would make others wait.
MOST_DELETED = 4


class SqlitePieces:
    """Records of batches in pieces, on a connection that is inside a transaction."""

    db: sqlite3.Connection

    def _coming(self, task_id: str, batch_id: str) -> tuple[int, int, str | None]:
        """Number, state and digest of a batch in pieces; 0 and COMING where there is none."""
        query = "SELECT number, state, digest FROM incoming WHERE task_id = ? AND batch_id = ?"
        row = self.db.execute(query, (task_id, batch_id)).fetchone()
        return (0, COMING, None) if row is None else (int(row[0]), int(row[1]), row[2])

    def incoming_bytes(self, task_id: str, batch_id: str) -> int:
        query = "SELECT bytes FROM incoming WHERE task_id = ? AND batch_id = ?"
        row = self.db.execute(query, (task_id, batch_id)).fetchone()
        return 0 if row is None else int(row[0])

    def incoming_digest(self, task_id: str, batch_id: str, number: int) -> str | None:
        query = "SELECT digest FROM pieces WHERE batch = ? AND piece = ?"
        row = self.db.execute(query, (self._coming(task_id, batch_id)[0], number)).fetchone()
        return None if row is None else str(row[0])

    def incoming_digests(self, task_id: str, batch_id: str) -> list[tuple[int, str]]:
        query = "SELECT piece, digest FROM pieces WHERE batch = ? ORDER BY piece"
        return self.db.execute(query, (self._coming(task_id, batch_id)[0],)).fetchall()

    def add_incoming(self, task_id: str, batch_id: str, number: int, digest: str, body: bytes) -> None:
        batch = self._coming(task_id, batch_id)[0]
        if not batch:
            query = "INSERT INTO incoming (task_id, batch_id, state) VALUES (?, ?, ?) RETURNING number"
            [(batch,)] = self.db.execute(query, (task_id, batch_id, COMING)).fetchall()
        self.db.execute("INSERT INTO pieces VALUES (?, ?, ?, ?)", (batch, number, digest, body))
        self.db.execute("UPDATE incoming SET bytes = bytes + ? WHERE number = ?", (len(body), batch))

    def receive(self, task_id: str, batch_id: str, digest: str) -> None:
        number, _, _ = self._coming(task_id, batch_id)
        self.db.execute("UPDATE incoming SET state = ?, digest = ? WHERE number = ?", (RECEIVED, digest, number))

    def _received(self, task_id: str, batch_id: str) -> int:
        """The number of a batch that was received and not read; 0 where it is another."""
        number, state, _ = self._coming(task_id, batch_id)
        return number if state == RECEIVED else 0

    def pieces(self, task_id: str, batch_id: str) -> int | None:
        number = self._received(task_id, batch_id)
        if not number:
            return None
        return int(self.db.execute("SELECT COUNT(*) FROM pieces WHERE batch = ?", (number,)).fetchone()[0])

    def received_piece(self, task_id: str, batch_id: str, number: int) -> bytes | None:
        query = "SELECT body FROM pieces WHERE batch = ? AND piece = ?"
        row = self.db.execute(query, (self._received(task_id, batch_id), number)).fetchone()
        return None if row is None else row[0]

    def unopened(self, task_id: str, batch_id: str) -> list[int]:
        rows = self.db.execute(
            "SELECT piece FROM pieces WHERE batch = ?1 "
            "AND piece NOT IN (SELECT piece FROM results WHERE batch = ?1) ORDER BY piece",
            (self._received(task_id, batch_id),),
        )
        return [row[0] for row in rows]

    def set_result(self, task_id: str, batch_id: str, number: int, result: bytes) -> None:
        row = (self._received(task_id, batch_id), number, result)
        self.db.execute("INSERT OR REPLACE INTO results VALUES (?, ?, ?)", row)

    def some_results(self, task_id: str, batch_id: str, first: int, most_bytes: int) -> list[tuple[int, bytes]]:
        query = "SELECT piece, result FROM results WHERE batch = ? AND piece >= ? ORDER BY piece"
        return about(most_bytes, self.db.execute(query, (self._received(task_id, batch_id), first)))

    def left_pieces(self) -> list[tuple[str, str]]:
        return self.db.execute(f"SELECT task_id, batch_id FROM incoming WHERE state = {READ}").fetchall()

    def drop_pieces(self, task_id: str, batch_id: str) -> bool:
        number, state, _ = self._coming(task_id, batch_id)
        assert state != RECEIVED, "a batch that is not read cannot be deleted"
        for table in ("pieces", "results"):
            some = f"SELECT piece FROM {table} WHERE batch = ? ORDER BY piece LIMIT {MOST_DELETED}"
            query = f"DELETE FROM {table} WHERE batch = ? AND piece IN ({some})"
            if self.db.execute(query, (number, number)).rowcount == MOST_DELETED:
                return False
        self.db.execute("DELETE FROM incoming WHERE number = ?", (number,))
        return True

    def _drop_incoming(self, own: str, owner: str) -> int:
        """Delete what has come in pieces of these tasks, read or not; answers how many batches were not read."""
        found = self.db.execute(f"SELECT number, state FROM incoming WHERE {own}", (owner,)).fetchall()
        taken = f"SELECT task_id, batch_id, digest FROM incoming WHERE {own} AND state = {RECEIVED}"
        self.db.execute(f"INSERT INTO batches (task_id, batch_id, digest) {taken}", (owner,))
        for number, _ in found:
            for table, column in (("pieces", "batch"), ("results", "batch"), ("incoming", "number")):
                self.db.execute(f"DELETE FROM {table} WHERE {column} = ?", (number,))
        return sum(state != READ for _, state in found)

    def _read_in_pieces(self, task_id: str, total: BatchTotal) -> bool:
        """Remember what a batch in pieces said; False if it did not come so."""
        number, state, digest = self._coming(task_id, total.batch_id)
        if state != RECEIVED:
            return False
        row = (task_id, total.batch_id, digest, json.dumps(total.total), total.dropped, total.void)
        self.db.execute("INSERT INTO batches VALUES (?, ?, ?, NULL, ?, ?, ?)", row)
        self.db.execute("UPDATE incoming SET state = ? WHERE number = ?", (READ, number))
        return True
