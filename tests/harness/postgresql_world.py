"""Three shufflers and an analyzer on one PostgreSQL server, with a clock, a network and deaths that a test decides on.

A death is a connection that ends at a random statement, or around a COMMIT, of which the server then may or may not
have heard; from then on the old server object changes nothing, and a new one starts on the same database. What the
dead one had claimed stays claimed, until the test lets the time run out.
"""

import random
import threading
import time
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Any

import psycopg

from harness.clock import MockClock
from harness.looking import GONE, READY
from harness.machine import LEASE, Machine, some_count
from harness.model import must
from harness.postgresql import Server
from harness.world import Network, OpenerHere
from shuffledp.errors import ParameterError
from shuffledp.randomness import RandomBits
from shuffledp.service.analyzer.server import AnalyzerServer
from shuffledp.service.crypto import PrivateKey
from shuffledp.service.problems import NO_ROOM, RefusedError
from shuffledp.service.shuffler.large import BatchSizes
from shuffledp.service.shuffler.server import ShufflerServer
from shuffledp.service.store import open_analyzer_store, open_shuffler_store
from shuffledp.service.store.postgresql import shuffler as records
from shuffledp.service.store.postgresql.engine import PostgresStore
from shuffledp.service.task import Task
from shuffledp.service.wire import CIPHERTEXT_BYTES, new_id

SHUFFLERS = 3


@dataclass
class Death:
    """At this statement of its writer a server dies."""

    store: PostgresStore[Any]
    statement: int
    choice: Random
    dies: Callable[[], None] = lambda: None
    happened: bool = False
    is_of_commit: bool = False

    def is_due(self) -> bool:
        self.statement -= 1
        return self.statement == 0

    def around(self, db: "psycopg.Connection[Any]", statement: str, act: Callable[[], Any]) -> Any:
        """Before the statement; around a COMMIT also after it, or when it was sent and nobody waits for the answer."""
        moment = self.choice.choice(("before", "after", "torn")) if statement == "COMMIT" else "before"
        self.is_of_commit = statement == "COMMIT"
        if moment != "before":
            act()
        if moment == "after":
            with db.pipeline() as pipeline:
                pipeline.sync()
        if moment == "torn":
            db.pgconn.pipeline_sync()
            db.pgconn.flush()
        self.now(db)
        raise psycopg.OperationalError("killed")

    def now(self, db: Any = None) -> None:
        """The moment: what the database and the folder of keys hold remains."""
        if self.happened:
            return
        self.happened = True
        self.dies()
        # The dead change nothing: no key, no row.
        self.store._vault = _DeadVault()  # type: ignore[assignment]
        self.store._connected = self.store.read = _dead  # type: ignore[assignment, method-assign]
        self.store._drop_idle()
        for each in (db, self.store._writer):
            if each is not None:
                each.pgconn.finish()


def _dead(*_: Any) -> Any:
    raise RefusedError(NO_ROOM, "killed")


class _DeadVault:
    """Seals, opens and destroys nothing."""

    def __getattr__(self, name: str) -> Any:
        return _dead


class WatchedConnection:
    """A store's writing connection that may end before a statement."""

    def __init__(self, inner: "psycopg.Connection[Any]") -> None:
        self._inner = inner
        self.death: Death | None = None

    def execute(self, statement: Any, *given: Any, **more: Any) -> Any:
        if self.death is not None and self.death.is_due():
            return self.death.around(self._inner, statement, lambda: self._inner.execute(statement, *given, **more))
        return self._inner.execute(statement, *given, **more)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)


