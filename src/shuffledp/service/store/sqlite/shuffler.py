"""A shuffler's records in SQLite."""

from functools import cache

from shuffledp.service.rounds import owner_of
from shuffledp.service.store.contract import BatchFill, BatchPart, Counts, Lease
from shuffledp.service.store.pieces import about
from shuffledp.service.store.sqlite import arrivals
from shuffledp.service.store.sqlite.arrivals import MOST_IDS, SqliteArrivals
from shuffledp.service.store.sqlite.blocks import asked, in_blocks
from shuffledp.service.store.sqlite.engine import StoreConnection
from shuffledp.service.store.sqlite.incoming import SqliteIncoming
from shuffledp.service.store.sqlite.redeeming import SqliteRedeeming
from shuffledp.service.wire import position_of

LABEL = "shuffler 3"
# What makes a store of an earlier version one of this.
UPGRADES = {"shuffler 2": arrivals.FROM_VERSION_2}
LABELS = (LABEL, *UPGRADES)

# Ordered by random ids, or deleted when a batch is sealed: nothing keeps the order in which reports came.
#
# A batch's ciphertexts are in tables of its own, `parts_<number>`, `pieces_<number>` and, while a large one is mixed,
# `buckets_<number>`: SQLite overwrites what is deleted, but not what it has moved when a page was split. A dropped
# table's pages are overwritten whole.
SCHEMA = f"""{arrivals.SCHEMA}
CREATE TABLE tasks (
    task_id TEXT PRIMARY KEY, routing TEXT NOT NULL, next_position INTEGER NOT NULL, reports INTEGER NOT NULL
) WITHOUT ROWID;
CREATE TABLE leases (
    task_id TEXT NOT NULL, position INTEGER NOT NULL, seat TEXT NOT NULL, ends REAL NOT NULL,
    PRIMARY KEY (task_id, position)
) WITHOUT ROWID;
CREATE INDEX ends ON leases (task_id, ends);
CREATE TABLE batches (
    number INTEGER PRIMARY KEY AUTOINCREMENT, task_id TEXT NOT NULL, batch_id TEXT NOT NULL,
    size INTEGER NOT NULL, filled INTEGER NOT NULL, bytes INTEGER NOT NULL, UNIQUE (task_id, batch_id)
);
CREATE INDEX full_ones ON batches (task_id, batch_id, bytes) WHERE filled = size;
CREATE TABLE sealed (
    number INTEGER PRIMARY KEY, task_id TEXT NOT NULL, batch_id TEXT NOT NULL,
    bytes INTEGER NOT NULL, state INTEGER NOT NULL, UNIQUE (task_id, batch_id)
);
CREATE INDEX unfinished ON sealed (state, bytes) WHERE state < 3;
"""

# A sealed batch: its parts are being deleted; it waits to be sent; its bytes are being deleted; nothing is left.
TIDYING, READY, SENT, GONE = range(4)
_FULL = "filled = size"
# In one commit: more would make others wait.
MOST_BYTES = 1 << 20
# Batches that are filled by one statement; a report is in fewer.
_MOST_BATCHES = 16
# Rows that are read for each that is asked for, if all are in one stretch: it costs less to find.
_MOST_READ = 4
# A run's place in its table: the bucket, then the number of the run in so many bits.
_RUN_BITS = 20


_LEASES = "SELECT seat, position, ends FROM leases WHERE task_id = ?1 AND position"


@cache
def _end_leases(count: int) -> str:
    return f"DELETE FROM leases WHERE task_id = ?1 AND position IN {asked(count)}"


@cache
def _fill(count: int) -> str:
    """So many batches get fuller, each given by id, size, reports and bytes; answers its number and how full it is."""
    rows = ", ".join(f"(?1, {', '.join(f'?{4 * row + column}' for column in range(2, 6))})" for row in range(count))
    return (
        f"INSERT INTO batches (task_id, batch_id, size, filled, bytes) VALUES {rows} "
        "ON CONFLICT (task_id, batch_id) DO UPDATE SET filled = filled + excluded.filled, "
        "bytes = bytes + excluded.bytes RETURNING batch_id, number, filled"
    )


