"""The service on this machine: reports accepted a second beside a bare handler, end to end, opening, sealing.

Servers run in processes of their own; this process sends requests that were made before the clock starts.
"""

import argparse
import asyncio
import hashlib
import json
import multiprocessing
import os
import signal
import socket
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from queue import SimpleQueue

import httpx
import uvloop
from report import figure, report, shown
from starlette.requests import Request
from starlette.responses import Response

from shuffledp import Privacy, RandomBits
from shuffledp.continual.plan import CounterPlan
from shuffledp.schedules.combinatorial import combinatorial_schedule
from shuffledp.service.analyzer.app import analyzer_app
from shuffledp.service.analyzer.opening import Opener
from shuffledp.service.analyzer.server import AnalyzerServer
from shuffledp.service.client.making import make_reports
from shuffledp.service.crypto import PrivateKey, PublicKey, binding, open_all
from shuffledp.service.http import build_app, read_body
from shuffledp.service.openapi import JSON, operations_of
from shuffledp.service.routing import Routing, SeatInBatch
from shuffledp.service.serving import Address, uvicorn_server
from shuffledp.service.shuffler.app import ShufflerEndpoints, shuffler_app
from shuffledp.service.shuffler.sending import post_to
from shuffledp.service.shuffler.server import ShufflerServer
from shuffledp.service.store import open_analyzer_store, open_shuffler_store
from shuffledp.service.store.contract import BatchPart
from shuffledp.service.task import Task
from shuffledp.service.telemetry import Metrics
from shuffledp.service.tokens import Tokens
from shuffledp.service.wire import (
    CIPHERTEXT_BYTES,
    SentReport,
    new_id,
    pack_messages,
    pack_upload,
    position_of,
    single_body,
)

# The tests' own PostgreSQL.
sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

SPAWN = multiprocessing.get_context("spawn")
CONNECTIONS, MANY_CONNECTIONS = 32, 128
UPLOAD = 100
UPLOADING = 8
# Reports that a store without HTTP is given at once: as many as come together by several uploads.
TOGETHER = 400
# In a slot: more than report while the rates are measured.
MANY_USERS = 200_000
LEASE_SECONDS = 3600.0


# --- servers, each in its own process --------------------------------------------------------


def serve_bare(port: int, tokens: Tokens) -> None:
    """The same server with an empty handler: checks the token, reads the body, answers 201."""

    async def empty(request: Request) -> Response:
        await read_body(request, 1 << 26)
        return Response(b"{}", 201, media_type=JSON)

    class Bare:
        metrics = Metrics("bare")

        def start(self) -> None:
            pass

        stop = start

    async def no_issuer(request: Request) -> None:
        return None

    endpoints = ShufflerEndpoints(Bare(), tokens)
    endpoints._gate = no_issuer
    for name, operation in operations_of(ShufflerEndpoints).items():
        if operation.roles:
            setattr(endpoints, name, empty)
    uvicorn_server(build_app(endpoints, tokens), Address(port=port)).run()


def serve_shuffler(
    port: int, folder: Path, text: str, tokens: Tokens, analyzer: str | None, store: str | None = None
) -> None:
    # Without an analyzer whatever is sealed is taken at once: only the shuffler is measured.
    post = post_to(analyzer, tokens.secrets["hop"]) if analyzer else lambda path, body, media="": 201
    opened = open_shuffler_store(store or folder / f"shuffler-{port}.db")
    server = ShufflerServer(opened, post=post, lease_seconds=LEASE_SECONDS)
    server.add_task(text)
    store, commits = server._store, 0
    # SQLite's statements run in the loop's own thread, too, PostgreSQL's only in the store's.
    name = "_statements" if hasattr(store, "_statements") else "_commit"
    run = getattr(store, name)

    def counted(work):
        nonlocal commits
        commits += bool(work)
        return run(work)

    setattr(store, name, counted)
    app = shuffler_app(server, tokens)

    async def with_commits(scope, receive, send) -> None:
        if scope["type"] == "http" and scope["path"] == "/commits":
            await send({"type": "http.response.start", "status": 200, "headers": []})
            await send({"type": "http.response.body", "body": str(commits).encode()})
        else:
            await app(scope, receive, send)

    uvicorn_server(with_commits, Address(port=port)).run()


