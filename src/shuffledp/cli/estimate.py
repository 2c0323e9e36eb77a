"""`shuffledp estimate`: what the analyzer knows by now."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from shuffledp.cli import options
from shuffledp.cli.output import facts, print_json, show, table
from shuffledp.cli.servers import calls_to

if TYPE_CHECKING:
    from shuffledp.protocols.plan import Plan

_AT_A_TIME = 1000


def estimate(
    task_file: options.TaskFile,
    analyzer: Annotated[str, typer.Option(help="Where the analyzer is.", metavar="URL")],
    token_file: Annotated[Path, typer.Option(help="The file of the token for read.", metavar="FILE")],
    history: Annotated[bool, typer.Option("--history", help="Every estimate so far, not only the newest.")] = False,
    patience: options.Patience = 5.0,
    as_json: options.AsJson = False,
) -> None:
    """The newest estimate of a task, with its error and what it cost; or all of them."""
    from shuffledp.service.keys import load_token
    from shuffledp.service.presenting import in_words
    from shuffledp.service.task import Task

    task = Task.load(task_file)
    with calls_to(analyzer, "analyzer", load_token(token_file), patience) as calls:
        path = f"/v1/tasks/{task.id}"
        releases = _history(calls, path) if history else None
        newest = calls.json(f"{path}/estimate")
    plan = task.plan
    if as_json:
        named = {} if plan.domain.named is None else {"categories": plan.domain.named.names()}
        print_json({"schema": 1, **newest, **named} | ({} if releases is None else {"releases": releases}))
        return
    tell_estimate(plan, newest, [("task", task.id[:12])])
    if releases is not None:
        rows = (
            (
                f"{each['time']:,}",
                *(in_words(each.get(name)) for name in ("estimate", "standard_error")),
                *(str(each.get(name, "")) for name in ("dropped", "void")),
            )
            for each in releases
        )
        headings = ("users", "estimate", "standard error", "dropped", "void")
        show(table("So far", headings, rows, folded=("estimate",)))


def _history(calls: Any, path: str) -> list[dict[str, Any]]:
    """All releases, a page at a time."""
    found: list[dict[str, Any]] = []
    while True:
        after = found[-1]["time"] if found else 0
        page = calls.json(f"{path}/history?after={after}&limit={_AT_A_TIME}").get("releases", [])
        found += page
        if len(page) < _AT_A_TIME:
            return found


def tell_estimate(plan: "Plan", newest: Mapping[str, Any], of: Sequence[tuple[str, str | None]]) -> None:
    """Show a release, or that there is none yet.

    Args:
        plan: what was asked.
        newest: the release as JSON.
        of: what it is a release of, as rows of facts.
    """
    from shuffledp.service.presenting import counted, error_in_words, in_words, presented

    dropped, void = newest.get("dropped"), newest.get("void")
    rows: list[tuple[str, str | None]] = [*of, ("asked", plan.question)]
    opening = newest.get("opening")
    under_way = None if opening is None else f"opening batch {opening['batch']:,} of {opening['of']:,}"
    if newest.get("estimate") is None:
        empty = (
            "no full batch has come here. None is sent on before it is full; the shuffler's log says what waits there."
        )
        rows.append(("estimate", f"none yet: {under_way or empty}"))
    else:
        shown = presented(plan, newest)
        show(*shown.listings)
        # What has names or ranks is shown above; of a single number there is nothing but this.
        said = [("estimate", f"{in_words(newest['estimate'])}{error_in_words(newest)}")]
        rows += [("counted", counted(plan, newest["time"])), *(shown.facts if shown.listings else said)]
    rows += [
        ("privacy", f"epsilon {plan.privacy.epsilon:g}, delta {plan.privacy.delta:g}, for the whole task"),
        ("it rests on", plan.rests_on),
        ("batches read", f"{newest['released_batches']:,}" if "released_batches" in newest else None),
        ("under way", None if newest.get("estimate") is None else under_way),
        ("dropped", f"{dropped:,} malformed messages; the estimate is of the others" if dropped else None),
        ("void", f"{void:,} batches were spoiled and count for nothing" if void else None),
    ]
    show(facts("The estimate", rows))
