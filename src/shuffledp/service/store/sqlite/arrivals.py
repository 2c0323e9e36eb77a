"""Ids of reports, by which a second try is recognized: those that have just come, and those that came long ago.

An id is random: put in its place among millions, it touches a page of its own, which is then written whole. So ids wait
in `arrivals`, a row a commit, and are looked up in memory, until a batch of their task is sealed or they are very many.
Then the task's are put in their places in `accepted`, in the order of the ids and some in each commit, and leave the
order of arrival behind. Other tasks' stay where they are: put in their places a few at a time, they would lie there as
they came.
"""

import sqlite3
from abc import ABC
from bisect import bisect_right
from collections.abc import Collection, Iterable
from functools import cache, cached_property
from typing import Self

from shuffledp.service.store.sqlite.blocks import asked, in_blocks
from shuffledp.service.store.sqlite.engine import StoreConnection
from shuffledp.service.wire import ID_BYTES

# `settling` has a row for a task whose ids are put in their places: those of its arrivals up to a number, and of these
# the ones up to an id are there. `turns` has the number of the last change of `arrivals` that was not a new row.
_WAITING = """
CREATE TABLE arrivals (number INTEGER PRIMARY KEY, task_id TEXT NOT NULL, ids BLOB NOT NULL);
CREATE TABLE settling (task_id TEXT PRIMARY KEY, number INTEGER NOT NULL, report_id BLOB NOT NULL) WITHOUT ROWID;
CREATE TABLE turns (number INTEGER NOT NULL);
"""
SCHEMA = f"""
CREATE TABLE accepted (
    task_id TEXT NOT NULL, report_id BLOB NOT NULL, PRIMARY KEY (task_id, report_id)
) WITHOUT ROWID;
{_WAITING}"""
# Stores of version 2 had them in the order of the ids from the beginning.
FROM_VERSION_2 = f"""
INSERT OR IGNORE INTO accepted SELECT task_id, report_id FROM arrived ORDER BY task_id, report_id;
DROP TABLE arrived;
{_WAITING}"""
MOST_IDS = 2000
"""In one commit: more would make others wait. Where more come than that, twice as many as came: or it never ends."""
ENOUGH_IDS = 1 << 16
"""So many are put in their places though no batch is sealed: they would take too much memory."""
# Then those of a task that has this part of them or more: of few, their places would tell when they came.
_LARGE_PART, _FAR_TOO_MANY = 16, 16
# While that goes on, some are whenever half as many have come.
_NEW_IDS = MOST_IDS // 2

Mark = tuple[int | None, int | None]
"""By which the table is known: the number of its last row, and of its last turn."""
_UNKNOWN: Mark = (-1, -1)


@cache
def _search(count: int) -> str:
    """Which of so many ids are in their places."""
    known = "EXISTS (SELECT 1 FROM accepted WHERE task_id = ?1 AND report_id = it)"
    return f"SELECT it FROM {asked(count)} WHERE it IS NOT NULL AND {known}"


@cache
def _insert(count: int) -> str:
    """Put so many ids in their places."""
    return f"INSERT INTO accepted SELECT ?1, it FROM {asked(count)} WHERE it IS NOT NULL"


