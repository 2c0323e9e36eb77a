"""Batches in pieces at an analyzer, in PostgreSQL: pieces and results on shelves, under keys of their own."""

import json
from typing import Any

from shuffledp.service.store.contract import BatchTotal
from shuffledp.service.store.pieces import about
from shuffledp.service.store.postgresql.records import LARGE_BYTES, PostgresRecords

_OF = "FROM incoming WHERE task_id = %s AND batch_id = %s"
_RECEIVED = f"{_OF} AND digest IS NOT NULL"


class PostgresPieces(PostgresRecords):
    """Records of batches in pieces, on a connection that is inside a transaction."""

    def _one(self, what: str, task_id: str, batch_id: str) -> Any:
        found = self.rows(f"SELECT {what}", task_id, batch_id)
        return found[0] if found else None

    def incoming_bytes(self, task_id: str, batch_id: str) -> int:
        known = self._one(f"bytes {_OF}", task_id, batch_id)
        return 0 if known is None else int(known[0])

    def incoming_digest(self, task_id: str, batch_id: str, number: int) -> str | None:
        query = f"SELECT digest FROM pieces WHERE batch IN (SELECT number {_OF}) AND piece = %s"
        found = self.rows(query, task_id, batch_id, number)
        return found[0][0] if found else None

    def incoming_digests(self, task_id: str, batch_id: str) -> list[tuple[int, str]]:
        query = f"SELECT piece, digest FROM pieces WHERE batch IN (SELECT number {_OF}) ORDER BY piece"
        return self.rows(query, task_id, batch_id)

    def add_incoming(self, task_id: str, batch_id: str, number: int, digest: str, body: bytes) -> None:
        known = self._one(f"number, shelf, key {_OF}", task_id, batch_id)
        if known is None:
            shelf, key = self._put(task_id, "pieces", LARGE_BYTES + 1)
            query = "INSERT INTO incoming (task_id, batch_id, shelf, key) VALUES (%s, %s, %s, %s) RETURNING number"
            known = (*self.rows(query, task_id, batch_id, shelf, key)[0], shelf, key)
        batch, shelf, key = known
        query = "INSERT INTO pieces (batch, piece, digest) VALUES (%s, %s, %s)"
        self.db.execute(query, (batch, number, digest))
        self.db.execute("UPDATE incoming SET bytes = bytes + %s WHERE number = %s", (len(body), batch))
        self._write("pieces", shelf, batch, key, [(number, body)])

    def receive(self, task_id: str, batch_id: str, digest: str) -> None:
        query = "UPDATE incoming SET digest = %s WHERE task_id = %s AND batch_id = %s"
        self.db.execute(query, (digest, task_id, batch_id))

    def pieces(self, task_id: str, batch_id: str) -> int | None:
        known = self._one(f"number {_RECEIVED}", task_id, batch_id)
        if known is None:
            return None
        return int(self.rows("SELECT COUNT(*) FROM pieces WHERE batch = %s", known[0])[0][0])

    def received_piece(self, task_id: str, batch_id: str, number: int) -> bytes | None:
        known = self._one(f"number, shelf, key {_RECEIVED}", task_id, batch_id)
        if known is None:
            return None
        batch, shelf, key = known
        return b"".join(self._bodies("pieces", shelf, key, batch, (number, number + 1))) or None

    def unopened(self, task_id: str, batch_id: str) -> list[int]:
        some = f"SELECT number {_RECEIVED}"
        query = f"SELECT piece FROM pieces WHERE batch IN ({some}) AND result IS NULL ORDER BY piece"
        return [row[0] for row in self.rows(query, task_id, batch_id)]

    def set_result(self, task_id: str, batch_id: str, number: int, result: bytes) -> None:
        batch, shelf, key, place = self._one(
            f"number, results_shelf, results_key, results {_RECEIVED} FOR UPDATE", task_id, batch_id
        )
        if key is None:
            shelf, key = self._put(task_id, "results", LARGE_BYTES + 1)
        # Nothing on a shelf is overwritten: another result of the same piece lies elsewhere.
        query = "UPDATE incoming SET results_shelf = %s, results_key = %s, results = %s WHERE number = %s"
        self.db.execute(query, (shelf, key, place + 1, batch))
        self._write("results", shelf, batch, key, [(place, result)])
        self.db.execute("UPDATE pieces SET result = %s WHERE batch = %s AND piece = %s", (place, batch, number))

    def some_results(self, task_id: str, batch_id: str, first: int, most_bytes: int) -> list[tuple[int, bytes]]:
        known = self._one(f"number, results_shelf, results_key {_RECEIVED}", task_id, batch_id)
        if known is None or known[2] is None:
            return []
        batch, shelf, key = known
        query = (
            "SELECT piece, result FROM pieces WHERE batch = %s AND piece >= %s AND result IS NOT NULL ORDER BY piece"
        )
        places = self.rows(query, batch, first)
        read = ((piece, b"".join(self._bodies("results", shelf, key, batch, (at, at + 1)))) for piece, at in places)
        return about(most_bytes, read)

    def left_pieces(self) -> list[tuple[str, str]]:
        """None: they cannot be read any more once their key is gone, and their table is dropped whole."""
        return []

    def drop_pieces(self, task_id: str, batch_id: str) -> bool:
        gone = self.rows(
            f"DELETE {_OF} RETURNING number, shelf, key, results_shelf, results_key",
            task_id, batch_id,
        )  # fmt: skip
        for number, shelf, key, results_shelf, results_key in gone:
            self.db.execute("DELETE FROM pieces WHERE batch = %s", (number,))
            self._leave(shelf, key)
            if results_key is not None:
                self._leave(results_shelf, results_key)
        return True

    def _read_in_pieces(self, task_id: str, total: BatchTotal) -> bool:
        """Remember what a batch in pieces said, and let its pieces go; False if it did not come so."""
        known = self._one(f"digest {_RECEIVED} FOR UPDATE", task_id, total.batch_id)
        if known is None:
            return False
        self.db.execute(
            "INSERT INTO batches (task_id, batch_id, digest, total, dropped, void) VALUES (%s, %s, %s, %s, %s, %s)",
            (task_id, total.batch_id, known[0], json.dumps(total.total), total.dropped, total.void),
        )
        self.drop_pieces(task_id, total.batch_id)
        return True

    def _piece_keys(self) -> list[bytes]:
        query = "SELECT key FROM incoming UNION ALL SELECT results_key FROM incoming WHERE results_key IS NOT NULL"
        return [bytes(key) for (key,) in self.rows(query)]
