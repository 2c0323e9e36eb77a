"""A loop's statements run in its own thread while nobody else writes; the disk is waited for elsewhere."""

import sqlite3
import threading
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from harness.world import SlowDisk
from shuffledp.service.problems import RefusedError
from shuffledp.service.store.sqlite import engine
from shuffledp.service.store.sqlite.engine import SqliteStore

LONG = 30.0


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


def test_another_process_that_writes_is_waited_for_elsewhere(store: SqliteStore[sqlite3.Connection]) -> None:
    with closing(sqlite3.connect(store.path, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        started = time.monotonic()
        waiting = store.submit_here(add)
        assert time.monotonic() - started < 2.0 and not waiting.done()
        other.execute("ROLLBACK")
    assert waiting.result(LONG) != threading.get_ident()
    assert count(store) == 1


@pytest.mark.parametrize("place", ["Future", "partial", "_tell"])
def test_no_memory_at_any_place_leaves_the_connection_free(
    store: SqliteStore[sqlite3.Connection], place: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def no_memory(*given: Any) -> Any:
        raise MemoryError

    def broken(db: sqlite3.Connection) -> None:
        add(db)
        raise sqlite3.OperationalError("disk I/O error")

    monkeypatch.setattr(engine, place, no_memory)
    with pytest.raises(MemoryError):
        store.submit_here(broken)
    monkeypatch.undo()
    is_free = not store._using.locked()
    if not is_free:
        # Else the store could not even be closed.
        store._using.release()
    assert is_free and count(store) == 0
    assert store.submit_here(add).result(LONG) == threading.get_ident()


def test_nobody_takes_a_log_for_empty_that_another_is_emptying(store: SqliteStore[sqlite3.Connection]) -> None:
    """A batch would leave while the log still tells in which order its reports came."""
    store.write(add)
    log = store.path.with_name("s.db-wal")
    is_begun, may_end, forget = threading.Event(), threading.Event(), store._forget

    def slow() -> None:
        is_begun.set()
        assert may_end.wait(LONG)
        forget()

    store._forget = slow  # type: ignore[method-assign]
    lengths: list[int] = []
    first = threading.Thread(target=store.forget_deleted)
    second = threading.Thread(target=lambda: (store.forget_deleted(), lengths.append(log.stat().st_size)))
    first.start()
    assert is_begun.wait(LONG)
    second.start()
    second.join(0.1)
    may_end.set()
    first.join(LONG)
    second.join(LONG)
    assert lengths == [0]


def test_what_is_at_the_disk_is_in_the_log_that_is_emptied_next(store: SqliteStore[sqlite3.Connection]) -> None:
    """The log is asked to be emptied between a loop's statements and their commit."""
    store.forget_deleted()
    disk = SlowDisk(store._writer)
    store._writer = disk  # type: ignore[assignment]
    first = store.submit_here(add)
    assert disk.is_reached.wait(LONG)
    emptying = threading.Thread(target=store.forget_deleted)
    emptying.start()
    emptying.join(0.1)
    assert emptying.is_alive() and not first.done()
    disk.may_end.set()
    emptying.join(LONG)
    assert first.done() and store.path.with_name("s.db-wal").stat().st_size == 0


def test_what_is_written_just_after_the_log_was_emptied_is_emptied_next(
    store: SqliteStore[sqlite3.Connection],
) -> None:
    store.write(add)
    forget = store._forget

    def and_write() -> None:
        forget()
        store.submit_here(add).result(LONG)

    store._forget = and_write  # type: ignore[method-assign]
    store.forget_deleted()
    store._forget = forget  # type: ignore[method-assign]
    log = store.path.with_name("s.db-wal")
    assert log.stat().st_size > 0
    store.forget_deleted()
    assert log.stat().st_size == 0
