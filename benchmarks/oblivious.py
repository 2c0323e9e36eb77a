"""Hiding addresses: what the gateway costs a core beside plain HTTP, and how many reports a relay loses.

Rates are by CPU time of one process: other programs on the machine do not change them.
"""

import argparse
import hashlib
import json
import multiprocessing
import os
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import httpx
from report import figure, report, shown

from service import CONNECTIONS, four_levels, reports_for, request, send_all, served, single_body, singles
from shuffledp import RandomBits
from shuffledp.service.crypto import PrivateKey
from shuffledp.service.oblivious.binary_http import InnerRequest, InnerResponse
from shuffledp.service.oblivious.encapsulation import GatewayKey, seal_request
from shuffledp.service.oblivious.gateway import Gateway
from shuffledp.service.oblivious.padding import answer_length, request_length
from shuffledp.service.serving import Address, uvicorn_server
from shuffledp.service.shuffler.app import shuffler_app
from shuffledp.service.shuffler.server import ShufflerServer
from shuffledp.service.store import open_shuffler_store
from shuffledp.service.tokens import Tokens

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

SECURE = RandomBits.secure()
REPORT_BYTES = 2002
LEAST_RATE = 5000


def a_core(work: Callable[[], object], times: int, rounds: int = 5) -> float:
    """How often a core does it in a second, by the best of some rounds."""
    best = float("inf")
    for _ in range(rounds):
        started = time.process_time()
        for _ in range(times):
            work()
        best = min(best, time.process_time() - started)
    return times / best


def sealed_report(key: GatewayKey, token: str, path: str, body: bytes, length: int) -> bytes:
    fields = (
        ("accept", "application/json"),
        ("authorization", f"Bearer {token}"),
        ("content-type", "application/octet-stream"),
    )
    inner = InnerRequest(method="PUT", authority="shuffler.example", path=path, fields=fields, content=body)
    return seal_request(key.config, inner.encoded(length))[0]


def opening_and_sealing(times: int) -> list[dict]:
    """What of the gateway's time is encryption, and what is all that it does but answering."""
    key = GatewayKey.of(PrivateKey.generate())
    path, length = f"/v1/tasks/{'0' * 64}/reports/{'0' * 32}", 3072
    sealed = sealed_report(key, "0" * 64, path, os.urandom(REPORT_BYTES + 16), length)
    answer = InnerResponse(status=201, fields=(("content-type", "application/json"),), content=b'{"new":true}')
    padded = answer.encoded(answer_length(1))
    gateway = Gateway((key,), bits=SECURE)

    def crypto() -> None:
        _, exchange = key.open(sealed)
        exchange.seal(padded, bits=SECURE)

    async def inside(request: InnerRequest) -> InnerResponse:
        return answer

    def whole() -> None:
        coroutine = gateway.answer(sealed, inside, lambda refused: answer)
        try:
            coroutine.send(None)
        except StopIteration:
            return
        raise RuntimeError("it waits for something")

    return [
        figure("open and seal: requests a second a core", a_core(crypto, times), ">=", LEAST_RATE, "pyhpke"),
        figure(
            "the gateway: requests a second a core",
            a_core(whole, times),
            ">=",
            LEAST_RATE,
            f"{len(sealed)} bytes in, {len(padded) + 32} out: opened, read, answered by nobody, padded, sealed",
        ),
    ]


# --- the whole server ------------------------------------------------------------------------------


def serve_gateway(port: int, folder: Path, text: str, tokens: Tokens, key_text: str) -> None:
    server = ShufflerServer(
        open_shuffler_store(folder / "shuffler.db"), post=lambda path, body, media="": 201, lease_seconds=3600.0
    )
    server.add_task(text)
    gateway = Gateway((GatewayKey.of(PrivateKey.from_text(key_text)),), bits=RandomBits.secure())
    uvicorn_server(shuffler_app(server, tokens, gateway=gateway), Address(port=port)).run()