def serve_analyzer(port: int, folder: Path, text: str, tokens: Tokens, key: PrivateKey) -> None:
    server = AnalyzerServer(
        open_analyzer_store(folder / f"analyzer-{port}.db"), key=key, opener=Opener(key, processes=2)
    )
    server.add_task(text)
    uvicorn_server(analyzer_app(server, tokens), Address(port=port)).run()


@contextmanager
def served(serve, *arguments) -> Iterator[int]:
    """A server's port, once it answers."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    process = SPAWN.Process(target=serve, args=(port, *arguments))
    process.start()
    try:
        for _ in range(300):
            try:
                socket.create_connection(("127.0.0.1", port), timeout=1).close()
                break
            except OSError:
                time.sleep(0.1)
        yield port
    finally:
        process.terminate()
        process.join(30)


# --- load ------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Load:
    """What a round of requests took."""

    seconds: float
    latencies: list[float]
    bodies: list[bytes]

    @property
    def p99(self) -> float:
        return statistics.quantiles(self.latencies, n=100)[98] * 1e3


class _Connection(asyncio.Protocol):
    """Sends the next request as soon as the last one is answered."""

    def __init__(self, waiting: Iterator[bytes], load: Load, done: asyncio.Future) -> None:
        self.waiting, self.load, self.done = waiting, load, done
        self.received = b""

    def connection_made(self, transport: asyncio.Transport) -> None:
        self.transport = transport
        self.send()

    def send(self) -> None:
        request = next(self.waiting, None)
        if request is None:
            self.done.set_result(None)
            self.transport.close()
            return
        self.started = time.perf_counter()
        self.transport.write(request)

    def data_received(self, data: bytes) -> None:
        self.received += data
        head, found, body = self.received.partition(b"\r\n\r\n")
        if not found:
            return
        length = int(head.lower().partition(b"content-length:")[2].split(b"\r\n", 1)[0])
        if len(body) < length:
            return
        self.load.latencies.append(time.perf_counter() - self.started)
        self.load.bodies.append(head[9:12] + body)
        self.received = b""
        self.send()

    def connection_lost(self, error: Exception | None) -> None:
        if not self.done.done():
            self.done.set_exception(error or ConnectionResetError("the server closed"))


def send_all(port: int | dict[int, list[bytes]], requests: list[bytes], connections: int) -> Load:
    """So many connections, to one port, or to several, each of which has requests of its own."""
    own = {port: requests} if isinstance(port, int) else port

    async def run() -> Load:
        loop = asyncio.get_running_loop()
        waiting, load = [(each, iter(some)) for each, some in own.items()], Load(0.0, [], [])
        finished = [loop.create_future() for _ in range(connections)]
        started = time.perf_counter()
        for place, done in enumerate(finished):
            each, some = waiting[place % len(waiting)]
            make = lambda some=some, done=done: _Connection(some, load, done)  # noqa: E731
            await loop.create_connection(make, "127.0.0.1", each)
        await asyncio.gather(*finished)
        return Load(time.perf_counter() - started, load.latencies, load.bodies)

    return uvloop.run(run())


def request(method: str, path: str, body: bytes, token: str) -> bytes:
    head = (
        f"{method} {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer {token}\r\n"
        f"Content-Type: application/octet-stream\r\nContent-Length: {len(body)}\r\n\r\n"
    )
    return head.encode() + body


# --- accepting -------------------------------------------------------------------------------


def four_levels(slot_users: int) -> Routing:
    """As a running count's: four batches a report, 26 ciphertexts or a little less, 2 kB."""
    budget, shufflers = 4, 4
    schedule = combinatorial_schedule(budget, shufflers, 1)
    sizes = {int(size) for ends in schedule.ends_by_level for size in ends - schedule.parents[ends]} | {1}
    return Routing(
        users=schedule.slots * slot_users - slot_users,
        budget=budget,
        shufflers=shufflers,
        slot_users=slot_users,
        every_slot=True,
        messages={size * slot_users: 14 if size == 1 else 4 for size in sizes},
    )


