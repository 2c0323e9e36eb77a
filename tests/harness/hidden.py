"""A shuffler, an analyzer and a relay as processes; people behind an address of their own report through them."""

import base64
import ipaddress
import json
import signal
import socket
import struct
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx

from harness.node import node_in
from shuffledp.privacy import Privacy
from shuffledp.protocols.binary_sum import BinarySum
from shuffledp.randomness import RandomBits
from shuffledp.service.client import Client, Relay
from shuffledp.service.keys import GATEWAY_CONFIGS, load_public_key, load_tokens, make_keys
from shuffledp.service.oblivious.gateway_keys import make_gateway_key
from shuffledp.service.task import Task

ADDRESS = "127.0.0.7"
COMMAND = [sys.executable, "-m", "shuffledp"]
SECURE = RandomBits.secure()
_PATIENCE = 60.0


def forms_of(address: str) -> list[bytes]:
    """An address as text, as a number, and as bytes in either order and texts of these; those of four bytes first."""
    packed = ipaddress.ip_address(address).packed
    number = int.from_bytes(packed, "big")
    raw = [packed, packed[::-1], socket.inet_pton(socket.AF_INET6, f"::ffff:{address}")]
    texts = [address, str(number), *(each.hex() for each in raw), *(each.hex().upper() for each in raw)]
    return [*raw, *(text.encode() for text in texts), *(base64.b64encode(text.encode())[:8] for text in texts)]


def ports(count: int) -> list[int]:
    """Free ports that follow each other."""
    while True:
        with ExitStack() as opened:
            first = opened.enter_context(socket.socket())
            first.bind(("127.0.0.1", 0))
            port = int(first.getsockname()[1])
            try:
                for more in range(1, count):
                    opened.enter_context(socket.socket()).bind(("127.0.0.1", port + more))
            except (OSError, OverflowError):
                continue
            return list(range(port, port + count))


@contextmanager
def serving(log: Path, *words: str, said: str) -> Iterator[None]:
    """A server as a process, whose every word goes into a file, as soon as it says that it is there."""
    with log.open("wb") as file:
        process = subprocess.Popen([*COMMAND, "serve", *words], stdout=file, stderr=file, cwd=log.parent)
        try:
            deadline = time.monotonic() + _PATIENCE
            while said not in log.read_text():
                assert process.poll() is None and time.monotonic() < deadline, log.read_text()
                time.sleep(0.05)
            yield
            process.send_signal(signal.SIGTERM)
            process.wait(30)
        finally:
            process.kill()
            process.wait(30)


def peers_of(port: int) -> set[str]:
    """Who is connected to a port of this machine, or was a moment ago, as the system knows it."""
    found = set()
    for line in Path("/proc/net/tcp").read_text().splitlines()[1:]:
        ends = [(struct.pack("=I", int(end[:8], 16)), int(end[9:], 16)) for end in line.split()[1:3]]
        for (_, here), (address, there) in (ends, ends[::-1]):
            if here == port and there:
                found.add(str(ipaddress.ip_address(address)))
    return found


@dataclass(frozen=True)
class Aftermath:
    """What a run leaves.

    Attributes:
        folder: of both servers' stores.
        logs: of the servers and of the relay.
        peers: who was connected to the shuffler, and to the relay.
        sent: what Node and Python say became of their reports.
        estimate: what the analyzer published.
        counts: what the shuffler says it has.
        meanwhile: the stores' files when half of all reports were there, with ciphertexts, which are random bytes.
    """

    folder: Path
    logs: dict[str, Path]
    peers: dict[str, set[str]]
    sent: dict[str, Any]
    estimate: dict[str, Any]
    counts: dict[str, Any]
    meanwhile: dict[str, bytes]


def reported_through_a_relay(folder: Path, users: int) -> Aftermath:
    """A task of so many people: half of them report from Node, half from Python, the last one by the command line.

    Args:
        folder: where everything goes.
        users: how many there are.
    """
    node = node_in(folder)
    keys, stores, relayed = folder / "keys", folder / "stores", folder / "relay"
    relayed.mkdir()
    make_keys(keys, bits=SECURE)
    make_gateway_key(keys)
    plan = BinarySum.plan(users=users, privacy=Privacy(2, 1e-3), method="coins")
    task = Task.create(plan, load_public_key(keys), bits=SECURE)
    (folder / "task.json").write_text(task.text)
    shuffler, analyzer, relay = ports(3)
    tokens = load_tokens(keys).secrets
    url, carrier, configs = f"http://127.0.0.1:{shuffler}", f"http://127.0.0.1:{relay}", keys / GATEWAY_CONFIGS
    words = ["--keys", str(keys), "--task", str(folder / "task.json"), "--port", str(shuffler)]
    logs = {"servers": folder / "servers.log", "relay": relayed / "relay.log"}
    sent: dict[str, Any] = {}
    with (
        serving(logs["servers"], "all", "--folder", str(stores), *words, said="interrupt"),
        serving(logs["relay"], "relay", "--gateway", url, "--port", str(relay), said="interrupt"),
    ):
        asked = {"taskId": task.id, "task": task.text, "shuffler": url, "token": tokens["enrol"], "relay": carrier}
        asked |= {"gatewayKeys": configs.read_bytes().hex(), "from": ADDRESS, "folder": str(folder / "outbox")}
        values = [place % 2 for place in range(users // 2)]
        sent["node"] = json.loads(node.answer("report.js", json.dumps({**asked, "values": values})))
        meanwhile = {file.name: file.read_bytes() for file in stores.iterdir()}
        http = httpx.Client(transport=httpx.HTTPTransport(local_address=ADDRESS), timeout=30)
        with http, Client(task, url, tokens["enrol"], http=http, relay=Relay.of(carrier, configs)) as client:
            sent["python"] = client.report_many(values[:-1])
            peers = {"shuffler": peers_of(shuffler), "relay": peers_of(relay)}
        reporting = ["report", "1", "--task", str(folder / "task.json"), "--shuffler", url, "--relay", carrier]
        reporting += ["--gateway-keys", str(configs), "--token-file", str(keys / "enrol.token"), "--json"]
        done = subprocess.run([*COMMAND, *reporting], capture_output=True, text=True, timeout=_PATIENCE, check=False)
        assert done.returncode == 0, done.stderr
        sent["command"] = json.loads(done.stdout)
        with httpx.Client(headers={"Authorization": f"Bearer {tokens['read']}"}) as reader:
            counts = reader.get(f"{url}/v1/tasks/{task.id}").json()["counts"]
            deadline = time.monotonic() + _PATIENCE
            path = f"http://127.0.0.1:{analyzer}/v1/tasks/{task.id}/history"
            while not (releases := reader.get(path).json()["releases"]):
                assert time.monotonic() < deadline
                time.sleep(0.05)
    return Aftermath(stores, logs, peers, sent, releases[-1], counts, meanwhile)
