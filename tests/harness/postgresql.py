"""A PostgreSQL server of the tests' own: in a temporary folder, as a user without privileges, and with fsync on."""

import contextlib
import os
import pwd
import shutil
import socket
import subprocess
import tempfile
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psycopg
import pytest

USER, LOCKED, PASSWORD = "tester", "locked", "right and long enough"
_OPTIONS = (
    "fsync=on", "synchronous_commit=on", "listen_addresses=127.0.0.1", "shared_buffers=16MB", "max_connections=60",
    "max_wal_size=64MB", "log_min_messages=fatal",
)  # fmt: skip


def programs() -> Path | None:
    """The folder of the server's programs: Debian keeps them out of the path."""
    found = shutil.which("initdb")
    if found:
        return Path(found).parent
    return max(Path("/usr/lib/postgresql").glob("*/bin"), default=None, key=lambda folder: float(folder.parent.name))


@dataclass
class Server:
    """One server; each test has schemas of its own."""

    folder: Path
    programs: Path
    port: int
    settings: tuple[str, ...] = ()
    made: int = 0

    @property
    def data(self) -> Path:
        return self.folder / "data"

    def run(self, program: str, *words: str) -> None:
        """Run one of the server's programs as somebody who is not root."""
        command = [str(self.programs / program), *words]
        if os.geteuid() == 0:
            command = ["setpriv", f"--reuid={_nobody()}", f"--regid={_nobody()}", "--clear-groups", *command]
        with (self.folder / "output").open("ab") as output:
            subprocess.run(command, check=True, stdout=output, stderr=output, cwd=self.folder)

    def start(self) -> None:
        """Start it, and wait until it answers."""
        options = " ".join(f"-c {option}" for option in (*_OPTIONS, *self.settings))
        self.run("pg_ctl", "start", "-w", "-D", str(self.data), "-o", f"-p {self.port} -k {self.folder} {options}")

    def stop(self, mode: str = "immediate") -> None:
        """End it: in immediate mode as if the machine had lost its power, but for what the system has."""
        self.run("pg_ctl", "stop", "-w", "-D", str(self.data), "-m", mode)

    def address(self, keys: Path, schema: str, *, port: int | None = None, user: str = USER, **more: Any) -> str:
        """A store's address."""
        given = "".join(f"&{name}={value}" for name, value in more.items())
        where = f"postgresql://{user}@127.0.0.1:{port or self.port}/postgres"
        return f"{where}?batch_keys={keys}&schema={schema}{given}"

    def new_schema(self) -> str:
        """A name that no other test has."""
        self.made += 1
        return f"test_{os.getpid()}_{self.made}"

    def connect(self, schema: str | None = None) -> "psycopg.Connection[Any]":
        """A connection of the test's own."""
        options = f"-c search_path={schema}" if schema else ""
        return psycopg.connect(
            host="127.0.0.1", port=self.port, user=USER, dbname="postgres", autocommit=True, options=options
        )

    def files(self) -> Iterator[tuple[Path, bytes]]:
        """Everything that it has on disk, log included, after all of it was written there."""
        with self.connect() as db:
            db.execute("CHECKPOINT")
        for file in sorted(self.data.rglob("*")):
            if file.is_file():
                with contextlib.suppress(FileNotFoundError):
                    yield file, file.read_bytes()


def _nobody() -> int:
    """A user without privileges: the package's own, or nobody."""
    for name in ("postgres", "nobody"):
        with contextlib.suppress(KeyError):
            return pwd.getpwnam(name).pw_uid
    raise AssertionError("no user without privileges is known here")


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def require_programs() -> Path:
    """The server's programs; without them a test is skipped, but never where everything must be tested."""
    found = programs()
    if found is None:
        words = "no PostgreSQL server is installed here: apt-get install postgresql"
        if os.environ.get("CI") == "true":
            pytest.fail(words)
        pytest.skip(words)
    return found


@contextlib.contextmanager
def running_server(found: Path, *settings: str, segment: int = 1) -> Iterator[Server]:
    """A new server that ends with the block; its log comes in files of so many megabytes."""
    folder = Path(tempfile.mkdtemp(prefix="shuffledp-postgresql-"))
    if os.geteuid() == 0:
        os.chown(folder, _nobody(), _nobody())
    server = Server(folder, found, free_port(), settings)
    try:
        words = ("--no-sync", f"--wal-segsize={segment}", "-A", "trust", "-U", USER, "-E", "UTF8", "--locale=C")
        server.run("initdb", "-D", str(server.data), *words)
        access = server.data / "pg_hba.conf"
        access.write_text(f"host all {LOCKED} 127.0.0.1/32 scram-sha-256\n" + access.read_text())
        server.start()
        with server.connect() as db:
            db.execute(f"CREATE ROLE {LOCKED} LOGIN PASSWORD '{PASSWORD}'")
        try:
            yield server
        finally:
            server.stop()
    finally:
        shutil.rmtree(folder, ignore_errors=True)


@dataclass
class Proxy:
    """Hands bytes to a server and back, until it cuts all connections in the middle of whatever they do."""

    target: int
    port: int = 0
    _open: set[socket.socket] = field(default_factory=set)
    _lock: threading.Lock = field(default_factory=threading.Lock)
    cuts: int = 0

    def __post_init__(self) -> None:
        self._listening = socket.create_server(("127.0.0.1", 0))
        self.port = self._listening.getsockname()[1]
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self) -> None:
        while True:
            try:
                near, _ = self._listening.accept()
            except OSError:
                return
            try:
                far = socket.create_connection(("127.0.0.1", self.target))
            except OSError:
                near.close()
                continue
            for each in (near, far):
                # As both ends do: without it every answer waits for 40 milliseconds.
                each.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            with self._lock:
                self._open |= {near, far}
            for source, sink in ((near, far), (far, near)):
                threading.Thread(target=self._pump, args=(source, sink), daemon=True).start()

    def _pump(self, source: socket.socket, sink: socket.socket) -> None:
        with contextlib.suppress(OSError):
            while data := source.recv(1 << 16):
                sink.sendall(data)
        self._end([source, sink])

    def _end(self, ended: list[socket.socket]) -> None:
        for each in ended:
            with self._lock:
                self._open.discard(each)
            with contextlib.suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)
            each.close()

    def cut(self) -> None:
        """All connections end now."""
        self.cuts += 1
        with self._lock:
            ended = list(self._open)
        self._end(ended)

    def close(self) -> None:
        self._listening.close()
        self.cut()


def wait_until(truth: Any, words: str, seconds: float = 20.0) -> None:
    deadline = time.monotonic() + seconds
    while not truth():
        assert time.monotonic() < deadline, words
        time.sleep(0.05)