def reports_for(port: int, task_id: str, tokens: Tokens, count: int) -> list[SentReport]:
    """Take seats, and make reports of random bytes for them: the shuffler cannot tell."""
    made = []
    headers = {"Authorization": f"Bearer {tokens.secrets['enrol']}"}
    with httpx.Client(base_url=f"http://127.0.0.1:{port}", headers=headers, timeout=60) as client:
        while len(made) < count:
            answer = client.post(f"/v1/tasks/{task_id}/seats?count={min(1000, count - len(made))}")
            for seat in answer.raise_for_status().json()["seats"]:
                length = sum(batch["messages"] for batch in seat["batches"]) * CIPHERTEXT_BYTES
                made.append(SentReport(os.urandom(16).hex(), seat["seat"], os.urandom(length)))
    return made


def commits_at(port: int) -> int:
    return int(httpx.get(f"http://127.0.0.1:{port}/commits").text)


@contextmanager
def shuffler_of(folder: Path, slot_users: int) -> Iterator[tuple[int, str, Tokens]]:
    """A shuffler's port, its task and its tokens."""
    tokens = Tokens.generate(bits=RandomBits.secure())
    text = json.dumps({"routing": four_levels(slot_users).document()})
    with served(serve_shuffler, folder, text, tokens, None) as port:
        yield port, hashlib.sha256(text.encode()).hexdigest(), tokens


def singles(reports: list[SentReport], task_id: str, tokens: Tokens) -> list[bytes]:
    path = f"/v1/tasks/{task_id}/reports"
    return [
        request("PUT", f"{path}/{one.report_id}", single_body(one.seat, one.body), tokens.secrets["enrol"])
        for one in reports
    ]


def accepting(folder: Path, rounds: int, single: int, uploads: int) -> list[dict]:
    """A task of so many users that no batch fills while this runs: `filling` says what that takes."""
    rows = []
    users = rounds * (2 * single + uploads * UPLOAD)
    text = json.dumps({"routing": four_levels(MANY_USERS).document()})
    with (
        shuffler_of(folder, MANY_USERS) as (port, task_id, tokens),
        served(serve_bare, tokens) as ceiling,
        store_alone(folder, text) as rate_alone,
    ):
        reports = reports_for(port, task_id, tokens, users)
        size = statistics.mean(len(one.body) for one in reports)
        print(f"{users} reports of {size:.0f} bytes are made")
        one_by_one = singles(reports[: rounds * 2 * single], task_id, tokens)
        together = [
            request(
                "POST",
                f"/v1/tasks/{task_id}/reports",
                pack_upload(reports[start : start + UPLOAD]),
                tokens.secrets["enrol"],
            )
            for start in range(rounds * 2 * single, users, UPLOAD)
        ]
        del reports
        for name, requests, each, connections, least in (
            ("PUT", one_by_one[: rounds * single], 1, CONNECTIONS, 2000),
            (f"PUT, {MANY_CONNECTIONS} connections", one_by_one[rounds * single :], 1, MANY_CONNECTIONS, 2000),
            (f"POST of {UPLOAD}", together, UPLOAD, UPLOADING, 5000),
        ):
            step = len(requests) // rounds
            loads, ceilings, commits, alone = [], [], [], []
            for start in range(0, len(requests), step):
                part = requests[start : start + step]
                ceilings.append(send_all(ceiling, part, connections))
                # The store alone has as many reports as the server's when it has as many to accept.
                if each == 1:
                    rate_alone(step)
                else:
                    alone.append(rate_alone(step * each))
                before = commits_at(port)
                loads.append(send_all(port, part, connections))
                commits.append((commits_at(port) - before) / loads[-1].seconds)
            check(loads, each)
            rates = [step * each / load.seconds for load in loads]
            tops = [step * each / load.seconds for load in ceilings]
            best = rates.index(max(rates))
            note = f"best of {', '.join(f'{rate:,.0f}' for rate in rates)}; {connections} connections"
            rows.append(figure(f"{name}: reports a second", max(rates), ">=", least, note))
            # Each round beside the ceiling of its own moment.
            shares = [rate / top for rate, top in zip(rates, tops, strict=True)]
            told = ", ".join(f"{share:.2g} of {top:,.0f}" for share, top in zip(shares, tops, strict=True))
            middle = statistics.median(shares)
            share, note = f"{name}: share of the ceiling", f"the middle one of {told}"
            # What is written is most of an upload's work, which an empty handler does not do.
            rows.append(shown(share, middle, note) if each > 1 else figure(share, middle, ">=", 0.7, note))
            if each > 1:
                shares = [rate / other for rate, other in zip(rates, alone, strict=True)]
                told = ", ".join(f"{one:.2f} of {other:,.0f}" for one, other in zip(shares, alone, strict=True))
                note = f"the middle one of {told} without HTTP, {TOGETHER} reports a commit"
                rows.append(figure(f"{name}: share of the store alone", statistics.median(shares), ">=", 0.9, note))
            # Of all rounds together: the slowest ones count.
            whole = Load(0.0, [one for load in loads for one in load.latencies], [])
            note = f"{', '.join(f'{load.p99:.0f}' for load in loads)}; a bare handler's {ceilings[best].p99:.1f}"
            rows.append(figure(f"{name}: p99, milliseconds", whole.p99, "<=", 250, note))
            note = f"{commits[best]:,.0f} commits a second"
            rows.append(figure(f"{name}: reports a commit", rates[best] / commits[best], ">=", 1, note))
        headers = {"Authorization": f"Bearer {tokens.secrets['admin']}"}
        counts = httpx.get(f"http://127.0.0.1:{port}/v1/tasks/{task_id}", headers=headers).json()["counts"]
        rows.append(figure("reports on disk / acknowledged", counts["reports"] / users, ">=", 1, ""))
    return rows


