"""A store's file is its owner's; what is refused leaves nothing behind; a batch is added up once, and in time."""

import os
import sqlite3
import stat
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from harness.world import open_here
from shuffledp.continual.counter import Counter
from shuffledp.continual.plan import CounterPlan
from shuffledp.privacy import Privacy
from shuffledp.randomness import RandomBits
from shuffledp.service.analyzer.desk import AnalyzerDesk
from shuffledp.service.analyzer.opening import Opener
from shuffledp.service.crypto import PrivateKey, binding
from shuffledp.service.problems import BUSY, RefusedError
from shuffledp.service.store import open_analyzer_store
from shuffledp.service.store.contract import AnalyzerRecords, Store
from shuffledp.service.store.sqlite.engine import SqliteStore
from shuffledp.service.task import Task
from shuffledp.service.wire import Unpacked, pack_messages


@pytest.fixture
def store(tmp_path: Path) -> Iterator[SqliteStore]:
    with closing(SqliteStore(tmp_path / "store.db", "CREATE TABLE t (x INTEGER)", label="test 1")) as made:
        yield made


def rows(store: SqliteStore) -> list[int]:
    return [row[0] for row in store.read(lambda db: db.execute("SELECT x FROM t ORDER BY x").fetchall())]


def test_only_the_owner_may_read_a_store_and_its_log(tmp_path: Path) -> None:
    before = os.umask(0)
    try:
        with closing(SqliteStore(tmp_path / "mine.db", "CREATE TABLE t (x)", label="test 1")) as store:
            store.write(lambda db: db.execute("INSERT INTO t VALUES (7)"))
            files = list(tmp_path.glob("mine.db*"))
            secret = [file for file in files if file.stat().st_size]
            assert secret and {
                stat.S_IMODE(file.stat().st_mode) & 0o077 for file in secret if "lock" not in file.name
            } == {0}
    finally:
        os.umask(before)


def test_a_refusal_in_the_middle_leaves_nothing_and_spares_the_others(store: SqliteStore) -> None:
    def refused(db: sqlite3.Connection) -> None:
        db.execute("INSERT INTO t VALUES (2)")
        raise RefusedError(BUSY, "not now")

    def several(db: sqlite3.Connection) -> list[Any]:
        # Handed in while the store is at work, so that all of them are in the next commit.
        return [
            store.submit(lambda db: db.execute("INSERT INTO t VALUES (1)")),
            store.submit(refused),
            store.submit(lambda db: db.execute("INSERT INTO t VALUES (3)")),
        ]

    first, second, third = store.write(several)
    first.result(timeout=10), third.result(timeout=10)
    with pytest.raises(RefusedError):
        second.result(timeout=10)
    assert rows(store) == [1, 3]


@pytest.fixture
def analyzer_store(store_address: Callable[[str], str]) -> Iterator[Store[AnalyzerRecords]]:
    made = open_analyzer_store(store_address("analyzer"))
    yield made
    made.close()


def ones(count: int) -> Unpacked:
    return Unpacked(np.ones(count, dtype=np.uint64), np.zeros(count, dtype=np.uint32), 0, 0)


class Reading:
    """An analyzer's desk on its real store, and batches of its task that say one for every message."""

    def __init__(self, store: Store[AnalyzerRecords], task: Task) -> None:
        self.store, self.task, self.desk = store, task, AnalyzerDesk({task.id: task})
        store.write(lambda records: records.add_task(task.id, task.text))

    def deliver(self, batch_id: str) -> bool:
        body = bytes(self.desk.batch_bytes(self.task.id, batch_id))
        return self.store.write(lambda records: self.desk.deliver(records, self.task.id, batch_id, body))

    def read(self, batch_id: str, messages: Unpacked) -> list[Any]:
        return self.store.write(lambda records: self.desk.read(records, self.task.id, batch_id, messages))

    def body(self, batch_id: str) -> bytes | None:
        return self.store.read(lambda records: records.body(self.task.id, batch_id))

    def progress(self) -> Any:
        return self.store.read(lambda records: records.progress(self.task.id))


