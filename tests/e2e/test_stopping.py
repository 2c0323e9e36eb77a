"""A server that is told to stop ends in five seconds, whatever it reads, and says what it leaves: real processes."""

import os
import signal
import socket
import sqlite3
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import httpx
import pytest

from shuffledp import BinarySum, Privacy
from shuffledp.randomness import RandomBits
from shuffledp.service.client import Client
from shuffledp.service.keys import load_public_key, load_tokens, make_keys
from shuffledp.service.task import Task
from shuffledp.service.wire import CIPHERTEXT_BYTES, SentReport, pack_upload

COMMAND = [sys.executable, "-m", "shuffledp"]
SECONDS = 5.0


@dataclass
class Setting:
    """Keys, a task, and a folder for stores."""

    folder: Path
    task: Task

    def token(self, role: str) -> str:
        return load_tokens(self.folder / "keys").secrets[role]

    def client(self, port: int, role: str) -> httpx.Client:
        headers = {"Authorization": f"Bearer {self.token(role)}"}
        return httpx.Client(base_url=f"http://127.0.0.1:{port}", headers=headers, timeout=60)


def prepared(folder: Path, users: int) -> Setting:
    make_keys(folder / "keys", bits=RandomBits.secure())
    plan = BinarySum.plan(users=users, privacy=Privacy(2, 1e-3), method="coins")
    task = Task.create(plan, load_public_key(folder / "keys"), bits=RandomBits.secure())
    task.save(folder / "task.json")
    return Setting(folder, task)


def free_ports(count: int) -> list[int]:
    with ExitStack() as kept:
        sockets = [kept.enter_context(socket.create_server(("127.0.0.1", 0))) for _ in range(count)]
        return [each.getsockname()[1] for each in sockets]


@contextmanager
def serving(
    setting: Setting, role: str, port: int, *more: str, command: Sequence[str] = COMMAND
) -> Iterator["subprocess.Popen[str]"]:
    """A server as a process; killed at the end if it is still there."""
    words = [role, "--store", str(setting.folder / f"{role}.db"), "--keys", str(setting.folder / "keys")]
    words += ["--task", str(setting.folder / "task.json"), "--port", str(port), *more]
    process = subprocess.Popen([*command, "serve", *words], stderr=subprocess.PIPE, text=True)
    try:
        until(lambda: answers(port), process)
        yield process
    finally:
        if process.poll() is None:
            process.kill()
        process.communicate()


def answers(port: int) -> bool:
    try:
        return httpx.get(f"http://127.0.0.1:{port}/readyz").status_code == 200
    except httpx.HTTPError:
        return False


def until(condition, process, seconds: float = 60.0) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert process.poll() is None and time.monotonic() < deadline
        time.sleep(0.05)


def told_to_stop(process: "subprocess.Popen[str]", number: int = signal.SIGTERM) -> tuple[float, str]:
    """How long it took, and what it said."""
    begun = time.monotonic()
    process.send_signal(number)
    said = process.communicate(timeout=60)[1]
    return time.monotonic() - begun, said


def drip(port: int, path: str, token: str, kind: str) -> socket.socket:
    """An upload that sends a byte now and then, for as long as it may."""
    connection = socket.create_connection(("127.0.0.1", port))
    head = f"POST {path} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {token}\r\nContent-Type: {kind}\r\n"
    connection.sendall(f"{head}Content-Length: 1000000\r\n\r\n".encode())

    def send() -> None:
        try:
            while True:
                connection.sendall(b"x")
                time.sleep(0.2)
        except OSError:
            pass

    threading.Thread(target=send, daemon=True).start()
    return connection


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_slow_uploads_do_not_hold_a_server(tmp_path: Path, number: int) -> None:
    setting = prepared(tmp_path, 50)
    port, nobody = free_ports(2)
    with serving(setting, "shuffler", port, "--analyzer", f"http://127.0.0.1:{nobody}") as process:
        with Client(setting.task, f"http://127.0.0.1:{port}", setting.token("enrol")) as client:
            client.report(1)
        half_a_header = socket.create_connection(("127.0.0.1", port))
        half_a_header.sendall(b"POST /v1/tasks HTTP/1.1\r\nHos")
        path = f"/v1/tasks/{setting.task.id}/reports"
        slow = [drip(port, path, setting.token("enrol"), "application/octet-stream") for _ in range(3)]
        time.sleep(0.3)
        seconds, said = told_to_stop(process, number)
        assert seconds < SECONDS and process.returncode == 0, said
        assert "the shuffler leaves 1 reports acknowledged, 1 open batches" in said and "Traceback" not in said
        for each in (*slow, half_a_header):
            each.close()


def test_a_batch_that_is_being_opened_is_left_and_read_later(tmp_path: Path) -> None:
    """It would take a quarter of a minute: `estimate` says that it goes on, and nothing is read twice or lost."""
    setting = prepared(tmp_path, 100_000)
    [port] = free_ports(1)
    [size] = setting.task.routing.messages
    batch = os.urandom(setting.task.routing.batch_bytes(size))
    assert len(batch) // CIPHERTEXT_BYTES >= 100_000
    path = f"/v1/tasks/{setting.task.id}"
    estimate = [*COMMAND, "estimate", "--task", str(tmp_path / "task.json"), "--analyzer", f"http://127.0.0.1:{port}"]
    estimate += ["--token-file", str(tmp_path / "keys" / "read.token")]
    with serving(setting, "analyzer", port) as process:
        with setting.client(port, "hop") as hop:
            kind = {"Content-Type": "application/octet-stream"}
            name = f"{path}/batches/{setting.task.routing.batches_of(0)[0].batch_id}"
            assert hop.post(name, content=batch, headers=kind).status_code == 201
        with setting.client(port, "read") as read:
            told = read.get(f"{path}/estimate").json()
        assert told["estimate"] is None and told["opening"] == {"batch": 1, "of": 1}
        shown = subprocess.run(estimate, capture_output=True, text=True, check=True).stdout
        assert "none yet: opening batch 1 of 1" in shown
        seconds, said = told_to_stop(process)
        assert seconds < SECONDS and process.returncode == 0, said
        assert "the analyzer leaves 0 batches read, 1 that are not" in said and "Traceback" not in said
    # It goes on where it was.
    with serving(setting, "analyzer", port) as process, setting.client(port, "read") as read:
        assert read.get(path).json()["batches_received"] == 1 and read.get(path).json()["batches_read"] == 0


