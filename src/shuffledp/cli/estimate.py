"""`shuffledp estimate`: what the analyzer knows by now."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from shuffledp.cli import options
from shuffledp.cli.output import facts, print_json, show

if TYPE_CHECKING:
    from shuffledp.service.task import Task

TaskFile = Annotated[Path, typer.Option("--task", help="The task's file.", metavar="FILE")]
AnalyzerUrl = Annotated[str, typer.Option("--analyzer", help="Where the analyzer is.", metavar="URL")]
TokenFile = Annotated[Path, typer.Option("--token-file", help="The file of the token for read.", metavar="FILE")]
History = Annotated[bool, typer.Option("--history", help="Every estimate so far, not only the newest.")]
Patience = Annotated[float, typer.Option("--patience", help="Seconds to try again for.", metavar="S")]

_AT_A_TIME = 1000


def estimate(
    task_file: TaskFile,
    analyzer: AnalyzerUrl,
    token_file: TokenFile,
    history: History = False,
    patience: Patience = 5.0,
    as_json: options.AsJson = False,
) -> None:
    """The newest estimate of a task, with its error and what it cost; or all of them."""
    import httpx

    from shuffledp.randomness import RandomBits
    from shuffledp.service.client.calls import TIMEOUT, Calls, check_url
    from shuffledp.service.keys import load_token
    from shuffledp.service.task import Task

    task = Task.load(task_file)
    token = load_token(token_file)
    with httpx.Client(timeout=TIMEOUT) as http:
        calls = Calls(check_url(analyzer, "analyzer"), token, http, RandomBits.secure(), patience)
        path = f"/v1/tasks/{task.id}"
        releases = _history(calls, path) if history else None
        newest = calls.json(f"{path}/estimate")
    if as_json:
        named = {} if task.categories is None else {"categories": task.categories.names()}
        print_json({"schema": 1, **newest, **named} | ({} if releases is None else {"releases": releases}))
        return
    if task.categories is not None and newest.get("estimate") is not None:
        _tell_categories(task, newest)
    if newest.get("estimate") is not None:
        _tell_quantiles(task, newest)
    _tell(task, newest)
    if releases is not None:
        _tell_history(releases)


def _history(calls: Any, path: str) -> list[dict[str, Any]]:
    """All releases, a page at a time."""
    found: list[dict[str, Any]] = []
    while True:
        after = found[-1]["time"] if found else 0
        page = calls.json(f"{path}/history?after={after}&limit={_AT_A_TIME}").get("releases", [])
        found += page
        if len(page) < _AT_A_TIME:
            return found


def _tell(task: "Task", newest: dict[str, Any]) -> None:
    from shuffledp.cli.task import asked_of

    plan = task.plan
    rows = [("task", task.id[:12]), ("asked", asked_of(plan))]
    if newest.get("estimate") is None:
        rows.append(("estimate", "none yet: no batch is full. A batch is never released before it is."))
    else:
        rows += [
            ("users so far", f"{newest['time']:,}"),
            ("estimate", f"{_shown(newest['estimate'])}{_error(newest)}")
            if task.categories is None
            else ("how far off", f"every category{_error(newest)}"),
        ]
    rows += [
        ("privacy", f"epsilon {plan.privacy.epsilon:g}, delta {plan.privacy.delta:g}, for the whole task"),
        ("batches read", f"{newest.get('released_batches', 0):,}"),
    ]
    if newest.get("dropped"):
        rows.append(("dropped", f"{newest['dropped']:,} malformed messages; the estimate is of the others"))
    if newest.get("void"):
        rows.append(("void", f"{newest['void']:,} batches were spoiled and count for nothing"))
    show(facts("The estimate", rows))


def _tell_categories(task: "Task", newest: dict[str, Any]) -> None:
    """The estimate by the names of its categories."""
    import numpy as np

    from shuffledp.cli.histogram_output import Read, category_table

    categories = task.categories
    if categories is None:
        return
    read = Read(
        names=categories.names(),
        estimates=np.asarray(newest["estimate"], dtype=np.float64),
        bound=float(newest.get("bound") or 0.0),
        confidence=float(newest.get("confidence") or 0.0),
        users=int(newest["time"]),
        in_order=categories.kind in ("integers", "dates"),
    )
    show(category_table(read))


def _tell_quantiles(task: "Task", newest: dict[str, Any]) -> None:
    """Of all ranges of one axis: quantiles by their values."""
    import numpy as np

    from shuffledp.cli.ranges import quantile_table
    from shuffledp.estimates import VectorEstimate
    from shuffledp.protocols.ranges.tree import Tree

    if not isinstance(task.plan, Tree):
        return
    estimate = VectorEstimate(
        value=np.asarray(newest["estimate"], dtype=np.float64),
        standard_error=newest["standard_error"],
        bound=newest["bound"],
        confidence=newest["confidence"],
        dropped=int(newest.get("dropped") or 0),
    )
    ranges = task.plan.ranges(estimate)
    found = [ranges.quantile(rank) for rank in (0.25, 0.5, 0.75)]
    show(
        quantile_table([{"q": q.q, "value": q.value, "lower": q.lower, "upper": q.upper, "truth": None} for q in found])
    )


def _tell_history(releases: list[dict[str, Any]]) -> None:
    from rich import box
    from rich.table import Table

    table = Table(title="So far", title_justify="left", box=box.SIMPLE_HEAD, title_style="bold")
    for heading in ("users", "estimate", "standard error", "dropped", "void"):
        table.add_column(heading, justify="right", no_wrap=heading != "estimate")
    for release in releases:
        error = release.get("standard_error")
        table.add_row(
            f"{release['time']:,}",
            _shown(release.get("estimate")),
            "" if error is None else _shown(error),
            str(release.get("dropped", "")),
            str(release.get("void", "")),
        )
    show(table)


def _shown(value: Any) -> str:
    if value is None:
        return "-"
    if isinstance(value, list):
        return f"[{', '.join(_shown(item) for item in value[:6])}{', ...' if len(value) > 6 else ''}]"
    return f"{value:,.4g}" if abs(value) < 1000 else f"{value:,.1f}"


def _error(newest: dict[str, Any]) -> str:
    words = "" if newest.get("standard_error") is None else f" ± {_shown(newest['standard_error'])}"
    if newest.get("bound") is not None and newest.get("confidence") is not None:
        words += f" (within {_shown(newest['bound'])} with {newest['confidence']:.0%} confidence)"
    return words