def cpu_seconds(pid: int) -> float:
    """What a process has used so far, of all its threads."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def beside_plain_http(folder: Path, count: int) -> list[dict]:
    """Reports that a shuffler accepts with its store, a second of its CPU: sent plainly, and through its gateway."""
    tokens, key, routing = Tokens.generate(bits=SECURE), PrivateKey.generate(), four_levels(14_500)
    text = json.dumps({"routing": routing.document()})
    task_id, gateway_key = hashlib.sha256(text.encode()).hexdigest(), GatewayKey.of(key)
    with served(serve_gateway, folder, text, tokens, key.text) as port:
        [process] = multiprocessing.active_children()
        reports = reports_for(port, task_id, tokens, 4 * count)
        length, used = request_length(routing), {"plain": 0.0, "sealed": 0.0}
        for start in range(0, 4 * count, 2 * count):
            direct, hidden = reports[start : start + count], reports[start + count : start + 2 * count]
            wrapped = [
                sealed_report(
                    gateway_key,
                    tokens.secrets["enrol"],
                    f"/v1/tasks/{task_id}/reports/{each.report_id}",
                    single_body(each.seat, each.body),
                    length,
                )
                for each in hidden
            ]
            posts = [
                request("POST", "/.well-known/ohttp-gateway", each, "-").replace(
                    b"application/octet-stream", b"message/ohttp-req"
                )
                for each in wrapped
            ]
            plainly = singles(direct, task_id, tokens)
            for name, requests, status in (("plain", plainly, b"201"), ("sealed", posts, b"200")):
                before = cpu_seconds(process.pid)
                load = send_all(port, requests, CONNECTIONS)
                used[name] += cpu_seconds(process.pid) - before
                assert {body[:3] for body in load.bodies} == {status}
        headers = {"Authorization": f"Bearer {tokens.secrets['admin']}"}
        counts = httpx.get(f"http://127.0.0.1:{port}/v1/tasks/{task_id}", headers=headers).json()["counts"]
        assert counts["reports"] == 4 * count, counts
    rates = {name: 2 * count / seconds for name, seconds in used.items()}
    note = f"{rates['sealed']:,.0f} beside {rates['plain']:,.0f} a second of CPU, with the store's commits"
    added = 1e6 * (1 / rates["sealed"] - 1 / rates["plain"])
    return [
        shown("CPU of a sealed report / of a plain one, whole server", rates["plain"] / rates["sealed"], note),
        shown(
            "microseconds of CPU that a sealed report adds",
            added,
            f"{len(posts[0])} bytes instead of {len(plainly[0])}",
        ),
    ]


def lost(folder: Path, users: int) -> list[dict]:
    """Half of the people report from Node, half from Python, through a relay; none is lost, none counted twice."""
    from harness.hidden import ADDRESS, forms_of, reported_through_a_relay

    after = reported_through_a_relay(folder, users)
    gone = users - after.counts["reports"]
    log = after.logs["relay"].read_text().splitlines()
    everything = b"".join(file.read_bytes() for file in [*after.folder.iterdir(), after.logs["servers"]])
    marks = sum(form in everything for form in forms_of(ADDRESS)[2:])
    return [
        figure(f"of {users} reports through a relay, lost", gone, "<=", 0, f"{after.sent['node']} from Node"),
        figure("reports that were not new", users - after.estimate["time"], "<=", 0, "counted by the analyzer"),
        figure("lines that the relay wrote after it was ready", len(log) - 2, "<=", 0, ""),
        figure(
            "forms of the people's address on disk and in logs", marks, "<=", 0, f"{ADDRESS}, of texts and long forms"
        ),
    ]


if __name__ == "__main__":
    options = argparse.ArgumentParser()
    options.add_argument("--users", type=int, default=400)
    options.add_argument("--times", type=int, default=2000)
    options.add_argument("--reports", type=int, default=1500)
    given = options.parse_args()
    found = opening_and_sealing(given.times)
    with tempfile.TemporaryDirectory() as place:
        found += beside_plain_http(Path(place), given.reports)
    with tempfile.TemporaryDirectory() as place:
        found += lost(Path(place), given.users)
    report("oblivious", found)