def work_alone(asked, folder: Path, text: str) -> None:
    """A shuffler as it is served, chores and all, whose reports come from a loop of its own process: no HTTP.

    Answers every number of reports with how many were accepted a second.
    """
    bits = RandomBits.secure()
    store = open_shuffler_store(folder / "alone.db")
    server = ShufflerServer(store, post=lambda path, body, media="": 201, lease_seconds=LEASE_SECONDS)
    task_id, _ = server.add_task(text)
    desk, routing = server.desk, server.tasks[task_id]
    server.start()
    while count := asked.recv():
        seats = store.write(lambda records, count=count: [desk.take_seat(records, task_id) for _ in range(count)])
        reports = [
            SentReport(new_id(bits=bits), seat.seat, os.urandom(routing.report_bytes(position_of(seat.seat))))
            for seat in seats
        ]
        started = time.perf_counter()
        for start in range(0, count, TOGETHER):
            told = SimpleQueue()
            server.accept_all([(task_id, reports[start : start + TOGETHER], told.put)])
            if not all(answer.new for answer in told.get()):
                raise SystemExit("the store refused a report")
        asked.send(count / (time.perf_counter() - started))
    server.stop()


@contextmanager
def store_alone(folder: Path, text: str) -> Iterator[Callable[[int], float]]:
    """What answers how many of so many reports a store accepts a second when nothing but a loop calls it."""
    ours, theirs = SPAWN.Pipe()
    process = SPAWN.Process(target=work_alone, args=(theirs, folder, text))
    process.start()

    def rate(count: int) -> float:
        ours.send(count)
        return ours.recv()

    try:
        yield rate
    finally:
        ours.send(0)
        process.join(30)


def filling(folder: Path, count: int) -> list[dict]:
    """The same where a batch fills, is sealed, sent and purged every hundred reports."""
    with shuffler_of(folder, 100) as (port, task_id, tokens):
        requests = singles(reports_for(port, task_id, tokens, count), task_id, tokens)
        load = send_all(port, requests, CONNECTIONS)
    check([load], 1)
    note = f"p99 {load.p99:.0f} ms; every batch permuted, sent, purged"
    return [figure("PUT while batches of 100 fill: reports a second", count / load.seconds, ">=", 500, note)]


def check(loads: list[Load], each: int) -> None:
    for load in loads:
        for body in load.bodies:
            good = body.startswith(b"201") if each == 1 else body.count(b'"status":201') == each
            if not good:
                raise SystemExit(f"refused: {body[:300]!r}")


# --- PostgreSQL beside SQLite, two processes beside one ---------------------------------------


def idle_seconds() -> float:
    """Of all cores together, since the machine was started: idle, or waiting for a disk."""
    words = Path("/proc/stat").read_text().splitlines()[0].split()
    return (int(words[4]) + int(words[5])) / os.sysconf("SC_CLK_TCK")


