"""Who sees what: a row for each line of the design's table that one hop on SQLite covers.

It looks at what two real processes leave behind after a run, on disk and in their logs, and at what leaves them.
"""

import contextlib
import ipaddress
import itertools
import json
import re
import signal
import ssl
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID
from scipy import special

from harness.campaigns import some_arms
from harness.world import report_of, tables_of
from shuffledp.errors import ParameterError
from shuffledp.privacy import Privacy
from shuffledp.protocols.binary_sum import BinarySum
from shuffledp.randomness import RandomBits
from shuffledp.service.campaign import Campaign
from shuffledp.service.crypto import PrivateKey, SigningKey, binding
from shuffledp.service.openapi import BINARY
from shuffledp.service.routing import SeatInBatch
from shuffledp.service.serving import Address, uvicorn_server
from shuffledp.service.shuffler.desk import permuted
from shuffledp.service.shuffler.sending import post_to
from shuffledp.service.store.sqlite.shuffler import GONE
from shuffledp.service.task import Task
from shuffledp.service.tokens import Tokens
from shuffledp.service.wire import CIPHERTEXT_BYTES, SentReport, new_id, pack_upload, single_body
from shuffledp.testing.statistics import assert_law, assert_not_law

FALSE_ALARM = 1e-9
SECURE = RandomBits.secure()
JSON = "application/json"

# --- what two processes leave behind ----------------------------------------------------------

PROCESS = """
import json, socket, sys
from pathlib import Path
given = json.loads(sys.stdin.readline())
from shuffledp.service.telemetry import log_to_stderr
from shuffledp.service.serving import Address, uvicorn_server
from shuffledp.service.store import open_analyzer_store, open_shuffler_store
from shuffledp.service.tokens import Tokens
log_to_stderr(10)
tokens, store = Tokens.from_document(given["tokens"]), Path(given["store"])
if given["role"] == "shuffler":
    from shuffledp.service.shuffler.app import shuffler_app
    from shuffledp.service.shuffler.sending import post_to
    from shuffledp.service.shuffler.server import ShufflerServer
    server = ShufflerServer(open_shuffler_store(store), post=post_to(given["next"], tokens.secrets["hop"]))
    app = shuffler_app(server, tokens)
else:
    from shuffledp.service.analyzer.app import analyzer_app
    from shuffledp.service.analyzer.opening import Opener
    from shuffledp.service.analyzer.server import AnalyzerServer
    from shuffledp.service.crypto import PrivateKey
    key = PrivateKey.from_text(given["key"])
    server = AnalyzerServer(open_analyzer_store(store), key=key, opener=Opener(key, processes=1))
    app = analyzer_app(server, tokens)
for text in given["tasks"]:
    server.add_task(text)
listening = socket.create_server(("127.0.0.1", 0))
print(listening.getsockname()[1], flush=True)
uvicorn_server(app, Address(port=0)).run(sockets=[listening])
"""

# What a request says about its sender, and no log or store may.
MARKS = {
    "X-Forwarded-For": "203.0.113.77",
    "User-Agent": "marked-agent/9.9",
    "Cookie": "marked-cookie=1",
    "X-Marked-Header": "marked-value",
}


@dataclass(frozen=True)
class Message:
    """One ciphertext of a report, and what is in it."""

    ciphertext: bytes
    plain: bytes


@dataclass
class Aftermath:
    """All that was sent, and all that is on disk and in the logs afterwards."""

    done: Task
    pending: Task
    reports: list[SentReport]
    messages: list[Message]
    pending_reports: list[SentReport]
    ports: set[int]
    tokens: Tokens
    key: PrivateKey
    released: dict[str, Any]
    files: dict[str, dict[str, bytes]]
    """By server and moment: the bytes of all of its files, end to end."""
    tables: dict[str, dict[str, list[tuple[Any, ...]]]]
    logs: dict[str, str]

    def everything(self, server: str) -> bytes:
        return b"".join(self.files[server].values())


