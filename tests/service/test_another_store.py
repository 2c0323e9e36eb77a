"""A second kind of store, whole in this file: servers and clients are given it, and nothing else changes."""

import asyncio
import copy
import hashlib
import json
import sys
import threading
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import Any

import httpx
import pytest

from harness.cascade import BITS, Cascade, numbered
from harness.world import Network, OpenerHere
from shuffledp import BinarySum, Privacy, cli
from shuffledp.errors import ParameterError
from shuffledp.service import store as stores
from shuffledp.service.analyzer.server import AnalyzerServer
from shuffledp.service.client import Client
from shuffledp.service.crypto import PrivateKey
from shuffledp.service.problems import NO_ROOM, RefusedError
from shuffledp.service.shuffler.app import shuffler_app
from shuffledp.service.shuffler.large import BatchSizes
from shuffledp.service.shuffler.server import ShufflerServer
from shuffledp.service.store import inspect_store, open_analyzer_store, open_outbox, open_shuffler_store
from shuffledp.service.store.contract import (
    BatchFill,
    BatchPart,
    BatchTotal,
    Counts,
    Inspected,
    Lease,
    Progress,
    Release,
)
from shuffledp.service.store.outboxes import Outbox, Visit
from shuffledp.service.task import Task
from shuffledp.service.tokens import Tokens
from shuffledp.service.wire import CIPHERTEXT_BYTES, SentReport, SignedText

Key = tuple[str, str]
SOME_BYTES = 100


