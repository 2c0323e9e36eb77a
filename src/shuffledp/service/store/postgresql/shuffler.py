"""A shuffler's records in PostgreSQL: several processes share them.

Whoever writes about a task locks its row first, so that the rules of the desk hold as if there were one process. A
full batch belongs to the process that claimed it, for a while by the database's clock: every statement about it says
whose it must be, so that a process that was too slow changes nothing.
"""

import math
from typing import Any

from shuffledp.service.store.contract import BatchPart, ClaimLostError, Counts, Lease
from shuffledp.service.store.postgresql.buckets import PostgresBuckets
from shuffledp.service.store.postgresql.incoming import PostgresIncoming
from shuffledp.service.store.postgresql.records import LARGE_BYTES, Session, StaleError, TaskLockedError
from shuffledp.service.store.postgresql.redeeming import PostgresRedeeming
from shuffledp.service.store.postgresql.vault import OVERHEAD_BYTES
from shuffledp.service.wire import position_of

# A batch: reports come; it waits to be sent; the next hop has it.
OPEN, READY, GONE = range(3)
_FULL = "state = 0 AND filled = size"
_WAITING = (
    "SELECT (SELECT COALESCE(SUM(bytes), 0) FROM batches WHERE state = 1) "
    f"+ (SELECT COALESCE(SUM(bytes), 0) FROM batches WHERE {_FULL})"
)
# OFFSET 0: each is looked up by its whole key. A plan that was made while the table was empty would else look at all.
_OWN_LEASES = (
    "unnest(%s::bigint[]) AS asked (place), "
    "LATERAL (SELECT ctid, * FROM leases WHERE task_id = %s AND position = asked.place OFFSET 0) AS own"
)
_ACCEPTED = (
    "SELECT asked.name FROM unnest(%b::bytea[]) AS asked (name) "
    "WHERE EXISTS (SELECT 1 FROM accepted WHERE task = %s AND accepted.name = asked.name OFFSET 0)"
)
_ADD = (
    "INSERT INTO batches (task_id, batch_id, size, filled, bytes) SELECT %s, * "
    "FROM unnest(%s::text[], %s::bigint[], %s::bigint[], %s::bigint[]) "
    "ON CONFLICT (task_id, batch_id) DO UPDATE SET filled = batches.filled + excluded.filled, "
    "bytes = batches.bytes + excluded.bytes WHERE batches.state = 0 "
    "RETURNING batch_id, number, parts_shelf, parts_key"
)
# In one commit: more would make others wait.
MOST_IDS = 10_000
_FREE = "(holder IS NULL OR holder = %s OR held_until < clock_timestamp())"
_MINE = "holder = %s AND held_until >= clock_timestamp()"


