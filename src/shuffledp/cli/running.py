"""Servers in one process, from the first address that is taken to the last word."""

from collections.abc import Callable
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any

import typer

if TYPE_CHECKING:
    from shuffledp.service.serving import Server


def run_servers(
    roles: "dict[str, tuple[Any, Callable[[], Server]]]", page: str | None = None, *, silent: bool = False
) -> None:
    """Take every address, then make the servers and serve until one of them is told to stop; then all do.

    Args:
        roles: what each server is, with where it listens and how it is made.
        page: where a browser is answered; None where none is.
        silent: write no log, and say nothing at the end.
    """
    from shuffledp.service.serving import run_until_told
    from shuffledp.service.telemetry import log_nothing, log_to_stderr

    with ExitStack() as taken:
        sockets = [taken.enter_context(address.taken()) for address, _ in roles.values()]
        servers = [make() for _, make in roles.values()]
        (log_nothing if silent else log_to_stderr)()
        for role, (address, _) in roles.items():
            typer.echo(f"{role} on {address.url}", err=True)
        if page is not None:
            typer.echo(f"look at it in a browser: {page}/", err=True)
        kept = "nothing is written down" if silent else "what was acknowledged is on disk"
        typer.echo(f"interrupt (Ctrl-C) to stop; {kept}", err=True)
        run_until_told(servers, sockets, lambda words: None if silent else typer.echo(words, err=True))
