"""The servers of a demonstration: processes of their own, waited for, and ended with it."""

import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import partial
from importlib.util import find_spec
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


def drawn(picture: Path, draw: Callable[[Path], None]) -> Path | None:
    """The picture of a run, drawn; None where nothing is installed that draws: the numbers are the answer without."""
    if find_spec("matplotlib") is None:
        return None
    draw(picture)
    return picture


def picture_in_words(picture: Path | None) -> str:
    """Where the picture is, or how to get one the next time."""
    return "none: pip install 'shuffledp[pictures]' draws one" if picture is None else str(picture)


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
    """All of them, as they are reached.

    Attributes:
        shuffler: its address, or the first hop's.
        analyzer: its address.
        mixing: questions to the shuffler, or to the first hop.
        adding: questions to the analyzer.
        servers: the processes by their roles.
    """

    shuffler: str
    analyzer: str
    mixing: "Calls"
    adding: "Calls"
    servers: dict[str, DemoServer]


@contextmanager
def served(
    run: Path, token: str, *more: str, shown: bool, hops: int = 0, mixing_token: str | None = None
) -> Iterator[DemoServers]:
    """All servers, ready for requests, ended with the block.

    Args:
        run: the folder of this run, with its keys, and those of hops in `hop-1` and so on.
        token: what may read the analyzer's estimates.
        *more: options of all, as they are typed.
        shown: whether it is said that they start.
        hops: how many shufflers a cascade has; 0 for one alone.
        mixing_token: what may ask the shuffler, or the first hop of a cascade; its exact counts are for admin only.
    """
    *mixers, analyzer = (f"http://127.0.0.1:{port}" for port in _free_ports(max(1, hops) + 1))
    with (
        _processes(run, [*mixers, analyzer], hops, more) as servers,
        calls_to(mixers[0], "shuffler", mixing_token or token) as mixing,
        calls_to(analyzer, "analyzer", token) as adding,
    ):
        with working("starting the servers", shown=shown):
            first = "shuffler" if not hops else "hop 1"
            for role, calls in (("analyzer", adding), (first, mixing)):
                wait_until(partial(_is_ready, calls), servers[role], f"does not answer at {calls.url}")
        yield DemoServers(mixers[0], analyzer, mixing, adding, servers)


def hop_folder(run: Path, number: int) -> Path:
    """Where the keys of a hop of this run are."""
    return run / f"hop-{number}"


def _typed(run: Path, urls: list[str], hops: int) -> Iterator[tuple[str, str, tuple[str, ...]]]:
    """Each server's role, its address, and what is typed for it; the analyzer, which is last, first."""
    front = hop_folder(run, 1) if hops else run / "keys"
    asked = ("--fill-from", urls[0], "--fill-token", str(front / "read.token"))
    yield "analyzer", urls[-1], ("analyzer", "--keys", str(run / "keys"), *asked)
    if not hops:
        yield "shuffler", urls[0], ("shuffler", "--keys", str(run / "keys"), "--analyzer", urls[-1])
    for number in range(hops, 0, -1):
        following = run / "keys" if number == hops else hop_folder(run, number + 1)
        own = ("--hop", str(number), "--keys", str(hop_folder(run, number)))
        onward = ("--next", urls[number], "--next-token", str(following / "hop.token"))
        yield f"hop {number}", urls[number - 1], ("shuffler", *own, *onward)


@contextmanager
def _processes(run: Path, urls: list[str], hops: int, more: tuple[str, ...]) -> Iterator[dict[str, DemoServer]]:
    servers: dict[str, DemoServer] = {}
    try:
        for role, url, own in _typed(run, urls, hops):
            name = role.replace(" ", "-")
            words = ("serve", *own, "--store", str(run / f"{name}.db"), "--port", url.rpartition(":")[2], *more)
            path = run / f"{name}.log"
            with path.open("wb") as log:
                process = subprocess.Popen([*SHUFFLEDP, *words], stdout=log, stderr=log)
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