class Arrivals:
    """What a connection remembers of the table `arrivals`, so that it need not be read.

    A transaction is taken back without a word, so that every one looks first whether all of this holds. It does if the
    table's mark does: no number of a row or of a turn is given twice while this remembers. Whatever is about to change
    this makes the mark unknown first, so that it is read again if that breaks off.
    """

    def __init__(self) -> None:
        self._mark: Mark = _UNKNOWN
        self._next = 1
        self._ids: dict[str, set[bytes]] = {}
        self._sorted: dict[str, tuple[int, list[bytes]]] = {}
        self.count = 0
        """How many ids wait."""
        self.new = 0
        """How many have come since some were put in their places; a guess after an error."""

    def look(self, db: sqlite3.Connection) -> Self:
        """Make sure that it is what the table is."""
        query = "SELECT (SELECT MAX(number) FROM arrivals), (SELECT number FROM turns)"
        mark: Mark = db.execute(query).fetchone()
        if mark != self._mark:
            self._mark = _UNKNOWN
            ids: dict[str, set[bytes]] = {}
            for task_id, some in db.execute("SELECT task_id, ids FROM arrivals"):
                ids.setdefault(task_id, set()).update(_cut(some))
            self._ids, self._sorted, self.count = ids, {}, sum(map(len, ids.values()))
            self._next = max(self._next, (mark[0] or 0) + 1, (mark[1] or 0) + 1)
            self._mark = mark
        return self

    def of(self, task_id: str) -> set[bytes]:
        """All ids of a task that have come and are not in their places."""
        return self._ids.get(task_id, set())

    def most(self) -> tuple[str, int]:
        """The task of which most ids wait, and how many."""
        return max(((task_id, len(ids)) for task_id, ids in self._ids.items()), key=lambda each: each[1])

    @property
    def last(self) -> int:
        """The number of the last row; there is one."""
        assert self._mark[0] is not None
        return self._mark[0]

    def add(self, db: sqlite3.Connection, task_id: str, ids: list[bytes]) -> None:
        """These have come together."""
        number, turn = self._next, self._mark[1]
        self._mark, self._next = _UNKNOWN, number + 1
        # Not in the order of arrival, which nobody needs.
        db.execute("INSERT INTO arrivals VALUES (?, ?, ?)", (number, task_id, b"".join(sorted(ids))))
        self._ids.setdefault(task_id, set()).update(ids)
        self.count += len(ids)
        self.new += len(ids)
        self._mark = (number, turn)

    def up_to(self, db: sqlite3.Connection, task_id: str, number: int) -> list[bytes]:
        """All ids of a task that came up to this row, in their order; remembered, as they are asked for again."""
        remembered = self._sorted.get(task_id)
        if remembered is None or remembered[0] != number:
            if number == self.last:
                ids = sorted(self.of(task_id))
            else:
                query = "SELECT ids FROM arrivals WHERE task_id = ? AND number <= ?"
                ids = sorted(each for (some,) in db.execute(query, (task_id, number)) for each in _cut(some))
            remembered = self._sorted[task_id] = number, ids
        return remembered[1]

    def delete(self, db: sqlite3.Connection, task_id: str, ids: Collection[bytes], up_to: int) -> None:
        """Delete these ids of a task, which are all that came of it up to this row; the rest is in fewer rows then.

        SQLite overwrites what is deleted, but not what it moves from page to page then; of a table that is emptied as a
        whole every page is overwritten.
        """
        self._mark, turn = _UNKNOWN, self._next
        self._next = turn + 1
        begun = dict(db.execute("SELECT task_id, number FROM settling").fetchall())
        last: dict[tuple[str, bool], int] = {}
        left: dict[tuple[str, bool], list[bytes]] = {}
        for number, owner, some in db.execute("SELECT number, task_id, ids FROM arrivals ORDER BY number"):
            if owner == task_id and number <= up_to:
                continue
            # What is on its way to its place stays apart from what came later.
            group = (owner, number <= begun.get(owner, 0))
            last[group] = number
            left.setdefault(group, []).append(some)
        db.execute("DELETE FROM arrivals")
        for group, rows in left.items():
            db.execute("INSERT INTO arrivals VALUES (?, ?, ?)", (last[group], group[0], b"".join(rows)))
        db.execute("DELETE FROM turns")
        db.execute("INSERT INTO turns VALUES (?)", (turn,))
        self._sorted.pop(task_id, None)
        self.count -= len(ids)
        self._ids[task_id].difference_update(ids)
        if not self._ids[task_id]:
            del self._ids[task_id]
        self._mark = (max(last.values(), default=None), turn)


