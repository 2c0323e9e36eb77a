"""Reports that a shuffler keeps in PostgreSQL: each once, and in the batches that they are part of."""

from typing import Any

from shuffledp.service.store.contract import BatchPart
from shuffledp.service.store.postgresql.records import LARGE_BYTES
from shuffledp.service.store.postgresql.seats import OWN_LEASES, PostgresSeats
from shuffledp.service.wire import position_of

# A batch whose reports have all come, and that is not sealed.
FULL = "state = 0 AND filled = size"
_WAITING = (
    "SELECT (SELECT COALESCE(SUM(bytes), 0) FROM batches WHERE state = 1) "
    f"+ (SELECT COALESCE(SUM(bytes), 0) FROM batches WHERE {FULL})"
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


class PostgresReports(PostgresSeats):
    """Records of reports, whose parts lie in batches."""

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
        query = f"DELETE FROM leases WHERE ctid = ANY(ARRAY(SELECT own.ctid FROM {OWN_LEASES}))"
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

    def has_backlog(self) -> bool:
        return False

    def work_off(self) -> None:
        """Nothing is put off: other processes look for it in its place."""

    def waiting_bytes(self) -> int:
        if self._waiting_bytes is None:
            asked = [self._asked.pop(key) for key in list(self._asked) if key[1] == "waiting"]
            [(waiting,)] = asked[-1].fetchall() if asked else self.rows(_WAITING)
            self._waiting_bytes = int(waiting)
        return self._waiting_bytes
