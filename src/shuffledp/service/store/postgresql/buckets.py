"""The two passes over a large batch in PostgreSQL: what came, read bit by bit, and runs of messages in buckets."""

from abc import ABC, abstractmethod
from typing import Any

from shuffledp.service.store.postgresql.records import ROW_BYTES, PostgresRecords, place_of

# A run's place: the bucket, then the number of the run in so many bits.
_RUN_BITS = 20


class PostgresBuckets(PostgresRecords, ABC):
    """Records of batches that are being permuted, on a connection that is inside a transaction."""

    @abstractmethod
    def _held(self, task_id: str, batch_id: str) -> tuple[Any, ...]:
        """A batch that this process has claimed: its number first, and last how many bytes it has."""

    def some_parts(self, task_id: str, batch_id: str, after: int, most_bytes: int) -> list[tuple[int, bytes]]:
        query = "SELECT number, parts_shelf, parts_key FROM batches WHERE task_id = %s AND batch_id = %s"
        [(number, shelf, key)] = self.rows(query, task_id, batch_id)
        # A place of this answer is a row's own and one more: the first is not 0.
        query = f"SELECT place, body FROM parts_{shelf} WHERE key = %s AND place >= %s ORDER BY place LIMIT %s"
        most = max(1, most_bytes // ROW_BYTES)
        rows = self.db.execute(query, (key, after, most), binary=True)
        return [(place + 1, self.vault.open(key, place_of("parts", number, place), body)) for place, body in rows]

    def add_runs(self, task_id: str, batch_id: str, number: int, runs: list[tuple[int, bytes]]) -> None:
        batch, _, _, _, _, _, length = self._held(task_id, batch_id)
        if number == 0:
            shelf, key = self._put(task_id, "buckets", length)
            query = "UPDATE batches SET buckets_shelf = %s, buckets_key = %s WHERE number = %s"
            self.db.execute(query, (shelf, key, batch))
        else:
            shelf, key = self._buckets_of(batch)
        bodies: list[tuple[int, bytes | memoryview]] = [((each << _RUN_BITS) + number, body) for each, body in runs]
        self._write("buckets", shelf, batch, key, bodies)

    def _buckets_of(self, batch: int) -> tuple[int, bytes]:
        [(shelf, key)] = self.rows("SELECT buckets_shelf, buckets_key FROM batches WHERE number = %s", batch)
        return shelf, key

    def bucket(self, task_id: str, batch_id: str, bucket: int) -> bytes:
        [(batch,)] = self.rows("SELECT number FROM batches WHERE task_id = %s AND batch_id = %s", task_id, batch_id)
        shelf, key = self._buckets_of(batch)
        places = (bucket << _RUN_BITS, (bucket + 1) << _RUN_BITS)
        return b"".join(self._bodies("buckets", shelf, key, batch, places))

    def _drop_buckets(self, number: int) -> None:
        shelf, key = self._buckets_of(number)
        if key is not None:
            self._leave(shelf, key)
            self.db.execute("UPDATE batches SET buckets_shelf = NULL, buckets_key = NULL WHERE number = %s", (number,))
