"""`shuffledp serve`: a shuffler, an analyzer, or both, for as long as one likes."""

import json
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from shuffledp.errors import ParameterError

if TYPE_CHECKING:
    from shuffledp.service.serving import Server

serve_app = typer.Typer(help="Run a shuffler, an analyzer, or both, until interrupted.")

Keys = Annotated[Path, typer.Option(help="The folder of keys; a shuffler reads its tokens only.", metavar="FOLDER")]
Tasks = Annotated[list[Path] | None, typer.Option(help="A task to serve; repeat it for more.", metavar="FILE")]
Campaigns = Annotated[list[Path] | None, typer.Option(help="A campaign to serve; repeat it for more.", metavar="FILE")]
Store = Annotated[
    str, typer.Option(help="The database, made if it is new: a file, or postgresql://...", metavar="FILE|ADDRESS")
]
Host = Annotated[str, typer.Option(help="Another address than this machine's own needs TLS.", metavar="A")]
TlsCert = Annotated[Path | None, typer.Option(help="A certificate, PEM.", metavar="FILE")]
TlsKey = Annotated[Path | None, typer.Option(help="Its key, PEM.", metavar="FILE")]
Lease = Annotated[float, typer.Option(help="How long a seat waits for its report.", metavar="S")]
Port = Annotated[int, typer.Option(help="Where to listen.", metavar="P")]
Uds = Annotated[Path | None, typer.Option(help="A socket's file instead of a port, for a proxy here.", metavar="FILE")]
BehindProxy = Annotated[bool, typer.Option("--behind-proxy", help="TLS ends at a proxy in front: plain HTTP anywhere.")]
MaxRate = Annotated[float | None, typer.Option(help="Requests a second of one role's token.", metavar="R")]
Page = Annotated[
    Literal["auto", "login", "off"],
    typer.Option(help="The page for browsers: asks for the token unless it is this machine's own, always, or none."),
]
MaxAtOnce = Annotated[int | None, typer.Option(help="Requests of one role's token under way at once.", metavar="N")]


@serve_app.command("shuffler")
def serve_shuffler(
    store: Store,
    keys: Keys,
    analyzer: Annotated[str, typer.Option(help="Where full batches go.", metavar="URL")],
    task: Tasks = None,
    campaign: Campaigns = None,
    port: Port = 8001,
    host: Host = "127.0.0.1",
    tls_cert: TlsCert = None,
    tls_key: TlsKey = None,
    uds: Uds = None,
    behind_proxy: BehindProxy = False,
    max_rate: MaxRate = None,
    max_at_once: MaxAtOnce = None,
    lease_seconds: Lease = 60.0,
) -> None:
    """Seats, reports and batches: mixes what it cannot read."""
    from shuffledp.service.limits import Limits
    from shuffledp.service.serving import Address

    address = Address(host=host, port=port, tls_cert=tls_cert, tls_key=tls_key, uds=uds, behind_proxy=behind_proxy)
    limits = Limits(max_rate, max_at_once)

    def make() -> "Server":
        return _shuffler(store, keys, analyzer, _texts(task, campaign), address, lease_seconds, limits)

    _run({"shuffler": (address, make)})


@serve_app.command("analyzer")
def serve_analyzer(
    store: Store,
    keys: Keys,
    task: Tasks = None,
    campaign: Campaigns = None,
    port: Port = 8002,
    host: Host = "127.0.0.1",
    tls_cert: TlsCert = None,
    tls_key: TlsKey = None,
    uds: Uds = None,
    behind_proxy: BehindProxy = False,
    max_rate: MaxRate = None,
    max_at_once: MaxAtOnce = None,
    ledger: Annotated[
        Path | None,
        typer.Option(help="A budget that whatever is served is charged to.", metavar="FILE"),
    ] = None,
    page: Page = "auto",
) -> None:
    """Opens full batches, adds each up once, publishes estimates."""
    from shuffledp.service.limits import Limits
    from shuffledp.service.serving import Address

    address = Address(host=host, port=port, tls_cert=tls_cert, tls_key=tls_key, uds=uds, behind_proxy=behind_proxy)
    limits = Limits(max_rate, max_at_once)

    def make() -> "Server":
        return _analyzer(store, keys, _texts(task, campaign), address, limits, ledger, page)

    _run({"analyzer": (address, make)}, page=None if page == "off" else address.url)


