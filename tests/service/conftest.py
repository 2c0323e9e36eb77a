"""Small tasks, both servers on files, and desks in memory: what the service's tests share."""

import asyncio
import threading
import time
from collections.abc import AsyncIterator, Callable, Iterable, Iterator
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

import httpx
import pytest
from starlette.applications import Starlette

from harness.world import OpenerHere, open_here, report_of
from shuffledp.continual.plan import CounterPlan
from shuffledp.privacy import Privacy
from shuffledp.protocols.binary_sum import BinarySum
from shuffledp.protocols.bounded_sum import BoundedSum
from shuffledp.protocols.domains.summed import OneHot, Reals, Vectors
from shuffledp.protocols.plan import Plan
from shuffledp.protocols.vector_sum import VectorSum
from shuffledp.randomness import RandomBits
from shuffledp.service import crypto
from shuffledp.service.analyzer.app import analyzer_app
from shuffledp.service.analyzer.desk import AnalyzerDesk
from shuffledp.service.analyzer.server import AnalyzerServer
from shuffledp.service.campaign import Campaign
from shuffledp.service.crypto import PrivateKey, SigningKey
from shuffledp.service.device import Device
from shuffledp.service.openapi import BINARY
from shuffledp.service.routing import SeatInBatch
from shuffledp.service.shuffler.app import shuffler_app
from shuffledp.service.shuffler.desk import Accepted, ShufflerDesk
from shuffledp.service.shuffler.large import BatchSizes
from shuffledp.service.shuffler.server import ShufflerServer
from shuffledp.service.store import open_analyzer_store, open_shuffler_store
from shuffledp.service.store.contract import BatchPart, BatchTotal, Lease, Release
from shuffledp.service.task import Task
from shuffledp.service.tokens import Tokens
from shuffledp.service.wire import SentReport, Unpacked, new_id, pack_upload

COUNTER = {"users": 30, "shufflers": 2, "privacy": Privacy(4, 1e-2), "noise": "coins"}
# Every bounded protocol, small: a plan, and values that are the extremes of its domain and between.
PLANS: dict[str, tuple[Callable[[], Plan], list[Any]]] = {
    **{
        f"binary {method}": (
            lambda method=method: BinarySum.plan(users=20, privacy=Privacy(2, 1e-3), method=method),
            [0, 1],
        )
        for method in ("coins", "rr", "zsum", "poisson-bits", "correlated")
    },
    "bounded bits": (
        lambda: BoundedSum.plan(users=20, privacy=Privacy(2, 1e-3), low=-1, high=1, method="bits"),
        [-1.0, -0.3, 0.0, 0.77, 1.0],
    ),
    "vector bits": (
        lambda: VectorSum.plan(users=20, privacy=Privacy(4, 1e-2), dimension=2, radius=1, method="bits"),
        [[0.0, 0.0], [1.0, 0.0], [0.0, -1.0], [0.6, -0.8]],
    ),
    "running count": (lambda: CounterPlan.plan(**COUNTER, estimator="combined"), [0, 1]),
    "running count, completed": (lambda: CounterPlan.plan(**COUNTER, estimator="completed"), [0, 1]),
    "running sum": (lambda: CounterPlan.plan(**COUNTER, domain=Reals(3)), [0.0, 0.2, 0.5, 1.0]),
    "running vector sum": (
        lambda: CounterPlan.plan(users=120, shufflers=2, privacy=Privacy(8, 1e-2), noise="coins", domain=VECTORS),
        [[0.0, 0.0], [1.0, 0.0], [0.0, -1.0], [-0.6, 0.8]],
    ),
    "running histogram": (lambda: CounterPlan.plan(**COUNTER, domain=OneHot(3)), [0, 1, 2]),
}
VECTORS = Vectors(2, 1.0, 2)


@cache
def small_plan(name: str) -> Plan:
    return PLANS[name][0]()