@contextlib.contextmanager
def process(role: str, folder: Path, given: dict[str, Any]) -> Iterator[str]:
    """A server in a process of its own: its address."""
    with (folder / f"{role}.log").open("w") as log:
        command = [sys.executable, "-c", PROCESS]
        running = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log, text=True)
        try:
            assert running.stdin is not None and running.stdout is not None
            running.stdin.write(json.dumps({"role": role, "store": str(folder / f"{role}.db"), **given}) + "\n")
            running.stdin.close()
            port = running.stdout.readline().strip()
            assert port, (folder / f"{role}.log").read_text()
            yield f"http://127.0.0.1:{port}"
        finally:
            if running.poll() is None:
                running.send_signal(signal.SIGTERM)
            running.wait(20)
            assert running.stdout is not None
            running.stdout.close()


def bytes_of(folder: Path, server: str) -> bytes:
    return b"".join(file.read_bytes() for file in sorted(folder.glob(f"{server}.db*")))


def until(condition: Callable[[], bool], seconds: float = 30.0) -> bool:
    end = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > end:
            return False
        time.sleep(0.1)
    return True


def send_all(client: httpx.Client, task: Task, values: list[int], ports: set[int]) -> list[SentReport]:
    """Half of the reports alone, half together, some of them twice; the client's own ports are noted."""
    answer = client.post(f"/v1/tasks/{task.id}/seats?count={len(values)}")
    sent = []
    for value, seat in zip(values, answer.json()["seats"], strict=True):
        batches = tuple(SeatInBatch(**each) for each in seat["batches"])
        report = report_of(task, value, batches, bits=SECURE)
        sent.append(SentReport(new_id(bits=SECURE), seat["seat"], report))
    half = len(sent) // 2
    for report in [*sent[:half], sent[0]]:
        path = f"/v1/tasks/{task.id}/reports/{report.report_id}"
        answer = client.put(path, content=single_body(report.seat, report.body), headers={"Content-Type": BINARY})
        assert answer.status_code in (200, 201), answer.text
        ports.add(answer.extensions["network_stream"].get_extra_info("client_addr")[1])
    answer = client.post(
        f"/v1/tasks/{task.id}/reports", content=pack_upload(sent[half:]), headers={"Content-Type": BINARY}
    )
    assert {result["status"] for result in answer.json()["results"]} == {201}
    return sent


def messages_of(task: Task, key: PrivateKey, reports: list[SentReport]) -> Iterator[Message]:
    for position, report in enumerate(reports):
        start = 0
        for batch in task.routing.batches_of(position):
            for _ in range(batch.messages):
                ciphertext = report.body[start : start + CIPHERTEXT_BYTES]
                plain = key.open(ciphertext, binding(task.id, batch.batch_id))
                assert plain is not None
                yield Message(ciphertext, plain)
                start += CIPHERTEXT_BYTES


