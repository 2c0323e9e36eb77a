"""Progress on standard error: while users report, and of experiments; and runs that show it."""

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import typer
from rich.console import Console

if TYPE_CHECKING:
    from shuffledp.protocols.plan import Plan
    from shuffledp.randomness import RandomBits

# Where nobody sees a bar move, as in a pipe or a log, a line is written after so long, then after twice as long.
_SILENT_SECONDS = 5.0


@contextmanager
def in_lines(what: Callable[[], str]) -> Iterator[None]:
    """Say on standard error what takes so long: a line after five seconds, another after ten, twenty, and so on.

    Args:
        what: says what goes on by then.
    """
    done, started = threading.Event(), time.monotonic()

    def tell() -> None:
        silent = _SILENT_SECONDS
        while not done.wait(started + silent - time.monotonic()):
            typer.echo(f"{what()} ({silent:.0f} s so far)", err=True)
            silent *= 2

    teller = threading.Thread(target=tell, daemon=True)
    teller.start()
    try:
        yield
    finally:
        done.set()
        teller.join()


def simulated(plan: "Plan", values: Any, *, bits: "RandomBits", fast: bool, shown: bool) -> tuple[Any, float]:
    """The answer of a plan on checked values, and how many seconds that took."""
    from shuffledp.simulation.run import simulate

    started = time.perf_counter()
    with users_reporting(plan.users, shown=shown and not fast) as progress:
        answer = simulate(plan, values, bits=bits, fast=fast, progress=progress)
    return answer, time.perf_counter() - started


@contextmanager
def users_reporting(users: int, *, shown: bool) -> Iterator[Callable[[int], None] | None]:
    """A bar that is told how many users have reported, or nothing."""
    if not shown:
        yield None
        return
    # Into a file a bar would leave an empty line.
    if not Console(stderr=True).is_terminal:
        so_far = 0

        def count(reported: int) -> None:
            nonlocal so_far
            so_far = reported

        with in_lines(lambda: f"{so_far:,} of {users:,} users reported"):
            yield count
        return
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("users reporting", total=users)
        yield lambda reported: bar.update(
            task, completed=reported, description="shuffling" if reported == users else "users reporting"
        )


@contextmanager
def working(what: str, *, shown: bool) -> Iterator[None]:
    """A line that says what takes so long, gone when it is done."""
    if not shown:
        yield
        return
    console = Console(stderr=True)
    if not console.is_terminal:
        with in_lines(lambda: what):
            yield
        return
    with console.status(what):
        yield


@contextmanager
def of_how_much(what: str, *, shown: bool) -> Iterator[Callable[[int, int], None] | None]:
    """A bar that is told how much is done and of how much, or nothing."""
    if not shown:
        yield None
        return
    if not Console(stderr=True).is_terminal:
        part = 0.0

        def note(done: int, total: int) -> None:
            nonlocal part
            part = done / total if total else 0.0

        with in_lines(lambda: f"{what}: {part:.0%}"):
            yield note
        return
    from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (TextColumn(what), BarColumn(), TimeRemainingColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("", total=None)
        yield lambda done, total: bar.update(task, completed=done, total=total)