def test_a_batch_is_added_up_once(analyzer_store: Store[AnalyzerRecords], make_task: Callable[..., Task]) -> None:
    """Read again, delivered again: its total stays what it was, and its ciphertexts are gone."""
    task = make_task("running count")
    reading, [batch] = Reading(analyzer_store, task), task.routing.batches_of(0)[:1]
    assert reading.deliver(batch.batch_id) and reading.body(batch.batch_id)
    mechanism = task.plan.mechanism(batch.size)
    reading.read(batch.batch_id, ones(batch.size + mechanism.coins))
    before = analyzer_store.read(lambda records: records.totals(task.id, [batch.batch_id]))
    assert before and reading.body(batch.batch_id) is None
    assert reading.read(batch.batch_id, ones(0)) == [] and not reading.deliver(batch.batch_id)
    assert reading.read(batch.batch_id, ones(0)) == []
    assert analyzer_store.read(lambda records: records.totals(task.id, [batch.batch_id])) == before
    assert (reading.progress().batches_received, reading.progress().batches_read) == (1, 1)


def test_an_estimate_waits_for_all_of_its_batches(
    analyzer_store: Store[AnalyzerRecords], make_task: Callable[..., Task]
) -> None:
    """At the end of a slot several batches close: in whatever order they come, nothing is said before the last."""
    task = make_task("running count")
    plan, reading = task.plan, Reading(analyzer_store, task)
    closing: dict[int, set[str]] = {}
    for position in plan.schedule.users_by(np.arange(plan.schedule.place_of(plan.users - 1)[0] + 1)).tolist():
        for batch in task.routing.batches_of(position):
            end = task.routing.find(batch.batch_id)[2]
            closing.setdefault(end, set()).add(batch.batch_id)
    end, several = next((end, names) for end, names in sorted(closing.items()) if len(names) > 1)
    for earlier in sorted(end_ for end_ in closing if end_ < end):
        for name in sorted(closing[earlier]):
            reading.deliver(name)
            reading.read(name, ones(0))
    published = reading.progress().releases
    *first, last = sorted(several)
    for name in first:
        reading.deliver(name)
        assert reading.read(name, ones(0)) == []
    reading.deliver(last)
    [release] = reading.read(last, ones(0))
    assert release.time == plan.schedule.users_by(end) and reading.progress().releases == published + 1


def test_a_batch_that_says_nothing_is_in_the_bound(
    analyzer_store: Store[AnalyzerRecords], make_task: Callable[..., Task]
) -> None:
    """It counts as its middle, which may be off by half of its users; a message that is lost, by a step."""
    plan = CounterPlan.plan(users=24, shufflers=2, privacy=Privacy(8, 0.1), noise="laplace")
    task = make_task(plan, allow_unbounded=True)
    reading, [first] = Reading(analyzer_store, task), task.routing.batches_of(0)[:1]
    reading.deliver(first.batch_id)
    [release] = reading.read(first.batch_id, ones(1))
    plain = Counter(plan).estimate(Counter(plan).tell(Counter(plan).start(), plan.slot_users, {1: 0})).bound
    assert release.void == 1 and first.size == plan.slot_users
    assert release.bound == pytest.approx(plain + first.size / 2 + 1 / 2)


def test_what_could_not_be_read_is_counted_though_a_filler_hides_it(
    analyzer_store: Store[AnalyzerRecords], make_task: Callable[..., Task]
) -> None:
    """As many messages as expected count, one of them a liar's, and one did not open."""
    task = make_task("running count")
    reading, [batch] = Reading(analyzer_store, task), task.routing.batches_of(0)[:1]
    reading.deliver(batch.batch_id)
    whole = ones(batch.size + task.plan.mechanism(batch.size).coins)
    reading.read(batch.batch_id, replace(whole, malformed=1))
    [total] = analyzer_store.read(lambda records: records.totals(task.id, [batch.batch_id])).values()
    assert (total.dropped, total.void) == (1, False)


def test_what_does_not_open_is_counted(key: PrivateKey) -> None:
    """A message changed on the way, one to another key, one of another batch: none of them is a message."""
    info, bits = binding("task", "1.0.1"), RandomBits.seeded(5)
    sealed = key.public.seal(pack_messages(np.ones(4, dtype=np.uint64), None, 7, bits=bits), info)
    sealed[0] = sealed[0][:-1] + bytes([sealed[0][-1] ^ 1])
    sealed[1:2] = PrivateKey.generate().public.seal(pack_messages(np.ones(1, dtype=np.uint8), None, 1, bits=bits), info)
    sealed[6:] = key.public.seal(
        pack_messages(np.ones(1, dtype=np.uint8), None, 1, bits=bits), binding("task", "1.1.2")
    )
    opened = open_here(key, b"".join(sealed), "task", "1.0.1")
    assert (opened.payloads.size, opened.fillers, opened.malformed) == (2, 2, 3)
    with closing(Opener(key, processes=1)) as opener:
        again = opener.open(b"".join(sealed), "task", "1.0.1")
    assert (again.payloads.size, again.fillers, again.malformed) == (2, 2, 3)