@dataclass
class PostgresWorld:
    """Servers on stores of their own, without threads of chores; `shuffler` is the one whose turn it is."""

    server: Server
    folder: Path
    lease_seconds: float = LEASE
    most_waiting_bytes: int = 20 * 18 * 3 * CIPHERTEXT_BYTES
    sizes: BatchSizes = field(default_factory=BatchSizes)
    make_shuffler: Callable[..., ShufflerServer] = ShufflerServer
    clock: MockClock = field(default_factory=MockClock)
    key: PrivateKey = field(default_factory=PrivateKey.generate)

    def __post_init__(self) -> None:
        self.folder.mkdir(parents=True, exist_ok=True)
        self.bits = RandomBits.secure()
        self.network = Network(lambda: self.analyzer)
        self.schemas = {role: self.server.new_schema() for role in ("shuffler", "analyzer")}
        self.shufflers: list[ShufflerServer] = []
        self._stores: dict[str, Any] = {}
        self.turn = 0
        for place in range(SHUFFLERS):
            self.shufflers.append(self._new_shuffler(place))
        self._start_analyzer()

    def address(self, role: str) -> str:
        return self.server.address(self.folder / "keys", self.schemas[role])

    def _new_shuffler(self, place: int) -> ShufflerServer:
        store: Any = open_shuffler_store(self.address("shuffler"))
        self._stores[f"shuffler {place}"] = store
        store._writer = WatchedConnection(store._writer)
        limits: dict[str, Any] = {"lease_seconds": self.lease_seconds, "most_waiting_bytes": self.most_waiting_bytes}
        limits["sizes"] = self.sizes
        return self.make_shuffler(store, post=self.network.post, clock=self.clock.now, **limits)

    def _start_analyzer(self) -> None:
        deadline = time.monotonic() + 10
        while True:
            try:
                store: Any = open_analyzer_store(self.address("analyzer"))
                break
            except ParameterError:
                # The server has not seen yet that the other one is dead.
                assert time.monotonic() < deadline
                time.sleep(0.01)
        store._writer = WatchedConnection(store._writer)
        self._stores["analyzer"] = store
        self.analyzer = AnalyzerServer(store, key=self.key, opener=OpenerHere(self.key))

    @property
    def shuffler(self) -> ShufflerServer:
        return self.shufflers[self.turn]

    @property
    def stores(self) -> dict[str, Any]:
        return {"shuffler": self._stores[f"shuffler {self.turn}"], "analyzer": self._stores["analyzer"]}

    def plan_kill(self, role: str, statement: int, choice: Random, dies: Callable[[], None] = lambda: None) -> Death:
        """Let a server die at this statement of its writer, at the latest when it is restarted."""

        def die() -> None:
            self.network.dead.add(role)
            dies()

        store = self.stores[role]
        death = Death(store, statement, choice, die)
        store._writer.death = death
        return death

    def restart(self, role: str, death: Death) -> None:
        """Start a new server on what the dead one left."""
        death.now()
        death.store.close()
        self.network.dead.discard(role)
        if role == "shuffler":
            self.shufflers[self.turn] = self._new_shuffler(self.turn)
        else:
            self._start_analyzer()

    def let_claims_run_out(self) -> None:
        """The database's clock goes on for long enough."""
        with self.server.connect(self.schemas["shuffler"]) as db:
            db.execute("UPDATE batches SET held_until = clock_timestamp() - interval '1 second'")

    def add_task(self, task: Task) -> None:
        """Serve a task at one of the shufflers, which is enough for all, and at the analyzer."""
        self.shuffler.add_task(task.text)
        self.analyzer.add_task(task.text)

    def new_id(self) -> str:
        return new_id(bits=self.bits)

    def close(self) -> None:
        for store in self._stores.values():
            store.close()
        with self.server.connect() as db:
            for schema in self.schemas.values():
                # In steps: a schema of many tables needs more locks than a server has.
                db.execute(f"DROP SCHEMA IF EXISTS {schema} CASCADE")


