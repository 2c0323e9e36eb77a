"""A loop's statements run in its own thread while nobody else writes; the disk is waited for elsewhere."""

import sqlite3
import threading
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from shuffledp.service.problems import RefusedError
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
        yield made


def add(db: sqlite3.Connection) -> int:
    db.execute("INSERT INTO t VALUES (1)")
    return threading.get_ident()


def count(store: SqliteStore[sqlite3.Connection]) -> int:
    return int(store.read(lambda db: db.execute("SELECT COUNT(*) FROM t").fetchone()[0]))


def test_statements_run_at_once_and_are_answered_when_they_are_on_disk(
    store: SqliteStore[sqlite3.Connection],
) -> None:
    disk = SlowDisk(store._writer)
    store._writer = disk  # type: ignore[assignment]
    first = store.submit_here(add)
    # The caller goes on while the disk is busy; what it submits then waits in the queue, and nobody sees it yet.
    assert disk.is_reached.wait(LONG)
    others = [store.submit_here(add), store.submit(add)]
    assert not first.done() and not any(each.done() for each in others) and count(store) == 0
    disk.may_end.set()
    here = threading.get_ident()
    assert first.result(LONG) == here and here not in {each.result(LONG) for each in others}
    assert count(store) == 3
    assert store.submit_here(add).result(LONG) == here


def test_what_fails_leaves_nothing_and_the_store_goes_on(store: SqliteStore[sqlite3.Connection]) -> None:
    def refused(db: sqlite3.Connection) -> None:
        add(db)
        raise ValueError("no")

    def broken(db: sqlite3.Connection) -> None:
        add(db)
        raise sqlite3.OperationalError("disk I/O error")

    def interrupted(db: sqlite3.Connection) -> None:
        add(db)
        raise KeyboardInterrupt

    with pytest.raises(ValueError, match="no"):
        store.submit_here(refused).result(LONG)
    with pytest.raises(RefusedError, match="disk I/O error"):
        store.submit_here(broken).result(LONG)
    with pytest.raises(KeyboardInterrupt):
        store.submit_here(interrupted)
    assert count(store) == 0
    assert store.submit_here(add).result(LONG) == threading.get_ident()
    assert count(store) == 1


def test_a_commit_that_fails_is_no_answer(store: SqliteStore[sqlite3.Connection]) -> None:
    class Full(SlowDisk):
        def execute(self, query: str, *given: Any) -> Any:
            if query == "COMMIT":
                raise sqlite3.OperationalError("database or disk is full")
            return self.inner.execute(query, *given)

    inner = store._writer
    store._writer = Full(inner)  # type: ignore[assignment]
    with pytest.raises(RefusedError, match="is full"):
        store.submit_here(add).result(LONG)
    store._writer = inner
    assert count(store) == 0
    store.submit_here(add).result(LONG)
    assert count(store) == 1


def test_a_store_that_closes_finishes_what_is_on_its_way_and_takes_nothing_more(
    store: SqliteStore[sqlite3.Connection],
) -> None:
    disk = SlowDisk(store._writer)
    store._writer = disk  # type: ignore[assignment]
    first = store.submit_here(add)
    assert disk.is_reached.wait(LONG)
    closing_it = threading.Thread(target=store.close)
    closing_it.start()
    disk.may_end.set()
    closing_it.join(LONG)
    assert not closing_it.is_alive() and first.result(LONG)
    with pytest.raises(RefusedError, match="closed"):
        store.submit_here(add).result(LONG)
