"""`shuffledp papers convex`: Table 1 of [001], what privacy costs against the users, with slopes."""

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from shuffledp.cli import options
from shuffledp.cli.experiment_shared import Going, Told, experiment, flat, listed

if TYPE_CHECKING:
    from shuffledp.experiments.convex import ConvexRates

Largest = Annotated[int, typer.Option("--largest", help="The most users; two sizes a decade from 1000.", metavar="N")]
Instances = Annotated[int, typer.Option("--instances", help="Runs at each point.", metavar="I")]


@experiment(swept=True)
def experiment_convex(
    going: Going, largest: Largest = 1_000_000, instances: Instances = 40, seed: options.FixedSeed = 1
) -> Told:
    """How what privacy costs in convex optimization falls with the users, beside the theory's slopes.

    A picture's rows are kept beside it: a second run goes on.
    """
    from shuffledp.experiments.convex import DELTA, convex_rates

    asked = {"largest": largest, "instances": instances, "seed": seed}
    result = going.measured("learning", convex_rates, **asked, **going.kept)
    epsilons = ", ".join(f"{row.solver} {row.epsilon:g}" for row in result.rows)
    same = f"papers convex --instances {instances} --seed {seed} --largest {largest}"
    return Told(
        document={"delta": DELTA, **asdict(result), "rows": [flat(row) for row in result.rows]},
        tables=_tables(result),
        rows=result.points,
        words=[
            "Extra: mean excess population loss over the same solver's without noise, on the same users.",
            f"Epsilon, at delta {DELTA:g}: {epsilons}.",
            *(
                f"{row.solver} has {row.slope.slope:.2f} and not {row.theory:.2f}: {row.because}."
                for row in result.rows
                if row.because is not None
            ),
        ],
        again=[
            ("see it", f"{same} --picture rates.png"),
            ("more runs", f"papers convex --largest {largest} --instances {4 * instances}"),
        ],
        draw=lambda picture: _draw(result, picture),
    )


def _tables(result: "ConvexRates") -> list[Any]:
    last = max(point.users for point in result.points)
    extras = listed(
        f"What noise adds to the excess loss of {last:,} users",
        "solver | extra | ± | without | proved | rounds | runs",
        [point for point in result.points if point.users == last],
        lambda point: (
            f"{point.solver} | {point.extra_mean:.2g} | {point.extra_standard_error:.2g} | {point.twin:.2g} | "
            f"{point.bound:.2g} | {point.rounds:,} | {point.runs}"
        ),
    )
    slopes = listed(
        "Slope of log extra against log users, with its 95% interval",
        "setting | solver | slope | theory",
        result.rows,
        lambda row: f"{row.setting} | {row.solver} | {row.slope:.2f} | {row.theory:.2f}",
        left=("solver",),
    )
    return [extras, slopes]


def _draw(result: "ConvexRates", picture: Path) -> None:
    from shuffledp.pictures.curves import DrawnLine, draw_lines

    panels: dict[str, list[DrawnLine]] = {}
    for row in result.rows:
        name = f"{row.setting}: {row.solver}, {row.slope.slope:.2f} (theory {row.theory:.2f})"
        look: dict[str, Any] = {"name": name, "theory": row.theory}
        line = DrawnLine.through(result.points_of(row), "users", "extra_mean", error="extra_standard_error", **look)
        panels.setdefault("strongly convex" if row.setting.startswith("strongly") else "convex", []).append(line)
    title = f"What privacy costs: Table 1 of [001], delta 1e-6, up to {result.instances} runs a point"
    draw_lines(picture, [panels], against="users", measures="excess loss over the twin without noise", title=title)