@pytest.fixture(scope="session", params=PLANS)
def any_plan(request: pytest.FixtureRequest) -> tuple[Plan, list[Any]]:
    """Each bounded protocol's plan with values of its domain."""
    return small_plan(request.param), PLANS[request.param][1]


@pytest.fixture(scope="session")
def plan_named() -> Callable[[str], Plan]:
    """A small plan by its name."""
    return small_plan


@pytest.fixture(scope="session")
def key() -> PrivateKey:
    """The analyzer's key in all tests."""
    return PrivateKey.generate()


@pytest.fixture(scope="session")
def tokens() -> Tokens:
    """A token for each role."""
    return Tokens.generate(bits=RandomBits.secure())


@pytest.fixture
def make_task(key: PrivateKey) -> Callable[..., Task]:
    """A task of a plan, or of the small plan with this name."""

    def make(plan: Plan | str, **more: Any) -> Task:
        found = small_plan(plan) if isinstance(plan, str) else plan
        return Task.create(found, key.public, bits=RandomBits.secure(), **more)

    return make


@dataclass
class SetClock:
    """A clock that stands still until it is set."""

    time: float = 1000.0

    def now(self) -> float:
        return self.time


@pytest.fixture
def set_clock() -> SetClock:
    """A clock that a test sets."""
    return SetClock()


class Loop:
    """An event loop in a thread of its own, on which applications answer."""

    def __init__(self) -> None:
        self.loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self.loop.run_forever, daemon=True)
        self._thread.start()

    def run(self, work: Any) -> Any:
        return asyncio.run_coroutine_threadsafe(work, self.loop).result(60)

    def close(self) -> None:
        self.run(self.loop.shutdown_default_executor())
        self.loop.call_soon_threadsafe(self.loop.stop)
        self._thread.join()
        self.loop.close()


@dataclass(frozen=True)
class OnLoop(httpx.BaseTransport):
    """Hands requests to an application without a socket."""

    app: Starlette
    loop: Loop

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        return self.loop.run(self._answer(request))

    async def _answer(self, request: httpx.Request) -> httpx.Response:
        parts = list(request.stream)

        async def body() -> AsyncIterator[bytes]:
            for part in parts:
                yield part

        copy = httpx.Request(request.method, request.url, headers=request.headers.raw, content=body())
        answer = await httpx.ASGITransport(self.app).handle_async_request(copy)
        return httpx.Response(answer.status_code, headers=answer.headers.raw, content=await answer.aread())


@pytest.fixture
def asking() -> Iterator[Callable[[Starlette], httpx.Client]]:
    """A client of an application, without a socket."""
    loop = Loop()
    yield lambda app: httpx.Client(transport=OnLoop(app, loop), base_url="http://test")
    loop.close()


@dataclass
class Wire(httpx.BaseTransport):
    """A transport that keeps every request, byte by byte, and may answer in the place of the server."""

    inner: httpx.BaseTransport
    requests: list[httpx.Request] = field(default_factory=list)
    answers: list[httpx.Response] = field(default_factory=list)
    instead: Callable[[httpx.Request], httpx.Response | None] = lambda request: None

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        request.read()
        self.requests.append(request)
        answer = self.instead(request) or self.inner.handle_request(request)
        answer.read()
        self.answers.append(answer)
        return answer

    @property
    def client(self) -> httpx.Client:
        """A client of its own over this transport."""
        return httpx.Client(transport=self)

    def bytes(self) -> bytes:
        """All that was sent and answered, heads and bodies."""
        sent = [str(each.url).encode() + repr(each.headers.raw).encode() + each.content for each in self.requests]
        return b"".join(sent + [repr(each.headers.raw).encode() + each.content for each in self.answers])


def seats_from(answer: httpx.Response) -> list[tuple[str, tuple[SeatInBatch, ...]]]:
    """Seats as a client reads them."""
    assert answer.status_code == 201, answer.text
    return [(seat["seat"], tuple(SeatInBatch(**each) for each in seat["batches"])) for seat in answer.json()["seats"]]


