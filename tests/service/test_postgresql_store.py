"""A store in PostgreSQL: claims and their end, several processes, keys that are destroyed, and what is refused."""

import json
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import closing
from pathlib import Path
from typing import Any

import psycopg
import pytest
from psycopg import errors

from harness.postgresql import Server, wait_until
from harness.world import accept_reports, together
from shuffledp.errors import DataError, ParameterError
from shuffledp.randomness import RandomBits
from shuffledp.service.problems import BUSY, RefusedError
from shuffledp.service.routing import Routing
from shuffledp.service.shuffler import desk as shuffler_desk
from shuffledp.service.shuffler.server import ShufflerServer
from shuffledp.service.store import inspect_store, open_analyzer_store, open_outbox, open_shuffler_store
from shuffledp.service.store.contract import BatchPart, ClaimLostError
from shuffledp.service.store.postgresql import engine, migrating, records, vault
from shuffledp.service.store.postgresql.keys import KeyFolder
from shuffledp.service.wire import CIPHERTEXT_BYTES, SentReport, new_id, position_of

BITS = RandomBits.secure()
USERS = 12


@pytest.fixture
def schema(postgresql: Server) -> str:
    return postgresql.new_schema()


@pytest.fixture
def address(postgresql: Server, tmp_path: Path, schema: str) -> Callable[..., str]:
    """The test's own store, with more parameters."""
    return lambda **more: postgresql.address(tmp_path / "keys", schema, **more)


class Shufflers:
    """Processes of a shuffler, in one here, that serve one task of one batch."""

    def __init__(self, address: str, count: int, users: int = USERS, answers: int = 201) -> None:
        self.sent: list[bytes] = []
        self.servers = [ShufflerServer(open_shuffler_store(address), post=self.post) for _ in range(count)]
        self.answers = answers
        routing = Routing(users=users, budget=1, shufflers=1, slot_users=users, every_slot=False, messages={users: 2})
        self.users, self.routing = users, routing
        self.task_id, _ = self.servers[0].add_task(json.dumps({"routing": routing.document()}))
        self.batch_id = routing.batches_of(0)[0].batch_id

    def post(self, path: str, body: bytes) -> int:
        self.sent.append(body)
        return self.answers

    def reports(self, count: int, at: int = 0) -> list[SentReport]:
        seats = self.servers[at].take_seats(self.task_id, count).result(timeout=30)
        body = lambda: BITS.unsigned(2 * CIPHERTEXT_BYTES, 8).tobytes()  # noqa: E731
        return [SentReport(new_id(bits=BITS), seat.seat, body()) for seat in seats]

    def accept(self, reports: list[SentReport], at: int = 0) -> list[Any]:
        return accept_reports(self.servers[at], self.task_id, reports).result(timeout=30)

    def fill(self) -> list[SentReport]:
        """All report, each at another process."""
        reports = self.reports(self.users)
        for place, report in enumerate(reports):
            assert self.accept([report], place % len(self.servers))[0].new
        return reports

    def write(self, at: int, method: str, *given: Any) -> Any:
        """One of the records' methods about the batch, at one of the processes."""
        store = self.servers[at]._store
        return store.write(lambda inside: getattr(inside, method)(self.task_id, self.batch_id, *given))

    def stop(self) -> None:
        for server in self.servers:
            server.stop()


@pytest.fixture
def make(address: Callable[..., str]) -> Iterator[Callable[..., Shufflers]]:
    made: list[Shufflers] = []

    def shufflers(count: int = 2, claim_seconds: float = 60.0, **more: Any) -> Shufflers:
        made.append(Shufflers(address(claim_seconds=claim_seconds), count, **more))
        return made[-1]

    yield shufflers
    for each in made:
        each.stop()


# --- claims ----------------------------------------------------------------------------------------


