"""Full batches of a shuffler in PostgreSQL: claimed by one process, permuted, sealed, sent, purged.

A full batch belongs to the process that claimed it, for a while by the database's clock: every statement about it says
whose it must be, so that a process that was too slow changes nothing.
"""

from typing import Any

from shuffledp.service.store.contract import ClaimLostError
from shuffledp.service.store.postgresql.buckets import PostgresBuckets
from shuffledp.service.store.postgresql.reports import FULL, PostgresReports
from shuffledp.service.store.postgresql.vault import OVERHEAD_BYTES

# A batch: reports come; it waits to be sent; the next hop has it.
OPEN, READY, GONE = range(3)
_FREE = "(holder IS NULL OR holder = %s OR held_until < clock_timestamp())"
_MINE = "holder = %s AND held_until >= clock_timestamp()"


class PostgresBatches(PostgresReports, PostgresBuckets):
    """Records of batches that are full, on a connection that is inside a transaction."""

    def full_batches(self) -> list[tuple[str, str]]:
        query = f"SELECT task_id, batch_id FROM batches WHERE {FULL} AND {_FREE} ORDER BY number"
        return self.rows(query, self.session.holder)

    def claim(self, task_id: str, batch_id: str) -> bool:
        self._lock(task_id)
        query = (
            "UPDATE batches SET holder = %s, held_until = clock_timestamp() + make_interval(secs => %s) "
            f"WHERE task_id = %s AND batch_id = %s AND state < {GONE} AND {_FREE} RETURNING 1"
        )
        session = self.session
        return bool(self.rows(query, session.holder, session.claim_seconds, task_id, batch_id, session.holder))

    def _held(self, task_id: str, batch_id: str) -> tuple[Any, ...]:
        """A batch that this process has claimed, and has for a while longer; all it needs to know of it.

        Raises:
            ClaimLostError: it has not, or not any more.
        """
        self._lock(task_id)
        found = self.rows(
            "UPDATE batches SET held_until = clock_timestamp() + make_interval(secs => %s) "
            f"WHERE task_id = %s AND batch_id = %s AND {_MINE} "
            "RETURNING number, state, parts_shelf, parts_key, pieces_shelf, pieces_key, bytes",
            self.session.claim_seconds, task_id, batch_id, self.session.holder,
        )  # fmt: skip
        if not found:
            raise ClaimLostError(f"batch {batch_id} is another process's: this one was too slow.")
        return tuple(found[0])

    def parts(self, task_id: str, batch_id: str) -> list[bytes]:
        query = "SELECT number, parts_shelf, parts_key FROM batches WHERE task_id = %s AND batch_id = %s"
        [(number, shelf, key)] = self.rows(query, task_id, batch_id)
        return list(self._bodies("parts", shelf, key, number))

    def full_bytes(self, task_id: str, batch_id: str) -> int | None:
        query = f"SELECT bytes FROM batches WHERE task_id = %s AND batch_id = %s AND {FULL} AND {_FREE}"
        found = self.rows(query, task_id, batch_id, self.session.holder)
        return found[0][0] if found else None

    def has_draft(self, task_id: str, batch_id: str) -> bool:
        query = (
            "SELECT 1 FROM batches WHERE task_id = %s AND batch_id = %s AND state = 0 "
            "AND (pieces_key IS NOT NULL OR buckets_key IS NOT NULL)"
        )
        return bool(self.rows(query, task_id, batch_id))

    def drop_draft(self, task_id: str, batch_id: str) -> bool:
        number, _, _, _, shelf, key, _ = self._held(task_id, batch_id)
        if key is not None:
            self._leave(shelf, key)
            self.db.execute("UPDATE batches SET pieces_shelf = NULL, pieces_key = NULL WHERE number = %s", (number,))
        self._drop_buckets(number)
        return True

    def add_piece(self, task_id: str, batch_id: str, number: int, body: bytes | memoryview) -> None:
        batch, _, _, _, shelf, key, length = self._held(task_id, batch_id)
        if number == 0:
            if key is not None:
                self._leave(shelf, key)
            shelf, key = self._put(task_id, "pieces", length)
            query = "UPDATE batches SET pieces_shelf = %s, pieces_key = %s WHERE number = %s"
            self.db.execute(query, (shelf, key, batch))
        self._write("pieces", shelf, batch, key, [(number, body)])

    def seal(self, task_id: str, batch_id: str, length: int) -> None:
        number, _, shelf, key, pieces_shelf, pieces_key, _ = self._held(task_id, batch_id)
        query = f"SELECT COALESCE(SUM(length(body) - {OVERHEAD_BYTES}), 0) FROM pieces_{pieces_shelf} WHERE key = %s"
        assert self.rows(query, pieces_key) == [(length,)], "a batch lacks some of its pieces"
        query = f"UPDATE batches SET state = {READY}, bytes = %s WHERE number = %s AND {FULL} RETURNING 1"
        assert self.rows(query, length, number), "a batch that is not full cannot be sealed"
        # Before it is sent nobody can read any more how it came.
        self._leave(shelf, key)
        self._drop_buckets(number)
        self._waiting_bytes = None

    def tidy(self, task_id: str, batch_id: str) -> bool:
        return True

    def untidy(self) -> list[tuple[str, str]]:
        return []

    def waiting(self) -> list[tuple[str, str]]:
        query = f"SELECT task_id, batch_id FROM batches WHERE state = {READY} AND {_FREE} ORDER BY number"
        return self.rows(query, self.session.holder)

    def sealed(self, task_id: str, batch_id: str) -> bytes | None:
        query = "SELECT number, state, pieces_shelf, pieces_key FROM batches WHERE task_id = %s AND batch_id = %s"
        found = self.rows(query, task_id, batch_id)
        if not found or found[0][1] != READY:
            return None
        number, _, shelf, key = found[0]
        return b"".join(self._bodies("pieces", shelf, key, number))

    def sealed_bytes(self, task_id: str, batch_id: str) -> int | None:
        query = f"SELECT bytes FROM batches WHERE task_id = %s AND batch_id = %s AND state = {READY}"
        found = self.rows(query, task_id, batch_id)
        return found[0][0] if found else None

    def piece(self, task_id: str, batch_id: str, number: int) -> bytes | None:
        query = (
            "SELECT number, pieces_shelf, pieces_key FROM batches "
            f"WHERE task_id = %s AND batch_id = %s AND state = {READY}"
        )
        for batch, shelf, key in self.rows(query, task_id, batch_id):
            return b"".join(self._bodies("pieces", shelf, key, batch, (number, number + 1))) or None
        return None

    def purge(self, task_id: str, batch_id: str) -> bool:
        number, state, _, _, shelf, key, _ = self._held(task_id, batch_id)
        if state == READY:
            self._leave(shelf, key)
            self.db.execute(f"UPDATE batches SET state = {GONE}, holder = NULL WHERE number = %s", (number,))
        return True

    def unpurged(self) -> list[tuple[str, str]]:
        return []

    def needed_keys(self) -> list[bytes]:
        """Every key that something in the store needs."""
        query = (
            "SELECT parts_key FROM batches WHERE state = 0 AND parts_key IS NOT NULL UNION ALL "
            "SELECT buckets_key FROM batches WHERE state = 0 AND buckets_key IS NOT NULL UNION ALL "
            f"SELECT pieces_key FROM batches WHERE state < {GONE} AND pieces_key IS NOT NULL"
        )
        return [bytes(key) for (key,) in self.rows(query)]

    def let_go(self) -> None:
        """The batches of this process, which ends, are anybody's."""
        self.db.execute("UPDATE batches SET holder = NULL WHERE holder = %s", (self.session.holder,))
