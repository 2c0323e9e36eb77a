"""`shuffledp store`: what is done to a server's store while the server does not run."""

from typing import Annotated

import typer

from shuffledp.cli import options
from shuffledp.cli.output import facts, print_json, show

store_app = typer.Typer(help="Look after a server's store: migrate.")

Address = Annotated[str, typer.Argument(help="postgresql://..., as the server is given it.", metavar="ADDRESS")]


@store_app.command("migrate")
def migrate(address: Address, as_json: options.AsJson = False) -> None:
    """Bring the tables of a store to this version, all or nothing; its servers must be stopped."""
    from shuffledp.service.store import migrate_store

    role, before, after = migrate_store(address)
    if as_json:
        print_json({"schema": 1, "role": role, "before": before, "after": after})
        return
    done = "nothing was to be done" if before == after else "start its servers again"
    rows = [("role", role), ("version before", str(before)), ("version now", str(after)), ("next", done)]
    show(facts("Store", rows))
