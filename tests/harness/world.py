"""A shuffler and an analyzer in one process, with a clock, a network and crashes that a test decides on.

A kill is an image of the store's files between two statements of its writer, or with half of a commit written: a
new server starts from the image, and whatever the old one did afterwards never happened.
"""

import contextlib
import shutil
import sqlite3
import threading
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Any

import httpx
import numpy as np

from harness.clock import MockClock
from shuffledp.privacy import Privacy
from shuffledp.protocols.catalogue import PROTOCOLS
from shuffledp.randomness import RandomBits
from shuffledp.service.analyzer.opening import messages_of, open_chunk
from shuffledp.service.analyzer.server import AnalyzerServer
from shuffledp.service.campaign import Campaign
from shuffledp.service.client.making import make_reports
from shuffledp.service.crypto import PrivateKey, PublicKey, SigningKey, binding
from shuffledp.service.delivery import Manifest
from shuffledp.service.onion import add_layers
from shuffledp.service.openapi import BINARY, JSON
from shuffledp.service.problems import RefusedError
from shuffledp.service.routing import SeatInBatch
from shuffledp.service.shuffler.desk import Accepted
from shuffledp.service.shuffler.large import BatchSizes
from shuffledp.service.shuffler.layers import Bound, Chunk
from shuffledp.service.shuffler.peeling import open_layer
from shuffledp.service.shuffler.server import ShufflerServer
from shuffledp.service.shuffler.uploads import Answer
from shuffledp.service.store.sqlite import open_analyzer_store, open_shuffler_store
from shuffledp.service.store.sqlite.engine import SqliteStore
from shuffledp.service.task import RoundTask, Task
from shuffledp.service.wire import CIPHERTEXT_BYTES, ID_BYTES, SentReport, Unpacked, new_id, pack_messages


def small_task(
    key: PublicKey, *, users: int = 24, shufflers: int = 3, noise: str = "coins", hops: Sequence[PublicKey] = ()
) -> Task:
    """A running count of a few users, in batches of three and more: quick to fill, private in name only.

    >>> task = small_task(PrivateKey.generate().public)
    >>> task.routing.users, [batch.size for batch in task.routing.batches_of(0)]
    (24, [3, 9, 18])
    """
    plan = PROTOCOLS["counter"].plan(users=users, shufflers=shufflers, privacy=Privacy(8, 0.1), method=noise)
    return Task.create(plan, key, bits=RandomBits.secure(), allow_unbounded=True, hops=hops)


@dataclass(frozen=True)
class MadeReport:
    """A report whose ciphertexts the test knows, as the analyzer gets them; and how many ones it tells each batch."""

    body: bytes
    pieces: dict[str, tuple[bytes, ...]]
    ones: dict[str, int]


def made_report(task: Task, batches: Iterable[SeatInBatch], *, bits: RandomBits) -> MadeReport:
    """What a client would send, with bits that the test can add up: as many as the seat's part of the batch is."""
    pieces, ones, seat = {}, {}, tuple(batches)
    position = task.routing.position_of(seat)
    nothing = task.plan.prepare(np.zeros(1, dtype=np.uint8), bits=bits, positions=np.array([position], dtype=np.int64))
    for batch in seat:
        count = task.plan.mechanism(batch.size).randomize(nothing, batch.seat, bits=bits).payloads.size
        payloads = (bits.unsigned(count, 8) & 1).astype(np.uint8)
        packed = pack_messages(payloads, None, batch.messages, bits=bits)
        pieces[batch.batch_id] = tuple(task.public_key.seal(packed, binding(task.id, batch.batch_id)))
        ones[batch.batch_id] = int(payloads.sum())
    layered = [add_layers(list(sealed), task.hops, task.id, batch_id) for batch_id, sealed in pieces.items()]
    return MadeReport(b"".join(b"".join(each) for each in layered), pieces, ones)


def report_of(task: Task | RoundTask, value: Any, batches: tuple[SeatInBatch, ...], *, bits: RandomBits) -> bytes:
    """What the device of a user with this value sends, from the seat that these batches belong to."""
    return make_reports(task, task.plan.encode(np.asarray(value)[np.newaxis]), [batches], bits=bits)[0]


