"""`shuffledp work`: processes that do a server's heavy work, on this machine or on others."""

from pathlib import Path
from typing import Annotated

import typer

work_app = typer.Typer(help="Do a server's heavy work, here or on other machines.")


@work_app.callback()
def work() -> None:
    """Do a server's heavy work, here or on other machines."""


@work_app.command("opener")
def work_opener(
    analyzer: Annotated[str, typer.Option(help="The analyzer, with TLS unless it is this machine.", metavar="URL")],
    keys: Annotated[Path, typer.Option(help="The analyzer's private key, or its folder of keys.", metavar="FOLDER")],
    token_file: Annotated[Path, typer.Option(help="The token for open.", metavar="FILE")],
    processes: Annotated[int, typer.Option(help="How many open at once; 0 for one a core.", metavar="N", min=0)] = 0,
) -> None:
    """Open pieces of large batches for an analyzer, until interrupted: as many of these as one likes, anywhere."""
    from shuffledp.cli.servers import calls_to
    from shuffledp.service.analyzer.opening_processes import open_until_told
    from shuffledp.service.analyzer.remote import doubt_of_keys
    from shuffledp.service.client.calls import check_url
    from shuffledp.service.keys import ANALYZER, load_token
    from shuffledp.service.telemetry import log_to_stderr

    url, token = check_url(analyzer, "analyzer"), load_token(token_file)
    # Older ones, too: tasks that name them go on.
    ring = ANALYZER.ring(keys)
    with calls_to(url, "analyzer", token, patience=0.0) as calls:
        if doubt := doubt_of_keys(calls, ring):
            typer.echo(f"warning: {doubt}", err=True)
    log_to_stderr()
    typer.echo(f"opening for {url}; interrupt (Ctrl-C) to stop: what is not finished is opened by others", err=True)
    counted = open_until_told(url, ring, token, processes)
    typer.echo(f"stopped: {counted:,} pieces opened here were counted", err=True)
