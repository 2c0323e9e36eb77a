"""`shuffledp serve`: a shuffler, an analyzer, both, or a whole cascade, for as long as one likes."""

import json
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, TypeVar

import typer

from shuffledp.errors import ParameterError

if TYPE_CHECKING:
    from shuffledp.service.serving import Server

S = TypeVar("S", bound=Any)

serve_app = typer.Typer(help="Run a shuffler, an analyzer, both, or a cascade, until interrupted.")

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

AllowOrigin = Annotated[
    list[str] | None,
    typer.Option(help="A web page that browsers may call it from; repeat it for more.", metavar="ORIGIN"),
]


@serve_app.command("shuffler")
def serve_shuffler(
    store: Store,
    keys: Keys,
    analyzer: Annotated[
        str,
        typer.Option("--analyzer", "--next", help="Where batches go: the analyzer or the next hop.", metavar="URL"),
    ],
    task: Tasks = None,
    campaign: Campaigns = None,
    hop: Annotated[
        int | None,
        typer.Option("--hop", help="Which hop of a cascade this is, from 1, with its --keys.", metavar="N"),
    ] = None,
    next_token: Annotated[
        Path | None, typer.Option(help="The token of the next server for hops; of --keys if left out.", metavar="FILE")
    ] = None,
    port: Port = 8001,
    host: Host = "127.0.0.1",
    tls_cert: TlsCert = None,
    tls_key: TlsKey = None,
    uds: Uds = None,
    behind_proxy: BehindProxy = False,
    max_rate: MaxRate = None,
    max_at_once: MaxAtOnce = None,
    allow_origin: AllowOrigin = None,
    lease_seconds: Lease = 60.0,
) -> None:
    """Seats, reports and batches: mixes what it cannot read."""
    from shuffledp.service.limits import Limits
    from shuffledp.service.origins import Origins
    from shuffledp.service.serving import Address

    address = Address(host=host, port=port, tls_cert=tls_cert, tls_key=tls_key, uds=uds, behind_proxy=behind_proxy)
    limits, origins = Limits(max_rate, max_at_once), Origins.of(allow_origin)

    def make() -> "Server":
        from shuffledp.cli.foreign_keys import doubt_of_tokens

        layer, token = _Layered.of(hop, keys), _next_token(keys, next_token)
        texts = _texts(task, campaign)
        made = _shuffler(store, keys, analyzer, texts, address, lease_seconds, limits, layer, token, origins)
        if doubt := doubt_of_tokens(analyzer, token):
            typer.echo(f"warning: {doubt}", err=True)
        return made

    run_servers({"shuffler" if hop is None else f"hop {hop}": (address, make)})


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
    allow_origin: AllowOrigin = None,
    ledger: Annotated[
        Path | None,
        typer.Option(help="A budget that whatever is served is charged to.", metavar="FILE"),
    ] = None,
    page: Page = "auto",
) -> None:
    """Opens full batches, adds each up once, publishes estimates."""
    from shuffledp.service.limits import Limits
    from shuffledp.service.origins import Origins
    from shuffledp.service.serving import Address

    address = Address(host=host, port=port, tls_cert=tls_cert, tls_key=tls_key, uds=uds, behind_proxy=behind_proxy)
    limits, origins = Limits(max_rate, max_at_once), Origins.of(allow_origin)

    def make() -> "Server":
        return _analyzer(store, keys, _texts(task, campaign), address, limits, ledger, origins, page)

    run_servers({"analyzer": (address, make)}, page=None if page == "off" else address.url)


@serve_app.command("all")
def serve_all(
    folder: Annotated[Path, typer.Option("--folder", help="Where both databases are.", metavar="FOLDER")],
    keys: Keys,
    task: Tasks = None,
    campaign: Campaigns = None,
    port: Port = 8001,
    allow_origin: AllowOrigin = None,
    lease_seconds: Lease = 60.0,
) -> None:
    """Both servers in one process, the analyzer on the next port: for development, as nobody is then separate."""
    from shuffledp.service.origins import Origins
    from shuffledp.service.serving import Address

    shuffler, analyzer, origins = Address(port=port), Address(port=port + 1), Origins.of(allow_origin)

    def texts() -> list[str]:
        return _texts(task, campaign)

    def make_shuffler() -> "Server":
        store = str(folder / "shuffler.db")
        return _shuffler(store, keys, analyzer.url, texts(), shuffler, lease_seconds, origins=origins)

    def make_analyzer() -> "Server":
        served = texts()
        folder.mkdir(parents=True, exist_ok=True)
        return _analyzer(str(folder / "analyzer.db"), keys, served, analyzer, origins=origins)

    run_servers({"analyzer": (analyzer, make_analyzer), "shuffler": (shuffler, make_shuffler)}, page=analyzer.url)


