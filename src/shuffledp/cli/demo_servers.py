"""Both servers of a demonstration: processes of their own, waited for, and ended with it."""

import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from shuffledp.cli.progress import working
from shuffledp.cli.servers import calls_to
from shuffledp.errors import ParameterError, ShuffleDPError

if TYPE_CHECKING:
    from shuffledp.service.client.calls import Calls

SHUFFLEDP = (sys.executable, "-m", "shuffledp")
"""How this program is called."""

_PATIENCE = 60.0


def new_folder(folder: Path) -> Path:
    """A folder for this run: keys and stores are never used twice."""
    folder.mkdir(parents=True, exist_ok=True)
    for number in range(1, 10_000):
        run = folder / f"run-{number}"
        try:
            run.mkdir()
        except FileExistsError:
            continue
        return run
    raise ParameterError("folder", folder, "holds 10,000 runs", "delete some")


def _free_ports(count: int) -> list[int]:
    """Ports that nobody listens on."""
    with ExitStack() as kept:
        sockets = [kept.enter_context(socket.create_server(("127.0.0.1", 0))) for _ in range(count)]
        return [each.getsockname()[1] for each in sockets]


@dataclass(frozen=True)
class DemoServer:
    """One of them, and where it writes."""

    role: str
    process: subprocess.Popen[bytes]
    log: Path


@dataclass(frozen=True)
class DemoServers:
    """Both, as they are reached.

    Attributes:
        shuffler: its address.
        analyzer: its address.
        mixing: questions to the shuffler.
        adding: questions to the analyzer.
        servers: the processes by their roles.
    """

    shuffler: str
    analyzer: str
    mixing: "Calls"
    adding: "Calls"
    servers: dict[str, DemoServer]


@contextmanager
def served(run: Path, token: str, *more: str, shown: bool) -> Iterator[DemoServers]:
    """Both servers, ready for requests, ended with the block.

    Args:
        run: the folder of this run, with its keys.
        token: what may ask them.
        *more: options of both, as they are typed.
        shown: whether it is said that they start.
    """
    shuffler, analyzer = (f"http://127.0.0.1:{port}" for port in _free_ports(2))
    with (
        _processes(run, shuffler, analyzer, more) as servers,
        calls_to(shuffler, "shuffler", token) as mixing,
        calls_to(analyzer, "analyzer", token) as adding,
    ):
        with working("starting the servers", shown=shown):
            for role, calls in (("analyzer", adding), ("shuffler", mixing)):
                wait_until(partial(_is_ready, calls), servers[role], f"does not answer at {calls.url}")
        yield DemoServers(shuffler, analyzer, mixing, adding, servers)


@contextmanager
def _processes(run: Path, shuffler: str, analyzer: str, more: tuple[str, ...]) -> Iterator[dict[str, DemoServer]]:
    common = ["--keys", str(run / "keys"), *more]
    servers: dict[str, DemoServer] = {}
    try:
        for role, url, own in (("analyzer", analyzer, ()), ("shuffler", shuffler, ("--analyzer", analyzer))):
            words = ("serve", role, "--store", str(run / f"{role}.db"), "--port", url.rpartition(":")[2], *own)
            path = run / f"{role}.log"
            with path.open("wb") as log:
                process = subprocess.Popen([*SHUFFLEDP, *words, *common], stdout=log, stderr=log)
            servers[role] = DemoServer(role, process, path)
        yield servers
    finally:
        for server in servers.values():
            server.process.terminate()
        for server in servers.values():
            server.process.wait(timeout=30)


def wait_until(done: Callable[[], bool], server: DemoServer, complaint: str, seconds: float = _PATIENCE) -> None:
    """Wait as long as the server's process lives, and no longer than so many seconds."""
    deadline = time.monotonic() + seconds
    while not done():
        check_alive(server)
        if time.monotonic() > deadline:
            raise ShuffleDPError(
                f"the {server.role} runs but {complaint} after {seconds:g} s: see {server.log}, "
                "or try again when the machine is less busy."
            )
        time.sleep(0.1)


def check_alive(server: DemoServer) -> None:
    """Refuse to go on without it, in a sentence."""
    if (code := server.process.poll()) is not None:
        raise ShuffleDPError(f"the {server.role} has ended with code {code}: {server.log} says why.")


def say_where(page: str, *, opens: bool) -> None:
    """Say where a browser sees what happens, on standard error; open one only if that was asked for."""
    typer.echo(f"look at it in a browser: {page}", err=True)
    if opens:
        import webbrowser

        webbrowser.open(page)


def keep_running(both: DemoServers, *, shown: bool) -> None:
    """Wait until somebody interrupts it or tells it to stop, as long as both servers live."""
    sys.stdout.flush()
    if shown:
        typer.echo(f"The page stays at {both.analyzer}/ until you interrupt this (Ctrl-C).")
    # Without this a SIGTERM would leave both servers behind.
    told = (signal.SIGINT, signal.SIGTERM)
    before = {each: signal.signal(each, signal.default_int_handler) for each in told}
    try:
        while True:
            for server in both.servers.values():
                check_alive(server)
            time.sleep(0.2)
    except KeyboardInterrupt:
        return
    finally:
        for each, handler in before.items():
            signal.signal(each, handler)


def _is_ready(server: "Calls") -> bool:
    import httpx

    try:
        return server.once("GET", "/readyz").status_code == 200
    except httpx.HTTPError:
        return False