class PostgresLook:
    """Into schemas of a database, with the keys of the folder."""

    def parts(self, store: Any) -> list[tuple[str, str, int, bytes]]:
        def look(inside: Any) -> list[tuple[str, str, int, bytes]]:
            found = inside.rows("SELECT number, task_id, batch_id, parts_shelf, parts_key FROM batches WHERE state = 0")
            return [
                # Small bodies, of a row each.
                (task_id, batch_id, place >> 20, store._vault.open(key, f"parts {number} {place}", body))
                for number, task_id, batch_id, shelf, key in found
                for place, body in inside.rows(f"SELECT place, body FROM parts_{shelf} WHERE key = %s", key)
            ]

        return store.read(look)

    def sealed(self, store: Any) -> list[tuple[str, str, int, bytes]]:
        def look(inside: Any) -> list[tuple[str, str, int, bytes]]:
            query = "SELECT task_id, batch_id, state FROM batches WHERE state > 0"
            return [
                (task_id, batch_id, READY, inside.sealed(task_id, batch_id))
                if state == records.READY
                else (task_id, batch_id, GONE, b"")
                for task_id, batch_id, state in inside.rows(query)
            ]

        return store.read(look)

    def accepted(self, store: Any, report_ids: Iterable[str]) -> set[str]:
        names = {store._vault.name_of(report_id): report_id for report_id in report_ids}
        found = store.read(lambda inside: inside.rows("SELECT name FROM accepted"))
        return {names[bytes(name)] for (name,) in found if bytes(name) in names}

    def read(self, store: Any) -> list[tuple[Any, ...]]:
        def look(inside: Any) -> list[tuple[Any, ...]]:
            query = "SELECT task_id, batch_id, digest, total, dropped, void FROM batches"
            return [
                (task_id, batch_id, digest, inside.body(task_id, batch_id), total, dropped, int(void))
                for task_id, batch_id, digest, total, dropped, void in inside.rows(query)
            ]

        return store.read(look)

    def delete(self, store: Any, task_id: str) -> None:
        def delete(inside: Any) -> None:
            tables = {
                name for (name,) in inside.rows("SELECT tablename FROM pg_tables WHERE schemaname = current_schema()")
            }
            if "taken" in tables:
                inside.db.execute(
                    "DELETE FROM accepted WHERE task = (SELECT number FROM tasks WHERE task_id = %s)", (task_id,)
                )
            for table in tables & {"leases", "batches", "releases"}:
                inside.db.execute(f"DELETE FROM {table} WHERE task_id = %s", (task_id,))

        store.write(delete)


@dataclass
class PostgresMachine(Machine):
    """The random machine with three shufflers: each step is another one's turn, and sealing and sending are a race."""

    world: Any

    def step(self) -> None:
        self.world.turn = self.choice.randrange(SHUFFLERS)
        if self.choice.random() < 0.05:
            self.world.let_claims_run_out()
        super().step()

    def _race(self, role: str, longest: int, work: Callable[[ShufflerServer], Any]) -> None:
        """All shufflers do this at once, and one of them, or the analyzer, may die of it."""
        end = self.with_kill(role, longest)
        ready = threading.Barrier(SHUFFLERS)

        def run(shuffler: ShufflerServer) -> None:
            ready.wait()
            try:
                work(shuffler)
            except RefusedError as refused:
                self._must_be_of_its_death(shuffler, refused)

        with ThreadPoolExecutor(SHUFFLERS) as threads:
            list(threads.map(run, self.world.shufflers))
        end()

    def seal(self) -> None:
        self._race("shuffler", 30, lambda shuffler: shuffler.seal_full())

    def deliver(self) -> None:
        fates, choice = ("delivered", "lost", "answer lost", "twice", "refused"), random.Random(self.choice.random())
        self.world.network.fate = lambda: choice.choices(fates, (60, 15, 10, 10, 5))[0]
        self._race(self.choice.choice(("shuffler", "analyzer")), 30, lambda shuffler: shuffler.send_waiting())
        self.world.network.fate = lambda: "delivered"

    def read(self) -> None:
        end = self.with_kill("analyzer", 25)
        try:
            self.world.analyzer.read_all()
        except RefusedError as refused:
            self._must_be_of_its_death(self.world.analyzer, refused)
        end()

    def _must_be_of_its_death(self, server: Any, refused: RefusedError) -> None:
        """Nobody else is refused anything; and who dies around a COMMIT, and no other, cannot know if it was heard."""
        death = server._store._writer.death
        must(death is not None and death.happened, f"refused, and did not die: {refused}")
        unsure = "UnsureError" in str(refused) and death.is_of_commit
        must("killed" in str(refused) or unsure, f"refused: {refused}")

    def drain(self) -> None:
        self.world.let_claims_run_out()
        super().drain()


def run_postgresql(server: Server, folder: Path, seed: int, steps: int, **world: Any) -> PostgresMachine:
    """So many random steps in a new world, and the machine that took them."""
    with closing(PostgresWorld(server, folder / str(seed), **world)) as made:
        machine = PostgresMachine(made, seed, new_task=some_count, look=PostgresLook())
        machine.run(steps)
    return machine