def test_a_batch_that_is_being_sealed_is_left_and_sealed_later(tmp_path: Path) -> None:
    """In pieces of one message, fifty a second, it would take long: they are thrown away, and nothing is lost."""
    setting = prepared(tmp_path, 400)
    [port] = free_ports(1)
    path = f"/v1/tasks/{setting.task.id}"
    slowly = (
        "import sys, time; from shuffledp.service.shuffler import desk, sealing; desk.PIECE_BYTES = 77; "
        "write = sealing.add_piece; sealing.add_piece = lambda *given: (write(*given), time.sleep(0.02)); "
        "from shuffledp import cli; cli.main(sys.argv[1:])"
    )
    with TakingBatches() as hop:
        url = f"http://127.0.0.1:{hop.server_port}"
        with serving(setting, "shuffler", port, "--analyzer", url, command=(sys.executable, "-c", slowly)) as process:
            with setting.client(port, "enrol") as client:
                seats = client.post(f"{path}/seats?count=400").json()["seats"]
                length = setting.task.routing.longest_report_bytes
                reports = [SentReport(os.urandom(16).hex(), seat["seat"], os.urandom(length)) for seat in seats]
                kind = {"Content-Type": "application/octet-stream"}
                assert client.post(f"{path}/reports", content=pack_upload(reports), headers=kind).is_success
            store = setting.folder / "shuffler.db"
            until(lambda: pieces_of(store) > 0, process)
            seconds, said = told_to_stop(process)
        assert seconds < SECONDS and process.returncode == 0, said
        assert "the shuffler leaves 400 reports acknowledged, 1 open batches" in said and "Traceback" not in said
        sent = b"".join(report.body for report in reports)
        messages = sorted(sent[at : at + CIPHERTEXT_BYTES] for at in range(0, len(sent), CIPHERTEXT_BYTES))
        assert hop.bodies == [] and 0 < pieces_of(store) < len(messages), "it was not in the middle of sealing"
        with serving(setting, "shuffler", port, "--analyzer", url) as process:
            until(lambda: hop.bodies, process)
        [body] = hop.bodies
    assert sorted(body[at : at + CIPHERTEXT_BYTES] for at in range(0, len(body), CIPHERTEXT_BYTES)) == messages


def pieces_of(store: Path) -> int:
    """How many pieces of a batch a shuffler has written."""
    with closing(sqlite3.connect(f"file:{store}?mode=ro", uri=True, timeout=5)) as database:
        names = database.execute("SELECT name FROM sqlite_master WHERE name LIKE 'pieces_%' AND type = 'table'")
        return sum(database.execute(f"SELECT COUNT(*) FROM {name}").fetchone()[0] for (name,) in names.fetchall())


class TakingBatches(HTTPServer):
    """A next hop that takes whatever comes."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Taking)
        self.bodies: list[bytes] = []
        threading.Thread(target=self.serve_forever, daemon=True).start()

    def __exit__(self, *_: object) -> None:
        self.shutdown()
        self.server_close()


class Taking(BaseHTTPRequestHandler):
    """Answers that it has the batch."""

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        if body:
            self.server.bodies.append(body)
        self.send_response(201)
        self.end_headers()

    def log_message(self, *_: object) -> None:
        """Nothing is said."""


def test_a_next_hop_that_does_not_answer_does_not_hold_a_server(tmp_path: Path) -> None:
    setting = prepared(tmp_path, 20)
    [port] = free_ports(1)
    with socket.create_server(("127.0.0.1", 0)) as silent:
        hung = f"http://127.0.0.1:{silent.getsockname()[1]}"
        with serving(setting, "shuffler", port, "--analyzer", hung) as process:
            with Client(setting.task, f"http://127.0.0.1:{port}", setting.token("enrol")) as client:
                client.report_many([0, 1] * 10)
            held, _ = silent.accept()
            with held:
                seconds, said = told_to_stop(process)
            assert seconds < SECONDS and process.returncode == 0, said
            assert "stopped in the middle of something" in said and "1 full batches that are not delivered" in said


def test_both_servers_of_one_process_say_what_they_leave(tmp_path: Path) -> None:
    setting = prepared(tmp_path, 20)
    port, _ = sorted(free_ports(2))
    words = ["all", "--folder", str(tmp_path / "live"), "--keys", str(tmp_path / "keys"), "--port", str(port)]
    command = [*COMMAND, "serve", *words, "--task", str(tmp_path / "task.json")]
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
    try:
        until(lambda: answers(port) and answers(port + 1), process)
        seconds, said = told_to_stop(process)
    finally:
        if process.poll() is None:
            process.kill()
            process.communicate()
    assert seconds < SECONDS and process.returncode == 0, said
    assert "the shuffler leaves" in said and "the analyzer leaves" in said and "start it again" in said
    assert setting.task.routing.users == 20
