"""What a person sees and what a machine reads."""

import json
import re
import sys
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer
from rich import box
from rich.console import Console
from rich.table import Table

from shuffledp.errors import ParameterError
from shuffledp.files import plain

if TYPE_CHECKING:
    from shuffledp.accounting.guarantee import Collusion
    from shuffledp.protocols.plan import Plan
    from shuffledp.protocols.presentation import Listing, Presentation

WIDE = 1000
"""More characters than any line has: cells of such a column are folded where the screen ends."""


def print_json(document: Mapping[str, Any]) -> None:
    """One object on standard output and nothing else."""
    sys.stdout.write(json.dumps(plain(document), indent=2, allow_nan=False) + "\n")


def fail(message: str, parameter: str | None = None, value: Any = None, *, as_json: bool) -> None:
    """One line: on standard error for a person, as an object on standard output for a machine."""
    if as_json:
        print_json({"error": {"message": message, "parameter": parameter, "value": value}})
    else:
        typer.echo(f"shuffledp: {message}", err=True)


_UNSEEN = re.compile("[\x00-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069\ud800-\udfff]")


def visible(text: str, *, but: str = "") -> str:
    r"""A text with whatever would move the cursor, colour the screen or turn its letters round written as its number.

    Args:
        text: somebody's own words, in any script.
        but: characters that stay as they are.

    >>> visible("東京\x1b[31m")
    '東京\\x1b[31m'
    """
    return _UNSEEN.sub(lambda found: found[0] if found[0] in but else ascii(found[0])[1:-1], text)


def facts(title: str, rows: Iterable[tuple[str, Any]]) -> Table:
    """A table of names and values; where a value is None there is nothing to say."""
    found = Table(title=title, title_justify="left", box=box.SIMPLE_HEAD, show_header=False, title_style="bold")
    found.add_column(style="dim", no_wrap=True)
    found.add_column(overflow="fold")
    for name, value in rows:
        if value is not None:
            found.add_row(name, visible(str(value), but="\n"))
    return found


def charged(ledger: Path | None) -> list[tuple[str, str]]:
    """What is spent of a budget that a command has charged, as a row of facts; none where there is no ledger."""
    if ledger is None:
        return []
    from shuffledp.accounting.ledger import Ledger
    from shuffledp.learn.fit_spending import charged_to

    return [("budget", charged_to(Ledger.load(ledger)))]


def table(
    title: str,
    headings: Sequence[str],
    rows: "Iterable[Sequence[str] | Any]",
    *,
    words: Collection[str] = (),
    left: Collection[str] = (),
    folded: Collection[str] = (),
    caption: str = "",
) -> Table:
    """A table whose first column is words and whose others are numbers.

    Args:
        title: what is written above it.
        headings: a name a column.
        rows: a text a column each, or a `presentation.ListingRow` with a style of its own.
        words: columns of dim sentences that may be folded.
        left: further columns of words.
        folded: columns that may be folded, too.
        caption: what is written below it.
    """
    from shuffledp.protocols.presentation import Column, Listing, ListingRow

    columns = [
        Column(
            name,
            right=not (place == 0 or name in words or name in left),
            style="dim" if name in words else "",
            width=WIDE if name in words or name in folded else None,
        )
        for place, name in enumerate(headings)
    ]
    lines = tuple(row if isinstance(row, ListingRow) else ListingRow(tuple(row)) for row in rows)
    return _rendered(Listing(title, tuple(columns), lines, caption))


def _rendered(listing: "Listing") -> Table:
    """A listing as a table on the screen."""
    found = Table(
        title=listing.title,
        title_justify="left",
        box=box.SIMPLE_HEAD,
        title_style="bold",
        caption=listing.caption or None,
        caption_justify="left",
    )
    for column in listing.columns:
        found.add_column(
            column.name,
            justify="right" if column.right else "left",
            style=column.style,
            no_wrap=column.width is None,
            overflow="ellipsis" if column.width is None else "fold",
            max_width=None if column.width == WIDE else column.width,
        )
    for row in listing.rows:
        if row.apart:
            found.add_section()
        found.add_row(*map(visible, row.cells), style=row.style)
    return found


