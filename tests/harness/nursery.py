"""Servers as processes of their own that start quickly: one that has imported everything forks them.

Run with `python -m harness.nursery`, it forks a server for each line that it is sent, a JSON object, and
answers the new process's id. When the lines end, so do the servers.
"""

import contextlib
import hashlib
import json
import logging
import os
import random
import signal
import socket
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx

from harness.children import child
from harness.world import OpenerHere, PeelerHere, ciphertexts
from shuffledp.errors import ParameterError
from shuffledp.randomness import RandomBits
from shuffledp.service.analyzer.app import analyzer_app
from shuffledp.service.analyzer.opening import Opener
from shuffledp.service.analyzer.server import AnalyzerServer, Opening
from shuffledp.service.campaign import Campaign
from shuffledp.service.client import Client
from shuffledp.service.crypto import PrivateKey, SigningKey
from shuffledp.service.origins import Origins
from shuffledp.service.problems import RefusedError
from shuffledp.service.serving import Address, uvicorn_server
from shuffledp.service.shuffler.app import shuffler_app
from shuffledp.service.shuffler.layers import Layer
from shuffledp.service.shuffler.sending import post_to
from shuffledp.service.shuffler.server import ShufflerServer
from shuffledp.service.store import open_analyzer_store, open_shuffler_store
from shuffledp.service.task import Task
from shuffledp.service.tokens import Tokens
from shuffledp.service.wire import Unpacked

ROLES = ("shuffler", "analyzer")
_PATIENCE = 30.0


@dataclass
class Servers:
    """A shuffler and an analyzer that can be killed and started again."""

    folder: Path
    key: PrivateKey
    tokens: Tokens
    nursery: "subprocess.Popen[str]"
    orders: dict[str, dict[str, Any]]
    pids: dict[str, int] = field(default_factory=dict)

    def start(self, role: str) -> None:
        """Start a server; it may take a moment until it answers."""
        assert self.nursery.stdin is not None and self.nursery.stdout is not None
        self.nursery.stdin.write(json.dumps(self.orders[role]) + "\n")
        self.nursery.stdin.flush()
        self.pids[role] = int(self.nursery.stdout.readline())

    def kill(self, role: str) -> None:
        """End a server with SIGKILL, and wait until the system has taken its port and its lock away."""
        pid = self.pids.pop(role)
        os.kill(pid, signal.SIGKILL)
        with contextlib.suppress(ProcessLookupError):
            while True:
                os.kill(pid, 0)
                time.sleep(0.001)

    def store(self, role: str) -> Path:
        """A server's store."""
        return self.folder / f"{role}.db"

    def url(self, role: str) -> str:
        """A server's address."""
        return f"http://127.0.0.1:{self.orders[role]['port']}"

    def client(self, role: str, token: str, **more: Any) -> httpx.Client:
        """A client of a server, with one role's token."""
        header = {"Authorization": f"Bearer {self.tokens.secrets[token]}"}
        return httpx.Client(base_url=self.url(role), headers=header, **more)

    def add_task(self, task: Task | Campaign) -> None:
        """Serve a task or a campaign at both, as soon as they answer."""
        deadline = time.monotonic() + _PATIENCE
        for role in (*ROLES, *(name for name in self.orders if name.startswith("hop "))):
            with self.client(role, "admin") as client:
                while True:
                    try:
                        answer = client.post(
                            "/v1/tasks", content=task.text, headers={"Content-Type": "application/json"}
                        )
                        answer.raise_for_status()
                        break
                    except httpx.TransportError:
                        assert time.monotonic() < deadline, f"the {role} does not come up"
                        time.sleep(0.05)