def test_a_process_whose_claim_ran_out_writes_nothing(
    make: Callable[..., Shufflers], postgresql: Server, schema: str
) -> None:
    """Neither a piece nor the seal, and later not that it was sent; by the database's clock."""
    both = make(claim_seconds=0.4)
    both.fill()
    piece = memoryview(bytes(CIPHERTEXT_BYTES))
    assert both.write(0, "claim") and not both.write(1, "claim")
    # Adding a piece is a sign of life.
    for number in range(4):
        time.sleep(0.2)
        both.write(0, "add_piece", number, piece)
    assert not both.write(1, "claim")
    with postgresql.connect(schema) as db:
        before = db.execute("SELECT state, pieces_key, filled FROM batches").fetchall()
        time.sleep(0.5)
        for method, given in (
            ("add_piece", (4, piece)),
            ("seal", (5 * len(piece),)),
            ("drop_draft", ()),
            ("purge", ()),
        ):
            with pytest.raises(ClaimLostError, match="another process"):
                both.write(0, method, *given)
        assert db.execute("SELECT state, pieces_key, filled FROM batches").fetchall() == before
    assert both.write(1, "claim") and not both.write(0, "claim")
    with pytest.raises(ClaimLostError):
        both.write(0, "add_piece", 4, piece)
    assert both.servers[1].seal_full() and both.servers[1].send_waiting()
    [body] = both.sent
    assert len(body) == 2 * USERS * CIPHERTEXT_BYTES
    with pytest.raises(ClaimLostError):
        both.write(0, "purge")
    assert both.servers[0].seal_full() and both.servers[0].send_waiting() and len(both.sent) == 1


def test_others_leave_a_batch_alone_that_is_being_sealed_and_go_on_when_its_process_ends(
    make: Callable[..., Shufflers], monkeypatch: pytest.MonkeyPatch
) -> None:
    three, listed = make(3), lambda at, name: three.servers[at]._store.read(lambda inside: getattr(inside, name)())
    three.fill()
    assert three.write(0, "claim")
    key = (three.task_id, three.batch_id)
    assert listed(0, "full_batches") == [key] and listed(1, "full_batches") == listed(2, "full_batches") == []
    assert three.servers[1].seal_full() and three.servers[1].counts(three.task_id)["batches_waiting"] == 0
    # Told to stop, it gives back what it had.
    three.servers[0].stop()
    assert three.servers[1].seal_full() and three.servers[1].counts(three.task_id)["batches_waiting"] == 1
    assert listed(1, "waiting") == [key] and listed(2, "waiting") == []
    assert three.servers[2].send_waiting() and three.sent == []
    assert three.servers[1].send_waiting() and len(three.sent) == 1


def test_a_batch_that_another_process_has_sent_meanwhile_is_sent_once_more_at_most(
    make: Callable[..., Shufflers],
) -> None:
    """The same bytes; and who was too slow does not say that it is gone."""
    both = make(claim_seconds=0.3)
    both.fill()
    both.servers[0].seal_full()
    slow, quick = both.servers
    bodies: list[bytes] = []

    def post(path: str, body: bytes) -> int:
        bodies.append(body)
        if len(bodies) == 1:
            time.sleep(0.5)
            assert quick.send_waiting()
        return 201

    slow._post = quick._post = post
    assert slow.send_waiting() and len(bodies) == 2 and bodies[0] == bodies[1]
    assert quick.counts(both.task_id)["batches_sent"] == 1


@pytest.mark.parametrize("piece", [1 << 20, 5 * CIPHERTEXT_BYTES])
def test_of_three_that_race_exactly_one_seals_and_exactly_one_sends(
    make: Callable[..., Shufflers], monkeypatch: pytest.MonkeyPatch, piece: int
) -> None:
    monkeypatch.setattr(shuffler_desk, "PIECE_BYTES", piece)
    three = make(3)
    reports = three.fill()
    ready = threading.Barrier(3)

    def run(server: ShufflerServer) -> bool:
        ready.wait()
        return server.seal_full() and server.send_waiting()

    with ThreadPoolExecutor(3) as threads:
        assert all(threads.map(run, three.servers))
    assert [server.seal_full() and server.send_waiting() for server in three.servers] == [True] * 3
    [body] = three.sent
    size = CIPHERTEXT_BYTES
    messages = sorted(body[at : at + size] for at in range(0, len(body), size))
    assert messages == sorted(report.body[at : at + size] for report in reports for at in (0, size))


