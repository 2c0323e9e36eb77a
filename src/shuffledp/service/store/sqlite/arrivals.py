"""Ids of reports, by which a second try is recognized: those that have just come, and those that came long ago.

An id is random: put in its place among millions, it touches a page of its own, which is then written whole. So ids wait
in `arrivals`, a row a commit, and are looked up in memory, until they are many or a batch is sealed. Then they are put
in their places in `accepted`, in the order of the ids and some in each commit, and leave the order of arrival behind.
"""

import sqlite3
from abc import ABC
from bisect import bisect_right
from collections.abc import Iterable
from functools import cache, cached_property
from itertools import groupby
from operator import itemgetter
from typing import Self

from shuffledp.service.store.sqlite.blocks import asked, in_blocks
from shuffledp.service.store.sqlite.engine import StoreConnection
from shuffledp.service.wire import ID_BYTES

# `settling` has a row while ids are put in their places: those of all arrivals up to a number, of which those up to a
# task and an id are there.
SCHEMA = """
CREATE TABLE accepted (
    task_id TEXT NOT NULL, report_id BLOB NOT NULL, PRIMARY KEY (task_id, report_id)
) WITHOUT ROWID;
CREATE TABLE arrivals (number INTEGER PRIMARY KEY, task_id TEXT NOT NULL, ids BLOB NOT NULL);
CREATE TABLE settling (number INTEGER NOT NULL, task_id TEXT NOT NULL, report_id BLOB NOT NULL);
"""
# Stores of version 2 had them in the order of the ids from the beginning.
FROM_VERSION_2 = """
INSERT OR IGNORE INTO accepted SELECT task_id, report_id FROM arrived ORDER BY task_id, report_id;
DROP TABLE arrived;
CREATE TABLE arrivals (number INTEGER PRIMARY KEY, task_id TEXT NOT NULL, ids BLOB NOT NULL);
CREATE TABLE settling (number INTEGER NOT NULL, task_id TEXT NOT NULL, report_id BLOB NOT NULL);
"""
MOST_IDS = 2000
"""In one commit: more would make others wait."""
ENOUGH_IDS = 1 << 16
"""So many are put in their places though no batch is sealed: they would take too much memory."""
# While that goes on, some are whenever half as many have come.
_NEW_IDS = MOST_IDS // 2