@contextlib.contextmanager
def servers(
    folder: Path,
    key: PrivateKey,
    tokens: Tokens,
    signing: SigningKey | None = None,
    *,
    shufflers: int = 1,
    stores: Any = None,
    hops: Sequence[PrivateKey] = (),
    **shuffler: Any,
) -> Iterator[Servers]:
    """Servers on loopback, with stores in this folder; `opened` there tells what the analyzer opened.

    Of several shufflers, on one store, the others are called "shuffler 2" and so on; `stores` are addresses by role.
    Of a cascade with these keys the first hop is the shuffler, and the others are called "hop 2" and so on.
    """
    names = [*ROLES, *(f"shuffler {number}" for number in range(2, shufflers + 1))]
    ports = {name: _free_port() for name in names}
    signed = {} if signing is None else {"signing": signing.text}
    orders: dict[str, dict[str, Any]] = {"analyzer": {"key": key.text, "opened": str(folder / "opened"), **signed}}
    for name in names:
        role = name.partition(" ")[0]
        order = orders.setdefault(name, {"next": f"http://127.0.0.1:{ports['analyzer']}", **shuffler})
        store = str(folder / f"{role}.db") if stores is None else stores[role]
        order |= {"role": role, "port": ports[name], "store": store, "tokens": dict(tokens.secrets)}
    chain = ["shuffler", *(f"hop {number}" for number in range(2, len(hops) + 1)), "analyzer"]
    for number, hop in enumerate(hops, 1):
        name, following = chain[number - 1], ports.setdefault(chain[number], _free_port())
        port = ports.setdefault(name, _free_port())
        order = orders.setdefault(name, {"role": "shuffler", "port": port, "tokens": dict(tokens.secrets), **shuffler})
        order |= {"next": f"http://127.0.0.1:{following}", "hop": number, "hop_key": hop.text}
        order.setdefault("store", str(folder / f"{name}.db"))
    command = [sys.executable, "-m", "harness.nursery"]
    # The nursery imports what this process imports: tests are no package that is installed.
    paths = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    with child(command, env=paths, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as nursery:
        assert nursery.stdin is not None and nursery.stdout is not None
        assert nursery.stdout.readline() == "ready\n"
        made = Servers(folder, key, tokens, nursery, orders)
        try:
            for name in orders:
                made.start(name)
            yield made
        finally:
            nursery.stdin.close()
            nursery.wait(timeout=_PATIENCE)


def kill_and_restart(
    running: Servers,
    busy: threading.Event,
    choice: random.Random,
    times: int,
    between: Callable[[], None] = lambda: None,
) -> Counter[str]:
    """One at a time or both at once, at random moments while a request is under way, down for a random time.

    Args:
        running: the servers.
        busy: set whenever a request leaves.
        choice: of moments and servers.
        times: how many kills.
        between: what is waited for before every one of them.
    """
    killed: Counter[str] = Counter()
    while killed.total() < times:
        between()
        time.sleep(choice.uniform(0.05, 0.4))
        busy.clear()
        busy.wait(timeout=1.0)
        time.sleep(choice.uniform(0.0, 0.03))
        roles = choice.choice((["shuffler"], ["analyzer"], ["shuffler", "analyzer"]))
        for role in roles:
            running.kill(role)
            killed[role] += 1
        time.sleep(choice.uniform(0.0, 0.15))
        for role in roles:
            running.start(role)
    return killed


def releases_despite_kills(folder: Path, task: Task, key: PrivateKey, values: Any, count: int) -> list[dict[str, Any]]:
    """So many releases of a task whose devices come in four groups; both servers are killed twice between them."""
    tokens = Tokens.generate(bits=RandomBits.secure())
    with servers(folder, key, tokens) as running:
        running.add_task(task)
        with Client(task, running.url("shuffler"), tokens.secrets["enrol"]) as devices:
            for first, last in ((0, 5), (5, 6), (6, 20), (20, len(values))):
                assert devices.report_many(values[first:last]).new == last - first
                for role in ROLES if last in (6, 20) else ():
                    running.kill(role)
                    running.start(role)
        deadline = time.monotonic() + _PATIENCE
        releases: list[dict[str, Any]] = []
        with running.client("analyzer", "read") as reader:
            while len(releases) < count:
                assert time.monotonic() < deadline, releases
                time.sleep(0.05)
                # It may not be up again.
                with contextlib.suppress(httpx.TransportError):
                    releases = reader.get(f"/v1/tasks/{task.id}/history").json()["releases"]
    return releases


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@dataclass(frozen=True)
class WritingDown:
    """Opens in the server's own process, and writes down which ciphertexts the batch had, and in which order."""

    opener: Opening
    file: Path

    def open(self, body: bytes, task_id: str, batch_id: str) -> Unpacked:
        """All messages of a batch."""
        content = hashlib.sha256(b"".join(sorted(ciphertexts(body)))).hexdigest()
        with self.file.open("a") as file:
            file.write(f"{task_id} {batch_id} {content} {hashlib.sha256(body).hexdigest()}\n")
        return self.opener.open(body, task_id, batch_id)

    @property
    def at_once(self) -> int:
        return self.opener.at_once

    def start(self, body: bytes, task_id: str, batch_id: str) -> "Future[tuple[bytes, int]]":
        """A piece of a batch."""
        return self.opener.start(body, task_id, batch_id)

    def close(self) -> None:
        """Let go of what it holds."""
        self.opener.close()


def _insist(opened: Callable[[str], Any], store: str, made: Callable[[Any], Any]) -> Any:
    """Start again, as whoever watches over processes does, while a database is away."""
    deadline = time.monotonic() + _PATIENCE
    while True:
        held = None
        try:
            held = opened(store)
            return made(held)
        except (ParameterError, RefusedError):
            if held is not None:
                held.close()
            if "://" not in store or time.monotonic() > deadline:
                raise
            time.sleep(0.1)


def _serve(order: dict[str, Any]) -> None:
    tokens, store, address = Tokens(order["tokens"]), order["store"], Address(port=order["port"])
    if order["role"] == "shuffler":
        limits = {name: order[name] for name in ("lease_seconds", "most_waiting_bytes") if name in order}
        post = post_to(order["next"], tokens.secrets["hop"])
        if "hop" in order:
            own = PrivateKey.from_text(order["hop_key"])
            limits["layer"] = Layer(order["hop"], own.public, PeelerHere(own))
        server: Any = _insist(open_shuffler_store, store, lambda held: ShufflerServer(held, post=post, **limits))
        app = shuffler_app(server, tokens, origins=Origins.of(order.get("origins")), gateway=_gateway(order))
    else:
        key = PrivateKey.from_text(order["key"])
        opener: Opening = Opener(key, processes=1) if order.get("workers") else OpenerHere(key)
        opener = WritingDown(opener, Path(order["opened"]))
        signing = SigningKey.from_text(order["signing"]) if "signing" in order else None
        server = _insist(
            open_analyzer_store, store, lambda held: AnalyzerServer(held, key=key, opener=opener, signing=signing)
        )
        app = analyzer_app(server, tokens)
    uvicorn_server(app, address).run()


def _gateway(order: dict[str, Any]) -> Any:
    """What opens sealed requests, where a server has a key for them."""
    if "gateway_key" not in order:
        return None
    from shuffledp.service.oblivious.encapsulation import GatewayKey
    from shuffledp.service.oblivious.gateway import Gateway

    return Gateway((GatewayKey.of(PrivateKey.from_text(order["gateway_key"])),), bits=RandomBits.secure())


def _main() -> None:
    # Only failures: of these there should be none.
    logging.basicConfig(level=logging.CRITICAL)
    logging.getLogger("psycopg").setLevel(logging.ERROR)
    # Children that were killed are nobody's business.
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    started: list[int] = []
    print("ready", flush=True)
    for line in sys.stdin:
        pid = os.fork()
        if pid == 0:
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
            try:
                _serve(json.loads(line))
            except BaseException:
                logging.critical("did not serve", exc_info=True)
            os._exit(0)
        started.append(pid)
        print(pid, flush=True)
    for pid in started:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)


if __name__ == "__main__":
    _main()
