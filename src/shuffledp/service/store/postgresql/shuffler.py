"""A shuffler's records in PostgreSQL: several processes share them.

Whoever writes about a task locks its row first, so that the rules of the desk hold as if there were one process. What
they know of seats, of reports and of full batches has a file each.
"""

from shuffledp.service.store.contract import BatchFill, Counts
from shuffledp.service.store.postgresql.batches import GONE, OPEN, READY, PostgresBatches
from shuffledp.service.store.postgresql.incoming import PostgresIncoming
from shuffledp.service.store.postgresql.redeeming import PostgresRedeeming

# In one commit: more would make others wait.
MOST_IDS = 10_000


class PostgresShufflerRecords(PostgresIncoming, PostgresRedeeming, PostgresBatches):
    """Records on a connection that is inside a transaction."""

    def open_tasks(self) -> list[str]:
        return [
            row[0] for row in self.rows("SELECT task_id FROM batches WHERE state = 0 UNION SELECT task_id FROM leases")
        ]

    def sealed_tasks(self) -> list[str]:
        return [row[0] for row in self.rows("SELECT DISTINCT task_id FROM batches WHERE state > 0")]

    def abandon(self, task_id: str, positions: int) -> bool:
        self._lock(task_id)
        self._flush()
        self._next[task_id] = positions
        self._moved.add(task_id)
        for table in ("leases", "held"):
            self.db.execute(f"DELETE FROM {table} WHERE task_id = %s", (task_id,))
        gone = self.rows(
            "DELETE FROM batches WHERE task_id = %s AND state = 0 "
            "RETURNING parts_shelf, parts_key, pieces_shelf, pieces_key, buckets_shelf, buckets_key",
            task_id,
        )
        for parts_shelf, parts_key, pieces_shelf, pieces_key, buckets_shelf, buckets_key in gone:
            self._leave(parts_shelf, parts_key)
            for shelf, key in ((pieces_shelf, pieces_key), (buckets_shelf, buckets_key)):
                if key is not None:
                    self._leave(shelf, key)
        return True

    def counts(self, task_id: str) -> Counts:
        rows = self.rows(
            "SELECT next_position, (SELECT COUNT(*) FROM leases l WHERE l.task_id = t.task_id), reports, "
            "(SELECT COUNT(*) FROM batches b WHERE b.task_id = t.task_id AND state = 0), "
            f"(SELECT COUNT(*) FROM batches b WHERE b.task_id = t.task_id AND state = {READY}), "
            f"(SELECT COUNT(*) FROM batches b WHERE b.task_id = t.task_id AND state = {GONE}) "
            "FROM taken t WHERE task_id = %s",
            task_id,
        )
        # A round in which nobody has sat down yet has no row.
        return Counts(*rows[0]) if rows else Counts(0, 0, 0, 0, 0, 0)

    def open_batches(self, task_id: str) -> list[BatchFill]:
        query = f"SELECT batch_id, filled, size FROM batches WHERE task_id = %s AND state = {OPEN}"
        return [BatchFill(*row) for row in self.rows(query, task_id)]

    def mark_ended(self, task_id: str, text: str) -> None:
        self.db.execute("UPDATE tasks SET text = %s WHERE task_id = %s", (text, task_id))

    def forget_ids(self, task_id: str) -> int:
        some = f"SELECT name FROM accepted WHERE task = %s ORDER BY name LIMIT {MOST_IDS}"
        number = self._lock(task_id)
        # Answered, and not counted by the driver, which does not know it yet while statements travel together.
        query = f"DELETE FROM accepted WHERE task = %s AND name IN ({some}) RETURNING 1"
        count = len(self.rows(query, number, number)) + self._forget_tokens(task_id, MOST_IDS)
        if not count:
            # Of a hop: what it was taking from the hop before it.
            self.db.execute("DELETE FROM incoming WHERE task_id = %s", (task_id,))
        return count