@pytest.fixture(scope="module")
def aftermath(
    tmp_path_factory: pytest.TempPathFactory, key: PrivateKey, tokens: Tokens, plan_named: Callable[[str], Any]
) -> Aftermath:
    """A running count whose batches are all released, and a sum that waits for more users."""
    folder = tmp_path_factory.mktemp("processes")
    done, pending = (Task.create(plan_named(name), key.public, bits=SECURE) for name in ("running count", "binary rr"))
    shared = {"tokens": dict(tokens.secrets), "tasks": [done.text, pending.text]}
    ports: set[int] = set()
    # One after the other: the shuffler must know where the analyzer is.
    with contextlib.ExitStack() as processes:
        analyzer = processes.enter_context(process("analyzer", folder, {**shared, "key": key.text}))
        shuffler = processes.enter_context(process("shuffler", folder, {**shared, "next": analyzer}))
        enrol = {**MARKS, "Authorization": f"Bearer {tokens.secrets['enrol']}"}
        with httpx.Client(base_url=shuffler, headers=enrol) as client:
            sent = send_all(client, done, [user % 2 for user in range(30)], ports)
            waits = send_all(client, pending, [user % 2 for user in range(7)], ports)
            # Requests that go wrong are logged no more than others.
            client.get("/nothing/here")
            client.put(f"/v1/tasks/{done.id}/reports/{sent[0].report_id[:-2]}", content=b"marked-body")
            client.post(f"/v1/tasks/{done.id}/seats", headers={"Authorization": "Bearer marked-token"})
            ports |= {int(shuffler.rsplit(":", 1)[1]), int(analyzer.rsplit(":", 1)[1])}
        read = {**MARKS, "Authorization": f"Bearer {tokens.secrets['read']}"}
        with httpx.Client(base_url=analyzer, headers=read) as client:
            path = f"/v1/tasks/{done.id}/estimate"
            assert until(lambda: client.get(path).json()["time"] == 30)
            released = client.get(path).json()
        messages = list(messages_of(done, key, sent))
        samples = {message.ciphertext[:16] for message in messages}

        def purged() -> bool:
            left = (bytes_of(folder, server) for server in ("shuffler", "analyzer"))
            return not any(sample in files for files in left for sample in samples)

        until(purged, 15.0)
        running = {server: bytes_of(folder, server) for server in ("shuffler", "analyzer")}
    servers = ("shuffler", "analyzer")
    stopped = {server: bytes_of(folder, server) for server in servers}
    return Aftermath(
        done=done,
        pending=pending,
        reports=sent,
        messages=messages,
        pending_reports=waits,
        ports=ports,
        tokens=tokens,
        key=key,
        released=released,
        files={server: {"running": running[server], "stopped": stopped[server]} for server in servers},
        tables={server: tables_of(folder / f"{server}.db") for server in servers},
        logs={server: (folder / f"{server}.log").read_text() for server in servers},
    )


def spellings(secret: bytes) -> list[bytes]:
    return [secret, secret.hex().encode(), repr(secret).encode()]


def ciphertext_parts(after: Aftermath) -> list[bytes]:
    """Encapsulated key, middle and tag: a rest of any of them would be seen."""
    parts = [(m.ciphertext[:16], m.ciphertext[32:48], m.ciphertext[-16:]) for m in after.messages]
    return [part for three in parts for part in three]


def addresses(after: Aftermath) -> list[bytes]:
    return [b"127.0.0.1", b"localhost", *(mark.encode() for mark in MARKS.values()), b"marked-", b"Bearer"]


def tokens_of(after: Aftermath) -> list[bytes]:
    return [secret.encode() for secret in after.tokens.secrets.values()]


def report_ids(after: Aftermath) -> list[bytes]:
    every = [*after.reports, *after.pending_reports]
    return [spelling for report in every for spelling in spellings(bytes.fromhex(report.report_id))]


def seats(after: Aftermath) -> list[bytes]:
    return [spelling for report in after.reports for spelling in spellings(bytes.fromhex(report.seat))]


def plain_messages(after: Aftermath) -> list[bytes]:
    """A message's own id and all after it; the id is random, so that finding it is finding the message."""
    return [message.plain[:16] for message in after.messages] + [message.plain for message in after.messages]


def private_key(after: Aftermath) -> list[bytes]:
    return [*spellings(after.key.raw), after.key.text.encode(), after.key.text.rstrip("=").encode()]