@serve_app.command("cascade")
def serve_cascade(
    folder: Annotated[Path, typer.Option("--folder", help="Where all databases are.", metavar="FOLDER")],
    keys: Annotated[Path, typer.Option(help="The analyzer's folder of keys.", metavar="FOLDER")],
    hop: Annotated[
        list[Path], typer.Option("--hop", help="A hop's folder of keys; repeat it, first hop first.", metavar="FOLDER")
    ],
    task: Tasks = None,
    campaign: Campaigns = None,
    port: Port = 8001,
    allow_origin: AllowOrigin = None,
    lease_seconds: Lease = 60.0,
) -> None:
    """All hops of a cascade and the analyzer in one process, on ports that follow each other: for a trial only."""
    from shuffledp.service.hops import LEAST_HOPS, MOST_HOPS
    from shuffledp.service.keys import TOKENS, load_tokens
    from shuffledp.service.origins import Origins
    from shuffledp.service.serving import Address
    from shuffledp.service.tokens import HOP

    if not LEAST_HOPS <= len(hop) <= MOST_HOPS:
        problem = f"must be given {LEAST_HOPS} or {MOST_HOPS} times"
        raise ParameterError("hop", f"given {len(hop)} times", problem, "serve all runs one shuffler")
    addresses = [Address(port=port + place) for place in range(len(hop) + 1)]
    folders, origins = [*hop, keys], Origins.of(allow_origin)

    def make_hop(number: int) -> "Server":
        own, following = addresses[number - 1], addresses[number]
        store, token = str(folder / f"hop-{number}.db"), load_tokens(folders[number] / TOKENS).secrets[HOP]
        layer = _Layered.of(number, hop[number - 1])
        texts = _texts(task, campaign)
        # Pages report to the first hop only.
        seen = origins if number == 1 else None
        return _shuffler(store, hop[number - 1], following.url, texts, own, lease_seconds, None, layer, token, seen)

    def make_analyzer() -> "Server":
        served = _texts(task, campaign)
        folder.mkdir(parents=True, exist_ok=True)
        return _analyzer(str(folder / "analyzer.db"), keys, served, addresses[-1], origins=origins)

    hops = {f"hop {number}": (addresses[number - 1], partial(make_hop, number)) for number in range(len(hop), 0, -1)}
    run_servers({"analyzer": (addresses[-1], make_analyzer), **hops})


@dataclass(frozen=True)
class _Layered:
    """Which hop a shuffler is, and its private key, before worker processes are given it."""

    number: int
    key: Any

    @classmethod
    def of(cls, number: int | None, keys: Path) -> "_Layered | None":
        """The hop of this number with the keys of a folder; None where it is no hop of a cascade."""
        from shuffledp.service.hops import MOST_HOPS
        from shuffledp.service.keys import load_hop_key

        if number is None:
            return None
        if not 1 <= number <= MOST_HOPS:
            raise ParameterError("hop", number, f"must lie in 1..{MOST_HOPS}", "leave it out for one shuffler")
        return cls(number, load_hop_key(keys))

    def layer(self) -> Any:
        """What takes the hop's layer off."""
        from shuffledp.service.shuffler.layers import Layer
        from shuffledp.service.shuffler.peeling import PeelingWorkers

        return Layer(self.number, self.key.public, PeelingWorkers(self.key))


def _next_token(keys: Path, file: Path | None) -> str:
    """What a shuffler is let in with at the server after it."""
    from shuffledp.cli.foreign_keys import check_roles
    from shuffledp.service.keys import load_token, load_tokens
    from shuffledp.service.tokens import HOP

    if file is not None:
        return load_token(file)
    tokens = load_tokens(keys)
    check_roles(keys, tokens, HOP)
    return tokens.secrets[HOP]