# --- several processes -----------------------------------------------------------------------------


def test_a_task_that_another_process_was_given_is_served(make: Callable[..., Shufflers]) -> None:
    both = make()
    assert both.servers[1].knows(both.task_id) is False
    [report] = both.reports(1, at=1)
    assert both.servers[1].desk.routings[both.task_id] == both.routing and both.servers[1].knows(both.task_id)
    assert both.accept([report], at=0)[0].new and not both.accept([report], at=1)[0].new
    with pytest.raises(RefusedError, match="not served here"):
        both.servers[1].desk.routings["0" * 64]


def test_seats_and_reports_of_many_threads_at_several_processes_are_each_given_and_kept_once(
    make: Callable[..., Shufflers],
) -> None:
    three = make(3, users=60)
    seats: list[str] = []
    kept: list[Any] = []

    def come(at: int) -> None:
        for _ in range(10):
            for report in three.reports(2, at % 3):
                seats.append(report.seat)
                # The same report at two processes at once.
                answers = [accept_reports(three.servers[place % 3], three.task_id, [report]) for place in (at, at + 1)]
                kept.append(sorted(answer.result(timeout=30)[0].new for answer in answers))

    with ThreadPoolExecutor(3) as threads:
        list(threads.map(come, range(3)))
    assert len(set(seats)) == 60 and kept == [[False, True]] * 60
    counts = three.servers[0].counts(three.task_id)
    assert (counts["seats_taken"], counts["reports"], counts["leases"]) == (60, 60, 0)


def test_requests_about_two_tasks_in_opposite_orders_do_not_wait_for_each_other(
    make: Callable[..., Shufflers],
) -> None:
    """Each has locked one task when it comes to the other: one of them steps back."""
    both = make()
    document = {**both.routing.document(), "users": 24}
    other, _ = both.servers[0].add_task(json.dumps({"routing": document}))
    both.servers[1]._found(other)
    both.servers[1]._found(both.task_id)
    ready = threading.Barrier(2)

    def take(at: int, first: str, second: str) -> list[Any]:
        server = both.servers[at]
        ready.wait()
        asked = together(server._store, lambda: [server.take_seats(task, 1) for task in (first, second)])
        return [each.result(timeout=30) for each in asked]

    started = time.monotonic()
    with ThreadPoolExecutor(2) as threads:
        for _ in range(6):
            first = threads.submit(take, 0, both.task_id, other)
            second = threads.submit(take, 1, other, both.task_id)
            assert len(first.result()) == len(second.result()) == 2
    # A deadlock is found after a second at the earliest.
    assert time.monotonic() - started < 6
    assert both.servers[0].counts(other)["seats_taken"] == both.servers[0].counts(both.task_id)["seats_taken"] == 12


def test_an_analyzers_store_is_one_processs(address: Callable[..., str]) -> None:
    with closing(open_analyzer_store(address())):
        with pytest.raises(DataError, match=r"must be free: it is held by shuffledp analyzer, process \d+ on"):
            open_analyzer_store(address())
        assert "analyzer, process" in inspect_store(address()).held
    open_analyzer_store(address()).close()


# --- commits ---------------------------------------------------------------------------------------