Needles = Callable[[Aftermath], list[bytes]]
NOT_ON_DISK: list[tuple[str, str, Needles]] = [
    ("shuffler", "a message in the clear", plain_messages),
    ("shuffler", "a ciphertext of a batch that was delivered", ciphertext_parts),
    ("shuffler", "a seat of a report that was accepted", seats),
    ("shuffler", "an address or a header", addresses),
    ("shuffler", "the analyzer's key", private_key),
    ("shuffler", "a token", tokens_of),
    ("analyzer", "a message in the clear", plain_messages),
    ("analyzer", "a ciphertext of a batch that was read", ciphertext_parts),
    ("analyzer", "an outer report id", report_ids),
    ("analyzer", "a seat", seats),
    ("analyzer", "an address or a header", addresses),
    ("analyzer", "its own key", private_key),
    ("analyzer", "a token", tokens_of),
]
NOT_IN_LOGS: list[tuple[str, Needles]] = [
    ("an address or a header", addresses),
    ("a token", tokens_of),
    ("the key", private_key),
    ("a report id", report_ids),
    ("a seat", seats),
    ("a ciphertext", lambda after: [s for part in ciphertext_parts(after) for s in spellings(part)]),
    ("a message", lambda after: [s for part in plain_messages(after) for s in spellings(part)]),
]


@pytest.mark.parametrize(
    ("server", "what", "needles"), NOT_ON_DISK, ids=lambda part: part if isinstance(part, str) else ""
)
def test_disks_do_not_hold(aftermath: Aftermath, server: str, what: str, needles: Needles) -> None:
    for moment, held in aftermath.files[server].items():
        found = [needle for needle in needles(aftermath) if needle in held]
        assert not found, f"{len(found)} times {what} in the {server}'s files when {moment}"


@pytest.mark.parametrize("server", ["shuffler", "analyzer"])
@pytest.mark.parametrize(("what", "needles"), NOT_IN_LOGS, ids=lambda part: part if isinstance(part, str) else "")
def test_logs_do_not_hold(aftermath: Aftermath, server: str, what: str, needles: Needles) -> None:
    log = aftermath.logs[server].encode()
    assert not [needle for needle in needles(aftermath) if needle in log], f"{what} in the {server}'s log"


def test_the_scan_would_find_what_is_there(aftermath: Aftermath) -> None:
    """Reports of a batch that is not full are on the shuffler's disk, and are all that is."""
    held = aftermath.everything("shuffler")
    assert all(report.body[:16] in held and report.body[-16:] in held for report in aftermath.pending_reports)
    assert all(bytes.fromhex(report.report_id) in held for report in aftermath.reports)
    assert aftermath.done.id.encode() in aftermath.everything("analyzer")
    assert aftermath.released["released_batches"] == len(aftermath.tables["analyzer"]["batches"]) > 3


@pytest.mark.parametrize("server", ["shuffler", "analyzer"])
def test_logs_are_lines_of_json_without_addresses(aftermath: Aftermath, server: str) -> None:
    lines = [json.loads(line) for line in aftermath.logs[server].splitlines()]
    assert {line["event"] for line in lines} >= {"batch sealed" if server == "shuffler" else "batch read"}
    for line in lines:
        said = " ".join(str(value) for name, value in line.items() if name != "time")
        assert not re.search(r"\d+\.\d+\.\d+\.\d+|::1|https?:", said), line
        assert not {str(port) for port in aftermath.ports} & set(re.findall(r"\d+", said)), line


