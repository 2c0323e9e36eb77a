"""`shuffledp experiment convex`: Table 1 of [001], what privacy costs against the users, with slopes."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from shuffledp.cli import options
from shuffledp.cli.experiment_shared import going_on
from shuffledp.cli.output import next_steps, print_json, show, table
from shuffledp.cli.progress import of_how_much

if TYPE_CHECKING:
    from shuffledp.experiments.convex import ConvexRates

Largest = Annotated[int, typer.Option("--largest", help="The most users; two sizes a decade from 1000.", metavar="N")]
Instances = Annotated[int, typer.Option("--instances", help="Runs at each point.", metavar="I")]


def experiment_convex(
    largest: Largest = 1_000_000,
    instances: Instances = 40,
    seed: options.FixedSeed = 1,
    picture: options.Picture = None,
    as_json: options.AsJson = False,
) -> None:
    """How what privacy costs in convex optimization falls with the users, beside the theory's slopes.

    A picture's rows are kept beside it: a second run goes on.
    """
    from shuffledp.experiments.convex import DELTA, convex_rates

    going = going_on(picture)
    with of_how_much("learning", shown=not as_json) as progress:
        result = convex_rates(largest=largest, instances=instances, seed=seed, progress=progress, **going)
    if picture is not None:
        _draw(result, picture)
    if as_json:
        print_json(result.document())
        return
    show(_extras(result), _slopes(result))
    typer.echo("Extra: mean excess population loss over the same solver's without noise, on the same users.")
    epsilons = ", ".join(f"{row.solver} {row.epsilon:g}" for row in result.rows)
    typer.echo(f"Epsilon, at delta {DELTA:g}: {epsilons}.")
    for row in result.rows:
        if row.because is not None:
            typer.echo(f"{row.solver} has {row.slope:.2f} and not {row.theory:.2f}: {row.because}.")
    if picture is not None:
        typer.echo(f"picture: {picture}")
    same = f"experiment convex --instances {instances} --seed {seed}"
    next_steps(
        [
            ("see it", f"{same} --largest {largest} --picture rates.png"),
            ("more runs", f"experiment convex --largest {largest} --instances {4 * instances}"),
        ]
    )


def _extras(result: "ConvexRates") -> Any:
    last = max(point.users for point in result.points)
    cells = []
    for row in result.rows:
        point = result.points_of(row)[-1]
        numbers = (point.extra_mean, point.extra_standard_error, point.twin, point.bound)
        cells.append((row.solver, *(f"{number:.2g}" for number in numbers), f"{point.rounds:,}", str(point.runs)))
    headings = ("solver", "extra", "±", "without", "proved", "rounds", "runs")
    return table(f"What noise adds to the excess loss of {last:,} users", headings, cells)


def _slopes(result: "ConvexRates") -> Any:
    cells = (
        (row.setting, row.solver, f"{row.slope:.2f} ± {row.slope_high - row.slope:.2f}", f"{row.theory:.2f}")
        for row in result.rows
    )
    title = "Slope of log extra against log users, with its 95% interval"
    return table(title, ("setting", "solver", "slope", "theory"), cells, left=("solver",))


def _draw(result: "ConvexRates", picture: Path) -> None:
    from shuffledp.pictures.rates import RateLine, draw_rates

    panels: dict[str, list[RateLine]] = {"convex": [], "strongly convex": []}
    for row in result.rows:
        points = result.points_of(row)
        panels["strongly convex" if row.setting.startswith("strongly") else "convex"].append(
            RateLine(
                name=f"{row.setting}: {row.solver}, {row.slope:.2f} (theory {row.theory:.2f})",
                users=[point.users for point in points],
                means=[point.extra_mean for point in points],
                standard_errors=[point.extra_standard_error for point in points],
                theory=row.theory,
            )
        )
    title = f"What privacy costs: Table 1 of [001], delta 1e-6, up to {result.instances} runs a point"
    draw_rates(
        picture,
        {name: lines for name, lines in panels.items() if lines},
        title,
        "excess loss over the twin without noise",
    )