def test_a_refusal_in_the_middle_leaves_nothing_and_spares_the_others(
    make: Callable[..., Shufflers], tmp_path: Path
) -> None:
    """Also no key: that of a batch which never was is destroyed."""
    one = make(1)
    reports, store = one.reports(3), one.servers[0]._store

    def refused(inside: Any) -> None:
        one.servers[0].desk.accept(inside, one.task_id, reports[:1])
        raise RefusedError(BUSY, "not now")

    def wrong(inside: Any) -> None:
        inside.db.execute("INSERT INTO taken VALUES (%s, 1, 0, 0)", (one.task_id,))

    def accept(report: SentReport) -> "Future[Any]":
        return accept_reports(one.servers[0], one.task_id, [report])

    first, second, third, fourth = together(
        store, lambda: [store.submit(refused), accept(reports[1]), store.submit(wrong), store.submit(lambda _: 7)]
    )
    with pytest.raises(RefusedError, match="not now"):
        first.result(timeout=10)
    with pytest.raises(errors.UniqueViolation):
        third.result(timeout=10)
    assert second.result(timeout=10)[0].new and fourth.result(timeout=10) == 7
    assert one.servers[0].counts(one.task_id)["reports"] == 1
    # One for the batch, one for ids.
    assert len(list((tmp_path / "keys").iterdir())) == 2


def test_requests_run_again_when_the_connection_was_lost_before_the_commit(
    make: Callable[..., Shufflers], postgresql: Server
) -> None:
    one = make(1)
    store = one.servers[0]._store
    reports = one.reports(4)
    tries: list[int] = []

    def cut_once(inside: Any) -> str:
        tries.append(inside.db.info.backend_pid)
        inside.db.execute("SELECT 1").fetchall()
        if len(tries) == 1:
            with postgresql.connect() as db:
                db.execute("SELECT pg_terminate_backend(%s)", (tries[0],))
            while True:
                inside.db.execute("SELECT 1").fetchall()
        return "done"

    # They are taken in the first try, and must be there in the second.
    asked = together(store, lambda: [accept_reports(one.servers[0], one.task_id, reports), store.submit(cut_once)])
    assert asked[1].result(timeout=20) == "done" and len(set(tries)) == 2
    assert [answer.new for answer in asked[0].result(timeout=20)] == [True] * 4
    assert [answer.new for answer in one.accept(reports)] == [False] * 4


@pytest.mark.parametrize("happened", [True, False])
def test_a_commit_of_which_nobody_knows_is_refused_for_the_moment(
    make: Callable[..., Shufflers], monkeypatch: pytest.MonkeyPatch, happened: bool, tmp_path: Path
) -> None:
    """The client sends the same bytes again, and is told whether they were there; no key is destroyed by mistake."""
    one = make(1)
    store: Any = one.servers[0]._store
    reports = one.reports(2)
    run, inner = psycopg.Connection.execute, store._writer

    def execute(self: Any, statement: Any, *given: Any, **more: Any) -> Any:
        if self is inner and statement == "COMMIT":
            if happened:
                run(self, statement)
                with self.pipeline() as pipeline:
                    pipeline.sync()
            self.pgconn.finish()
            raise psycopg.OperationalError("the connection is lost")
        return run(self, statement, *given, **more)

    monkeypatch.setattr(psycopg.Connection, "execute", execute)
    with pytest.raises(RefusedError, match="cannot be written") as refused:
        one.accept(reports)
    assert refused.value.kind.status == 503 and refused.value.retry_after is not None
    assert "127.0.0.1" not in str(refused.value)
    assert [answer.new for answer in one.accept(reports)] == [not happened] * 2
    assert len(one.accept(one.reports(USERS - 2))) == USERS - 2 and one.servers[0].seal_full()


