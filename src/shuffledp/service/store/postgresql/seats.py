"""A shuffler's tasks and seats in PostgreSQL: whoever writes about a task locks its row first."""

import math
from typing import Any

from shuffledp.service.store.contract import Lease
from shuffledp.service.store.postgresql.records import PostgresRecords, Session, StaleError, TaskLockedError
from shuffledp.service.wire import position_of

# OFFSET 0: each is looked up by its whole key. A plan that was made while the table was empty would else look at all.
OWN_LEASES = (
    "unnest(%s::bigint[]) AS asked (place), "
    "LATERAL (SELECT ctid, * FROM leases WHERE task_id = %s AND position = asked.place OFFSET 0) AS own"
)


class PostgresSeats(PostgresRecords):
    """Records of tasks and of seats that wait for a report."""

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
        query = f"SELECT own.seat, own.position, own.ends FROM {OWN_LEASES}"
        return self.db.execute(query, ([position_of(seat) for seat in seats], task_id))