def ciphertexts(body: bytes) -> list[bytes]:
    """A body's ciphertexts, in their order."""
    return [body[at : at + CIPHERTEXT_BYTES] for at in range(0, len(body), CIPHERTEXT_BYTES)]


def open_here(key: PrivateKey, body: bytes, task_id: str, batch_id: str) -> Unpacked:
    """All messages of a batch, opened in this process as a worker opens them."""
    return messages_of([open_chunk(key.raw, binding(task_id, batch_id), body)])


@dataclass(frozen=True)
class PeelerHere:
    """Takes a hop's layer off in this process."""

    key: PrivateKey

    def open(self, chunks: Sequence[bytes], bound: Bound, length: int) -> list[Chunk]:
        """What is inside each chunk."""
        return [open_layer(bound, length, self.key.raw, chunk) for chunk in chunks]

    def close(self) -> None:
        """Nothing is held."""


@dataclass(frozen=True)
class OpenerHere:
    """Opens in this process."""

    key: PrivateKey
    at_once: int = 1

    def open(self, body: bytes, task_id: str, batch_id: str) -> Unpacked:
        """All messages of a batch."""
        return open_here(self.key, body, task_id, batch_id)

    def start(self, body: bytes, task_id: str, batch_id: str) -> "Future[tuple[bytes, int]]":
        """A piece's messages, opened at once."""
        opened: Future[tuple[bytes, int]] = Future()
        opened.set_result(open_chunk(self.key.raw, binding(task_id, batch_id), body))
        return opened

    def close(self) -> None:
        """Nothing is held."""


def accept_reports(shuffler: ShufflerServer, task_id: str, reports: list[SentReport]) -> "Future[list[Answer]]":
    """What becomes of reports that a client uploads: a future of their answers, done when they are on disk."""
    future: Future[list[Answer]] = Future()

    def answered(answers: list[Answer] | BaseException) -> None:
        if not future.set_running_or_notify_cancel():
            return
        if isinstance(answers, BaseException):
            future.set_exception(answers)
        else:
            future.set_result(answers)

    shuffler.accept_all([(task_id, reports, answered)])
    return future


def accept_one(shuffler: ShufflerServer, task_id: str, report: SentReport) -> "Future[Accepted]":
    """What becomes of one report: a future of its own answer."""
    own: Future[Accepted] = Future()

    def unwrap(done: "Future[list[Answer]]") -> None:
        if not own.set_running_or_notify_cancel():
            return
        failed = done.exception()
        answer = failed if failed is not None else done.result()[0]
        if isinstance(answer, BaseException):
            own.set_exception(answer)
        else:
            own.set_result(answer)

    accept_reports(shuffler, task_id, [report]).add_done_callback(unwrap)
    return own


class Watched:
    """A store's writing connection that stops for a moment before a statement: there its files are copied."""

    def __init__(self, inner: sqlite3.Connection) -> None:
        self._inner = inner
        self.kill: Kill | None = None

    def execute(self, statement: str, *given: Any) -> sqlite3.Cursor:
        """The statement, and the kill if this is its moment."""
        if self.kill is not None and self.kill.is_due():
            return self.kill.around(statement, lambda: self._inner.execute(statement, *given))
        return self._inner.execute(statement, *given)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)


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
            assert self.may_end.wait(10.0)
        return self.inner.execute(query, *given)


def watch(store: SqliteStore[Any]) -> Watched:
    """Put a watched connection in the place of the store's own."""
    watched = Watched(store._writer)
    store.write(lambda db: setattr(store, "_writer", watched))
    return watched