class SqliteArrivals(ABC):
    """Records of reports' ids, on a connection that is inside a transaction."""

    db: StoreConnection

    @cached_property
    def _arrivals(self) -> Arrivals:
        remembered: Arrivals = self.db.remembered.setdefault("arrivals", Arrivals())
        return remembered.look(self.db)

    def accepted_among(self, task_id: str, report_ids: list[str]) -> set[str]:
        ids = [bytes.fromhex(report_id) for report_id in report_ids]
        known = self._arrivals.of(task_id).intersection(ids) | self._in_their_places(task_id, ids)
        return {each.hex() for each in known}

    def _in_their_places(self, task_id: str, ids: Iterable[bytes]) -> set[bytes]:
        found: set[bytes] = set()
        for count, block in in_blocks(ids):
            found.update(row[0] for row in self.db.execute(_search(count), (task_id, *block)))
        return found

    def _add_ids(self, task_id: str, report_ids: list[str]) -> None:
        """Remember reports that were not known."""
        if report_ids:
            self._arrivals.add(self.db, task_id, [bytes.fromhex(report_id) for report_id in report_ids])

    def has_backlog(self) -> bool:
        return self._arrivals.new >= _NEW_IDS and self._next_to_settle() is not None

    def work_off(self) -> None:
        if self.has_backlog() and (task_id := self._next_to_settle()) is not None:
            self._settle_ids(task_id, all_of_them=False)

    def _next_to_settle(self) -> str | None:
        """The task whose ids are put in their places though no batch of it is sealed."""
        row = self.db.execute("SELECT task_id FROM settling LIMIT 1").fetchone()
        if row is not None:
            return str(row[0])
        arrivals = self._arrivals
        if arrivals.count < ENOUGH_IDS:
            return None
        task_id, count = arrivals.most()
        is_large = count >= ENOUGH_IDS // _LARGE_PART or arrivals.count >= _FAR_TOO_MANY * ENOUGH_IDS
        return task_id if is_large else None

    def _settle_ids(self, task_id: str, *, all_of_them: bool = True) -> bool:
        """Put some ids of a task in their places; True if none is left that waits.

        Called until then, it ends, however many come. Where not all of them are to leave, those that came after it
        began wait for the next time.
        """
        arrivals, begun = self._arrivals, self._settling(task_id)
        # Of those that came before it began, most came long ago.
        most, arrivals.new = MOST_IDS if begun is None else max(MOST_IDS, 2 * arrivals.new), 0
        while arrivals.of(task_id) and most:
            number, done = begun or (arrivals.last, b"")
            ids = arrivals.up_to(self.db, task_id, number)
            start = bisect_right(ids, done)
            some = ids[start : start + most]
            for count, block in in_blocks(some):
                self.db.execute(_insert(count), (task_id, *block))
            if start + len(some) < len(ids):
                query = "INSERT OR REPLACE INTO settling VALUES (?, ?, ?)"
                self.db.execute(query, (task_id, number, some[-1]))
                return False
            self.db.execute("DELETE FROM settling WHERE task_id = ?", (task_id,))
            arrivals.delete(self.db, task_id, ids, number)
            # Those that came since it began are the next, and if they are few, at once: or it never ends.
            begun, most = None, most - len(some) if all_of_them else 0
        return not arrivals.of(task_id)

    def _settling(self, task_id: str) -> tuple[int, bytes] | None:
        """Up to which row a task's ids are put in their places, and up to which id they are there; None if not so."""
        query = "SELECT number, report_id FROM settling WHERE task_id = ?"
        row: tuple[int, bytes] | None = self.db.execute(query, (task_id,)).fetchone()
        return row

    def _forget_some_ids(self, task_id: str) -> int:
        """Delete some ids of a task; how many, 0 if none is left."""
        waiting = list(self._arrivals.of(task_id))
        if waiting:
            # Some may be in their places, too, and are counted there.
            gone = len(waiting) - len(self._in_their_places(task_id, waiting))
            self.db.execute("DELETE FROM settling WHERE task_id = ?", (task_id,))
            self._arrivals.delete(self.db, task_id, waiting, self._arrivals.last)
            if gone:
                return gone
        some = f"SELECT * FROM accepted WHERE task_id = ? ORDER BY report_id LIMIT {MOST_IDS}"
        return self.db.execute(f"DELETE FROM accepted WHERE (task_id, report_id) IN ({some})", (task_id,)).rowcount


def _cut(ids: bytes) -> list[bytes]:
    return [ids[place : place + ID_BYTES] for place in range(0, len(ids), ID_BYTES)]
