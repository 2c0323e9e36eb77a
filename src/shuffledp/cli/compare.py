"""`shuffledp papers compare`: the survey's tables, measured, as one web page or as JSON."""

import os
from contextlib import nullcontext
from pathlib import Path
from typing import Annotated, Any

import typer

from shuffledp.cli import options
from shuffledp.cli.output import next_steps, print_json
from shuffledp.cli.progress import of_how_much
from shuffledp.errors import ParameterError
from shuffledp.privacy import Privacy

Tables = Annotated[list[int] | None, typer.Option(help="Only this table, 1 to 6; may be given again.", metavar="N")]


def compare(
    out: Annotated[
        Path | None, typer.Option("-o", "--out", help="The page to write; compare.html unless --json.", metavar="FILE")
    ] = None,
    quick: Annotated[bool, typer.Option("--quick", help="Seconds: small sizes and few runs, to see the page.")] = False,
    full: Annotated[bool, typer.Option("--full", help="A long run: large sizes, many runs, narrow intervals.")] = False,
    table: Tables = None,
    epsilon: Annotated[float, typer.Option(help="The privacy target of every row.", metavar="E")] = 1.0,
    delta: Annotated[float, typer.Option(help="The probability left over.", metavar="D")] = 1e-6,
    seed: options.FixedSeed = 1,
    as_json: options.AsJson = False,
) -> None:
    """The survey's tables, measured: local, shuffle and central side by side, on a page with pictures."""
    from shuffledp.experiments.survey.comparison import compare as measure
    from shuffledp.experiments.survey.measuring import Effort
    from shuffledp.experiments.survey.page import page
    from shuffledp.files import whole_file
    from shuffledp.pictures.curves import new_figure

    if quick and full:
        raise ParameterError("quick", "quick and full", "must not both be given", "leave one of them out")
    effort = Effort.quick if quick else Effort.full if full else Effort.normal
    target = out if out is not None else None if as_json else Path("compare.html")
    if target is not None:
        new_figure(target, width=1)
    opened: Any = nullcontext() if target is None else whole_file(target, parameter="out")
    # Opened first: a name that cannot be written to is refused before any work is done.
    with opened as file:
        with of_how_much("measuring", shown=not as_json) as progress:
            result = measure(
                privacy=Privacy(epsilon, delta),
                effort=effort,
                seed=seed,
                tables=table or (),
                workers=1 if quick else min(os.cpu_count() or 1, 8),
                progress=progress,
            )
        if file is not None:
            file.write(page(result).encode())
    if as_json:
        print_json(result.document() | {"written": None if target is None else str(target)})
        return
    for measured in result.tables:
        typer.echo(f"Table {measured.number}: {measured.title}\n  {measured.sees}\n")
    typer.echo(f"{len(result.tables)} tables measured in {result.seconds:.0f} s; the page: {target}")
    next_steps(
        [
            ("narrower intervals", f"papers compare --full -o {target}"),
            ("as data", f"papers compare --json --seed {seed}"),
            ("one table", "papers compare --table 3 -o table3.html"),
        ]
    )