def test_the_shufflers_tables_after_release(aftermath: Aftermath) -> None:
    """Table by table: ids without positions, batches without bytes, no seats and no parts of what was released."""
    done, tables = aftermath.done.id, aftermath.tables["shuffler"]
    of_task = {name: [row for row in rows if done in row] for name, rows in tables.items()}
    own = {name for name in tables if re.fullmatch(r"(parts|pieces)_\d+", name)}
    of_hops, of_tokens = {"received", "incoming"}, {"redeeming", "redeemed", "held"}
    assert set(tables) - own - of_hops - of_tokens == {
        "store", "tasks", "leases", "accepted", "arrivals", "settling", "turns", "batches", "sealed", "sqlite_sequence"
    }  # fmt: skip
    # What later hops of a cascade take; the first never does.
    assert all(tables[name] == [] for name in of_hops)
    # And what tasks with an issuer need: nobody's token was asked for here.
    assert all(tables[name] == [] for name in of_tokens)
    # Batches that were released have no tables of their own any more.
    numbers = {row[0] for row in of_task["sealed"]}
    assert len(numbers) > 5 and not own & {f"{kind}_{number}" for number in numbers for kind in ("parts", "pieces")}
    assert {name for name, rows in of_task.items() if rows} == {"tasks", "accepted", "sealed"}
    # Stored by random id, and with nothing beside it: neither a position nor a time.
    ids = [bytes.fromhex(report.report_id) for report in aftermath.reports]
    assert of_task["accepted"] == [(done, report_id) for report_id in sorted(ids)]
    assert {row[4] for row in of_task["sealed"]} == {GONE}
    assert [row[2:] for row in of_task["tasks"]] == [(30, 30)]
    # No column of any table could hold an address or the time of a report.
    assert {len(row) for row in tables["accepted"]} == {2}
    assert {len(row) for name in own for row in tables[name]} == {2}


def test_the_analyzers_tables_after_reading(aftermath: Aftermath) -> None:
    tables = aftermath.tables["analyzer"]
    of_pieces = {"incoming", "pieces", "results"}
    assert set(tables) - {"sqlite_sequence"} == {"store", "tasks", "batches", "releases", "models", *of_pieces}
    assert all(tables[name] == [] for name in of_pieces)
    assert {row[3] for row in tables["batches"]} == {None}
    assert [row[1] for row in tables["releases"]] == [6, 12, 18, 24, 30]


def test_a_store_tells_a_delivered_batch_from_its_digest_only(aftermath: Aftermath) -> None:
    """The analyzer keeps a SHA-256 to know a second delivery; that of ciphertexts says nothing of what is in them."""
    for row in aftermath.tables["analyzer"]["batches"]:
        assert re.fullmatch("[0-9a-f]{64}", row[2])


# --- what the processes are -------------------------------------------------------------------


def test_the_shufflers_process_holds_no_code_that_understands_a_message(tmp_path: Path, key: PrivateKey) -> None:
    """Nor when it serves a campaign: people sit down in a round, report, and the batch is sealed."""
    campaign = Campaign.create(some_arms(), key.public, SigningKey.generate().public, bits=SECURE, drop_after=60.0)
    script = f"""
import sys, json, shuffledp.service.shuffler.app
from shuffledp.service.shuffler.server import ShufflerServer
from shuffledp.service.store import open_shuffler_store
from shuffledp.service.wire import SentReport
store, sent = open_shuffler_store({str(tmp_path / "shuffler.db")!r}), []
server = ShufflerServer(store, post=lambda path, body: sent.append(path) or 201)
server.add_task(sys.stdin.read())
round_id = {campaign.id!r} + ".0.0"
seats = server.take_seats(round_id, 3, 1).result()
length = server.tasks[round_id].report_bytes(0)
reports = [SentReport(f"{{place:032x}}", seat.seat, bytes(length)) for place, seat in enumerate(seats)]
server.accept_all([(round_id, reports, lambda answers: None)])
store.write(lambda records: None)
assert server.seal_full() and server.send_waiting() and len(sent) == 1, sent
server.stop()
print(json.dumps(sorted(sys.modules)))
"""
    command = [sys.executable, "-c", script]
    answer = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True, input=campaign.text)
    loaded = json.loads(answer.stdout)
    assert {"shuffledp.service.shuffler.desk", "shuffledp.service.store.sqlite.shuffler"} <= set(loaded)
    forbidden = ("shuffledp.protocols", "shuffledp.accounting", "shuffledp.continual", "shuffledp.service.analyzer",
                 "shuffledp.service.task", "shuffledp.learn", "shuffledp.service.campaign", "shuffledp.service.models",
                 "shuffledp.service.device", "shuffledp.service.crypto")  # fmt: skip
    assert not [name for name in loaded if name.startswith(forbidden)]


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.168.1.1", "10.0.0.1", "example.org", "", "2001:db8::1"])
def test_other_addresses_need_tls(host: str, tmp_path: Path) -> None:
    with pytest.raises(ParameterError, match=r"must be this machine itself without TLS, got .*: give --tls-cert"):
        Address(host=host, port=8001)
    assert Address(host=host, port=8001, tls_cert=tmp_path, tls_key=tmp_path).url.startswith("https://")


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost", "::1", "127.8.8.8"])
def test_loopback_needs_none(host: str) -> None:
    assert Address(host=host, port=8001).tls_cert is None