@dataclass
class Kill:
    """At this statement of its writer a server dies: `image` holds what a new one will find."""

    path: Path
    image: Path
    statement: int
    choice: Random
    dies: Callable[[], None] = lambda: None
    """Called at that moment: who has been answered by then was answered."""
    happened: bool = False

    def is_due(self) -> bool:
        """Whether this statement is the one."""
        self.statement -= 1
        return self.statement == 0

    def around(self, statement: str, act: Callable[[], sqlite3.Cursor]) -> sqlite3.Cursor:
        """Copy the files before the statement, after it, or with a part of the commit."""
        moment = self.choice.choice(("before", "after", "torn")) if statement == "COMMIT" else "before"
        if moment == "before":
            self.now()
            return act()
        database = self.path.read_bytes()
        before = self._log.stat().st_size if self._log.exists() else 0
        done = act()
        if moment == "after":
            self.now()
            return done
        # The commit was being appended to the log, and nothing was moved from there to the database yet.
        self.now()
        (self.image / self.path.name).write_bytes(database)
        log = self._log.read_bytes()
        (self.image / self._log.name).write_bytes(log[: self.choice.randint(min(before, len(log)), len(log))])
        return done

    def now(self) -> None:
        """The moment: only what is in the files remains."""
        if self.happened:
            return
        self.happened = True
        self.image.mkdir(parents=True)
        for file in (self.path, self._log):
            if file.exists():
                shutil.copy(file, self.image / file.name)
        self.dies()

    @property
    def _log(self) -> Path:
        return self.path.with_name(self.path.name + "-wal")


def together(store: SqliteStore[Any], submit: Callable[[], Any]) -> Any:
    """Hold the store's writer until `submit` has put all its requests into the queue: they share a commit."""
    begun, go = threading.Event(), threading.Event()

    def wait(db: Any) -> None:
        begun.set()
        go.wait()

    held = store.submit(wait)
    while not begun.wait(timeout=0.01) and not held.done():
        # A server that died before it came to this never will.
        pass
    try:
        return submit()
    finally:
        go.set()
        held.result()


@dataclass
class Network:
    """What a shuffler posts, and its fate: delivered, lost, answer lost, twice, or refused."""

    analyzer: Callable[[], AnalyzerServer]
    fate: Callable[[], str] = lambda: "delivered"
    sent: list[tuple[str, str, bytes]] = field(default_factory=list)
    """Every body that left the shuffler: task, batch, bytes; of a batch in pieces when its manifest left."""
    pieces: dict[tuple[str, str], dict[int, bytes]] = field(default_factory=dict)
    """Of every batch in pieces, those that left."""
    manifests: int = 0
    dead: set[str] = field(default_factory=set)
    """Servers that died in this step: nothing leaves them, nothing reaches them."""

    def post(self, path: str, body: bytes, media: str = BINARY) -> int:
        """One request of the shuffler."""
        task_id, batch_id, *more = path.split("/")[3:4] + path.split("/")[5:]
        if "shuffler" in self.dead:
            raise httpx.ConnectError("the sender is dead")
        act = self._request(task_id, batch_id, more, body)
        assert media == (JSON if more == ["manifest"] else BINARY)
        fate = "lost" if self.dead else self.fate()
        if fate == "lost":
            raise httpx.ConnectError("lost")
        if fate == "refused":
            return 503
        try:
            new = [act() for _ in range(2 if fate == "twice" else 1)]
        except RefusedError as refused:
            return refused.kind.status
        if fate == "answer lost" or self.dead:
            raise httpx.ReadTimeout("answer lost")
        return 201 if new[-1] else 200

    def _request(self, task_id: str, batch_id: str, more: list[str], body: bytes) -> Callable[[], bool]:
        """What a request asks of the analyzer; that it left is remembered."""
        if not more:
            self.sent.append((task_id, batch_id, body))
            return lambda: self.analyzer().deliver(task_id, batch_id, body)
        left = self.pieces.setdefault((task_id, batch_id), {})
        if more[0] == "pieces":
            number = int(more[1])
            assert left.setdefault(number, body) == body, "a piece was sent with other bytes"
            return lambda: self.analyzer().take_piece(task_id, batch_id, number, body)
        self.manifests += 1
        self.sent.append((task_id, batch_id, b"".join(piece for _, piece in sorted(left.items()))))
        return lambda: self.analyzer().take_manifest(task_id, batch_id, Manifest.from_text(body.decode()))