def on_postgresql(folder: Path, rounds: int, alone: int, uploads: int) -> list[dict]:
    """The same requests to a shuffler on SQLite, to one on PostgreSQL and to two of them, round after round."""
    from harness.postgresql import programs, running_server

    found = programs()
    if found is None:
        print("no PostgreSQL is installed: its rows are left out")
        return []
    tokens = Tokens.generate(bits=RandomBits.secure())
    texts = [json.dumps({"routing": four_levels(users).document()}) for users in (MANY_USERS, MANY_USERS + 1)]
    one, other = (hashlib.sha256(text.encode()).hexdigest() for text in texts)
    with running_server(found, "shared_buffers=128MB", "max_wal_size=1GB", segment=16) as database:
        stores = [database.address(folder / "batch keys", schema) for schema in ("one", "two")]
        given = [(folder, text, tokens, None) for text in texts]
        with (
            served(serve_shuffler, *given[0]) as sqlite,
            served(serve_shuffler, *given[0], stores[0]) as single,
            served(serve_shuffler, *given[0], stores[1]) as first,
            served(serve_shuffler, *given[1], stores[1]) as second,
        ):
            ways = {
                "SQLite": {sqlite: one},
                "PostgreSQL": {single: one},
                "two": {first: one, second: one},
                "apart": {first: one, second: other},
            }
            return [
                *_compared(ways, tokens, "PUT", 1, CONNECTIONS, rounds, alone),
                *_compared(ways, tokens, f"POST of {UPLOAD}", UPLOAD, UPLOADING, rounds, uploads),
            ]