@pytest.mark.parametrize(("cert", "key_file"), [(Path("c"), None), (None, Path("k"))])
def test_a_certificate_and_its_key_go_together(cert: Path | None, key_file: Path | None) -> None:
    with pytest.raises(ParameterError, match="give both or none"):
        Address(port=8001, tls_cert=cert, tls_key=key_file)


def self_signed(folder: Path) -> tuple[Path, Path]:
    secret = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "localhost")])
    now = datetime.now(UTC)
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(secret.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(days=1))
        .not_valid_after(now + timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address("127.0.0.1"))]), False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), True)
        .sign(secret, hashes.SHA256())
    )
    pem, private = serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8
    (folder / "cert.pem").write_bytes(certificate.public_bytes(pem))
    (folder / "key.pem").write_bytes(secret.private_bytes(pem, private, serialization.NoEncryption()))
    return folder / "cert.pem", folder / "key.pem"


@contextlib.contextmanager
def listening(app: Any, **more: Any) -> Iterator[int]:
    """The application on a free port of this machine; its chores run, too."""
    server = uvicorn_server(app, Address(port=0, **more), lifespan="off")
    thread = threading.Thread(target=server.run, daemon=True)
    thread.start()
    try:
        assert until(lambda: server.started, 20)
        yield server.servers[0].sockets[0].getsockname()[1]
    finally:
        server.should_exit = True
        thread.join(20)


def test_tls_works_and_plain_text_does_not(tmp_path: Path, make_service: Callable[..., Any]) -> None:
    cert, key_file = self_signed(tmp_path)
    with listening(make_service().shuffler_app, tls_cert=cert, tls_key=key_file) as port:
        trusted = ssl.create_default_context(cafile=str(cert))
        with httpx.Client(base_url=f"https://127.0.0.1:{port}", verify=trusted) as client:
            answer = client.get("/healthz")
            assert answer.text == "ok\n" and "server" not in answer.headers
        with pytest.raises(httpx.ConnectError, match="CERTIFICATE_VERIFY_FAILED"):
            httpx.get(f"https://127.0.0.1:{port}/healthz")
        with pytest.raises(httpx.HTTPError):
            httpx.get(f"http://127.0.0.1:{port}/healthz")


# --- sizes ------------------------------------------------------------------------------------


