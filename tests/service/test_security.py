"""Who sees what: a row for each line of the design's table that one hop on SQLite covers, and every refusal.

The first half looks at what two real processes leave behind after a run, on disk and in their logs; the second
asks every question that must be refused, and reads the refusal.
"""

import contextlib
import hmac
import ipaddress
import itertools
import json
import logging
import re
import signal
import sqlite3
import ssl
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
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

from shuffledp.errors import ParameterError
from shuffledp.privacy import Privacy
from shuffledp.protocols.binary_sum import BinarySum
from shuffledp.randomness import RandomBits
from shuffledp.service.crypto import PrivateKey, binding
from shuffledp.service.http import BINARY
from shuffledp.service.problems import MEDIA_TYPE
from shuffledp.service.routing import SeatInBatch
from shuffledp.service.serving import Address, uvicorn_server
from shuffledp.service.shuffler.desk import permuted
from shuffledp.service.store.sqlite_shuffler import GONE
from shuffledp.service.task import Task
from shuffledp.service.tokens import ROLES, Tokens
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
from shuffledp.service.http import log_to_stderr
from shuffledp.service.serving import Address, uvicorn_server
from shuffledp.service.tokens import Tokens
log_to_stderr(10)
tokens, store = Tokens.from_document(given["tokens"]), Path(given["store"])
if given["role"] == "shuffler":
    from shuffledp.service.shuffler.app import shuffler_app
    from shuffledp.service.shuffler.server import ShufflerServer, post_to
    server = ShufflerServer(store, post=post_to(given["next"], tokens.secrets["hop"]))
    app = shuffler_app(server, tokens)
else:
    from shuffledp.service.analyzer.app import analyzer_app
    from shuffledp.service.analyzer.opening import Opener
    from shuffledp.service.analyzer.server import AnalyzerServer
    from shuffledp.service.crypto import PrivateKey
    key = PrivateKey.from_text(given["key"])
    server = AnalyzerServer(store, key=key, opener=Opener(key, processes=1))
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


def tables_of(file: Path) -> dict[str, list[tuple[Any, ...]]]:
    with contextlib.closing(sqlite3.connect(file)) as database:
        names = [row[0] for row in database.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
        return {name: database.execute(f"SELECT * FROM {name}").fetchall() for name in names}


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
        report = task.report(value, batches, bits=SECURE)
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
    assert set(tables) >= {"store", "tasks", "leases", "accepted", "batches", "parts", "pieces", "sealed"}
    assert {name for name, rows in of_task.items() if rows} == {"tasks", "accepted", "sealed"}
    # Stored by random id, and with nothing beside it: neither a position nor a time.
    ids = [bytes.fromhex(report.report_id) for report in aftermath.reports]
    assert of_task["accepted"] == [(done, report_id) for report_id in sorted(ids)]
    assert {row[3] for row in of_task["sealed"]} == {GONE}
    assert [row[2:] for row in of_task["tasks"]] == [(30, 30)]
    # No column of any table could hold an address or the time of a report.
    assert {len(row) for row in tables["accepted"]} == {2} and {len(row) for row in tables["parts"]} == {4}


def test_the_analyzers_tables_after_reading(aftermath: Aftermath) -> None:
    tables = aftermath.tables["analyzer"]
    assert set(tables) == {"store", "tasks", "batches", "releases"}
    assert {row[3] for row in tables["batches"]} == {None}
    assert [row[1] for row in tables["releases"]] == [6, 12, 18, 24, 30]


def test_a_store_tells_a_delivered_batch_from_its_digest_only(aftermath: Aftermath) -> None:
    """The analyzer keeps a SHA-256 to know a second delivery; that of ciphertexts says nothing of what is in them."""
    for row in aftermath.tables["analyzer"]["batches"]:
        assert re.fullmatch("[0-9a-f]{64}", row[2])


# --- what the processes are -------------------------------------------------------------------


def test_the_shufflers_process_holds_no_code_that_understands_a_message() -> None:
    script = "import sys, json, shuffledp.service.shuffler.app; print(json.dumps(sorted(sys.modules)))"
    answer = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=60, check=True)
    loaded = json.loads(answer.stdout)
    assert "shuffledp.service.shuffler.desk" in loaded
    forbidden = ("shuffledp.protocols", "shuffledp.accounting", "shuffledp.continual", "shuffledp.service.analyzer",
                 "shuffledp.service.task")  # fmt: skip
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


# --- who may do what --------------------------------------------------------------------------


