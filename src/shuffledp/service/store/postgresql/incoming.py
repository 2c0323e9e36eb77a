"""Batches that a hop of a cascade takes from the one before it, in PostgreSQL."""

from shuffledp.service.store.contract import BatchPart
from shuffledp.service.store.incoming import NOT_WHOLE, WHOLE_PLACE
from shuffledp.service.store.postgresql.reports import PostgresReports

_OF_BATCH = "WHERE task_id = %s AND batch_id = %s"


class PostgresIncoming(PostgresReports):
    """Records of batches that come whole; their bytes are where those of reports are."""

    def received(self, task_id: str, batch_id: str) -> str | None:
        self._lock(task_id)
        found = self.rows(f"SELECT digest FROM received {_OF_BATCH}", task_id, batch_id)
        return found[0][0] if found else None

    def receive(self, task_id: str, batch_id: str, size: int, digest: str, body: bytes) -> None:
        self._lock(task_id)
        self._flush()
        self.db.execute("INSERT INTO received VALUES (%s, %s, %s)", (task_id, batch_id, digest))
        self._keep_parts(task_id, [BatchPart(batch_id, WHOLE_PLACE, size, size, body)])

    def incoming_bytes(self, task_id: str, batch_id: str) -> int:
        [(found,)] = self.rows(f"SELECT COALESCE(SUM(bytes), 0) FROM incoming {_OF_BATCH}", task_id, batch_id)
        return int(found)

    def incoming_digest(self, task_id: str, batch_id: str, number: int) -> str | None:
        self._lock(task_id)
        found = self.rows(f"SELECT digest FROM incoming {_OF_BATCH} AND piece = %s", task_id, batch_id, number)
        return found[0][0] if found else None

    def incoming_digests(self, task_id: str, batch_id: str) -> list[tuple[int, str]]:
        return self.rows(f"SELECT piece, digest FROM incoming {_OF_BATCH} ORDER BY piece", task_id, batch_id)

    def add_incoming(self, task_id: str, batch_id: str, number: int, digest: str, body: bytes) -> None:
        self._lock(task_id)
        self._flush()
        row = (task_id, batch_id, number, digest, len(body))
        self.db.execute("INSERT INTO incoming VALUES (%s, %s, %s, %s, %s)", row)
        self._keep_parts(task_id, [BatchPart(batch_id, number, 0, NOT_WHOLE, body)])

    def receive_pieces(self, task_id: str, batch_id: str, size: int, digest: str) -> None:
        self._lock(task_id)
        self.db.execute("INSERT INTO received VALUES (%s, %s, %s)", (task_id, batch_id, digest))
        self.db.execute(f"DELETE FROM incoming {_OF_BATCH}", (task_id, batch_id))
        query = f"UPDATE batches SET size = %s, filled = %s {_OF_BATCH}"
        self.db.execute(query, (size, size, task_id, batch_id))

    def drop_incoming(self, task_id: str, batch_id: str) -> None:
        self._lock(task_id)
        if not self.incoming_bytes(task_id, batch_id):
            return
        self.db.execute(f"DELETE FROM incoming {_OF_BATCH}", (task_id, batch_id))
        query = f"DELETE FROM batches {_OF_BATCH} RETURNING parts_shelf, parts_key"
        for shelf, key in self.rows(query, task_id, batch_id):
            self._leave(shelf, key)