@dataclass
class Mixing:
    """What a shuffler remembers."""

    routings: dict[str, str] = field(default_factory=dict)
    positions: dict[str, int] = field(default_factory=lambda: defaultdict(int))
    held: dict[Key, Lease] = field(default_factory=dict)
    accepted: dict[str, set[str]] = field(default_factory=lambda: defaultdict(set))
    open: dict[Key, list[BatchPart]] = field(default_factory=lambda: defaultdict(list))
    drafts: dict[Key, list[bytes]] = field(default_factory=dict)
    runs: dict[Key, dict[int, bytes]] = field(default_factory=dict)
    done: dict[Key, bytes] = field(default_factory=dict)
    sent: set[Key] = field(default_factory=set)
    digests: dict[Key, str] = field(default_factory=dict)
    incoming: dict[Key, dict[int, tuple[str, bytes]]] = field(default_factory=lambda: defaultdict(dict))

    def add_task(self, task_id: str, routing: str) -> None:
        self.routings.setdefault(task_id, routing)

    def tasks(self) -> dict[str, str]:
        return self.routings

    def task(self, task_id: str) -> str | None:
        return self.tasks().get(task_id)

    def take_position(self, task_id: str, positions: int) -> int | None:
        if self.positions[task_id] == positions:
            return None
        self.positions[task_id] += 1
        return self.positions[task_id] - 1

    def leases(self, task_id: str, seats: list[str]) -> dict[str, Lease]:
        return {seat: self.held[task_id, seat] for seat in seats if (task_id, seat) in self.held}

    def add_lease(self, task_id: str, lease: Lease) -> None:
        self.held[task_id, lease.seat] = lease

    def drop_lease(self, task_id: str, seat: str) -> None:
        del self.held[task_id, seat]

    def ended_lease(self, task_id: str, now: float, positions: int) -> Lease | None:
        ended = [lease for (owner, _), lease in self.held.items() if owner == task_id and lease.ends <= now]
        within = [lease for lease in ended if lease.position < positions]
        return min(within, key=lambda lease: lease.ends, default=None)

    def expect(self, task_id: str, report_ids: list[str], seats: list[str]) -> None:
        pass

    def accepted_among(self, task_id: str, report_ids: list[str]) -> set[str]:
        return self.accepted[task_id] & set(report_ids)

    def keep(self, task_id: str, report_ids: list[str], seats: list[str], parts: list[BatchPart]) -> None:
        self.accepted[task_id] |= set(report_ids)
        for seat in seats:
            self.drop_lease(task_id, seat)
        for part in parts:
            self.open[task_id, part.batch_id].append(part)

    def received(self, task_id: str, batch_id: str) -> str | None:
        return self.digests.get((task_id, batch_id))

    def receive(self, task_id: str, batch_id: str, size: int, digest: str, body: bytes) -> None:
        self.digests[task_id, batch_id] = digest
        self.open[task_id, batch_id] = [BatchPart(batch_id, 0, size, size, body)]

    def incoming_bytes(self, task_id: str, batch_id: str) -> int:
        return sum(len(body) for _, body in self.incoming[task_id, batch_id].values())

    def incoming_digest(self, task_id: str, batch_id: str, number: int) -> str | None:
        return self.incoming[task_id, batch_id].get(number, (None, b""))[0]

    def incoming_digests(self, task_id: str, batch_id: str) -> list[tuple[int, str]]:
        return [(number, digest) for number, (digest, _) in sorted(self.incoming[task_id, batch_id].items())]

    def add_incoming(self, task_id: str, batch_id: str, number: int, digest: str, body: bytes) -> None:
        self.incoming[task_id, batch_id][number] = (digest, body)

    def receive_pieces(self, task_id: str, batch_id: str, size: int, digest: str) -> None:
        pieces = self.incoming.pop((task_id, batch_id))
        self.receive(task_id, batch_id, size, digest, b"".join(body for _, (_, body) in sorted(pieces.items())))

    def drop_incoming(self, task_id: str, batch_id: str) -> None:
        self.incoming.pop((task_id, batch_id), None)

    def claim(self, task_id: str, batch_id: str) -> bool:
        return True

    def has_backlog(self) -> bool:
        return False

    def work_off(self) -> None:
        pass

    def full_batches(self) -> list[Key]:
        return [key for key in self.open if self.is_full(*key)]

    def is_full(self, task_id: str, batch_id: str) -> bool:
        parts = self.open.get((task_id, batch_id), [])
        return bool(parts) and sum(part.reports for part in parts) == parts[0].size

    def parts(self, task_id: str, batch_id: str) -> list[bytes]:
        return [part.body for part in self.open[task_id, batch_id]]

    def full_bytes(self, task_id: str, batch_id: str) -> int | None:
        is_full = self.is_full(task_id, batch_id)
        return sum(len(part.body) for part in self.open[task_id, batch_id]) if is_full else None

    def some_parts(self, task_id: str, batch_id: str, after: int, most_bytes: int) -> list[tuple[int, bytes]]:
        return [(1, b"".join(self.parts(task_id, batch_id)))] if after == 0 else []

    def add_runs(self, task_id: str, batch_id: str, number: int, runs: list[tuple[int, bytes]]) -> None:
        kept = self.runs.setdefault((task_id, batch_id), defaultdict(bytes))
        for bucket, body in runs:
            kept[bucket] += body

    def bucket(self, task_id: str, batch_id: str, bucket: int) -> bytes:
        return self.runs[task_id, batch_id].get(bucket, b"")

    def has_draft(self, task_id: str, batch_id: str) -> bool:
        return (task_id, batch_id) in self.drafts or (task_id, batch_id) in self.runs

    def drop_draft(self, task_id: str, batch_id: str) -> bool:
        self.drafts.pop((task_id, batch_id), None)
        self.runs.pop((task_id, batch_id), None)
        return True

    def add_piece(self, task_id: str, batch_id: str, number: int, body: bytes | memoryview) -> None:
        self.drafts.setdefault((task_id, batch_id), []).append(bytes(body))

    def seal(self, task_id: str, batch_id: str, length: int) -> None:
        del self.open[task_id, batch_id]
        self.done[task_id, batch_id] = b"".join(self.drafts.pop((task_id, batch_id)))
        self.runs.pop((task_id, batch_id), None)
        assert len(self.done[task_id, batch_id]) == length

    def tidy(self, task_id: str, batch_id: str) -> bool:
        return True

    def untidy(self) -> list[Key]:
        return []

    def waiting(self) -> list[Key]:
        return [key for key in self.done if key not in self.sent]

    def sealed(self, task_id: str, batch_id: str) -> bytes | None:
        return self.done[task_id, batch_id] if (task_id, batch_id) in self.waiting() else None

    def sealed_bytes(self, task_id: str, batch_id: str) -> int | None:
        body = self.sealed(task_id, batch_id)
        return None if body is None else len(body)

    def piece(self, task_id: str, batch_id: str, number: int) -> bytes | None:
        body = self.sealed(task_id, batch_id) or b""
        return body[number * SOME_BYTES : (number + 1) * SOME_BYTES] or None

    def purge(self, task_id: str, batch_id: str) -> bool:
        self.sent.add((task_id, batch_id))
        self.done[task_id, batch_id] = b""
        return True

    def unpurged(self) -> list[Key]:
        return []

    def open_tasks(self) -> list[str]:
        return sorted({task_id for task_id, _ in (*self.open, *self.held)})

    def sealed_tasks(self) -> list[str]:
        return []

    def abandon(self, task_id: str, positions: int) -> bool:
        raise AssertionError("no campaign here drops rounds")

    def waiting_bytes(self) -> int:
        return sum(len(self.done[key]) for key in self.waiting())

    def open_batches(self, task_id: str) -> list[BatchFill]:
        return [
            BatchFill(name, sum(part.reports for part in parts), parts[0].size)
            for (owner, name), parts in self.open.items()
            if owner == task_id and parts
        ]

    def counts(self, task_id: str) -> Counts:
        waiting = sum(owner == task_id for owner, _ in self.waiting())
        sent = sum(owner == task_id for owner, _ in self.sent)
        still_open = sum(owner == task_id for owner, _ in self.open)
        leases = sum(owner == task_id for owner, _ in self.held)
        return Counts(self.positions[task_id], leases, len(self.accepted[task_id]), still_open, waiting, sent)