@dataclass(frozen=True)
class Question:
    """An endpoint, who may ask it, and what with."""

    server: str
    method: str
    path: str
    roles: frozenset[str]
    takes: str | None = None

    def ask(self, service: Any, task_id: str, role: str | None = None, **more: Any) -> httpx.Response:
        path = self.path.format(task=task_id, report="0" * 32, batch="1.0.1")
        headers = {} if self.takes is None else {"Content-Type": self.takes}
        headers |= more.pop("headers", {})
        return service.at(self.server, role).request(self.method, path, headers=headers, **more)


ADMIN = frozenset({"admin"})
QUESTIONS = [
    Question("shuffler", "POST", "/v1/tasks", ADMIN, JSON),
    Question("shuffler", "GET", "/v1/tasks/{task}", ADMIN | {"enrol", "read"}),
    Question("shuffler", "POST", "/v1/tasks/{task}/seats", ADMIN | {"enrol"}),
    Question("shuffler", "PUT", "/v1/tasks/{task}/reports/{report}", ADMIN | {"enrol"}, BINARY),
    Question("shuffler", "POST", "/v1/tasks/{task}/reports", ADMIN | {"enrol"}, BINARY),
    Question("analyzer", "POST", "/v1/tasks", ADMIN, JSON),
    Question("analyzer", "GET", "/v1/tasks/{task}", ADMIN | {"read"}),
    Question("analyzer", "POST", "/v1/tasks/{task}/batches/{batch}", ADMIN | {"hop"}, BINARY),
    Question("analyzer", "GET", "/v1/tasks/{task}/estimate", ADMIN | {"read"}),
    Question("analyzer", "GET", "/v1/tasks/{task}/history", ADMIN | {"read"}),
]
OPEN = [
    (server, path) for server in ("shuffler", "analyzer") for path in ("healthz", "readyz", "metrics", "openapi.json")
]
WITH_BODY = [question for question in QUESTIONS if question.takes]
OF_A_TASK = [question for question in QUESTIONS if "{task}" in question.path]


def name_of(question: Any) -> str:
    return f"{question.server} {question.method} {question.path}" if isinstance(question, Question) else str(question)


def problem(answer: httpx.Response, status: int, kind: str | None = None) -> dict[str, Any]:
    """The problem document, which says what is wrong and how to mend it."""
    assert answer.status_code == status, answer.text
    assert answer.headers["content-type"] == MEDIA_TYPE
    document: dict[str, Any] = answer.json()
    assert set(document) == {"type", "title", "status", "detail"} and document["status"] == status
    assert document["type"].startswith("urn:shuffledp:problem:") and len(document["title"].split()) >= 2
    assert kind is None or document["type"] == f"urn:shuffledp:problem:{kind}"
    # The last clause is the way out: something to do, in words.
    assert re.search(r"(^|: )[a-z]+ [^:]*\w[^:]*\.$", document["detail"]), document["detail"]
    assert ("www-authenticate" in answer.headers) == (status == 401)
    return document


@pytest.mark.parametrize("question", QUESTIONS, ids=name_of)
def test_each_role_may_do_its_own(question: Question, make_service: Callable[..., Any], make_task: Any) -> None:
    service = make_service()
    task = service.add(make_task("binary coins"))
    for role in ROLES:
        answer = question.ask(service, task.id, role)
        if role in question.roles:
            assert answer.status_code not in (401, 403), answer.text
        else:
            assert "ask the operator" in problem(answer, 403, "role-wrong")["detail"]
    problem(question.ask(service, task.id), 401, "token-missing")
    secret = service.tokens.secrets["admin"]
    for header in ("Bearer", "Bearer ", "Basic " + secret, secret, "Bearer " + "0" * 64, "Bearer " + secret[:-1],
                   "Bearer " + secret + "0", "Bearer " + secret.upper() + "X", "Bearer \u00ff\u00fe"):  # fmt: skip
        answer = question.ask(service, task.id, headers={"Authorization": header.encode("latin-1")})
        problem(answer, 401, "token-missing")
    assert question.ask(service, task.id, headers={"Authorization": "bEARER " + secret}).status_code not in (401, 403)


@pytest.mark.parametrize(("server", "path"), OPEN)
def test_what_needs_no_token_says_nothing_about_people(
    server: str, path: str, make_service: Callable[..., Any], make_task: Any
) -> None:
    service = make_service()
    task = service.add(make_task("binary coins"))
    sent = service.send(task, [1, 0, 1])
    answer = service.at(server).get(f"/{path}")
    assert answer.status_code == 200
    for report in sent:
        assert report.report_id not in answer.text and report.seat not in answer.text
    assert "127.0.0.1" not in answer.text and task.id not in answer.text


