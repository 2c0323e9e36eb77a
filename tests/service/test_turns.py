"""An event loop gives way to a writer's statements, not to the disk, and never for long."""

import sqlite3
import threading
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from shuffledp.service.store.sqlite.engine import SqliteStore

LONG = 30.0


class SlowDisk:
    """A connection whose commits wait until the disk is let go."""

    def __init__(self, inner: sqlite3.Connection) -> None:
        self.inner = inner
        self.is_reached, self.may_end = threading.Event(), threading.Event()

    def __getattr__(self, name: str) -> Any:
        return getattr(self.inner, name)

    def execute(self, query: str, *given: Any) -> Any:
        if query == "COMMIT":
            self.is_reached.set()
            assert self.may_end.wait(LONG)
        return self.inner.execute(query, *given)


@pytest.fixture
def store(tmp_path: Path) -> Iterator[SqliteStore[sqlite3.Connection]]:
    with closing(SqliteStore(tmp_path / "s.db", "CREATE TABLE t (x INTEGER)", label="test 1")) as made:
        made.turns.patience = LONG
        yield made


def add(db: sqlite3.Connection) -> None:
    db.execute("INSERT INTO t VALUES (1)")


def giving_way(store: SqliteStore[sqlite3.Connection]) -> threading.Thread:
    """A thread that has begun to give way."""
    thread = threading.Thread(target=store.give_way, daemon=True)
    thread.start()
    return thread


def test_a_loop_waits_for_statements_and_not_for_the_disk(store: SqliteStore[sqlite3.Connection]) -> None:
    disk = SlowDisk(store._writer)
    store._writer = disk  # type: ignore[assignment]
    may_write, has_begun = threading.Event(), threading.Event()

    def work(db: sqlite3.Connection) -> None:
        has_begun.set()
        assert may_write.wait(LONG)
        add(db)

    try:
        done = store.submit(work)
        loop = giving_way(store)
        loop.join(0.05)
        assert loop.is_alive() and not disk.is_reached.is_set()
        may_write.set()
        loop.join(LONG)
        assert not loop.is_alive() and not done.done()
        # What is handed in while the disk is busy is not waited for; its statements are, when they begin.
        assert disk.is_reached.wait(LONG)
        may_write.clear()
        has_begun.clear()
        later = store.submit(work)
        loop = giving_way(store)
        loop.join(LONG)
        assert not loop.is_alive() and not done.done()
        disk.is_reached.clear()
        disk.may_end.set()
        done.result(LONG)
        assert has_begun.wait(LONG)
        loop = giving_way(store)
        loop.join(0.05)
        assert loop.is_alive()
    finally:
        may_write.set()
        disk.may_end.set()
    loop.join(LONG)
    assert not loop.is_alive()
    later.result(LONG)
    assert store.read(lambda db: db.execute("SELECT COUNT(*) FROM t").fetchone()) == (2,)


def test_nobody_waits_where_nothing_is_handed_in(store: SqliteStore[sqlite3.Connection]) -> None:
    giving_way(store).join(LONG)
    store.submit(add).result(LONG)
    loop = giving_way(store)
    loop.join(LONG)
    assert not loop.is_alive()
    # Chores write without a loop that waits for them, and take longer.
    store.write(lambda db: store.give_way())


def test_a_loop_goes_on_when_statements_fail_or_take_long(store: SqliteStore[sqlite3.Connection]) -> None:
    def broken(db: sqlite3.Connection) -> None:
        raise sqlite3.OperationalError("disk I/O error")

    refused = store.submit(broken)
    store.give_way()
    assert refused.exception(LONG) is not None
    store.turns.patience = 0.001
    may_write = threading.Event()
    slow = store.submit(lambda db: may_write.wait(LONG))
    try:
        loop = giving_way(store)
        loop.join(LONG)
        assert not loop.is_alive() and not slow.done()
    finally:
        may_write.set()
    slow.result(LONG)