def _compared(
    ways: dict[str, dict[int, str]], tokens: Tokens, name: str, each: int, connections: int, rounds: int, count: int
) -> list[dict]:
    """By way: ports, and the task that is reported to at each."""
    rates: dict[str, list[float]] = {way: [] for way in ways}
    idle: dict[str, list[float]] = {way: [] for way in ways}
    for _ in range(rounds):
        for way, ports in ways.items():
            own = {port: _requests(port, task_id, tokens, each, count // len(ports)) for port, task_id in ports.items()}
            before = idle_seconds()
            load = send_all(own, [], connections)
            check([load], each)
            rates[way].append(len(load.bodies) * each / load.seconds)
            idle[way].append((idle_seconds() - before) / load.seconds / (os.cpu_count() or 1))

    def row(words: str, above: str, below: str, least: float) -> dict:
        shares = [a / b for a, b in zip(rates[above], rates[below], strict=True)]
        told = ", ".join(f"{a:,.0f} of {b:,.0f}" for a, b in zip(rates[above], rates[below], strict=True))
        still = f"{statistics.median(idle[below]):.0%} and {statistics.median(idle[above]):.0%} of the cores idle"
        return figure(f"{name}: {words}", statistics.median(shares), ">=", least, f"{told} a second; {still}")

    return [
        row("PostgreSQL beside SQLite", "PostgreSQL", "SQLite", 0.6),
        row("two processes on PostgreSQL beside one", "two", "PostgreSQL", 1.5),
        row("the two with a task each, beside one", "apart", "PostgreSQL", 1.5),
    ]


def _requests(port: int, task_id: str, tokens: Tokens, each: int, count: int) -> list[bytes]:
    reports = reports_for(port, task_id, tokens, count * each)
    if each == 1:
        return singles(reports, task_id, tokens)
    parts = [reports[start : start + each] for start in range(0, len(reports), each)]
    path, secret = f"/v1/tasks/{task_id}/reports", tokens.secrets["enrol"]
    return [request("POST", path, pack_upload(part), secret) for part in parts]


# --- the disk, end to end, opening, sealing --------------------------------------------------


def disk(folder: Path) -> list[dict]:
    """An fsync that takes no time would make every other figure a lie."""
    seconds = []
    with (folder / "fsync").open("wb", buffering=0) as file:
        for _ in range(200):
            file.write(bytes(1 << 16))
            started = time.perf_counter()
            os.fdatasync(file.fileno())
            seconds.append(time.perf_counter() - started)
        block, count = os.urandom(4 << 20), 24
        started = time.perf_counter()
        for _ in range(count):
            file.write(block)
            os.fdatasync(file.fileno())
        bandwidth = count * len(block) / (time.perf_counter() - started)
    median = statistics.median(seconds)
    note = f"64 kB each: at most {1 / median:,.0f} commits a second, {CONNECTIONS / median:,.0f} single reports"
    whole = f"4 MB each: at most {bandwidth / 2 / 2000:,.0f} reports of 2 kB a second that are written to log and table"
    return [
        figure("fsync, milliseconds", 1e3 * median, ">=", 0.02, note),
        figure("durable, MB a second", bandwidth / 1e6, ">=", 1, whole),
    ]


def send_part(url: str, text: str, token: str, values: list[int]) -> float:
    """Some clients: seats, reports, uploads; answers the seconds of this core that sealing took."""
    seal, sealing = PublicKey.seal, 0.0

    def timed(key: PublicKey, messages: list[bytes], info: bytes) -> list[bytes]:
        nonlocal sealing
        started = time.thread_time()
        sealed = seal(key, messages, info)
        sealing += time.thread_time() - started
        return sealed

    PublicKey.seal = timed
    bits, task = RandomBits.secure(), Task.from_text(text)
    with httpx.Client(base_url=url, headers={"Authorization": f"Bearer {token}"}, timeout=60) as client:
        for start in range(0, len(values), UPLOAD):
            part = values[start : start + UPLOAD]
            seats = client.post(f"/v1/tasks/{task.id}/seats?count={len(part)}").raise_for_status().json()["seats"]
            made = []
            for value, seat in zip(part, seats, strict=True):
                batches = tuple(SeatInBatch(**batch) for batch in seat["batches"])
                [body] = make_reports(task, task.plan.encode([value]), [batches], bits=bits)
                made.append(SentReport(new_id(bits=bits), seat["seat"], body))
            headers = {"Content-Type": "application/octet-stream"}
            answer = client.post(f"/v1/tasks/{task.id}/reports", content=pack_upload(made), headers=headers)
            if {one["status"] for one in answer.raise_for_status().json()["results"]} != {201}:
                raise SystemExit(f"refused: {answer.text[:300]}")
    return sealing


def full_batches(routing: Routing) -> dict[str, int]:
    """The batches that all users together fill, and how many messages each holds."""
    slots = range(routing.users // routing.slot_users)
    joined = [batch for slot in slots for batch in routing.batches_of(slot * routing.slot_users)]
    seen: dict[str, int] = {}
    for batch in joined:
        seen[batch.batch_id] = seen.get(batch.batch_id, 0) + routing.slot_users
    return {batch.batch_id: batch.size * batch.messages for batch in joined if seen[batch.batch_id] == batch.size}


def end_to_end(folder: Path, users: int, open_seconds: float) -> list[dict]:
    plan = CounterPlan.plan(users=users, shufflers=4, privacy=Privacy(1, 1e-6), noise="coins")
    key, bits = PrivateKey.generate(), RandomBits.secure()
    tokens, task = Tokens.generate(bits=bits), Task.create(plan, key.public, bits=bits)
    batches = full_batches(task.routing)
    with (
        served(serve_analyzer, folder, task.text, tokens, key) as back,
        served(serve_shuffler, folder, task.text, tokens, f"http://127.0.0.1:{back}") as front,
        ProcessPoolExecutor(2, mp_context=SPAWN) as clients,
    ):
        list(clients.map(abs, range(8)))
        headers = {"Authorization": f"Bearer {tokens.secrets['read']}"}
        values = (bits.unsigned(users, 8) & 1).tolist()
        arguments = (f"http://127.0.0.1:{front}", task.text, tokens.secrets["enrol"])
        started = time.perf_counter()
        parts = [clients.submit(send_part, *arguments, values[half::2]) for half in range(2)]
        sealing = sum(part.result() for part in parts)
        sent = time.perf_counter() - started
        url = f"http://127.0.0.1:{back}/v1/tasks/{task.id}"
        while httpx.get(url, headers=headers).json()["batches_read"] < len(batches):
            if time.perf_counter() - started > 90:
                raise SystemExit("the analyzer does not come to an end")
            time.sleep(0.05)
        seconds = time.perf_counter() - started
        estimate = httpx.get(f"{url}/estimate", headers=headers).json()
    messages = sum(batches.values())
    share = (sealing + messages * open_seconds) / (2 * seconds)
    note = (
        f"{users} users, k 4, coins: {messages / users:.1f} messages a user; sent after {sent:.1f} s of {seconds:.1f}"
    )
    off = abs(estimate["estimate"] - sum(values[: estimate["time"]]))
    return [
        figure("end to end: reports a second", users / seconds, ">=", 100, note),
        figure("HPKE's share of two cores", share, "<=", 1, f"{sealing:.1f} s sealing, the rest opening"),
        figure("its last estimate: error / bound", off / estimate["bound"], "<=", 1.5, f"at user {estimate['time']}"),
    ]


def opening(messages: int) -> tuple[list[dict], float]:
    """Also answers the seconds of a core that one message takes."""
    key, bits = PrivateKey.generate(), RandomBits.secure()
    info = binding("t", "1.0.1")
    empty = bits.unsigned(0, 8)
    sealed = key.public.seal(pack_messages(empty, None, messages, bits=bits), info)
    started = time.thread_time()
    open_all(key.raw, sealed[:2000], info)
    one = (time.thread_time() - started) / 2000
    # Copies take as long to open; that they are dropped afterwards is no matter here.
    body = b"".join(sealed) * 5
    with closing(Opener(key, processes=2)) as opener:
        opener.open(body[: 8000 * CIPHERTEXT_BYTES], "t", "1.0.1")
        rates = []
        for _ in range(3):
            started = time.perf_counter()
            opener.open(body, "t", "1.0.1")
            rates.append(5 * messages / (time.perf_counter() - started))
    note = f"best of {', '.join(f'{rate:,.0f}' for rate in rates)}; a core alone {1 / one:,.0f}"
    return [figure("opening, 2 processes: messages a second", max(rates), ">=", 20_000, note)], one


def sealing(folder: Path) -> list[dict]:
    """A batch of 50,000 reports with two messages each, from full to permuted and on disk."""
    users, messages = 50_000, 2
    routing = Routing(
        users=users, budget=1, shufflers=1, slot_users=users, every_slot=False, messages={users: messages}
    )
    batch = routing.batches_of(0)[0]
    body = os.urandom(users * messages * CIPHERTEXT_BYTES)
    # As many reports in one part as come one by one in one commit.
    some, step = 25, messages * CIPHERTEXT_BYTES
    server = ShufflerServer(open_shuffler_store(folder / "sealing.db"), post=lambda path, sent: 503)
    task_id, _ = server.add_task(json.dumps({"routing": routing.document()}))

    def fill(records) -> None:
        ids = [f"{seat:032x}" for seat in range(users)]
        parts = [
            BatchPart(batch.batch_id, seat, some, users, body[seat * step : (seat + some) * step])
            for seat in range(0, users, some)
        ]
        records.keep(task_id, ids, ids, parts)

    server._store.write(fill)
    started = time.perf_counter()
    server.seal_full()
    seconds = time.perf_counter() - started
    kept = server._store.read(lambda records: records.sealed(task_id, batch.batch_id))
    server.stop()
    if kept is None or len(kept) != len(body) or kept == body:
        raise SystemExit("the batch was not sealed")
    return [figure("sealing 100,000 messages: seconds", seconds, "<=", 3, f"{len(body) / 1e6:.1f} MB, 50,000 reports")]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="fewer reports and one round of each")
    parser.add_argument("--postgresql", action="store_true", help="only what compares stores")
    parser.add_argument("--accepting", action="store_true", help="only what accepts reports on SQLite")
    given = parser.parse_args()
    quick = given.quick
    # Ended from outside, the servers are ended too.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        if given.postgresql:
            return report("Stores", on_postgresql(folder, 1 if quick else 5, 2000 if quick else 4000, 100))
        accepted = (1, 3000, 40) if quick else (7, 5000, 100)
        if given.accepting:
            return report("Accepting", accepting(folder, *accepted))
        rows = disk(folder) + sealing(folder)
        found, open_seconds = opening(4000 if quick else 12_000)
        rows += found
        rows += accepting(folder, *accepted)
        rows += filling(folder, 2000 if quick else 5000)
        rows += on_postgresql(folder, 1 if quick else 3, 2000 if quick else 4000, 100)
        rows += end_to_end(folder, 600 if quick else 4000, open_seconds)
    return report("Service", rows)


if __name__ == "__main__":
    sys.exit(main())