def test_a_refused_request_changes_nothing_whatever_it_holds(make_service: Callable[..., Any], make_task: Any) -> None:
    service = make_service()
    task = service.add(make_task("binary coins"))
    before = service.shuffler.counts(task.id)
    for question in QUESTIONS:
        question.ask(service, task.id, content=task.text.encode() if question.takes else None)
    assert service.shuffler.counts(task.id) == before
    assert service.at("shuffler", "enrol").post("/v1/tasks", content=b"{}").status_code == 403


def test_tokens_are_compared_in_constant_time(monkeypatch: pytest.MonkeyPatch, tokens: Tokens) -> None:
    """Nothing but hmac.compare_digest decides, and each question asks it about every role."""
    compared: list[tuple[bytes, bytes]] = []
    real = hmac.compare_digest

    def recorded(first: bytes, second: bytes) -> bool:
        compared.append((first, second))
        return real(first, second)

    monkeypatch.setattr(hmac, "compare_digest", recorded)
    for role in ROLES:
        compared.clear()
        tokens.check("Bearer " + tokens.secrets[role], role)
        secret = tokens.secrets[role].encode()
        assert compared == [(secret, other.encode()) for other in tokens.secrets.values()]
    for answer in (False, True):
        monkeypatch.setattr(hmac, "compare_digest", lambda first, second, answer=answer: answer)
        if answer:
            tokens.check("Bearer nonsense", "hop")
        else:
            with pytest.raises(Exception, match="the token is unknown here"):
                tokens.check("Bearer " + tokens.secrets["admin"], "admin")


def test_secrets_stay_out_of_words(tokens: Tokens, key: PrivateKey) -> None:
    words = f"{tokens!r} {tokens} {key!r} {key} {[tokens, key]!r}"
    assert not any(secret in words for secret in (*tokens.secrets.values(), key.text, key.raw.hex(), repr(key.raw)))


# --- what is refused --------------------------------------------------------------------------


@pytest.fixture
def served(make_service: Callable[..., Any], make_task: Callable[..., Task]) -> tuple[Any, Task]:
    """Both servers with one running count."""
    service = make_service()
    return service, service.add(make_task("running count"))


def role_for(question: Question) -> str:
    return min(question.roles - {"admin"}, default="admin")


@pytest.mark.parametrize("question", OF_A_TASK, ids=name_of)
@pytest.mark.parametrize("task_id", ["0" * 64, "x", "..%2f..", "%00", "é", "a" * 5000], ids=lambda text: text[:8])
def test_unknown_tasks(question: Question, task_id: str, served: tuple[Any, Task]) -> None:
    problem(question.ask(served[0], task_id, role_for(question)), 404)


@pytest.mark.parametrize("question", WITH_BODY, ids=name_of)
@pytest.mark.parametrize("kind", [None, "text/plain", "application/x-www-form-urlencoded", "multipart/form-data", "x"])
def test_other_media_types(question: Question, kind: str | None, served: tuple[Any, Task]) -> None:
    service, task = served
    headers = {} if kind is None else {"Content-Type": kind}
    answer = replace(question, takes=None).ask(service, task.id, role_for(question), headers=headers, content=b"x")
    assert question.takes in problem(answer, 415, "media-type")["detail"]


@pytest.mark.parametrize("question", WITH_BODY, ids=name_of)
def test_bodies_that_announce_too_much(question: Question, served: tuple[Any, Task]) -> None:
    service, task = served
    for announced in (str((256 << 20) + 1), "9" * 30, "-1", "x"):
        answer = question.ask(service, task.id, role_for(question), headers={"Content-Length": announced}, content=b"x")
        problem(answer, 413, "too-large")


LIMITS = {"/v1/tasks": 1 << 20, "/v1/tasks/{task}/reports/{report}": 385 + 16, "/v1/tasks/{task}/reports": 421_000}