def _shuffler(
    store: str,
    keys: Path,
    analyzer: str,
    texts: list[str],
    address: Any,
    lease_seconds: float,
    limits: Any = None,
    hop: _Layered | None = None,
    next_token: str | None = None,
    origins: Any = None,
) -> "Server":
    from shuffledp.cli.foreign_keys import check_roles, check_task_keys
    from shuffledp.service.keys import load_tokens
    from shuffledp.service.serving import uvicorn_server
    from shuffledp.service.shuffler.app import shuffler_app
    from shuffledp.service.shuffler.sending import post_to
    from shuffledp.service.shuffler.server import ShufflerServer
    from shuffledp.service.store import open_shuffler_store
    from shuffledp.service.tokens import ENROL, HOP

    tokens = load_tokens(keys)
    check_roles(keys, tokens, ENROL, HOP)
    if hop is None:
        for doubt in check_task_keys(keys, texts):
            typer.echo(f"warning: {doubt}", err=True)
    post = post_to(analyzer, tokens.secrets[HOP] if next_token is None else next_token)
    with _closed_if_refused(open_shuffler_store(store)) as opened:
        layer = None if hop is None else hop.layer()
        server = ShufflerServer(opened, post=post, lease_seconds=lease_seconds, layer=layer)
        for text in texts:
            server.add_task(text)
    return uvicorn_server(shuffler_app(server, tokens, limits, origins), address)


def _analyzer(
    store: str,
    keys: Path,
    texts: list[str],
    address: Any,
    limits: Any = None,
    ledger: Path | None = None,
    origins: Any = None,
    page: str = "auto",
) -> "Server":
    from shuffledp.cli.foreign_keys import check_roles, where_keys_went
    from shuffledp.dashboard.access import Access
    from shuffledp.dashboard.app import with_dashboard
    from shuffledp.service.analyzer.app import analyzer_app
    from shuffledp.service.analyzer.opening import Opener
    from shuffledp.service.analyzer.server import AnalyzerServer
    from shuffledp.service.keys import ANALYZER, MODELS, load_tokens
    from shuffledp.service.serving import uvicorn_server
    from shuffledp.service.store import open_analyzer_store
    from shuffledp.service.tokens import HOP

    tokens, (key, *older) = load_tokens(keys), ANALYZER.ring(keys)
    # Folders from before there were campaigns have none.
    signing = MODELS.ring(keys) if MODELS.files(keys) else ()
    check_roles(keys, tokens, HOP)
    with where_keys_went(keys), _closed_if_refused(open_analyzer_store(store)) as opened:
        server = AnalyzerServer(
            opened,
            key=key,
            opener=Opener(key),
            signing=signing[0] if signing else None,
            ledger=ledger,
            # Workers of an older key begin with its first batch.
            older={each.public: Opener(each) for each in older},
            older_signing=tuple(signing[1:]),
        )
        for text in texts:
            server.add_task(text)
    app = analyzer_app(server, tokens, limits, origins)
    serving = uvicorn_server(app, address)
    if page != "off":
        access = Access.at(tokens, address, always=page == "login")
        with_dashboard(app, access, ledger=ledger, limits=limits, is_over=lambda: serving.should_exit)
    return serving


@contextmanager
def _closed_if_refused(opened: S) -> Iterator[S]:
    """A store that is let go of where what it has, or is to take, is refused."""
    try:
        yield opened
    except BaseException:
        opened.close()
        raise


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


def run_servers(roles: "dict[str, tuple[Any, Callable[[], Server]]]", page: str | None = None) -> None:
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
        for server in servers:
            # What whoever starts it should know, of a server that has anything to say.
            for words in getattr(server.config.app.state.server, "cautions", ()):  # type: ignore[union-attr]
                typer.echo(words, err=True)
        if page is not None:
            typer.echo(f"look at it in a browser: {page}/", err=True)
        typer.echo("interrupt (Ctrl-C) to stop; what was acknowledged is on disk", err=True)
        run_until_told(servers, sockets, lambda words: typer.echo(words, err=True))
