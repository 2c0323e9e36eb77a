"""Servers that `shuffledp serve` runs: made from stores, keys and files of tasks, and undone where one is refused."""

import json
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import typer

from shuffledp.errors import ParameterError

if TYPE_CHECKING:
    from shuffledp.service.serving import Server

S = TypeVar("S", bound=Any)


@dataclass(frozen=True)
class Layered:
    """Which hop a shuffler is, and its private key, before worker processes are given it."""

    number: int
    key: Any

    @classmethod
    def of(cls, number: int | None, keys: Path) -> "Layered | None":
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


def make_shuffler(
    store: str,
    keys: Path,
    analyzer: str,
    texts: list[str],
    address: Any,
    lease_seconds: float,
    limits: Any = None,
    hop: Layered | None = None,
    next_token: str | None = None,
    origins: Any = None,
    undo: ExitStack | None = None,
) -> "Server":
    """A shuffler on its store that serves these tasks, and is to send to this address; it does not listen yet."""
    from shuffledp.cli.foreign_keys import check_roles, check_task_keys
    from shuffledp.service.keys import GATEWAY_CONFIGS, load_tokens
    from shuffledp.service.oblivious.gateway_keys import gateway_of
    from shuffledp.service.serving import uvicorn_server
    from shuffledp.service.shuffler.app import shuffler_app
    from shuffledp.service.shuffler.sending import post_to
    from shuffledp.service.shuffler.server import ShufflerServer
    from shuffledp.service.store import open_shuffler_store
    from shuffledp.service.tokens import ENROL, HOP

    tokens = load_tokens(keys)
    check_roles(keys, tokens, ENROL, HOP)
    gateway = gateway_of(keys)
    if hop is None:
        for doubt in check_task_keys(keys, texts):
            typer.echo(f"warning: {doubt}", err=True)
    post = post_to(analyzer, tokens.secrets[HOP] if next_token is None else next_token)
    with _gone_if_refused(open_shuffler_store(store), undo) as opened:
        layer = None if hop is None else hop.layer()
        server = ShufflerServer(opened, post=post, lease_seconds=lease_seconds, layer=layer)
        for text in texts:
            server.add_task(text)
    if gateway is not None:
        typer.echo(f"a gateway, too: relays may carry to it, from clients with {keys / GATEWAY_CONFIGS}", err=True)
    return uvicorn_server(shuffler_app(server, tokens, limits, origins, gateway), address)


def make_analyzer(
    store: str,
    keys: Path,
    texts: list[str],
    address: Any,
    limits: Any = None,
    ledger: Path | None = None,
    origins: Any = None,
    page: str = "auto",
    undo: ExitStack | None = None,
    fills: Any = None,
) -> "Server":
    """An analyzer on its store that serves these tasks, with its page for browsers; it does not listen yet."""
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
    with where_keys_went(keys), _gone_if_refused(open_analyzer_store(store), undo) as opened:
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
        with_dashboard(app, access, ledger=ledger, limits=limits, is_over=lambda: serving.should_exit, fills=fills)
    return serving


@contextmanager
def _gone_if_refused(opened: S, undo: ExitStack | None) -> Iterator[S]:
    """A store that is let go of where what it has, or is to take, is refused, now or before all servers are made.

    Args:
        opened: the store; if it was made for this server, nothing is left of it.
        undo: what is done where another server is refused; None where there is no other.
    """
    from shuffledp.service.store import discard

    try:
        yield opened
    except BaseException:
        discard(opened)
        raise
    if undo is not None:
        undo.callback(discard, opened)


def make_folder(folder: Path, undo: ExitStack) -> None:
    """Make a folder for stores; it goes again where no server is made."""
    if not folder.exists():
        folder.mkdir(parents=True)
        undo.callback(_remove_empty, folder)


def _remove_empty(folder: Path) -> None:
    with suppress(OSError):
        folder.rmdir()


def texts_of(tasks: list[Path] | None, campaigns: list[Path] | None) -> list[str]:
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


def run_servers(
    roles: "dict[str, tuple[Any, Callable[[ExitStack], Server]]]", page: str | None = None, *, silent: bool = False
) -> None:
    """Take every address, then make the servers and serve until one of them is told to stop; then all do.

    Args:
        roles: what each server is, with where it listens and how it is made, given what is done where one is refused.
        page: where a browser is answered; None where none is.
        silent: write no log, and say nothing at the end.
    """
    from shuffledp.service.serving import run_until_told
    from shuffledp.service.telemetry import log_nothing, log_to_stderr

    with ExitStack() as taken:
        sockets = [taken.enter_context(address.taken()) for address, _ in roles.values()]
        with ExitStack() as undo:
            servers = [make(undo) for _, make in roles.values()]
            undo.pop_all()
        (log_nothing if silent else log_to_stderr)()
        for role, (address, _) in roles.items():
            typer.echo(f"{role} on {address.url}", err=True)
        for server in servers:
            # What whoever starts it should know, of a server that has anything to say.
            for words in getattr(server.config.app.state.server, "cautions", ()):  # type: ignore[union-attr]
                typer.echo(words, err=True)
        if page is not None:
            typer.echo(f"look at it in a browser: {page}/", err=True)
        kept = "nothing is written down" if silent else "what was acknowledged is on disk"
        typer.echo(f"interrupt (Ctrl-C) to stop; {kept}", err=True)
        run_until_told(servers, sockets, lambda words: None if silent else typer.echo(words, err=True))