@pytest.mark.parametrize("question", [q for q in WITH_BODY if q.path in LIMITS], ids=name_of)
@pytest.mark.parametrize("more", [0, 1])
def test_bodies_that_do_not_say_how_long_they_are(question: Question, more: int, served: tuple[Any, Task]) -> None:
    service, task = served
    left = LIMITS[question.path] + more
    parts = [b"\xff" * size for size in [100_000] * (left // 100_000) + [left % 100_000]]
    asked: list[int] = []

    def body() -> Iterator[bytes]:
        for part in parts:
            asked.append(len(part))
            yield part

    answer = question.ask(service, task.id, role_for(question), content=body())
    assert "content-length" not in answer.request.headers
    if more:
        assert "send less at a time" in problem(answer, 413, "too-large")["detail"]
    else:
        problem(answer, {"PUT": 410}.get(question.method, 400))


def test_uploads_of_too_many_reports(served: tuple[Any, Task]) -> None:
    service, task = served
    many = pack_upload([SentReport("0" * 32, "0" * 32, b"")] * 1001)
    question = Question("shuffler", "POST", "/v1/tasks/{task}/reports", ADMIN, BINARY)
    problem(question.ask(service, task.id, "enrol", content=many), 413, "too-large")


@pytest.mark.parametrize("server", ["shuffler", "analyzer"])
def test_other_methods(server: str, served: tuple[Any, Task]) -> None:
    service, task = served
    mine = {(question.path, question.method) for question in QUESTIONS if question.server == server}
    mine |= {(f"/{path}", method) for at, path in OPEN if at == server for method in ("GET", "HEAD")}
    mine |= {(path, "HEAD") for path, method in mine if method == "GET"}
    tried = 0
    for path in {path for path, _ in mine}:
        for method in ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE", "PROPFIND"):
            if (path, method) in mine:
                continue
            url = path.format(task=task.id, report="0" * 32, batch="1.0.1")
            answer = service.at(server, "admin").request(method, url)
            if method == "HEAD":
                assert answer.status_code == 405
            else:
                problem(answer, 405, "method-not-allowed")
            tried += 1
    assert tried > 40


@pytest.mark.parametrize("path", ["/", "/v1", "/v2/tasks", "/v1/tasks/x/y/z", "/admin", "/v1/tasks/a/reports/b/c"])
@pytest.mark.parametrize("server", ["shuffler", "analyzer"])
def test_nothing_else_is_there(path: str, server: str, served: tuple[Any, Task]) -> None:
    problem(served[0].at(server, "admin").get(path), 404, "not-found")


@pytest.mark.parametrize("count", ["0", "-1", "1001", "x", "1.0", "", "٣", "1" * 400])
def test_counts_of_seats(count: str, served: tuple[Any, Task]) -> None:
    service, task = served
    answer = service.at("shuffler", "enrol").post(f"/v1/tasks/{task.id}/seats", params={"count": count})
    assert "1..1000" in problem(answer, 400)["detail"]


@pytest.mark.parametrize("question", [("limit", "0"), ("limit", "100001"), ("after", "-1"), ("after", "x")])
def test_questions_about_history(question: tuple[str, str], served: tuple[Any, Task]) -> None:
    service, task = served
    answer = service.at("analyzer", "read").get(f"/v1/tasks/{task.id}/history", params=dict([question]))
    assert question[0] in problem(answer, 400)["detail"]


@pytest.mark.parametrize("report_id", ["0", "0" * 31, "0" * 33, "G" * 32, "A" * 32, "é" * 32])
def test_ids_of_reports(report_id: str, served: tuple[Any, Task]) -> None:
    service, task = served
    answer = service.at("shuffler", "enrol").put(
        f"/v1/tasks/{task.id}/reports/{report_id}", content=bytes(100), headers={"Content-Type": BINARY}
    )
    assert "draw one" in problem(answer, 400)["detail"]


def put(service: Any, task: Task, report_id: str, seat: str, body: bytes) -> httpx.Response:
    path = f"/v1/tasks/{task.id}/reports/{report_id}"
    return service.at("shuffler", "enrol").put(path, content=single_body(seat, body), headers={"Content-Type": BINARY})


def take(service: Any, task: Task) -> tuple[str, tuple[SeatInBatch, ...]]:
    answer = service.at("shuffler", "enrol").post(f"/v1/tasks/{task.id}/seats")
    (seat,) = answer.json()["seats"]
    return seat["seat"], tuple(SeatInBatch(**each) for each in seat["batches"])


def test_seats_that_were_never_given_out(served: tuple[Any, Task]) -> None:
    service, task = served
    answer = put(service, task, "0" * 32, "f" * 32, bytes(385))
    assert "take a new seat" in problem(answer, 410, "seat-gone")["detail"]


def test_a_seat_of_another_task(served: tuple[Any, Task], make_task: Callable[..., Task]) -> None:
    service, task = served
    other = service.add(make_task("running count"))
    seat, _ = take(service, task)
    problem(put(service, other, "0" * 32, seat, bytes(385)), 410, "seat-gone")


def test_a_seat_whose_lease_ran_out(make_service: Callable[..., Any], make_task: Any, set_clock: Any) -> None:
    service = make_service(clock=set_clock, lease_seconds=60.0)
    task = service.add(make_task("running count"))
    seat, batches = take(service, task)
    report = task.report(1, batches, bits=SECURE)
    set_clock.time += 60.0
    problem(put(service, task, "0" * 32, seat, report), 410, "seat-gone")
    # Somebody else has the place now; the late report is refused for good, and the new one is taken.
    other, same = take(service, task)
    assert same == batches and other != seat
    problem(put(service, task, "0" * 32, seat, report), 410, "seat-gone")
    assert put(service, task, "1" * 32, other, task.report(0, same, bits=SECURE)).status_code == 201
    assert service.shuffler.counts(task.id)["reports"] == 1


@pytest.mark.parametrize("change", [-385, -CIPHERTEXT_BYTES, -1], ids=str)
def test_reports_of_another_length(change: int, served: tuple[Any, Task]) -> None:
    service, task = served
    seat, _ = take(service, task)
    answer = put(service, task, "0" * 32, seat, bytes(385 + change))
    assert "its seat needs 385" in problem(answer, 422, "report-length")["detail"]
    # The seat is still there for the right one.
    assert put(service, task, "0" * 32, seat, bytes(385)).status_code == 201


def test_bodies_without_a_seat(served: tuple[Any, Task]) -> None:
    service, task = served
    answer = service.at("shuffler", "enrol").put(
        f"/v1/tasks/{task.id}/reports/{'0' * 32}", content=b"short", headers={"Content-Type": BINARY}
    )
    assert "send it whole" in problem(answer, 400)["detail"]


def test_full_tasks(make_service: Callable[..., Any], make_task: Any) -> None:
    service = make_service()
    task = service.add(make_task("binary rr"))
    service.send(task, [1] * 20)
    answer = service.at("shuffler", "enrol").post(f"/v1/tasks/{task.id}/seats")
    assert "needs no more reports" in problem(answer, 409, "task-full")["detail"]


def test_a_full_outbox_asks_to_come_back(served: tuple[Any, Task]) -> None:
    service, task = served
    seat, batches = take(service, task)
    report = task.report(1, batches, bits=SECURE)
    service.shuffler.desk = replace(service.shuffler.desk, most_waiting_bytes=-1)
    for answer in (
        service.at("shuffler", "enrol").post(f"/v1/tasks/{task.id}/seats"),
        put(service, task, "0" * 32, seat, report),
    ):
        problem(answer, 429, "busy")
        assert int(answer.headers["retry-after"]) > 0
    service.shuffler.desk = replace(service.shuffler.desk, most_waiting_bytes=1 << 30)
    assert put(service, task, "0" * 32, seat, report).status_code == 201


def test_a_replay_changes_nothing(served: tuple[Any, Task]) -> None:
    service, task = served
    seat, batches = take(service, task)
    report = task.report(1, batches, bits=SECURE)
    assert put(service, task, "a" * 32, seat, report).status_code == 201
    before = tables_of(service.folder / "shuffler.db")
    other, _ = take(service, task)
    kept = tables_of(service.folder / "shuffler.db")
    # The same again; the same id with other bytes, another seat, another length: answered, and not kept.
    for replay in ((seat, report), (seat, bytes(385)), (other, report), ("f" * 32, b"")):
        answer = put(service, task, "a" * 32, *replay)
        assert (answer.status_code, answer.json()) == (200, {"new": False})
    together = pack_upload([SentReport("a" * 32, seat, report)] * 3)
    answer = service.at("shuffler", "enrol").post(
        f"/v1/tasks/{task.id}/reports", content=together, headers={"Content-Type": BINARY}
    )
    assert [result["status"] for result in answer.json()["results"]] == [200] * 3
    assert tables_of(service.folder / "shuffler.db") == kept
    assert before["parts"] == kept["parts"]
    # Under a new id it would be a second report: its seat is gone.
    problem(put(service, task, "b" * 32, seat, report), 410, "seat-gone")


def test_an_upload_answers_for_each_report(served: tuple[Any, Task]) -> None:
    service, task = served
    (good, batches), (short, _) = take(service, task), take(service, task)
    report = task.report(1, batches, bits=SECURE)
    reports = [("a", good, report), ("a", good, report), ("b", short, b"x"), ("c", "f" * 32, report)]
    body = pack_upload([SentReport(letter * 32, seat, part) for letter, seat, part in reports])
    answer = service.at("shuffler", "enrol").post(
        f"/v1/tasks/{task.id}/reports", content=body, headers={"Content-Type": BINARY}
    )
    results = answer.json()["results"]
    assert [result["status"] for result in results] == [201, 200, 422, 410]
    assert [result["report_id"][0] for result in results] == list("aabc")
    assert [set(result["problem"]) for result in results[2:]] == [{"type", "title", "status", "detail"}] * 2


def test_batches_are_taken_once(served: tuple[Any, Task]) -> None:
    service, task = served
    body = SECURE.unsigned(task.routing.batch_bytes(6), 8).tobytes()
    hop = service.at("analyzer", "hop")
    headers = {"Content-Type": BINARY}
    url = f"/v1/tasks/{task.id}/batches/"
    assert hop.post(url + "1.0.1", content=body, headers=headers).status_code == 201
    assert hop.post(url + "1.0.1", content=body, headers=headers).status_code == 200
    problem(hop.post(url + "1.0.1", content=body[::-1], headers=headers), 409, "batch-differs")
    problem(hop.post(url + "1.0.1", content=body[:-1], headers=headers), 422, "report-length")
    for name in ("1.0.2", "x", "01.0.1", "%31.0.1.", "9.9.9"):
        problem(hop.post(url + name, content=body, headers=headers), 404, "batch-unknown")
    # What opens for nobody is read, counted as missing, and blocks nothing.
    assert service.analyzer.read_all() == 1
    assert hop.post(url + "1.0.1", content=body, headers=headers).status_code == 200
    assert service.analyzer.read_all() == 0
    estimate = service.at("analyzer", "read").get(f"/v1/tasks/{task.id}/estimate").json()
    assert estimate["time"] == 6 and estimate["dropped"] > 0 and estimate["bound"] > task.plan.error_bound


@pytest.mark.parametrize("body", [b"", b"{", b"null", b"[]", b"\xff\xfe", b'{"version": 1}', b'{"version": 2}', b"7"])
@pytest.mark.parametrize("server", ["shuffler", "analyzer"])
def test_what_is_no_task(server: str, body: bytes, served: tuple[Any, Task]) -> None:
    answer = served[0].at(server, "admin").post("/v1/tasks", content=body, headers={"Content-Type": JSON})
    problem(answer, 400)


def test_tasks_to_another_key(served: tuple[Any, Task], plan_named: Callable[[str], Any]) -> None:
    task = Task.create(plan_named("binary rr"), PrivateKey.generate().public, bits=SECURE)
    admin = served[0].at("analyzer", "admin")
    answer = admin.post("/v1/tasks", content=task.text.encode(), headers={"Content-Type": JSON})
    assert "must be this analyzer's" in problem(answer, 400)["detail"]


def test_a_task_is_served_once(make_service: Callable[..., Any], make_task: Callable[..., Task]) -> None:
    service, task = make_service(), make_task("binary rr")
    for server in ("shuffler", "analyzer"):
        for status in (201, 200, 200):
            answer = service.at(server, "admin").post(
                "/v1/tasks", content=task.text.encode() + b"\n", headers={"Content-Type": JSON}
            )
            assert (answer.status_code, answer.json()) == (status, {"task_id": task.id})


def test_nothing_secret_is_logged_by_anything(
    caplog: pytest.LogCaptureFixture, served: tuple[Any, Task], key: PrivateKey
) -> None:
    """All loggers at their most talkative, in a run with refusals and a bug."""
    service, task = served
    with caplog.at_level(logging.DEBUG):
        sent = service.send(task, [1] * 30)
        service.work()
        put(service, task, "0" * 32, "f" * 32, b"marked-body")
        service.shuffler.desk = None
        problem(put(service, task, "0" * 32, "f" * 32, b""), 500, "internal")
    said = " ".join(f"{record.getMessage()} {record.__dict__}" for record in caplog.records)
    secrets = (*service.tokens.secrets.values(), key.text, key.raw.hex(), "marked-body", "Bearer")
    assert not [secret for secret in (*secrets, *(report.seat for report in sent)) if secret in said]


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
            body = single_body(new_id(bits=SECURE), task.report(value, batches, bits=SECURE))
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