def test_what_a_process_remembers_of_a_batch_is_not_trusted(
    make: Callable[..., Shufflers], postgresql: Server, schema: str
) -> None:
    """Another process may have abandoned it meanwhile, with its table and its key."""
    both = make()
    first, second, third = both.reports(3)
    assert both.accept([first])[0].new and both.accept([second])[0].new
    assert both.servers[1]._store.write(lambda inside: inside.abandon(both.task_id, 3))
    with postgresql.connect(schema) as db:
        # The third's seat is still given out, as of another round.
        row = (both.task_id, position_of(third.seat), third.seat, time.time() + 60)
        db.execute("INSERT INTO leases VALUES (%s, %s, %s, %s)", row)
        db.execute("UPDATE shelves SET is_open = FALSE")
        both.servers[1]._store.forget_deleted()
        assert tables(db) == set()
        assert both.accept([third])[0].new
        assert db.execute("SELECT filled FROM batches").fetchall() == [(1,)] and len(tables(db)) == 1
    assert both.servers[0]._store.read(lambda inside: inside.parts(both.task_id, both.batch_id)) == [third.body]


def test_a_full_disk_refuses_for_a_while(make: Callable[..., Shufflers], monkeypatch: pytest.MonkeyPatch) -> None:
    one = make(1)
    [report] = one.reports(1)
    store: Any = one.servers[0]._store

    def full(inside: Any) -> None:
        raise errors.DiskFull("could not extend file")

    assert store.has_room()
    with pytest.raises(RefusedError, match="cannot be written"):
        store.write(full)
    assert not store.has_room()
    assert one.accept([report])[0].kind.name == "no-room"
    monkeypatch.setattr(engine, "_FULL_SECONDS", 0.0)
    with pytest.raises(RefusedError):
        store.write(full)
    assert store.has_room() and one.accept([report])[0].new


def test_what_is_acknowledged_is_on_disk(make: Callable[..., Shufflers]) -> None:
    """A power cut cannot be tested here: the setting can, on every connection."""
    store = make(1).servers[0]._store
    for run in (store.write, store.read):
        assert run(lambda inside: inside.rows("SHOW synchronous_commit")) == [("on",)]


def test_a_server_without_fsync_is_refused(address: Callable[..., str], postgresql: Server) -> None:
    with postgresql.connect() as db:
        db.execute("ALTER SYSTEM SET full_page_writes = off")
        db.execute("SELECT pg_reload_conf()")
        try:
            wait_until(lambda: db.execute("SHOW full_page_writes").fetchall() == [("off",)], "not reloaded")
            with pytest.raises(ParameterError, match="full_page_writes = on, or what is acknowledged may be lost"):
                open_shuffler_store(address())
        finally:
            db.execute("ALTER SYSTEM RESET full_page_writes")
            db.execute("SELECT pg_reload_conf()")
            wait_until(lambda: db.execute("SHOW full_page_writes").fetchall() == [("on",)], "not reloaded")


# --- shelves and keys ------------------------------------------------------------------------------


def shelves(db: Any) -> list[tuple[str, int, int, bool]]:
    return db.execute("SELECT kind, taken, held, is_open FROM shelves ORDER BY number").fetchall()


def tables(db: Any) -> set[str]:
    rows = db.execute("SELECT tablename FROM pg_tables WHERE schemaname = current_schema()").fetchall()
    return {name for (name,) in rows if name.rpartition("_")[0] in ("parts", "pieces", "bodies")}


