"""A disk that is full, a store that another process holds, a store of another version."""

import os
import shutil
import sqlite3
import subprocess
from collections.abc import Iterator
from concurrent.futures import CancelledError, Future
from contextlib import contextmanager
from pathlib import Path
from random import Random
from typing import Any

import pytest

from harness.world import (
    OpenerHere,
    Watched,
    World,
    accept_one,
    accept_reports,
    batch_rows,
    ciphertexts,
    made_report,
    rows,
    small_task,
    together,
)
from shuffledp.errors import DataError, ParameterError
from shuffledp.service.analyzer.server import AnalyzerServer
from shuffledp.service.problems import RefusedError
from shuffledp.service.shuffler.server import ShufflerServer
from shuffledp.service.store import open_analyzer_store, open_shuffler_store
from shuffledp.service.store.sqlite.engine import SqliteStore
from shuffledp.service.task import Task
from shuffledp.service.wire import SentReport


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    made = World(tmp_path / "world")
    yield made
    made.close()


@pytest.fixture
def tiny_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of four megabytes, where this process may make one."""
    folder = tmp_path / "disk"
    folder.mkdir()
    mount = shutil.which("mount")
    if mount is None or os.geteuid() != 0:
        pytest.skip("only root can mount a small disk")
    if subprocess.run([mount, "-t", "tmpfs", "-o", "size=4m", "tmpfs", folder], capture_output=True).returncode:
        pytest.skip("no small disk can be mounted here")
    yield folder
    subprocess.run(["umount", "--lazy", folder], check=True, capture_output=True)


def reports(world: World, task: Task, count: int) -> list[SentReport]:
    return [
        SentReport(world.new_id(), seat.seat, made_report(task, seat.batches, bits=world.bits).body)
        for seat in world.shuffler.take_seats(task.id, count).result()
    ]


def everything(store: SqliteStore) -> list[Any]:
    """All rows of all tables."""
    tables = sorted(row[0] for row in rows(store, "SELECT name FROM sqlite_master WHERE type = 'table'"))
    return [rows(store, f"SELECT * FROM {table}") for table in tables]


def held(store: SqliteStore) -> dict[str, list[bytes]]:
    """The ciphertexts of every batch, sealed or not."""
    found: dict[str, list[bytes]] = {}
    for _, batch_id, _, body in batch_rows(store, "parts") + batch_rows(store, "pieces"):
        found.setdefault(batch_id, []).extend(ciphertexts(body))
    return {batch_id: sorted(each) for batch_id, each in found.items()}


def allow_pages(store: SqliteStore, more: int | None) -> None:
    """Let the database grow by so many pages only, or without limit."""

    def limit(db: sqlite3.Connection) -> None:
        pages = db.execute("PRAGMA page_count").fetchone()[0]
        db.execute(f"PRAGMA max_page_count = {1 << 30 if more is None else pages + more}").fetchone()

    store.write(lambda records: limit(records.db))


def accept(world: World, task: Task, sent: list[SentReport]) -> "list[Future[Any]]":
    return [accept_one(world.shuffler, task.id, report) for report in sent]


def statuses(futures: "list[Future[Any]]") -> list[int]:
    found = []
    for future in futures:
        try:
            found.append(201 if future.result(timeout=30).new else 200)
        except RefusedError as refused:
            assert refused.kind.status != 503 or refused.retry_after is not None
            found.append(refused.kind.status)
    return found


def test_a_full_disk_refuses_changes_nothing_and_recovers(world: World) -> None:
    task = small_task(world.key.public, users=60)
    world.add_task(task)
    sent = reports(world, task, 40)
    # A batch takes a page at least.
    allow_pages(world.stores["shuffler"], 8)
    answers, before = [], everything(world.stores["shuffler"])
    for report in sent:
        answers += statuses([accept_one(world.shuffler, task.id, report)])
        after = everything(world.stores["shuffler"])
        assert (after == before) == (answers[-1] == 503)
        before = after
    assert set(answers) == {201, 503}
    allow_pages(world.stores["shuffler"], None)
    again = statuses([accept_one(world.shuffler, task.id, report) for report in sent])
    assert again == [200 if answer == 201 else 201 for answer in answers]


def test_a_full_disk_refuses_all_requests_of_a_commit(world: World) -> None:
    task = small_task(world.key.public, users=60)
    world.add_task(task)
    sent = reports(world, task, 40)
    # One of them would have been refused anyway: that answer may rest on what is not kept.
    sent.append(SentReport(world.new_id(), sent[0].seat, sent[0].body))
    allow_pages(world.stores["shuffler"], 1)
    before = everything(world.stores["shuffler"])
    futures = together(world.stores["shuffler"], lambda: [accept_one(world.shuffler, task.id, each) for each in sent])
    assert statuses(futures) == [503] * 41
    assert everything(world.stores["shuffler"]) == before
    allow_pages(world.stores["shuffler"], None)
    assert statuses([accept_one(world.shuffler, task.id, each) for each in sent]) == [201] * 40 + [410]


@contextmanager
def no_room_for(writer: Watched, statement: str) -> Iterator[None]:
    """The disk is full whenever this statement comes."""
    run = writer.execute

    def execute(given: str, *more: Any) -> sqlite3.Cursor:
        if given.startswith(statement):
            raise sqlite3.OperationalError("database or disk is full")
        return run(given, *more)

    writer.execute = execute  # type: ignore[assignment, method-assign]
    try:
        yield
    finally:
        del writer.execute


def test_a_refusal_waits_for_the_commit_that_it_rests_on(world: World) -> None:
    task = small_task(world.key.public)
    world.add_task(task)
    first = reports(world, task, 1)[0]
    second = SentReport(world.new_id(), first.seat, first.body)
    sent = [first, second]
    asked: list[Future[Any]] = []
    with no_room_for(world.writers["shuffler"], "COMMIT"):
        # Both give up at the same commit; the writer that is held meanwhile does, too.
        with pytest.raises(RefusedError):
            together(world.stores["shuffler"], lambda: asked.extend(accept(world, task, sent)))
        assert statuses(asked) == [503, 503]
    assert statuses(accept(world, task, sent[::-1])) == [201, 410]


SEALING = (
    "BEGIN", "CREATE TABLE pieces", "INSERT INTO pieces", "INSERT INTO sealed", "DELETE FROM parts", "DROP TABLE",
    "COMMIT",
)  # fmt: skip


@pytest.mark.parametrize("statement", SEALING)
def test_sealing_waits_for_room(world: World, statement: str) -> None:
    task = small_task(world.key.public)
    world.add_task(task)
    for report in reports(world, task, 24):
        accept_one(world.shuffler, task.id, report).result()
    before = held(world.stores["shuffler"])
    with no_room_for(world.writers["shuffler"], statement), pytest.raises(RefusedError, match="cannot be written"):
        world.shuffler.seal_full()
    assert world.shuffler.counts(task.id)["batches_waiting"] == 0
    assert held(world.stores["shuffler"]) == before
    world.shuffler.seal_full()
    assert world.shuffler.counts(task.id)["batches_waiting"] > 0
    assert held(world.stores["shuffler"]) == before


@pytest.mark.parametrize("statement", ["BEGIN", "UPDATE batches", "INSERT INTO releases", "UPDATE tasks", "COMMIT"])
def test_keeping_and_reading_a_batch_wait_for_room(world: World, statement: str) -> None:
    task = small_task(world.key.public)
    world.add_task(task)
    for report in reports(world, task, 24):
        accept_one(world.shuffler, task.id, report).result()
    world.shuffler.seal_full()
    for keeping in ("INSERT INTO batches", "COMMIT"):
        with no_room_for(world.writers["analyzer"], keeping):
            assert not world.shuffler.send_waiting()
        assert world.analyzer.progress(task.id).batches_received == 0
    assert world.shuffler.send_waiting()
    with no_room_for(world.writers["analyzer"], statement), pytest.raises(RefusedError, match="cannot be written"):
        world.analyzer.read_all()
    progress = world.analyzer.progress(task.id)
    assert progress.batches_read < progress.batches_received and progress.releases == 0
    world.analyzer.read_all()
    progress = world.analyzer.progress(task.id)
    assert progress.batches_read == progress.batches_received == world.shuffler.counts(task.id)["batches_sent"]
    assert progress.releases == 8 and progress.dropped == 0


def test_a_disk_that_really_is_full(tiny_disk: Path, tmp_path: Path) -> None:
    made = World(tiny_disk)
    try:
        task = small_task(made.key.public, users=60)
        made.add_task(task)
        sent = reports(made, task, 40)
        ballast = tiny_disk / "ballast"
        with ballast.open("wb", buffering=0) as file, pytest.raises(OSError, match="No space"):
            while True:
                file.write(bytes(4096))
        answers = statuses([accept_one(made.shuffler, task.id, report) for report in sent])
        assert 503 in answers
        ballast.unlink()
        again = statuses([accept_one(made.shuffler, task.id, report) for report in sent])
        assert again == [200 if answer == 201 else 201 for answer in answers]
    finally:
        made.close()


def test_a_request_that_its_caller_gave_up_does_not_stop_the_store(world: World) -> None:
    store = world.stores["shuffler"]
    given_up: Future[None] = together(store, lambda: _cancelled(store))
    with pytest.raises(CancelledError):
        given_up.result()
    assert store.submit(lambda db: 7).result(timeout=10) == 7


def _cancelled(store: SqliteStore) -> "Future[None]":
    future = store.submit(lambda db: None)
    assert future.cancel()
    return future


def test_the_second_server_on_a_store_is_told_who_holds_it(world: World) -> None:
    for open_again in (
        lambda: ShufflerServer(open_shuffler_store(world.stores["shuffler"].path), post=world.network.post),
        lambda: AnalyzerServer(
            open_analyzer_store(world.stores["analyzer"].path), key=world.key, opener=OpenerHere(world.key)
        ),
    ):
        with pytest.raises(ParameterError, match=f"process {os.getpid()} has held it"):
            open_again()


@pytest.mark.parametrize("label", ["shuffler 1", "shuffler 4", "analyzer 2", "something else"])
def test_another_version_or_kind_of_store_is_refused(tmp_path: Path, label: str) -> None:
    path = tmp_path / "s.db"
    ShufflerServer(open_shuffler_store(path), post=lambda path, body: 503).stop()
    connection = sqlite3.connect(path)
    connection.execute("UPDATE store SET label = ?", (label,))
    connection.commit()
    connection.close()
    before = path.read_bytes()
    with pytest.raises(DataError, match=f"must be of shuffler 3, got a store of {label}"):
        ShufflerServer(open_shuffler_store(path), post=lambda path, body: 503)
    assert path.read_bytes() == before


def test_a_file_that_is_no_store_is_refused_and_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "s.db"
    path.write_bytes(b"a letter" * 1000)
    with pytest.raises(ParameterError, match="store"):
        ShufflerServer(open_shuffler_store(path), post=lambda path, body: 503)
    assert path.read_bytes() == b"a letter" * 1000


def test_a_commit_is_on_disk_when_it_is_acknowledged(world: World) -> None:
    # A kill does not lose what the system has; a power cut does, and cannot be tested here: the setting can.
    for store in world.stores.values():
        assert store.write(lambda records: records.db.execute("PRAGMA synchronous").fetchone()) == (2,)
        assert store.write(lambda records: records.db.execute("PRAGMA journal_mode").fetchone()) == ("wal",)


@pytest.mark.parametrize(("users", "shufflers", "together"), [(24, 3, 1), (400, 1, 400)])
def test_what_was_sent_and_read_is_nowhere_on_disk_though_a_kill_came_before_the_log_was_emptied(
    world: World, users: int, shufflers: int, together: int
) -> None:
    task = small_task(world.key.public, users=users, shufflers=shufflers)
    world.add_task(task)
    sent = reports(world, task, users)
    for start in range(0, users, together):
        accept_reports(world.shuffler, task.id, sent[start : start + together]).result()
    # What is longer than a quarter of a page is, but for its beginning, on pages of its own.
    parts = batch_rows(world.stores["shuffler"], "parts")
    assert (max(len(body) for *_, body in parts) > 8192 // 4) == (together > 1)
    world.shuffler.seal_full()
    counts = world.shuffler.counts(task.id)
    pieces = batch_rows(world.stores["shuffler"], "pieces")
    sealed = {batch_id: body for _, batch_id, _, body in pieces}
    assert len(sealed) == counts["batches_waiting"] > 0
    for batch_id in sealed:
        assert world.shuffler.sender.send(task.id, batch_id)
        world.analyzer._read(task.id, batch_id)
    for role in ("shuffler", "analyzer"):
        world.restart(role, world.plan_kill(role, 10**9, Random(1)))
    purged = [ciphertext for body in sealed.values() for ciphertext in ciphertexts(body)]
    for store in world.stores.values():
        for file in store.path.parent.iterdir():
            content = file.read_bytes()
            # Any part of a ciphertext would do: a row may be cut into pages.
            left = sum(ciphertext[8:24] in content for ciphertext in purged)
            assert not left, f"{left} of {len(purged)} ciphertexts that were purged are still in {file.name}"


def test_uploads_go_on_after_a_commit_that_never_came_to_them(world: World) -> None:
    """A commit that fails before it comes to the uploads refuses them, and the next ones are accepted."""
    task = small_task(world.key.public)
    world.add_task(task)
    store = world.stores["shuffler"]
    seats = world.shuffler.take_seats(task.id, 3).result()
    sent = [
        SentReport(world.new_id(), seat.seat, made_report(task, seat.batches, bits=world.bits).body) for seat in seats
    ]

    def fails(db: sqlite3.Connection) -> None:
        raise sqlite3.OperationalError("database or disk is full")

    asked: list[Future[Any]] = []
    together(
        store,
        lambda: (asked.append(store.submit(fails)), asked.append(accept_reports(world.shuffler, task.id, sent[:1]))),
    )
    for each in asked:
        with pytest.raises(RefusedError, match="cannot be written"):
            each.result(timeout=10)
    with no_room_for(world.writers["shuffler"], "BEGIN"), pytest.raises(RefusedError, match="cannot be written"):
        accept_reports(world.shuffler, task.id, sent[1:2]).result(timeout=10)
    assert [answer.new for answer in accept_reports(world.shuffler, task.id, sent).result(timeout=10)] == [True] * 3


def test_a_log_that_was_being_read_is_emptied_later(world: World) -> None:
    store = world.stores["shuffler"]
    reader = sqlite3.connect(store.path)
    reader.execute("BEGIN")
    reader.execute("SELECT * FROM tasks").fetchall()
    store.write(lambda records: records.db.execute("CREATE TABLE more (x)"))
    with pytest.raises(sqlite3.OperationalError, match="being read"):
        store.forget_deleted()
    reader.execute("COMMIT")
    reader.close()
    store.forget_deleted()
    assert Path(f"{store.path}-wal").stat().st_size == 0
