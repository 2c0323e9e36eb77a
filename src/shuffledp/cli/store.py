"""`shuffledp store`: what is done to a server's store while the server does not run."""

from contextlib import closing
from pathlib import Path
from typing import Annotated

import typer

from shuffledp.cli import options
from shuffledp.cli.output import facts, print_json, show

store_app = typer.Typer(help="Look after a server's store while the server does not run: migrate, end, purge.")

Address = Annotated[str, typer.Argument(help="postgresql://..., as the server is given it.", metavar="ADDRESS")]
Kept = Annotated[str, typer.Argument(help="A file, or postgresql://..., as the server is given it.", metavar="STORE")]


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


@store_app.command("end")
def end(
    store: Kept,
    task: Annotated[str, typer.Argument(help="The task's or the campaign's file, or its id.", metavar="FILE|ID")],
    drop: Annotated[bool, typer.Option("--drop", help="Delete what waits in it and will never be released.")] = False,
    as_json: options.AsJson = False,
) -> None:
    """End a task or a campaign at one server, for good: nothing is taken for it any more; answers stay."""
    from shuffledp.service.analyzer import ending as analyzer
    from shuffledp.service.shuffler import ending as shuffler
    from shuffledp.service.store import open_alone

    task_id = _id_of(task)
    role, opened = open_alone(store)
    with closing(opened):
        done = (shuffler if role == "shuffler" else analyzer).end_task(opened, task_id, drop=drop)
    if as_json:
        print_json({"schema": 1, "role": role, "task_id": task_id, "deleted": done.what})
        return
    rows = [
        ("ended", f"{task_id} at the {role}"),
        *((f"deleted {what}", f"{count:,}") for what, count in done.what.items()),
    ]
    other = "analyzer, and at every other hop of a cascade" if role == "shuffler" else "shuffler, or at every hop"
    show(facts("Store", [*rows, ("next", f"end it at the {other}, too; then start the servers again")]))


@store_app.command("purge")
def purge(
    store: Kept,
    answers: Annotated[
        bool, typer.Option("--answers", help="An analyzer's estimates and models of what has ended, too.")
    ] = False,
    as_json: options.AsJson = False,
) -> None:
    """Delete what is kept of tasks that have ended; that they were stays known."""
    from shuffledp.errors import ParameterError
    from shuffledp.service.analyzer.ending import purge as purge_analyzer
    from shuffledp.service.shuffler.ending import purge as purge_shuffler
    from shuffledp.service.store import open_alone

    role, opened = open_alone(store)
    with closing(opened):
        if role == "shuffler" and answers:
            raise ParameterError("answers", "a shuffler", "must be an analyzer's store", "leave --answers out")
        done = purge_shuffler(opened) if role == "shuffler" else purge_analyzer(opened, answers=answers)
    if as_json:
        purged = [{"task_id": each.task_id, "deleted": each.what} for each in done]
        print_json({"schema": 1, "role": role, "purged": purged})
        return
    rows = [
        (each.task_id[:12], ", ".join(f"{count:,} {what}" for what, count in each.what.items()) + " deleted")
        for each in done
    ]
    show(facts(f"Purged at the {role}", rows or [("nothing", "nothing is left here of tasks that have ended")]))


def _id_of(task: str) -> str:
    """The id of a task's or a campaign's file; or an id that was typed."""
    import hashlib

    from shuffledp.errors import ParameterError

    path = Path(task)
    if path.is_file():
        return hashlib.sha256(path.read_bytes().strip()).hexdigest()
    if len(task) == 64 and set(task) <= set("0123456789abcdef"):
        return task
    raise ParameterError("task", task, "must be a file or an id of 64 signs", "`shuffledp task show FILE` says the id")