@serve_app.command("all")
def serve_all(
    folder: Annotated[Path, typer.Option("--folder", help="Where both databases are.", metavar="FOLDER")],
    keys: Keys,
    task: Tasks = None,
    campaign: Campaigns = None,
    port: Port = 8001,
    lease_seconds: Lease = 60.0,
) -> None:
    """Both servers in one process, the analyzer on the next port: for development, as nobody is then separate."""
    from shuffledp.service.serving import Address

    shuffler, analyzer = Address(port=port), Address(port=port + 1)

    def texts() -> list[str]:
        return _texts(task, campaign)

    def make_shuffler() -> "Server":
        return _shuffler(str(folder / "shuffler.db"), keys, analyzer.url, texts(), shuffler, lease_seconds)

    def make_analyzer() -> "Server":
        served = texts()
        folder.mkdir(parents=True, exist_ok=True)
        return _analyzer(str(folder / "analyzer.db"), keys, served, analyzer)

    _run({"analyzer": (analyzer, make_analyzer), "shuffler": (shuffler, make_shuffler)}, page=analyzer.url)


def _shuffler(
    store: str, keys: Path, analyzer: str, texts: list[str], address: Any, lease_seconds: float, limits: Any = None
) -> "Server":
    from shuffledp.service.keys import load_tokens
    from shuffledp.service.serving import uvicorn_server
    from shuffledp.service.shuffler.app import shuffler_app
    from shuffledp.service.shuffler.server import ShufflerServer, post_to
    from shuffledp.service.store import open_shuffler_store
    from shuffledp.service.tokens import HOP

    tokens = load_tokens(keys)
    post = post_to(analyzer, tokens.secrets[HOP])
    server = ShufflerServer(open_shuffler_store(store), post=post, lease_seconds=lease_seconds)
    for text in texts:
        server.add_task(text)
    return uvicorn_server(shuffler_app(server, tokens, limits), address)


def _analyzer(
    store: str,
    keys: Path,
    texts: list[str],
    address: Any,
    limits: Any = None,
    ledger: Path | None = None,
    page: str = "auto",
) -> "Server":
    from shuffledp.dashboard.access import Access
    from shuffledp.dashboard.app import with_dashboard
    from shuffledp.service.analyzer.app import analyzer_app
    from shuffledp.service.analyzer.opening import Opener
    from shuffledp.service.analyzer.server import AnalyzerServer
    from shuffledp.service.keys import SIGNING, load_private_key, load_signing_key, load_tokens
    from shuffledp.service.serving import uvicorn_server
    from shuffledp.service.store import open_analyzer_store

    tokens, key = load_tokens(keys), load_private_key(keys)
    # Folders from before there were campaigns have none.
    signing = load_signing_key(keys) if (keys / SIGNING).exists() else None
    server = AnalyzerServer(open_analyzer_store(store), key=key, opener=Opener(key), signing=signing, ledger=ledger)
    for text in texts:
        server.add_task(text)
    app = analyzer_app(server, tokens, limits)
    serving = uvicorn_server(app, address)
    if page != "off":
        access = Access.at(tokens, address, always=page == "login")
        with_dashboard(app, access, ledger=ledger, limits=limits, is_over=lambda: serving.should_exit)
    return serving


def _texts(tasks: list[Path] | None, campaigns: list[Path] | None) -> list[str]:
    """The texts of tasks and campaigns; each must be what it is called."""
    return [
        *(_text(path, "task", "a task", "--campaign") for path in tasks or ()),
        *(_text(path, "campaign", "a campaign", "--task") for path in campaigns or ()),
    ]


def _text(path: Path, parameter: str, kind: str, other: str) -> str:
    """A file's text, of which only what kind of document it is is looked at: a shuffler understands no more of it."""
    from shuffledp.files import kind_of_document

    way_out = f"create it with `shuffledp {parameter} create`"
    try:
        text = path.read_text("utf-8").strip()
        found = kind_of_document(json.loads(text))
    except (OSError, ValueError, RecursionError):
        raise ParameterError(parameter, path, f"must be {kind}'s file", way_out) from None
    if found in ("a task", "a campaign") and found != kind:
        raise ParameterError(parameter, path, f"must be {kind}'s file, not {found}'s", f"give it as {other}")
    return text


def _run(roles: "dict[str, tuple[Any, Callable[[], Server]]]", page: str | None = None) -> None:
    """Take every address, then make the servers and serve until one of them is told to stop; then all do.

    Args:
        roles: what each server is, with where it listens and how it is made.
        page: where a browser is answered; None where none is.
    """
    from shuffledp.service.serving import run_until_told
    from shuffledp.service.telemetry import log_to_stderr

    with ExitStack() as taken:
        sockets = [taken.enter_context(address.taken()) for address, _ in roles.values()]
        servers = [make() for _, make in roles.values()]
        log_to_stderr()
        for role, (address, _) in roles.items():
            typer.echo(f"{role} on {address.url}", err=True)
        if page is not None:
            typer.echo(f"look at it in a browser: {page}/", err=True)
        typer.echo("interrupt (Ctrl-C) to stop; what was acknowledged is on disk", err=True)
        run_until_told(servers, sockets, lambda words: typer.echo(words, err=True))