class PostgresShufflerRecords(PostgresIncoming, PostgresRedeeming, PostgresBuckets):
    """Records on a connection that is inside a transaction."""

    def __init__(self, session: Session) -> None:
        super().__init__(session)
        # What this request knows of tasks it has locked: nobody else changes it.
        self._tasks: dict[str, int] = {}
        self._next: dict[str, int] = {}
        self._moved: set[str] = set()
        self._given: list[tuple[str, Lease]] = []
        self._first_end: dict[tuple[str, int], float] = {}
        self._waiting_bytes: int | None = None
        # Questions that are on their way to the server, and answers that are to be compared with what was assumed.
        self._asked: dict[tuple[str, str], Any] = {}
        self._assumed: list[tuple[Any, dict[str, tuple[int, int, bytes]]]] = []

    def _lock(self, task_id: str) -> int | None:
        """Nobody else writes about this task until the commit; answers its number, None if it is unknown."""
        if task_id not in self._tasks:
            found = self._ask_for_lock(task_id).fetchall()
            if not found:
                del self._asked["lock", task_id]
                if not self.session.is_reading and self.task(task_id) is not None:
                    raise TaskLockedError
                return None
            self._tasks[task_id], self._next[task_id] = found[0]
            self.session.learned[task_id] = found[0][0]
        return self._tasks[task_id]

    def _ask_for_lock(self, task_id: str) -> Any:
        if ("lock", task_id) not in self._asked:
            session, query = self.session, "SELECT number, next_position FROM taken WHERE task_id = %s"
            if not session.is_reading:
                query += " FOR UPDATE" if session.is_alone or not session.locked else " FOR UPDATE SKIP LOCKED"
                session.locked.add(task_id)
            self._asked["lock", task_id] = self.db.execute(query, (task_id,))
        return self._asked["lock", task_id]

    def settle(self) -> None:
        self._flush()
        for cursor, assumed in self._assumed:
            if {row[0]: (row[1], row[2], bytes(row[3] or b"")) for row in cursor.fetchall()} != assumed:
                raise StaleError
        self._assumed.clear()

    def _flush(self) -> None:
        if self._moved:
            moved = sorted(self._moved)
            self.db.execute(
                "UPDATE taken SET next_position = new.position FROM unnest(%s::text[], %s::bigint[]) "
                "AS new (task_id, position) WHERE taken.task_id = new.task_id",
                (moved, [self._next[task_id] for task_id in moved]),
            )
            self._moved.clear()
        if self._given:
            columns = zip(*((task, one.position, one.seat, one.ends) for task, one in self._given), strict=True)
            self.db.execute(
                "INSERT INTO leases SELECT * FROM unnest(%s::text[], %s::bigint[], %s::text[], %s::float8[])",
                tuple(list(column) for column in columns),
            )
            self._given.clear()

    # --- tasks and seats -----------------------------------------------------------------------

    def add_task(self, task_id: str, routing: str) -> None:
        found = self.rows(
            "INSERT INTO tasks (task_id, text) VALUES (%s, %s) ON CONFLICT DO NOTHING RETURNING number",
            task_id, routing,
        )  # fmt: skip
        for (number,) in found:
            self.db.execute("INSERT INTO taken VALUES (%s, %s, 0, 0)", (task_id, number))

    def tasks(self) -> dict[str, str]:
        return dict(self.rows("SELECT task_id, text FROM tasks ORDER BY task_id"))

    def task(self, task_id: str) -> str | None:
        found = self.rows("SELECT text FROM tasks WHERE task_id = %s", task_id)
        return found[0][0] if found else None

    def take_position(self, task_id: str, positions: int) -> int | None:
        self._lock(task_id)
        position = self._next[task_id]
        if position >= positions:
            return None
        self._next[task_id] = position + 1
        self._moved.add(task_id)
        return position

    def leases(self, task_id: str, seats: list[str]) -> dict[str, Lease]:
        cursor = self._asked.pop((task_id, f"leases {','.join(seats)}"), None)
        self._lock(task_id)
        self._flush()
        rows, asked = (cursor or self._ask_for_leases(task_id, seats)).fetchall(), set(seats)
        return {row[0]: Lease(*row) for row in rows if row[0] in asked}

    def add_lease(self, task_id: str, lease: Lease) -> None:
        self._lock(task_id)
        self._given.append((task_id, lease))
        for owner, positions in self._first_end:
            if owner == task_id and lease.position < positions:
                self._first_end[owner, positions] = min(self._first_end[owner, positions], lease.ends)

    def drop_lease(self, task_id: str, seat: str) -> None:
        self._lock(task_id)
        self._flush()
        self._first_end.clear()
        query = "DELETE FROM leases WHERE task_id = %s AND position = %s AND seat = %s"
        self.db.execute(query, (task_id, position_of(seat), seat))

    def ended_lease(self, task_id: str, now: float, positions: int) -> Lease | None:
        self._lock(task_id)
        if self._first_end.get((task_id, positions), now) > now:
            return None
        self._flush()
        rows = self.rows(
            "SELECT seat, position, ends FROM leases WHERE task_id = %s AND position < %s ORDER BY ends LIMIT 1",
            task_id, positions,
        )  # fmt: skip
        self._first_end[task_id, positions] = rows[0][2] if rows else math.inf
        return Lease(*rows[0]) if rows and rows[0][2] <= now else None

    def _ask_for_leases(self, task_id: str, seats: list[str]) -> Any:
        query = f"SELECT own.seat, own.position, own.ends FROM {_OWN_LEASES}"
        return self.db.execute(query, ([position_of(seat) for seat in seats], task_id))

    # --- reports -------------------------------------------------------------------------------

    def expect(self, task_id: str, report_ids: list[str], seats: list[str]) -> None:
        number = self.session.known.get(task_id)
        if number is None or self.session.is_reading or self._given or self._moved:
            return
        # All travel together, and each is answered as of when the lock was there.
        self._ask_for_lock(task_id)
        self._asked[task_id, "waiting"] = self.db.execute(_WAITING)
        self._asked[task_id, f"accepted {','.join(report_ids)}"] = self._ask_for_accepted(number, report_ids)
        self._asked[task_id, f"leases {','.join(seats)}"] = self._ask_for_leases(task_id, seats)

    def _ask_for_accepted(self, number: int | None, report_ids: list[str]) -> Any:
        names = [self.vault.name_of(report_id) for report_id in report_ids]
        return self.db.execute(_ACCEPTED, (names, number))

    def accepted_among(self, task_id: str, report_ids: list[str]) -> set[str]:
        cursor = self._asked.pop((task_id, f"accepted {','.join(report_ids)}"), None)
        number = self._lock(task_id)
        found = (cursor or self._ask_for_accepted(number, report_ids)).fetchall()
        if not found:
            return set()
        names = {self.vault.name_of(report_id): report_id for report_id in report_ids}
        return {names[bytes(name)] for (name,) in found}

    def keep(self, task_id: str, report_ids: list[str], seats: list[str], parts: list[BatchPart]) -> None:
        number = self._lock(task_id)
        self._flush()
        # In the order of the keys: pages are touched once.
        names = sorted(map(self.vault.name_of, report_ids))
        self.db.execute("INSERT INTO accepted SELECT %s, unnest(%b::bytea[])", (number, names))
        if parts:
            self._keep_parts(task_id, parts)
        query = f"DELETE FROM leases WHERE ctid = ANY(ARRAY(SELECT own.ctid FROM {_OWN_LEASES}))"
        self.db.execute(query, ([position_of(seat) for seat in seats], task_id))
        self.db.execute("UPDATE taken SET reports = reports + %s WHERE task_id = %s", (len(report_ids), task_id))
        self._waiting_bytes = None

    def _keep_parts(self, task_id: str, parts: list[BatchPart]) -> None:
        joined: dict[str, list[BatchPart]] = {}
        for part in parts:
            joined.setdefault(part.batch_id, []).append(part)
        added = [
            (name, each[0].size, sum(one.reports for one in each), sum(len(one.body) for one in each))
            for name, each in joined.items()
        ]
        cursor = self.db.execute(_ADD, (task_id, *(list(column) for column in zip(*added, strict=True))))
        remembered = self.session.known
        known = {name: remembered[task_id, name] for name in joined if (task_id, name) in remembered}
        if len(known) == len(joined):
            # What they have is written without waiting for the answer, which is looked at in the end.
            self._assumed.append((cursor, known))
            found = [(name, *place) for name, place in known.items()]
        else:
            found = cursor.fetchall()
            assert len(found) == len(joined), "a part came for a batch that is sealed"
        for batch_id, batch, shelf, key in found:
            own = joined[batch_id]
            if key is None:
                # As long as those who are still to come have as much to say; a batch comes in pieces if it is large.
                reports = sum(one.reports for one in own)
                expected = sum(len(one.body) for one in own) * own[0].size // reports if reports else LARGE_BYTES + 1
                shelf, key = self._put(task_id, "parts", expected)
                query = "UPDATE batches SET parts_shelf = %s, parts_key = %s WHERE number = %s"
                self.db.execute(query, (shelf, key, batch))
            self.session.learned[task_id, batch_id] = (batch, shelf, bytes(key))
            self._write("parts", shelf, batch, key, [(part.seat, memoryview(part.body)) for part in own])

    # --- batches: claimed, sealed, sent ---------------------------------------------------------

    def full_batches(self) -> list[tuple[str, str]]:
        query = f"SELECT task_id, batch_id FROM batches WHERE {_FULL} AND {_FREE} ORDER BY number"
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
        query = f"SELECT bytes FROM batches WHERE task_id = %s AND batch_id = %s AND {_FULL} AND {_FREE}"
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
        query = f"UPDATE batches SET state = {READY}, bytes = %s WHERE number = %s AND {_FULL} RETURNING 1"
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

    # --- rounds, and how far it is --------------------------------------------------------------

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

    def waiting_bytes(self) -> int:
        if self._waiting_bytes is None:
            asked = [self._asked.pop(key) for key in list(self._asked) if key[1] == "waiting"]
            [(waiting,)] = asked[-1].fetchall() if asked else self.rows(_WAITING)
            self._waiting_bytes = int(waiting)
        return self._waiting_bytes

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

    # --- what has ended ------------------------------------------------------------------------

    def mark_ended(self, task_id: str, text: str) -> None:
        self.db.execute("UPDATE tasks SET text = %s WHERE task_id = %s", (text, task_id))

    def forget_ids(self, task_id: str) -> int:
        some = f"SELECT name FROM accepted WHERE task = %s ORDER BY name LIMIT {MOST_IDS}"
        number = self._lock(task_id)
        # Answered, and not counted by the driver, which does not know it yet while statements travel together.
        query = f"DELETE FROM accepted WHERE task = %s AND name IN ({some}) RETURNING 1"
        count = len(self.rows(query, number, number)) + self._forget_tokens(task_id, MOST_IDS)
        if not count:
            # Of a hop: what it has taken from the hop before it.
            for table in ("received", "incoming"):
                self.db.execute(f"DELETE FROM {table} WHERE task_id = %s", (task_id,))
        return count

    # --- keys ----------------------------------------------------------------------------------

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