def test_small_batches_share_a_shelf_and_it_is_dropped_whole(
    make: Callable[..., Shufflers], postgresql: Server, schema: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(records, "SHELF_BATCHES", 3)
    one = make(1)
    server, store = one.servers[0], one.servers[0]._store

    def come(batch: int, seats: range) -> None:
        """People of one of several batches of eight."""
        part = BatchPart(f"batch {batch}", seats[0], len(seats), 8, bytes(len(seats) * CIPHERTEXT_BYTES))
        ids = [new_id(bits=BITS) for _ in seats]
        store.write(lambda inside: inside.keep(one.task_id, ids, [], [part]))

    with postgresql.connect(schema) as db:
        for batch in range(3):
            come(batch, range(8))
        come(3, range(2))
        assert shelves(db) == [("parts", 3, 3, False), ("parts", 1, 1, True)] and len(tables(db)) == 2
        server.seal_full()
        # The parts of three batches are gone with their table; the fourth is still filling.
        store.forget_deleted()
        assert shelves(db) == [("parts", 1, 1, True), ("pieces", 3, 3, False)]
        assert server.send_waiting() and len(one.sent) == 3
        assert shelves(db) == [("parts", 1, 1, True)] and tables(db) == {"parts_2"}
        come(3, range(2, 8))
        come(4, range(8))
        server.seal_full()
        assert server.send_waiting() and len(one.sent) == 5
        assert shelves(db) == [("parts", 2, 0, True), ("pieces", 2, 0, True)]
        # Nobody has put anything on them for long.
        db.execute("UPDATE shelves SET touched = touched - interval '2 minutes'")
        store.forget_deleted()
        assert shelves(db) == [] and tables(db) == set()


def test_a_large_batch_has_a_shelf_for_itself_and_a_backup_does_not_hold_up_reports(
    make: Callable[..., Shufflers], postgresql: Server, schema: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(records, "LARGE_BYTES", 100)
    monkeypatch.setattr(shuffler_desk, "PIECE_BYTES", 5 * CIPHERTEXT_BYTES)
    one = make(1)
    one.fill()
    with postgresql.connect(schema) as db, postgresql.connect(schema) as backup:
        assert shelves(db) == [("parts", 1, 1, False)]
        with backup.transaction():
            # As pg_dump does with every table.
            backup.execute("LOCK TABLE parts_1 IN ACCESS SHARE MODE")
            assert one.servers[0].seal_full() and one.servers[0].send_waiting() and len(one.sent) == 1
            assert shelves(db) == [("parts", 1, 0, False)]
        one.servers[0]._store.forget_deleted()
        assert shelves(db) == [] and tables(db) == set()


def test_keys_of_what_a_killed_process_deleted_are_destroyed_by_the_next(
    make: Callable[..., Shufflers], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    both = make()
    both.fill()
    monkeypatch.setattr(type(both.servers[0]._store), "forget_deleted", lambda self: None)
    both.servers[0].seal_full()
    assert len(list((tmp_path / "keys").iterdir())) == 3
    monkeypatch.undo()
    assert both.servers[1].send_waiting() and both.sent == []
    # Of the parts it is gone; ids and pieces have theirs.
    assert len(list((tmp_path / "keys").iterdir())) == 2


def test_orphans_are_destroyed_when_a_store_is_opened_and_others_keys_are_left_alone(
    make: Callable[..., Shufflers], address: Callable[..., str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Keys of transactions that never were: after an hour, as somebody may be about to commit."""
    one = make(1)
    one.fill()
    store: Any = one.servers[0]._store
    orphan = store._vault.new_key()
    strange = tmp_path / "keys" / "0123456789abcdef-77"
    strange.write_bytes(b"of another store")
    before = set((tmp_path / "keys").iterdir())
    open_shuffler_store(address()).close()
    assert set((tmp_path / "keys").iterdir()) == before
    monkeypatch.setattr(vault, "_ORPHAN_SECONDS", -1.0)
    open_shuffler_store(address()).close()
    gone = before - set((tmp_path / "keys").iterdir())
    assert {file.name.rpartition("-")[2] for file in gone} == {orphan.hex()}
    assert one.servers[0].seal_full() and one.servers[0].send_waiting() and len(one.sent) == 1


def test_a_destroyed_key_is_overwritten_before_its_name_goes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    keys = KeyFolder(tmp_path / "keys", bits=BITS)
    keys.make("ab-1")
    left: list[bytes] = []
    monkeypatch.setattr(Path, "unlink", lambda file, missing_ok=False: left.append(file.read_bytes()))
    keys.destroy(["ab-1", "ab-2"])
    assert left == [bytes(32)] and keys.get("ab-1") is None
    assert (tmp_path / "keys" / "ab-1").stat().st_mode & 0o777 == 0o600


# --- what is refused -------------------------------------------------------------------------------


def test_addresses_that_cannot_be_are_refused_in_a_sentence(
    postgresql: Server, tmp_path: Path, address: Callable[..., str]
) -> None:
    keys = tmp_path / "keys"
    base = f"postgresql://tester@127.0.0.1:{postgresql.port}/postgres"
    there = tmp_path / "a file"
    there.write_text("")
    for wrong, words in {
        base: "must say where the keys of its batches are kept.*add .batch_keys=FOLDER",
        f"{base}?batch_keys={keys}&schema=Röck": "schema must be small letters",
        f"{base}?batch_keys={keys}&claim_seconds=soon": "claim_seconds must lie in",
        f"{base}?batch_keys={there}/keys": "batch_keys must be a folder that can be written",
        f"{base}?batch_keys={keys}&sslmode": "must be an address",
        f"postgresql://tester@db.example/x?batch_keys={keys}&sslmode=disable": "sslmode must encrypt unless",
        f"postgresql://tester@127.0.0.1:1/postgres?batch_keys={keys}": r"reached \(Connection refused\).*is the server",
        f"postgresql://tester@127.0.0.1:{postgresql.port}/none?batch_keys={keys}": 'database "none" does not exist',
        f"postgresql://nobody@127.0.0.1:{postgresql.port}/postgres?batch_keys={keys}": 'role "nobody" does not exist',
        f"{base}?batch_keys={keys}&colour=blue": "invalid URI query parameter",
    }.items():
        with pytest.raises(ParameterError, match=words) as refused:
            open_shuffler_store(wrong)
        assert "\n" not in str(refused.value)
    with pytest.raises(ParameterError, match="outbox must be a file on the device itself"):
        open_outbox(address())


def test_a_wrong_password_is_refused_and_no_password_is_shown(postgresql: Server, tmp_path: Path, schema: str) -> None:
    where, given = f"127.0.0.1:{postgresql.port}/postgres", f"batch_keys={tmp_path / 'keys'}&schema={schema}"
    for wrong in (
        f"postgresql://locked:hunter2@{where}?{given}",
        f"postgresql://locked@{where}?password=hunter2&{given}",
    ):
        for use in (open_shuffler_store, open_analyzer_store, inspect_store):
            with pytest.raises(ParameterError, match="password authentication failed") as refused:
                use(wrong)
            assert "hunter2" not in str(refused.value) and "hunter2" not in repr(refused.value)
    with pytest.raises(ParameterError) as refused:
        open_shuffler_store("postgres://me:hunter2@here/x")
    assert "hunter2" not in str(refused.value)


def test_a_user_who_may_not_make_tables_is_told(postgresql: Server, tmp_path: Path) -> None:
    from harness.postgresql import LOCKED, PASSWORD

    secret = PASSWORD.replace(" ", "%20")
    where = f"postgresql://{LOCKED}:{secret}@127.0.0.1:{postgresql.port}/postgres?batch_keys={tmp_path / 'keys'}"
    with pytest.raises(ParameterError, match="a schema in which its user may make tables"):
        open_shuffler_store(where)


def test_another_role_other_keys_and_another_version_are_refused_and_changed_in_nothing(
    postgresql: Server, address: Callable[..., str], schema: str, tmp_path: Path
) -> None:
    open_shuffler_store(address()).close()
    with pytest.raises(DataError, match="must be of the analyzer, got a store of the shuffler"):
        open_analyzer_store(address())
    with pytest.raises(DataError, match="must name the folder that the store began with"):
        open_shuffler_store(postgresql.address(tmp_path / "other", schema))
    assert (
        inspect_store(postgresql.address(tmp_path / "other", schema)).condition
        == "its keys are not those of this folder"
    )
    assert "must be a folder that can be" in inspect_store(postgresql.address(tmp_path / "none", schema)).condition
    assert not (tmp_path / "none").exists()
    with postgresql.connect(schema) as db:
        db.execute("INSERT INTO migrations (number, name) VALUES (99, 'later')")
    for use in (open_shuffler_store, inspect_store):
        with pytest.raises(
            DataError,
            match=rf"must be of version {max(migrating.files_of('shuffler'))} at most, got shuffler postgresql 99",
        ):
            use(address())


def test_a_schema_of_something_else_is_refused(postgresql: Server, address: Callable[..., str], schema: str) -> None:
    with pytest.raises(DataError, match="store must be there"):
        inspect_store(address())
    with postgresql.connect() as db:
        db.execute(f"CREATE SCHEMA {schema}; CREATE TABLE {schema}.letters (text TEXT)")
    for use in (open_shuffler_store, inspect_store):
        with pytest.raises(DataError, match="must be an empty schema or a store of shuffledp"):
            use(address())
    with postgresql.connect(schema) as db:
        assert db.execute("SELECT count(*) FROM pg_tables WHERE schemaname = current_schema()").fetchall() == [(1,)]


def test_two_that_open_a_new_store_at_once_make_it_once(address: Callable[..., str]) -> None:
    ready = threading.Barrier(3)

    def open_it(_: int) -> Any:
        ready.wait()
        return open_shuffler_store(address())

    with ThreadPoolExecutor(3) as threads:
        stores = list(threads.map(open_it, range(3)))
    assert len({store._store_id for store in stores}) == 1
    for store in stores:
        store.close()


# --- migrations ------------------------------------------------------------------------------------


@pytest.fixture
def later(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Path]:
    """A version with one more migration: the folder of its files."""
    folder = tmp_path / "migrations"
    folder.mkdir()
    known = migrating.files_of("shuffler")
    more = folder / f"{len(known) + 1:04}_more.sql"
    more.write_text("ALTER TABLE leases ADD COLUMN note TEXT; CREATE TABLE more (x INTEGER);")
    files = {**known, len(known) + 1: more}
    monkeypatch.setattr(migrating, "files_of", lambda role: files)
    return folder


def test_an_older_store_is_migrated_when_it_is_told_to(
    request: pytest.FixtureRequest,
    make: Callable[..., Shufflers],
    address: Callable[..., str],
    postgresql: Server,
    schema: str,
) -> None:
    from shuffledp.service.store import migrate_store

    one = make(1)
    [report] = one.reports(1)
    assert one.accept([report])[0].new
    assert migrate_store.__doc__
    folder: Path = request.getfixturevalue("later")
    with pytest.raises(DataError, match="must be free: it is held by shuffledp shuffler, process"):
        migrate_store(address())
    one.stop()
    [more] = folder.iterdir()
    newest = int(more.name[:4])
    for use in (open_shuffler_store, inspect_store):
        refused = rf"must be of version {newest}.*run `shuffledp store migrate postgresql://tester@"
        with pytest.raises(DataError, match=refused):
            use(address())
    # One that fails leaves everything as it was.
    good = more.read_text()
    more.write_text(good + "ALTER TABLE nothing ADD COLUMN note TEXT;")
    with pytest.raises(psycopg.errors.UndefinedTable):
        migrate_store(address())
    more.write_text(good)
    assert migrate_store(address()) == ("shuffler", newest - 1, newest)
    assert migrate_store(address()) == ("shuffler", newest, newest)
    with postgresql.connect(schema) as db:
        found = db.execute("SELECT number, name FROM migrations ORDER BY number").fetchall()
        assert found == [(number, file.stem) for number, file in migrating.files_of("shuffler").items()]
        assert found[-1] == (newest, more.stem)
        assert db.execute("SELECT count(*) FROM more").fetchall() == [(0,)]
    with closing(open_shuffler_store(address())) as store:
        assert store.read(lambda inside: inside.counts(one.task_id)).reports == 1
        assert inspect_store(address()).kind == f"shuffler postgresql {newest}"
    with pytest.raises(ParameterError, match="must be a store with migrations"):
        migrate_store("shuffler.db")