@dataclass
class Reading:
    """What an analyzer remembers."""

    texts: dict[str, str] = field(default_factory=dict)
    states: dict[str, Any] = field(default_factory=dict)
    digests: dict[Key, str] = field(default_factory=dict)
    bodies: dict[Key, bytes] = field(default_factory=dict)
    coming: dict[Key, dict[int, bytes]] = field(default_factory=dict)
    results: dict[Key, dict[int, bytes]] = field(default_factory=dict)
    said: dict[Key, BatchTotal] = field(default_factory=dict)
    published: dict[str, list[Release]] = field(default_factory=lambda: defaultdict(list))
    signed: dict[str, list[SignedText]] = field(default_factory=lambda: defaultdict(list))

    def add_task(self, task_id: str, text: str) -> None:
        self.texts.setdefault(task_id, text)

    def tasks(self) -> dict[str, str]:
        return self.texts

    def task(self, task_id: str) -> str | None:
        return self.tasks().get(task_id)

    def digest(self, task_id: str, batch_id: str) -> str | None:
        return self.digests.get((task_id, batch_id))

    def add_batch(self, task_id: str, batch_id: str, digest: str, body: bytes) -> None:
        self.digests[task_id, batch_id], self.bodies[task_id, batch_id] = digest, body

    def incoming_bytes(self, task_id: str, batch_id: str) -> int:
        return sum(map(len, self.coming.get((task_id, batch_id), {}).values()))

    def incoming_digest(self, task_id: str, batch_id: str, number: int) -> str | None:
        return dict(self.incoming_digests(task_id, batch_id)).get(number)

    def incoming_digests(self, task_id: str, batch_id: str) -> list[tuple[int, str]]:
        come = self.coming.get((task_id, batch_id), {})
        return [(number, hashlib.sha256(come[number]).hexdigest()) for number in sorted(come)]

    def add_incoming(self, task_id: str, batch_id: str, number: int, digest: str, body: bytes) -> None:
        self.coming.setdefault((task_id, batch_id), {})[number] = body

    def receive(self, task_id: str, batch_id: str, digest: str) -> None:
        self.digests[task_id, batch_id] = digest

    def pieces(self, task_id: str, batch_id: str) -> int | None:
        key = (task_id, batch_id)
        return len(self.coming[key]) if key in self.coming and key in self.digests else None

    def received_piece(self, task_id: str, batch_id: str, number: int) -> bytes | None:
        return self.coming[task_id, batch_id].get(number)

    def unopened(self, task_id: str, batch_id: str) -> list[int]:
        known = self.results.get((task_id, batch_id), {})
        return [number for number in sorted(self.coming[task_id, batch_id]) if number not in known]

    def set_result(self, task_id: str, batch_id: str, number: int, result: bytes) -> None:
        self.results.setdefault((task_id, batch_id), {})[number] = result

    def some_results(self, task_id: str, batch_id: str, first: int, most_bytes: int) -> list[tuple[int, bytes]]:
        known = self.results.get((task_id, batch_id), {})
        return [(number, known[number]) for number in sorted(known) if number >= first][:1]

    def left_pieces(self) -> list[Key]:
        return []

    def drop_pieces(self, task_id: str, batch_id: str) -> bool:
        self.coming.pop((task_id, batch_id), None)
        self.results.pop((task_id, batch_id), None)
        return True

    def unread(self, most: int) -> list[Key]:
        return [*self.bodies, *(key for key in self.coming if key in self.digests)][:most]

    def body(self, task_id: str, batch_id: str) -> bytes | None:
        return self.bodies.get((task_id, batch_id))

    def add_total(self, task_id: str, total: BatchTotal) -> None:
        if self.bodies.pop((task_id, total.batch_id), None) is None:
            self.drop_pieces(task_id, total.batch_id)
        self.said[task_id, total.batch_id] = total

    def totals(self, task_id: str, batch_ids: list[str]) -> dict[str, BatchTotal]:
        return {name: self.said[task_id, name] for name in batch_ids if (task_id, name) in self.said}

    def state(self, task_id: str) -> Any:
        return self.states.get(task_id)

    def set_state(self, task_id: str, state: Any) -> None:
        self.states[task_id] = state

    def add_release(self, task_id: str, release: Release) -> None:
        self.published[task_id].append(release)

    def last_release(self, task_id: str) -> Release | None:
        return self.published[task_id][-1] if self.published[task_id] else None

    def releases(self, task_id: str, after: int, most: int) -> list[Release]:
        return [release for release in self.published[task_id] if release.time > after][:most]

    def progress(self, task_id: str) -> Progress:
        said = [total for (owner, _), total in self.said.items() if owner.partition(".")[0] == task_id]
        void, dropped = sum(total.void for total in said), sum(total.dropped for total in said)
        received = sum(owner.partition(".")[0] == task_id for owner, _ in self.digests)
        return Progress(received, len(said), void, dropped, len(self.published[task_id]))

    def add_model(self, campaign_id: str, number: int, model: SignedText) -> None:
        assert number == len(self.signed[campaign_id])
        self.signed[campaign_id].append(model)

    def last_model(self, campaign_id: str) -> SignedText | None:
        return self.signed[campaign_id][-1] if self.signed[campaign_id] else None

    def models(self, campaign_id: str, after: int, most: int) -> list[SignedText]:
        return self.signed[campaign_id][after + 1 :][:most]

    def model(self, campaign_id: str, number: int) -> SignedText | None:
        return dict(enumerate(self.signed[campaign_id])).get(number)

    def all_totals(self, campaign_id: str) -> list[tuple[str, BatchTotal]]:
        return [(owner, total) for (owner, _), total in self.said.items() if owner.partition(".")[0] == campaign_id]