def show(*renderables: Any) -> None:
    """Print tables, listings and text."""
    from shuffledp.protocols.presentation import Listing

    # People's own words come out as they are: a category named [bold] or :smile: is no markup.
    console = Console(highlight=False, soft_wrap=False, markup=False, emoji=False)
    for renderable in renderables:
        console.print(_rendered(renderable) if isinstance(renderable, Listing) else renderable)


def draw(presented: "Presentation", picture: Path, column: str | None = None) -> None:
    """Draw an answer's chart; one number has none.

    Args:
        presented: the answer.
        picture: where to.
        column: what the values are, written beside the axis.
    """
    from shuffledp.pictures.bars import draw_bars
    from shuffledp.pictures.differences import draw_difference
    from shuffledp.pictures.distribution import draw_distribution
    from shuffledp.pictures.evaluation import draw_evaluation

    if presented.chart is None:
        raise ParameterError("out", picture, "cannot be drawn: the answer is one number", "leave it out")
    kinds: dict[str, Any] = {
        "bars": draw_bars,
        "distribution": draw_distribution,
        "difference": draw_difference,
        "evaluation": draw_evaluation,
    }
    drawn = kinds[presented.chart.kind]
    drawn(picture, **presented.chart.data, column=column)


def write_plan(plan: "Plan", file: Path | None) -> None:
    """Write a plan to its file, whole or not at all, if there is one."""
    from shuffledp.tables.whole import write_text_whole

    if file is not None:
        write_text_whole(file, json.dumps(plan.document(), indent=2) + "\n")


def is_same_file(one: Path, another: Path) -> bool:
    """Whether two paths lead to one file that exists."""
    try:
        return one.samefile(another)
    except (OSError, ValueError):
        return False


def heading(plan: "Plan", *without: str) -> dict[str, Any]:
    """How every document about a plan begins, but for the keys that are left out."""
    named = {name: getattr(plan, name) for name in ("protocol", "method", "users")}
    target = {"epsilon": plan.privacy.epsilon, "delta": plan.privacy.delta, "warnings": list(plan.cautions)}
    return {name: value for name, value in {"schema": 1, **named, **target}.items() if name not in without}


def collusions_listed(
    title: str, collusions: "Iterable[Collusion]", promised: float, first: Iterable[tuple[str, ...]] = ()
) -> Any:
    """Who learns what together with whom, as a table: the parties, which epsilon is left, and in words.

    Args:
        title: of the table.
        collusions: a plan's.
        promised: the plan's epsilon: nobody is said to learn less together than the analyzer alone.
        first: rows above them.
    """
    from shuffledp.protocols.presentation import collusion_rows

    rows = collusion_rows(collusions, promised)
    return table(title, ("who", "epsilon", "in words"), [*first, *rows], words=("in words",))


def collusions_of(collusions: "Iterable[Collusion]", promised: float, *without: str) -> list[dict[str, Any]]:
    """What each collusion would reveal, as JSON, but for the keys that are left out."""
    from shuffledp.protocols.presentation import never_less

    rows = map(asdict, never_less(collusions, promised))
    return [{name: value for name, value in row.items() if name not in without} for row in rows]


def in_bytes(count: int) -> str:
    """A number of bytes in a unit that people read.

    >>> in_bytes(640), in_bytes(12_300_000)
    ('640 bytes', '12.3 MB')
    """
    for unit, size in (("GB", 10**9), ("MB", 10**6), ("kB", 10**3)):
        if count >= size:
            return f"{count / size:,.3g} {unit}"
    return f"{count} bytes"


SEEDED = "nobody: seeded noise can be repeated; leave --seed out"
"""Whom an answer protects that can be repeated."""


def question(plan: "Plan") -> str:
    """The question in words, with a warning where the promise is weak."""
    return "\n".join([f"{plan.question}, {plan.privacy}", *(f"Warning: {caution}" for caution in plan.cautions)])


def next_steps(suggested: Iterable[tuple[str, str | None]]) -> None:
    """What to try next: a word about it, and the command as it can be typed here; None where it was done already."""
    import shutil

    steps = [(what, arguments) for what, arguments in suggested if arguments is not None]
    if not steps:
        return
    typed = sys.argv[0] if Path(sys.argv[0]).name == "shuffledp" else "shuffledp"
    program = "shuffledp" if shutil.which("shuffledp") == typed else typed
    width = max(len(what) for what, _ in steps)
    typer.echo("Next:")
    for what, arguments in steps:
        typer.echo(f"  {what:<{width}}  {program} {arguments}")