@dataclass
class Service:
    """Both servers over ASGI, on SQLite files unless told otherwise; their chores are done when a test says so."""

    folder: Path
    key: PrivateKey
    tokens: Tokens
    clock: Callable[[], float] = time.time
    lease_seconds: float = 60.0
    signing: SigningKey = field(default_factory=SigningKey.generate)
    address: Callable[[str], str] | None = None
    """Of stores, by their names; without it they are files in the folder."""
    older: tuple[PrivateKey, ...] = ()
    older_signing: tuple[SigningKey, ...] = ()
    sizes: BatchSizes | None = None
    workers: int = 1
    """Pieces that the analyzer itself opens at a time."""
    posted: dict[str, bytes] = field(default_factory=dict)
    """What the shuffler sent, by its path."""

    def __post_init__(self) -> None:
        self.bits, self.loop = RandomBits.secure(), Loop()
        address = self.address or (lambda name: str(self.folder / f"{name}.db"))
        self.analyzer = AnalyzerServer(
            open_analyzer_store(address("analyzer")),
            key=self.key,
            opener=OpenerHere(self.key, self.workers),
            signing=self.signing,
            clock=self.clock,
            older={each.public: OpenerHere(each, self.workers) for each in self.older},
            older_signing=self.older_signing,
        )
        self.analyzer_app = analyzer_app(self.analyzer, self.tokens)
        self.shuffler = ShufflerServer(
            open_shuffler_store(address("shuffler")),
            post=self._post,
            clock=self.clock,
            lease_seconds=self.lease_seconds,
            sizes=self.sizes,
        )
        self.shuffler_app = shuffler_app(self.shuffler, self.tokens)
        self.apps = {"shuffler": self.shuffler_app, "analyzer": self.analyzer_app}

    def _post(self, path: str, body: bytes, media: str = BINARY) -> int:
        headers = {"Content-Type": media}
        self.posted[path] = body
        return self.at("analyzer", "hop").post(path, content=body, headers=headers).status_code

    def at(self, server: str, role: str | None = None) -> httpx.Client:
        """A client of one server with a role's token."""
        headers = {} if role is None else {"Authorization": f"Bearer {self.tokens.secrets[role]}"}
        return httpx.Client(transport=OnLoop(self.apps[server], self.loop), base_url="http://test", headers=headers)

    def add(self, task: Any) -> Any:
        """Serve a task or a campaign on both."""
        self.analyzer.add_task(task.text)
        self.shuffler.add_task(task.text)
        return task

    def campaign(self, learner: Any, **more: Any) -> Campaign:
        """A campaign of a learner, served on both."""
        keys = self.key.public, self.signing.public
        made = Campaign.create(learner, *keys, bits=self.bits, allow_unbounded=True, **more)
        return self.add(Campaign.from_text(made.text))

    def wire(self, server: str) -> Wire:
        """A transport to one server that keeps all requests."""
        return Wire(OnLoop(self.apps[server], self.loop))

    def device(self, campaign: Campaign, **more: Any) -> Device:
        """A person's device, on transports without sockets."""
        given = {"http": self.wire("shuffler").client, "models_http": self.wire("analyzer").client, "patience": 0.0}
        urls = {"shuffler": "http://localhost", "analyzer": "http://localhost"}
        return Device(campaign, **urls, **{"token": self.tokens.secrets["enrol"], **given, **more})

    def send(self, task: Task, values: Iterable[Any]) -> list[SentReport]:
        """Everybody takes a seat and reports, in one upload; answers what was sent, in the order of arrival."""
        client, listed = self.at("shuffler", "enrol"), list(values)
        seats = seats_from(client.post(f"/v1/tasks/{task.id}/seats?count={len(listed)}"))
        sent = [
            SentReport(new_id(bits=self.bits), seat, report_of(task, value, batches, bits=self.bits))
            for value, (seat, batches) in zip(listed, seats, strict=True)
        ]
        answer = client.post(
            f"/v1/tasks/{task.id}/reports", content=pack_upload(sent), headers={"Content-Type": BINARY}
        )
        assert {result["status"] for result in answer.json()["results"]} == {201}, answer.text
        return sent

    def work(self) -> None:
        """Seal what is full, send it on, and read it."""
        self.shuffler.seal_full()
        assert self.shuffler.send_waiting()
        self.analyzer.read_all()

    def stop(self) -> None:
        """Let go of both stores."""
        self.loop.close()
        self.shuffler.stop()
        self.analyzer.stop()