class MemoryStore:
    """Records in memory: a transaction works on a copy, which takes the original's place if it ends well."""

    def __init__(self, records: Any) -> None:
        self.records, self._lock, self._closed = records, threading.RLock(), False

    def read(self, work: Callable[[Any], Any]) -> Any:
        with self._lock:
            return work(copy.deepcopy(self.records))

    def write(self, work: Callable[[Any], Any]) -> Any:
        with self._lock:
            if self._closed:
                raise RefusedError(NO_ROOM, "the store is closed: the server is about to stop.")
            changed = copy.deepcopy(self.records)
            answer = work(changed)
            self.records = changed
            return answer

    def submit(self, work: Callable[[Any], Any]) -> "Future[Any]":
        future: Future[Any] = Future()
        try:
            future.set_result(self.write(work))
        except Exception as failed:
            future.set_exception(failed)
        return future

    def submit_here(self, work: Any) -> "Future[Any]":
        return self.submit(work)

    def has_room(self) -> bool:
        return True

    def forget_deleted(self) -> None:
        pass

    def close(self) -> None:
        self._closed = True


class MemoryOutbox(Outbox):
    """A list of reports."""

    def __init__(self) -> None:
        self.reports: list[tuple[str, SentReport]] = []
        self.places: dict[int, Visit] = {}
        self.seen = 0

    def close(self) -> None:
        pass

    def put(
        self, task_id: str, reports: Sequence[SentReport], stream: str | None = None, rows: Sequence[int] = ()
    ) -> None:
        self.reports += [(task_id, report) for report in reports]

    def first(self, task_id: str, most: int, most_bytes: int) -> list[SentReport]:
        return [report for owner, report in self.reports if owner == task_id][:most]

    def remove(self, report_ids: Sequence[str]) -> None:
        self.reports = [(owner, report) for owner, report in self.reports if report.report_id not in report_ids]

    refuse = remove

    def waiting(self, task_id: str) -> int:
        return len(self.first(task_id, 10**9, 0))

    def rows_done(self, task_id: str, stream: str) -> int:
        return 0

    def rows_refused(self, task_id: str, stream: str) -> list[int]:
        return []

    def visits(self, campaign_id: str) -> list[Visit]:
        return list(self.places.values())

    def sit(self, campaign_id: str, visit: Visit, instead_of: Visit | None = None) -> bool:
        if self.places.get(visit.number) not in (None, instead_of):
            return False
        self.places[visit.number] = visit
        return True

    def newest_seen(self, campaign_id: str) -> int:
        return self.seen

    def see(self, campaign_id: str, number: int) -> None:
        self.seen = max(self.seen, number)

    def waiting_tasks(self) -> list[str]:
        return sorted({owner for owner, _ in self.reports})