def test_requests_are_as_long_whatever_the_value(
    any_plan: tuple[Any, list[Any]], make_task: Callable[..., Task]
) -> None:
    """The whole request, headers and all: its length depends on the position only."""
    plan, values = any_plan
    task = make_task(plan)
    for position in sorted({0, plan.users // 2, plan.users - 1}):
        batches = task.routing.batches_of(position)
        lengths = set()
        for value in values:
            body = single_body(new_id(bits=SECURE), report_of(task, value, batches, bits=SECURE))
            url = f"http://test/v1/tasks/{task.id}/reports/{new_id(bits=SECURE)}"
            request = httpx.Request("PUT", url, content=body, headers={"Content-Type": BINARY})
            lengths.add((len(str(request.url)), len(str(request.headers.raw)), len(request.read())))
        assert len(lengths) == 1 and next(iter(lengths))[2] == task.routing.report_bytes(position) + 16


# --- the order --------------------------------------------------------------------------------


def orders(trials: int, *, bits: RandomBits, wrong: bool = False) -> list[int]:
    """The released order of four ciphertexts that came in two reports, as a number in 0..23."""
    parts = [bytes([0]) * CIPHERTEXT_BYTES + bytes([1]) * CIPHERTEXT_BYTES]
    parts.append(bytes([2]) * CIPHERTEXT_BYTES + bytes([3]) * CIPHERTEXT_BYTES)
    known = {order: number for number, order in enumerate(itertools.permutations(range(4)))}
    found = []
    for _ in range(trials):
        # The wrong twin permutes reports and keeps each one's messages together.
        mixed = permuted(parts, bits=bits) if not wrong else b"".join(parts[:: 1 - 2 * int(bits.unsigned(1, 8)[0] % 2)])
        found.append(known[tuple(mixed[::CIPHERTEXT_BYTES])])
    return found


def test_every_order_is_as_likely_as_any_other() -> None:
    assert_law(orders(24 * 400, bits=RandomBits.seeded(21)), 0, np.full(24, 1 / 24), false_alarm=FALSE_ALARM)


def test_reports_that_stay_together_are_seen() -> None:
    samples = orders(24 * 400, bits=RandomBits.seeded(22), wrong=True)
    assert_not_law(samples, 0, np.full(24, 1 / 24), false_alarm=FALSE_ALARM)


def correlation(order: list[int]) -> float:
    """Spearman's, in standard deviations of a random order's."""
    rank = np.corrcoef(np.arange(len(order)), order)[0, 1]
    return float(abs(rank) * np.sqrt(len(order) - 1))


def test_release_order_says_nothing_about_arrival_order(
    make_service: Callable[..., Any], make_task: Callable[..., Task], monkeypatch: pytest.MonkeyPatch
) -> None:
    """1000 reports through a live shuffler, each ciphertext marked with its place; false alarm 1e-9."""
    service = make_service()
    users = 1000
    task = service.add(make_task(BinarySum.plan(users=users, privacy=Privacy(2, 1e-3), method="rr")))
    seats = service.at("shuffler", "enrol").post(f"/v1/tasks/{task.id}/seats?count={users}").json()["seats"]
    marked = [
        SentReport(new_id(bits=SECURE), seat["seat"], place.to_bytes(4) + bytes(CIPHERTEXT_BYTES - 4))
        for place, seat in enumerate(seats)
    ]
    answer = service.at("shuffler", "enrol").post(
        f"/v1/tasks/{task.id}/reports", content=pack_upload(marked), headers={"Content-Type": BINARY}
    )
    assert {result["status"] for result in answer.json()["results"]} == {201}
    service.shuffler.seal_full()
    sealed: list[bytes] = []
    # A next hop that is down: the same bytes are tried again, in the one order that was drawn.
    monkeypatch.setattr(service.shuffler, "_post", lambda path, body: sealed.append(body) or 503)
    for _ in range(2):
        assert not service.shuffler.send_waiting()
    assert len(sealed) == 2 and sealed[0] == sealed[1]
    released = [int.from_bytes(sealed[0][at : at + 4]) for at in range(0, len(sealed[0]), CIPHERTEXT_BYTES)]
    assert sorted(released) == list(range(users))
    limit = float(special.ndtri(1 - FALSE_ALARM / 2))
    assert correlation(released) < limit < correlation(list(range(users)))
    # Neighbours stay neighbours about twice, by a Poisson law: more than 20 times has probability 1e-14.
    assert np.count_nonzero(np.abs(np.diff(released)) == 1) <= 20


# --- between the servers ----------------------------------------------------------------------


def test_the_next_hop_needs_tls() -> None:
    with pytest.raises(ParameterError, match="analyzer"):
        post_to("http://analyzer.example:8081", "t" * 64)
    assert callable(post_to("https://analyzer.example:8081", "t" * 64))
    assert callable(post_to("http://127.0.0.1:8081", "t" * 64))