@dataclass
class World:
    """Both servers on stores of their own, without threads of chores: each step is the test's."""

    folder: Path
    lease_seconds: float = 60.0
    most_waiting_bytes: int = 1 << 20
    sizes: BatchSizes = field(default_factory=BatchSizes)
    make_shuffler: Callable[..., ShufflerServer] = ShufflerServer
    make_analyzer: Callable[..., AnalyzerServer] = AnalyzerServer
    clock: MockClock = field(default_factory=MockClock)
    key: PrivateKey = field(default_factory=PrivateKey.generate)
    signing: SigningKey = field(default_factory=SigningKey.generate)

    def __post_init__(self) -> None:
        self.bits = RandomBits.secure()
        self.network = Network(lambda: self.analyzer)
        self.stores: dict[str, SqliteStore[Any]] = {}
        self.writers: dict[str, Watched] = {}
        self._lives = 0
        for role in ("shuffler", "analyzer"):
            folder = self._new_folder()
            folder.mkdir(parents=True)
            self._start(role, folder / f"{role}.db")

    def _new_folder(self) -> Path:
        self._lives += 1
        return self.folder / f"life-{self._lives}"

    def _start(self, role: str, path: Path) -> None:
        if role == "shuffler":
            self.stores[role] = store = open_shuffler_store(str(path))
            limits: dict[str, Any] = {
                "lease_seconds": self.lease_seconds,
                "most_waiting_bytes": self.most_waiting_bytes,
                "sizes": self.sizes,
            }
            self.shuffler = self.make_shuffler(store, post=self.network.post, clock=self.clock.now, **limits)
        else:
            self.stores[role] = open_analyzer_store(str(path))
            keys: dict[str, Any] = {"key": self.key, "opener": OpenerHere(self.key), "signing": self.signing}
            self.analyzer = self.make_analyzer(self.stores[role], clock=self.clock.now, **keys)
        self.writers[role] = watch(self.stores[role])

    def plan_kill(self, role: str, statement: int, choice: Random, dies: Callable[[], None] = lambda: None) -> Kill:
        """Let a server die at this statement of its writer, at the latest when it is restarted."""

        def die() -> None:
            self.network.dead.add(role)
            dies()

        kill = Kill(self.stores[role].path, self._new_folder(), statement, choice, die)
        self.writers[role].kill = kill
        return kill

    def restart(self, role: str, kill: Kill) -> None:
        """Start a new process on what the dead one left."""
        self.writers[role].kill = None
        old = self.stores[role]
        old.write(lambda records: kill.now())
        _close(old)
        shutil.rmtree(old.path.parent)
        self.network.dead.discard(role)
        self._start(role, kill.image / old.path.name)

    def add_task(self, task: Task | Campaign) -> None:
        """Serve a task or a campaign at both."""
        self.shuffler.add_task(task.text)
        self.analyzer.add_task(task.text)

    def new_id(self) -> str:
        """An id as clients draw them."""
        return new_id(bits=self.bits)

    def close(self) -> None:
        """Stop both servers."""
        for store in self.stores.values():
            _close(store)


def _close(store: SqliteStore[Any]) -> None:
    reader = getattr(store._readers, "connection", None)
    if reader is not None:
        reader.close()
    store.close()


def tables_of(file: Path) -> dict[str, list[tuple[Any, ...]]]:
    """Every row of every table of a store."""
    with contextlib.closing(sqlite3.connect(file)) as database:
        names = [row[0] for row in database.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
        return {name: database.execute(f"SELECT * FROM {name}").fetchall() for name in names}


def rows(store: SqliteStore[Any], query: str, *given: Any) -> list[Any]:
    """What a query of a store's database finds."""
    return store.read(lambda records: records.db.execute(query, given).fetchall())


def known_ids(store: SqliteStore[Any]) -> set[bytes]:
    """Every report's id that is written down, in its place or in the order of arrival."""
    waiting = b"".join(ids for (ids,) in rows(store, "SELECT ids FROM arrivals"))
    placed = {report_id for (report_id,) in rows(store, "SELECT report_id FROM accepted")}
    return placed | {waiting[at : at + ID_BYTES] for at in range(0, len(waiting), ID_BYTES)}


def batch_rows(store: SqliteStore[Any], kind: str) -> list[tuple[str, str, int, bytes]]:
    """Task, batch, number and bytes of all that is in batches' own tables: `parts` or `pieces`."""
    batches = "SELECT number, task_id, batch_id FROM batches UNION ALL SELECT number, task_id, batch_id FROM sealed"
    names = {name for (name,) in rows(store, "SELECT name FROM sqlite_master WHERE type = 'table'")}
    return [
        (task_id, batch_id, *row)
        for number, task_id, batch_id in rows(store, batches)
        if f"{kind}_{number}" in names
        for row in rows(store, f"SELECT * FROM {kind}_{number}")
    ]