@pytest.fixture(scope="session")
def service_of() -> type[Service]:
    """Both servers, for whoever needs them for longer than a test."""
    return Service


@pytest.fixture
def make_service(tmp_path: Path, key: PrivateKey, tokens: Tokens) -> Iterator[Callable[..., Service]]:
    """Both servers in a folder of their own."""
    made: list[Service] = []

    def make(**more: Any) -> Service:
        folder = tmp_path / f"service {len(made)}"
        folder.mkdir()
        made.append(Service(folder, key, tokens, **more))
        return made[-1]

    yield make
    for service in made:
        service.stop()


class ShufflerMemory:
    """A shuffler's records of one task, in dictionaries."""

    def __init__(self) -> None:
        self.position = 0
        self.held: dict[str, Lease] = {}
        self.accepted: set[str] = set()
        self.open: dict[str, tuple[int, dict[int, BatchPart]]] = {}
        self.pieces: list[bytes] = []
        self.unsent: dict[str, bytes] = {}

    def take_position(self, task_id: str, positions: int) -> int | None:
        self.position = min(self.position + 1, positions + 1)
        return None if self.position > positions else self.position - 1

    def leases(self, task_id: str, seats: list[str]) -> dict[str, Lease]:
        return {seat: self.held[seat] for seat in seats if seat in self.held}

    def add_lease(self, task_id: str, lease: Lease) -> None:
        self.held[lease.seat] = lease

    def drop_lease(self, task_id: str, seat: str) -> None:
        del self.held[seat]

    def ended_lease(self, task_id: str, now: float, positions: int) -> Lease | None:
        ended = [lease for lease in self.held.values() if lease.ends <= now and lease.position < positions]
        return min(ended, key=lambda lease: lease.position, default=None)

    def expect(self, task_id: str, report_ids: list[str], seats: list[str]) -> None:
        pass

    def accepted_among(self, task_id: str, report_ids: list[str]) -> set[str]:
        return self.accepted & set(report_ids)

    def keep(self, task_id: str, report_ids: list[str], seats: list[str], parts: list[BatchPart]) -> None:
        self.accepted |= set(report_ids)
        for seat in seats:
            del self.held[seat]
        for part in parts:
            held = self.open.setdefault(part.batch_id, (part.size, {}))[1]
            assert part.seat not in held
            held[part.seat] = part

    def has_backlog(self) -> bool:
        return False

    def full_batches(self) -> list[tuple[str, str]]:
        return [(TASK, batch_id) for batch_id in self.open if self.is_full(TASK, batch_id)]

    def is_full(self, task_id: str, batch_id: str) -> bool:
        size, parts = self.open.get(batch_id, (1, {}))
        return sum(part.reports for part in parts.values()) == size

    def full_bytes(self, task_id: str, batch_id: str) -> int | None:
        return len(b"".join(self.parts(task_id, batch_id))) if self.is_full(task_id, batch_id) else None

    def parts(self, task_id: str, batch_id: str) -> list[bytes]:
        return [part.body for part in self.open[batch_id][1].values()]

    def add_piece(self, task_id: str, batch_id: str, number: int, body: memoryview) -> None:
        self.pieces = [*self.pieces, bytes(body)] if number else [bytes(body)]

    def seal(self, task_id: str, batch_id: str, length: int) -> None:
        self.unsent[batch_id] = b"".join(self.pieces)
        assert len(self.unsent[batch_id]) == length

    def tidy(self, task_id: str, batch_id: str) -> bool:
        del self.open[batch_id]
        return True

    def waiting_bytes(self) -> int:
        return sum(len(batch) for batch in self.unsent.values())