class SqliteShufflerRecords(SqliteArrivals, SqliteIncoming, SqliteRedeeming):
    """Records on a connection that is inside a transaction."""

    def __init__(self, connection: StoreConnection) -> None:
        self.db = connection

    def add_task(self, task_id: str, routing: str) -> None:
        self.db.execute("INSERT OR IGNORE INTO tasks VALUES (?, ?, 0, 0)", (task_id, routing))

    def tasks(self) -> dict[str, str]:
        return dict(self.db.execute("SELECT task_id, routing FROM tasks ORDER BY task_id").fetchall())

    def task(self, task_id: str) -> str | None:
        row = self.db.execute("SELECT routing FROM tasks WHERE task_id = ?", (task_id,)).fetchone()
        return None if row is None else str(row[0])

    def take_position(self, task_id: str, positions: int) -> int | None:
        (position,) = self.db.execute("SELECT next_position FROM tasks WHERE task_id = ?", (task_id,)).fetchone()
        if position >= positions:
            return None
        self.db.execute("UPDATE tasks SET next_position = ? WHERE task_id = ?", (position + 1, task_id))
        return int(position)

    def leases(self, task_id: str, seats: list[str]) -> dict[str, Lease]:
        # People sit side by side: looked up by position, they are on few pages.
        own, positions = set(seats), [position_of(seat) for seat in seats]
        first, last = min(positions, default=0), max(positions, default=0)
        rows: list[tuple[str, int, float]] = []
        if last - first < _MOST_READ * len(positions):
            rows = self.db.execute(f"{_LEASES} BETWEEN ?2 AND ?3", (task_id, first, last)).fetchall()
        else:
            for count, block in in_blocks(positions):
                rows += self.db.execute(f"{_LEASES} IN {asked(count)}", (task_id, *block)).fetchall()
        return {row[0]: Lease(*row) for row in rows if row[0] in own}

    def add_lease(self, task_id: str, lease: Lease) -> None:
        self.db.execute("INSERT INTO leases VALUES (?, ?, ?, ?)", (task_id, lease.position, lease.seat, lease.ends))

    def drop_lease(self, task_id: str, seat: str) -> None:
        place = (task_id, position_of(seat), seat)
        self.db.execute("DELETE FROM leases WHERE task_id = ? AND position = ? AND seat = ?", place)

    def ended_lease(self, task_id: str, now: float, positions: int) -> Lease | None:
        row = self.db.execute(
            "SELECT seat, position, ends FROM leases WHERE task_id = ? AND ends <= ? AND position < ? "
            "ORDER BY ends LIMIT 1",
            (task_id, now, positions),
        ).fetchone()
        return None if row is None else Lease(*row)

    def expect(self, task_id: str, report_ids: list[str], seats: list[str]) -> None:
        """Nothing is far away."""

    def keep(self, task_id: str, report_ids: list[str], seats: list[str], parts: list[BatchPart]) -> None:
        self._add_ids(task_id, report_ids)
        self._keep_parts(task_id, parts)
        for count, positions in in_blocks(map(position_of, seats)):
            self.db.execute(_end_leases(count), (task_id, *positions))
        self.db.execute("UPDATE tasks SET reports = reports + ? WHERE task_id = ?", (len(report_ids), task_id))

    def _keep_parts(self, task_id: str, parts: list[BatchPart]) -> None:
        for start in range(0, len(parts), _MOST_BATCHES):
            some = parts[start : start + _MOST_BATCHES]
            given = [value for part in some for value in (part.batch_id, part.size, part.reports, len(part.body))]
            reports, numbers = sum(part.reports for part in some), {}
            for batch_id, number, filled in self.db.execute(_fill(len(some)), (task_id, *given)).fetchall():
                numbers[batch_id] = number
                if filled <= reports:  # these may be its first
                    columns = "(seat INTEGER PRIMARY KEY, body BLOB NOT NULL)"
                    self.db.execute(f"CREATE TABLE IF NOT EXISTS parts_{number} {columns}")
            for part in some:
                self.db.execute(f"INSERT INTO parts_{numbers[part.batch_id]} VALUES (?, ?)", (part.seat, part.body))

    def full_batches(self) -> list[tuple[str, str]]:
        return self.db.execute(f"SELECT task_id, batch_id FROM batches WHERE {_FULL}").fetchall()

    def claim(self, task_id: str, batch_id: str) -> bool:
        # The store is one process's.
        return True

    def parts(self, task_id: str, batch_id: str) -> list[bytes]:
        rows = self.db.execute(f"SELECT body FROM parts_{self._number('batches', task_id, batch_id)}")
        return [row[0] for row in rows]

    def full_bytes(self, task_id: str, batch_id: str) -> int | None:
        query = f"SELECT bytes FROM batches WHERE task_id = ? AND batch_id = ? AND {_FULL}"
        row = self.db.execute(query, (task_id, batch_id)).fetchone()
        return None if row is None else int(row[0])

    def some_parts(self, task_id: str, batch_id: str, after: int, most_bytes: int) -> list[tuple[int, bytes]]:
        number = self._number("batches", task_id, batch_id)
        # A place is a seat and one more: the first is not 0.
        query = f"SELECT seat + 1, body FROM parts_{number} WHERE seat > ? ORDER BY seat"
        return about(most_bytes, self.db.execute(query, (after - 1,)))

    def add_runs(self, task_id: str, batch_id: str, number: int, runs: list[tuple[int, bytes]]) -> None:
        table = f"buckets_{self._number('batches', task_id, batch_id)}"
        if number == 0:
            self.db.execute(f"CREATE TABLE {table} (place INTEGER PRIMARY KEY, body BLOB NOT NULL)")
        for bucket, body in runs:
            self.db.execute(f"INSERT INTO {table} VALUES (?, ?)", ((bucket << _RUN_BITS) + number, body))

    def bucket(self, task_id: str, batch_id: str, bucket: int) -> bytes:
        table = f"buckets_{self._number('batches', task_id, batch_id)}"
        query = f"SELECT body FROM {table} WHERE place >= ? AND place < ? ORDER BY place"
        return b"".join(row[0] for row in self.db.execute(query, (bucket << _RUN_BITS, (bucket + 1) << _RUN_BITS)))

    def has_draft(self, task_id: str, batch_id: str) -> bool:
        number = self._number("batches", task_id, batch_id)
        return self._is_table(f"pieces_{number}") or self._is_table(f"buckets_{number}")

    def _is_table(self, name: str) -> bool:
        query = "SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = ?"
        return self.db.execute(query, (name,)).fetchone() is not None

    def drop_draft(self, task_id: str, batch_id: str) -> bool:
        return self._drop_draft(self._number("batches", task_id, batch_id))

    def _drop_draft(self, number: int) -> bool:
        """Some of what a try to seal a batch has left; True if nothing is left."""
        return self._drop_some(f"pieces_{number}", "piece") and self._drop_some(f"buckets_{number}", "place")

    def _drop_some(self, table: str, column: str) -> bool:
        return not self._is_table(table) or self._delete_some(table, column)

    def add_piece(self, task_id: str, batch_id: str, number: int, body: bytes | memoryview) -> None:
        table = f"pieces_{self._number('batches', task_id, batch_id)}"
        if number == 0:
            self.db.execute(f"CREATE TABLE {table} (piece INTEGER PRIMARY KEY, body BLOB NOT NULL)")
        self.db.execute(f"INSERT INTO {table} VALUES (?, ?)", (number, body))

    def seal(self, task_id: str, batch_id: str, length: int) -> None:
        number = self._number("batches", task_id, batch_id)
        self.db.execute("INSERT INTO sealed VALUES (?, ?, ?, ?, ?)", (number, task_id, batch_id, length, TIDYING))
        self.db.execute("DELETE FROM batches WHERE number = ?", (number,))

    def tidy(self, task_id: str, batch_id: str) -> bool:
        if not self._settle_ids(task_id) or not self._settle_tokens(owner_of(task_id), MOST_IDS):
            return False
        number = self._number("sealed", task_id, batch_id)
        if not self._drop_some(f"buckets_{number}", "place"):
            return False
        if not self._delete_some(f"parts_{number}", "seat"):
            return False
        self._set_state(READY, (task_id, batch_id))
        return True

    def untidy(self) -> list[tuple[str, str]]:
        return self._in_state(TIDYING)

    def waiting(self) -> list[tuple[str, str]]:
        return self._in_state(READY)

    def sealed(self, task_id: str, batch_id: str) -> bytes | None:
        if self.sealed_bytes(task_id, batch_id) is None:
            return None
        query = f"SELECT body FROM pieces_{self._number('sealed', task_id, batch_id)} ORDER BY piece"
        return b"".join(piece[0] for piece in self.db.execute(query))

    def sealed_bytes(self, task_id: str, batch_id: str) -> int | None:
        query = f"SELECT bytes FROM sealed WHERE task_id = ? AND batch_id = ? AND state < {SENT}"
        row = self.db.execute(query, (task_id, batch_id)).fetchone()
        return None if row is None else int(row[0])

    def piece(self, task_id: str, batch_id: str, number: int) -> bytes | None:
        if self.sealed_bytes(task_id, batch_id) is None:
            return None
        table = f"pieces_{self._number('sealed', task_id, batch_id)}"
        row = self.db.execute(f"SELECT body FROM {table} WHERE piece = ?", (number,)).fetchone()
        return None if row is None else row[0]

    def purge(self, task_id: str, batch_id: str) -> bool:
        is_gone = self._delete_some(f"pieces_{self._number('sealed', task_id, batch_id)}", "piece")
        self._set_state(GONE if is_gone else SENT, (task_id, batch_id))
        return is_gone

    def unpurged(self) -> list[tuple[str, str]]:
        return self._in_state(SENT)

    def _number(self, table: str, task_id: str, batch_id: str) -> int:
        query = f"SELECT number FROM {table} WHERE task_id = ? AND batch_id = ?"
        return int(self.db.execute(query, (task_id, batch_id)).fetchone()[0])

    def _delete_some(self, table: str, column: str) -> bool:
        """About as much as a commit should hold; with the last of it the table, which is then True."""
        numbers, length = [], 0
        for number, its_length in self.db.execute(f"SELECT {column}, length(body) FROM {table} ORDER BY {column}"):
            numbers.append(number)
            length += its_length
            if length >= MOST_BYTES:
                break
        if numbers:
            self.db.execute(f"DELETE FROM {table} WHERE {column} <= ?", (numbers[-1],))
        if self.db.execute(f"SELECT 1 FROM {table} LIMIT 1").fetchone() is not None:
            return False
        self.db.execute(f"DROP TABLE {table}")
        return True

    def _in_state(self, state: int) -> list[tuple[str, str]]:
        # Oldest first; written out, so that the index is used.
        query = f"SELECT task_id, batch_id FROM sealed WHERE state = {state} AND state < 3 ORDER BY number"
        return self.db.execute(query).fetchall()

    def _set_state(self, state: int, key: tuple[str, str]) -> None:
        self.db.execute("UPDATE sealed SET state = ? WHERE task_id = ? AND batch_id = ?", (state, *key))

    def open_tasks(self) -> list[str]:
        query = "SELECT task_id FROM batches UNION SELECT task_id FROM leases"
        return [row[0] for row in self.db.execute(query)]

    def sealed_tasks(self) -> list[str]:
        return [row[0] for row in self.db.execute("SELECT DISTINCT task_id FROM sealed")]

    def abandon(self, task_id: str, positions: int) -> bool:
        self.db.execute("UPDATE tasks SET next_position = ? WHERE task_id = ?", (positions, task_id))
        for table in ("leases", "held"):
            self.db.execute(f"DELETE FROM {table} WHERE task_id = ?", (task_id,))
        if not self._settle_ids(task_id):
            return False
        row = self.db.execute("SELECT number FROM batches WHERE task_id = ? LIMIT 1", (task_id,)).fetchone()
        if row is None:
            return True
        # A try to seal it may have left pieces of it.
        if not self._drop_draft(row[0]):
            return False
        if self._delete_some(f"parts_{row[0]}", "seat"):
            self.db.execute("DELETE FROM batches WHERE number = ?", (row[0],))
        return False

    def waiting_bytes(self) -> int:
        (waiting,) = self.db.execute(
            f"SELECT (SELECT COALESCE(SUM(bytes), 0) FROM sealed WHERE state < 3 AND state <= {READY}) "
            f"+ (SELECT COALESCE(SUM(bytes), 0) FROM batches WHERE {_FULL})"
        ).fetchone()
        return int(waiting)

    def counts(self, task_id: str) -> Counts:
        row = self.db.execute(
            "SELECT next_position, (SELECT COUNT(*) FROM leases WHERE task_id = ?1), reports, "
            "(SELECT COUNT(*) FROM batches WHERE task_id = ?1), "
            f"(SELECT COUNT(*) FROM sealed WHERE task_id = ?1 AND state <= {READY}), "
            f"(SELECT COUNT(*) FROM sealed WHERE task_id = ?1 AND state > {READY}) FROM tasks WHERE task_id = ?1",
            (task_id,),
        ).fetchone()
        # A round in which nobody has sat down yet has no row.
        return Counts(*row) if row is not None else Counts(0, 0, 0, 0, 0, 0)

    def open_batches(self, task_id: str) -> list[BatchFill]:
        query = "SELECT batch_id, filled, size FROM batches WHERE task_id = ?"
        return [BatchFill(*row) for row in self.db.execute(query, (task_id,))]

    def mark_ended(self, task_id: str, text: str) -> None:
        self.db.execute("UPDATE tasks SET routing = ? WHERE task_id = ?", (text, task_id))

    def forget_ids(self, task_id: str) -> int:
        count = self._forget_some_ids(task_id) + self._forget_tokens(task_id, MOST_IDS)
        if not count:
            # Of a hop: what it was taking from the hop before it.
            self.db.execute("DELETE FROM incoming WHERE task_id = ?", (task_id,))
        return count