STORES: dict[str, MemoryStore] = {}


def _open(kind: type, address: str) -> MemoryStore:
    """The store of this name: a server that is started again finds what the first one left."""
    left = STORES[address].records if address in STORES else kind()
    STORES[address] = MemoryStore(left)
    return STORES[address]


@pytest.fixture
def memory(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The one line in the table, and the functions that it leads to."""
    module: Any = type(sys)("memory_stores")
    module.open_shuffler_store = lambda address: _open(Mixing, address)
    module.open_analyzer_store = lambda address: _open(Reading, address)
    module.open_outbox = lambda address: MemoryOutbox()
    module.inspect_store = lambda address: Inspected(type(STORES[address].records).__name__)
    monkeypatch.setitem(sys.modules, "memory_stores", module)
    monkeypatch.setitem(stores.IMPLEMENTATIONS, "memory", "memory_stores")
    yield
    STORES.clear()


@pytest.mark.usefixtures("memory")
@pytest.mark.parametrize(
    ("name", "whole"),
    [("binary coins", True), ("running count", True), ("running histogram", True), ("running count", False)],
)
def test_a_task_runs_on_a_store_of_another_kind(
    name: str, whole: bool, make_task: Callable[..., Task], key: PrivateKey, tokens: Tokens
) -> None:
    task = make_task(name)
    users, half = task.routing.users, task.routing.users // 2

    def start() -> tuple[ShufflerServer, AnalyzerServer]:
        analyzer = AnalyzerServer(open_analyzer_store("memory://analyzer"), key=key, opener=OpenerHere(key))

        post = Network(lambda: analyzer).post
        # Where no batch is small enough to travel whole, all go in pieces.
        sizes = BatchSizes() if whole else BatchSizes(whole=0, piece=4 * CIPHERTEXT_BYTES)
        return ShufflerServer(open_shuffler_store("memory://shuffler"), post=post, sizes=sizes), analyzer

    sent = 0
    for values in ([1] * half, [1] * (users - half)):
        # Both servers are started twice: what the first ones had is there.
        shuffler, analyzer = start()
        shuffler.add_task(task.text)
        analyzer.add_task(task.text)
        transport = httpx.ASGITransport(shuffler_app(shuffler, tokens))
        sent += _report(task, transport, tokens, values)
        begun = shuffler._store.read(lambda records: records.open_batches(task.id))
        shuffler.seal_full()
        left = shuffler._store.read(lambda records: records.open_batches(task.id))
        assert begun and left == [each for each in begun if each.reports < each.size]
        assert shuffler.send_waiting()
        analyzer.read_all()
        counts, history = shuffler.counts(task.id), analyzer.history(task.id, 0, 1000)
        shuffler.stop()
        analyzer.stop()
    assert sent == counts["reports"] == users and counts["batches_waiting"] == 0
    release = history[-1]
    truth = [0, release["time"], 0] if name == "running histogram" else release["time"]
    worst = max(abs(a - b) for a, b in zip(_listed(release["estimate"]), _listed(truth), strict=True))
    # Three times a bound of 95%, or 99.9% where there are four of them: secure bits, and hardly a false alarm.
    assert release["dropped"] == release["void"] == 0 and worst <= 3 * release["bound"]
    assert inspect_store("memory://shuffler") == Inspected("Mixing")


def _listed(value: Any) -> list[float]:
    return value if isinstance(value, list) else [value]


def _report(task: Task, transport: httpx.ASGITransport, tokens: Tokens, values: list[int]) -> int:
    """Report through a client, which waits for an application that answers in a loop of its own."""

    class Waiting(httpx.BaseTransport):
        def handle_request(self, request: httpx.Request) -> httpx.Response:
            async def ask() -> httpx.Response:
                async with httpx.AsyncClient(transport=transport) as client:
                    copied = {name: request.headers.get(name, "") for name in ("authorization", "content-type")}
                    return await client.request(request.method, request.url, content=request.read(), headers=copied)

            answer = asyncio.run(ask())
            return httpx.Response(answer.status_code, json=answer.json())

    with (
        httpx.Client(transport=Waiting()) as http,
        Client(task, "http://localhost", tokens.secrets["enrol"], "memory://outbox", http) as client,
    ):
        done = client.report_many(values)
        assert client.outbox.waiting(task.id) == 0
        return done.new


@pytest.mark.usefixtures("memory")
@pytest.mark.parametrize("sizes", [None, BatchSizes(whole=500, piece=400, dealt=600, bucket=300)])
def test_a_cascade_runs_on_stores_of_another_kind(tmp_path: Any, sizes: BatchSizes | None) -> None:
    cascade = Cascade(tmp_path, hops=2, sizes=sizes, address=lambda name: f"memory://{name} of {sizes}")
    plan = BinarySum.plan(users=4, privacy=Privacy(8, 0.1), method="coins", max_messages=3)
    task = cascade.serve(Task.create(plan, cascade.key.public, bits=BITS, hops=cascade.public))
    cascade.report(task, [numbered(task, person) for person in range(4)])
    cascade.work()
    assert len(set(cascade.payloads)) == 4 * task.routing.longest_report_messages and cascade.malformed == 0
    cascade.close()


@pytest.mark.parametrize("opened", [open_shuffler_store, open_analyzer_store, open_outbox, inspect_store])
def test_an_unknown_scheme_is_refused_in_a_sentence(opened: Callable[[str], Any]) -> None:
    with pytest.raises(ParameterError, match=r"must be a file, or begin with sqlite://.*, got redis://here: name one"):
        opened("redis://here")


@pytest.mark.usefixtures("memory")
def test_the_doctor_asks_a_store_of_another_kind_who_holds_it(capsys: pytest.CaptureFixture[str]) -> None:
    open_shuffler_store("memory://mine")
    with pytest.raises(SystemExit) as ended:
        cli.main(["doctor", "--store", "memory://mine", "--json"])
    checks = {check["name"]: check["found"] for check in json.loads(capsys.readouterr().out)["checks"]}
    assert not ended.value.code
    assert checks["store mine"] == "Mixing, ok" and checks["store mine held"] == "by nobody"
    assert not {"store mine mode", "store mine disk"} & checks.keys()


def test_a_path_and_an_address_name_the_same_file(tmp_path: Any) -> None:
    path = tmp_path / "shuffler.db"
    open_shuffler_store(path).close()
    expected = Inspected("shuffler 3", file=path)
    assert inspect_store(path) == inspect_store(f"sqlite://{path}") == expected
