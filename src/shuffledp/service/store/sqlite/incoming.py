"""Batches that a hop of a cascade takes from the one before it, in SQLite: an older program does not look for them."""

from abc import ABC, abstractmethod

from shuffledp.service.store.contract import BatchPart
from shuffledp.service.store.incoming import NOT_WHOLE, WHOLE_PLACE
from shuffledp.service.store.sqlite.engine import StoreConnection

# Beside a store of version 2. Pieces' bytes are where those of reports are, in a batch that is not full before the
# manifest has come.
LATER = """
CREATE TABLE IF NOT EXISTS received (
    task_id TEXT NOT NULL, batch_id TEXT NOT NULL, digest TEXT NOT NULL, PRIMARY KEY (task_id, batch_id)
) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS incoming (
    task_id TEXT NOT NULL, batch_id TEXT NOT NULL, piece INTEGER NOT NULL, digest TEXT NOT NULL, bytes INTEGER NOT NULL,
    PRIMARY KEY (task_id, batch_id, piece)
) WITHOUT ROWID;
"""


class SqliteIncoming(ABC):
    """Records of batches that come whole, on a connection that is inside a transaction."""

    db: StoreConnection

    @abstractmethod
    def _keep_parts(self, task_id: str, parts: list[BatchPart]) -> None:
        """Put parts into their batches."""

    def received(self, task_id: str, batch_id: str) -> str | None:
        query = "SELECT digest FROM received WHERE task_id = ? AND batch_id = ?"
        row = self.db.execute(query, (task_id, batch_id)).fetchone()
        return None if row is None else str(row[0])

    def receive(self, task_id: str, batch_id: str, size: int, digest: str, body: bytes) -> None:
        self.db.execute("INSERT INTO received VALUES (?, ?, ?)", (task_id, batch_id, digest))
        self._keep_parts(task_id, [BatchPart(batch_id, WHOLE_PLACE, size, size, body)])

    def incoming_bytes(self, task_id: str, batch_id: str) -> int:
        query = "SELECT COALESCE(SUM(bytes), 0) FROM incoming WHERE task_id = ? AND batch_id = ?"
        return int(self.db.execute(query, (task_id, batch_id)).fetchone()[0])

    def incoming_digest(self, task_id: str, batch_id: str, number: int) -> str | None:
        query = "SELECT digest FROM incoming WHERE task_id = ? AND batch_id = ? AND piece = ?"
        row = self.db.execute(query, (task_id, batch_id, number)).fetchone()
        return None if row is None else str(row[0])

    def incoming_digests(self, task_id: str, batch_id: str) -> list[tuple[int, str]]:
        query = "SELECT piece, digest FROM incoming WHERE task_id = ? AND batch_id = ? ORDER BY piece"
        return self.db.execute(query, (task_id, batch_id)).fetchall()

    def add_incoming(self, task_id: str, batch_id: str, number: int, digest: str, body: bytes) -> None:
        self.db.execute("INSERT INTO incoming VALUES (?, ?, ?, ?, ?)", (task_id, batch_id, number, digest, len(body)))
        self._keep_parts(task_id, [BatchPart(batch_id, number, 0, NOT_WHOLE, body)])

    def receive_pieces(self, task_id: str, batch_id: str, size: int, digest: str) -> None:
        key = (task_id, batch_id)
        self.db.execute("INSERT INTO received VALUES (?, ?, ?)", (*key, digest))
        self.db.execute("DELETE FROM incoming WHERE task_id = ? AND batch_id = ?", key)
        query = "UPDATE batches SET size = ?, filled = ? WHERE task_id = ? AND batch_id = ?"
        self.db.execute(query, (size, size, *key))

    def drop_incoming(self, task_id: str, batch_id: str) -> None:
        key = (task_id, batch_id)
        if not self.incoming_bytes(task_id, batch_id):
            return
        self.db.execute("DELETE FROM incoming WHERE task_id = ? AND batch_id = ?", key)
        query = "DELETE FROM batches WHERE task_id = ? AND batch_id = ? RETURNING number"
        for (number,) in self.db.execute(query, key).fetchall():
            self.db.execute(f"DROP TABLE parts_{number}")