class AnalyzerMemory:
    """An analyzer's records of one task, in dictionaries."""

    def __init__(self) -> None:
        self.digests: dict[str, str] = {}
        self.bodies: dict[str, bytes] = {}
        self.read: dict[str, BatchTotal] = {}
        self.kept: Any = None
        self.released: list[Release] = []

    def incoming_bytes(self, task_id: str, batch_id: str) -> int:
        return 0

    def digest(self, task_id: str, batch_id: str) -> str | None:
        return self.digests.get(batch_id)

    def add_batch(self, task_id: str, batch_id: str, digest: str, body: bytes) -> None:
        self.digests[batch_id], self.bodies[batch_id] = digest, body

    def body(self, task_id: str, batch_id: str) -> bytes | None:
        return self.bodies.get(batch_id)

    def add_total(self, task_id: str, total: BatchTotal) -> None:
        del self.bodies[total.batch_id]
        self.read[total.batch_id] = total

    def totals(self, task_id: str, batch_ids: list[str]) -> dict[str, BatchTotal]:
        return {name: self.read[name] for name in batch_ids if name in self.read}

    def state(self, task_id: str) -> Any:
        return self.kept

    def set_state(self, task_id: str, state: Any) -> None:
        self.kept = state

    def add_release(self, task_id: str, release: Release) -> None:
        self.released.append(release)


TASK = "the only task"


@dataclass(frozen=True)
class Desks:
    """Both desks on records in memory: the whole road of a report without HTTP and without a database."""

    task: Task
    key: PrivateKey
    opened: Callable[[Unpacked], Unpacked] = lambda messages: messages
    """What a wrong twin does to the messages of a batch."""

    def run(self, values: Iterable[Any]) -> list[Release]:
        """A fresh run of the task with these values: every estimate that is published."""
        bits = RandomBits.secure()
        front: Any = ShufflerMemory()
        back: Any = AnalyzerMemory()
        shuffler = ShufflerDesk(routings={TASK: self.task.routing}, bits=bits)
        analyzer = AnalyzerDesk({TASK: self.task})
        for value in values:
            seat = shuffler.take_seat(front, TASK)
            body = report_of(self.task, value, seat.batches, bits=bits)
            [answer] = shuffler.accept(front, TASK, [SentReport(new_id(bits=bits), seat.seat, body)])
            assert answer == Accepted(new=True)
            for _, batch_id in front.full_batches():
                [piece] = shuffler.permuted_batch(TASK, shuffler.full_batch(front, TASK, batch_id))
                assert shuffler.seal(front, TASK, batch_id, [piece])
                sealed = front.unsent.pop(batch_id)
                assert analyzer.deliver(back, TASK, batch_id, sealed)
                messages = self.opened(open_here(self.key, sealed, self.task.id, batch_id))
                analyzer.read(back, TASK, batch_id, messages)
        released: list[Release] = back.released
        return released


class InTheClear:
    """Messages as long as ciphertexts that anybody can read: sealing takes most of a run, and changes no law."""

    def encrypt(self, message: bytes, key: Any, info: bytes) -> bytes:
        return bytes(32) + message + bytes(16)

    def decrypt(self, ciphertext: bytes, key: Any, info: bytes) -> bytes:
        return ciphertext[32:-16]


@pytest.fixture
def in_the_clear(monkeypatch: pytest.MonkeyPatch) -> None:
    """No encryption, for tests of many messages."""
    monkeypatch.setattr(crypto, "_SUITE", InTheClear())


@pytest.fixture
def make_desks(key: PrivateKey) -> Callable[..., Desks]:
    """Both desks of a task, and what a wrong twin does to opened messages."""
    return lambda task, *twin: Desks(task, key, *twin)


@pytest.fixture
def analyzer_memory() -> Callable[[], Any]:
    """An analyzer's records, in memory."""
    return AnalyzerMemory
