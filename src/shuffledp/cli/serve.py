"""`shuffledp serve`: a shuffler, an analyzer, or both, for as long as one likes."""

from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from shuffledp.errors import ParameterError

if TYPE_CHECKING:
    from shuffledp.service.serving import Server

serve_app = typer.Typer(help="Run a shuffler, an analyzer, or both, until interrupted.")

Keys = Annotated[Path, typer.Option(help="The folder of keys; a shuffler reads its tokens only.", metavar="FOLDER")]
Tasks = Annotated[list[Path] | None, typer.Option(help="A task to serve; repeat it for more.", metavar="FILE")]
Store = Annotated[
    str, typer.Option(help="The database, made if it is new: a file, or postgresql://...", metavar="FILE|ADDRESS")
]
Host = Annotated[str, typer.Option(help="Another address than this machine's own needs TLS.", metavar="A")]
TlsCert = Annotated[Path | None, typer.Option(help="A certificate, PEM.", metavar="FILE")]
TlsKey = Annotated[Path | None, typer.Option(help="Its key, PEM.", metavar="FILE")]
Lease = Annotated[float, typer.Option(help="How long a seat waits for its report.", metavar="S")]
Port = Annotated[int, typer.Option(help="Where to listen.", metavar="P")]


@serve_app.command("shuffler")
def serve_shuffler(
    store: Store,
    keys: Keys,
    analyzer: Annotated[str, typer.Option(help="Where full batches go.", metavar="URL")],
    task: Tasks = None,
    port: Port = 8001,
    host: Host = "127.0.0.1",
    tls_cert: TlsCert = None,
    tls_key: TlsKey = None,
    lease_seconds: Lease = 60.0,
) -> None:
    """Seats, reports and batches: mixes what it cannot read."""
    from shuffledp.service.serving import Address

    address = Address(host=host, port=port, tls_cert=tls_cert, tls_key=tls_key)
    _run({"shuffler": (address, lambda: _shuffler(store, keys, analyzer, task, address, lease_seconds))})


@serve_app.command("analyzer")
def serve_analyzer(
    store: Store,
    keys: Keys,
    task: Tasks = None,
    port: Port = 8002,
    host: Host = "127.0.0.1",
    tls_cert: TlsCert = None,
    tls_key: TlsKey = None,
) -> None:
    """Opens full batches, adds each up once, publishes estimates."""
    from shuffledp.service.serving import Address

    address = Address(host=host, port=port, tls_cert=tls_cert, tls_key=tls_key)
    _run({"analyzer": (address, lambda: _analyzer(store, keys, task, address))})


@serve_app.command("all")
def serve_all(
    folder: Annotated[Path, typer.Option("--folder", help="Where both databases are.", metavar="FOLDER")],
    keys: Keys,
    task: Tasks = None,
    port: Port = 8001,
    lease_seconds: Lease = 60.0,
) -> None:
    """Both servers in one process, the analyzer on the next port: for development, as nobody is then separate."""
    from shuffledp.service.serving import Address

    shuffler, analyzer = Address(port=port), Address(port=port + 1)

    def make_shuffler() -> "Server":
        return _shuffler(str(folder / "shuffler.db"), keys, analyzer.url, task, shuffler, lease_seconds)

    def make_analyzer() -> "Server":
        folder.mkdir(parents=True, exist_ok=True)
        return _analyzer(str(folder / "analyzer.db"), keys, task, analyzer)

    _run({"analyzer": (analyzer, make_analyzer), "shuffler": (shuffler, make_shuffler)})


def _shuffler(
    store: str, keys: Path, analyzer: str, tasks: list[Path] | None, address: Any, lease_seconds: float
) -> "Server":
    from shuffledp.service.keys import load_tokens
    from shuffledp.service.serving import uvicorn_server
    from shuffledp.service.shuffler.app import shuffler_app
    from shuffledp.service.shuffler.server import ShufflerServer, post_to
    from shuffledp.service.store import open_shuffler_store
    from shuffledp.service.tokens import HOP

    tokens, texts = load_tokens(keys), list(map(_text, tasks or ()))
    post = post_to(analyzer, tokens.secrets[HOP])
    server = ShufflerServer(open_shuffler_store(store), post=post, lease_seconds=lease_seconds)
    for text in texts:
        server.add_task(text)
    return uvicorn_server(shuffler_app(server, tokens), address)


def _analyzer(store: str, keys: Path, tasks: list[Path] | None, address: Any) -> "Server":
    from shuffledp.service.analyzer.app import analyzer_app
    from shuffledp.service.analyzer.opening import Opener
    from shuffledp.service.analyzer.server import AnalyzerServer
    from shuffledp.service.keys import load_private_key, load_tokens
    from shuffledp.service.serving import uvicorn_server
    from shuffledp.service.store import open_analyzer_store

    tokens, key, texts = load_tokens(keys), load_private_key(keys), list(map(_text, tasks or ()))
    server = AnalyzerServer(open_analyzer_store(store), key=key, opener=Opener(key))
    for text in texts:
        server.add_task(text)
    return uvicorn_server(analyzer_app(server, tokens), address)


def _text(path: Path) -> str:
    """A task's text; a shuffler must not understand more of it."""
    try:
        return path.read_text("utf-8").strip()
    except (OSError, UnicodeDecodeError):
        raise ParameterError("task", path, "must be a task's file", "create it with `shuffledp task create`") from None


def _run(roles: "dict[str, tuple[Any, Callable[[], Server]]]") -> None:
    """Take every address, then make the servers and serve until one of them is told to stop; then all do.

    Args:
        roles: what each server is, with where it listens and how it is made.
    """
    from shuffledp.service.serving import run_until_told
    from shuffledp.service.telemetry import log_to_stderr

    with ExitStack() as taken:
        sockets = [taken.enter_context(address.taken()) for address, _ in roles.values()]
        servers = [make() for _, make in roles.values()]
        log_to_stderr()
        for role, (address, _) in roles.items():
            typer.echo(f"{role} on {address.url}", err=True)
        typer.echo("interrupt (Ctrl-C) to stop; what was acknowledged is on disk", err=True)
        run_until_told(servers, sockets, lambda words: typer.echo(words, err=True))