Key = tuple[str, bytes]
"""A task and an id."""


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
    lowest and the highest number do: rows are added above all others and deleted below all others, and no number is
    given twice while this remembers.
    """

    def __init__(self) -> None:
        self._span: tuple[int | None, int | None] = (None, None)
        self._next = 1
        self._ids: dict[str, set[bytes]] = {}
        self._sorted: tuple[int, list[Key]] | None = None
        self.new = 0
        """How many have come since some were put in their places; a guess after an error."""

    def look(self, db: sqlite3.Connection) -> Self:
        """Make sure that it is what the table is."""
        query = "SELECT (SELECT MIN(number) FROM arrivals), (SELECT MAX(number) FROM arrivals)"
        span = db.execute(query).fetchone()
        if span != self._span:
            self._ids, self._sorted, self._span = {}, None, span
            for task_id, ids in db.execute("SELECT task_id, ids FROM arrivals"):
                self._ids.setdefault(task_id, set()).update(_cut(ids))
            self._next = max(self._next, (span[1] or 0) + 1)
        return self

    def among(self, task_id: str, ids: Iterable[bytes]) -> set[bytes]:
        """Which of these ids have come and are not in their places."""
        return self._ids.get(task_id, set()).intersection(ids)

    def add(self, db: sqlite3.Connection, task_id: str, ids: list[bytes]) -> None:
        """These have come together."""
        number = self._next
        # Not in the order of arrival, which nobody needs.
        db.execute("INSERT INTO arrivals VALUES (?, ?, ?)", (number, task_id, b"".join(sorted(ids))))
        self._ids.setdefault(task_id, set()).update(ids)
        self._span, self._next = (self._span[0] or number, number), number + 1
        self.new += len(ids)

    def __len__(self) -> int:
        return sum(map(len, self._ids.values()))

    @property
    def highest(self) -> int | None:
        """The number of the last row."""
        return self._span[1]

    def up_to(self, db: sqlite3.Connection, number: int) -> list[Key]:
        """All ids that came up to this row, in the order of their places; remembered, as they are asked for again."""
        if self._sorted is None or self._sorted[0] != number:
            rows = db.execute("SELECT task_id, ids FROM arrivals WHERE number <= ?", (number,)).fetchall()
            self._sorted = number, sorted((task_id, each) for task_id, ids in rows for each in _cut(ids))
        return self._sorted[1]


class SqliteArrivals(ABC):
    """Records of reports' ids, on a connection that is inside a transaction."""

    db: StoreConnection

    @cached_property
    def _arrivals(self) -> Arrivals:
        remembered: Arrivals = self.db.remembered.setdefault("arrivals", Arrivals())
        return remembered.look(self.db)

    def accepted_among(self, task_id: str, report_ids: list[str]) -> set[str]:
        ids = [bytes.fromhex(report_id) for report_id in report_ids]
        known = self._arrivals.among(task_id, ids)
        for count, block in in_blocks(ids):
            known.update(row[0] for row in self.db.execute(_search(count), (task_id, *block)))
        return {each.hex() for each in known}

    def _add_ids(self, task_id: str, report_ids: list[str]) -> None:
        """Remember reports that were not known."""
        if report_ids:
            self._arrivals.add(self.db, task_id, [bytes.fromhex(report_id) for report_id in report_ids])

    def has_backlog(self) -> bool:
        is_time = self._arrivals.new >= _NEW_IDS
        return is_time and (len(self._arrivals) >= ENOUGH_IDS or self._settling() is not None)

    def work_off(self) -> None:
        if self.has_backlog():
            self._settle_some()

    def _settling(self) -> tuple[int, Key] | None:
        row = self.db.execute("SELECT number, task_id, report_id FROM settling").fetchone()
        return None if row is None else (row[0], (row[1], row[2]))

    def _settle_ids(self) -> bool:
        """Put some ids in their places; True if none is left that has the order of arrival."""
        self._settle_some()
        return self._arrivals.highest is None

    def _settle_some(self) -> None:
        """Put some ids in their places: those that came before this began, which may be some commits ago."""
        arrivals, begun = self._arrivals, self._settling()
        if begun is None:
            if arrivals.highest is None:
                return
            begun = arrivals.highest, ("", b"")
        number, done = begun
        arrivals.new = 0
        keys = arrivals.up_to(self.db, number)
        start = bisect_right(keys, done)
        some = keys[start : start + MOST_IDS]
        for task_id, own in groupby(some, key=itemgetter(0)):
            for count, block in in_blocks(each for _, each in own):
                self.db.execute(_insert(count), (task_id, *block))
        self.db.execute("DELETE FROM settling")
        if start + len(some) < len(keys):
            self.db.execute("INSERT INTO settling VALUES (?, ?, ?)", (number, *some[-1]))
            return
        # SQLite overwrites what is deleted, but not what it moves from page to page then; of a table that is emptied as
        # a whole every page is overwritten.
        later = self.db.execute("SELECT * FROM arrivals WHERE number > ? ORDER BY number", (number,)).fetchall()
        self.db.execute("DELETE FROM arrivals")
        self.db.executemany("INSERT INTO arrivals VALUES (?, ?, ?)", later)
        arrivals.look(self.db)

    def _forget_some_ids(self, task_id: str) -> int:
        """Delete some ids of a task; how many, 0 if none is left."""
        while not self._settle_ids():
            pass
        some = f"SELECT * FROM accepted WHERE task_id = ? ORDER BY report_id LIMIT {MOST_IDS}"
        return self.db.execute(f"DELETE FROM accepted WHERE (task_id, report_id) IN ({some})", (task_id,)).rowcount


def _cut(ids: bytes) -> list[bytes]:
    return [ids[place : place + ID_BYTES] for place in range(0, len(ids), ID_BYTES)]
