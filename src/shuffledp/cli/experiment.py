"""`shuffledp papers`: figures of the papers, measured again."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from shuffledp.cli import options
from shuffledp.cli.experiment_bandits import experiment_arms, experiment_linucb
from shuffledp.cli.experiment_convex import experiment_convex
from shuffledp.cli.experiment_interaction import experiment_pointers, experiment_secure_sum
from shuffledp.cli.experiment_shared import Going, Told, experiment, flat, listed, whole_numbers

if TYPE_CHECKING:
    from shuffledp.experiments.counter import CounterExponent

Shufflers = Annotated[str, typer.Option("--shufflers", help="Numbers of shufflers, with commas.", metavar="K,K")]
Largest = Annotated[int, typer.Option("--largest", help="The most users; four sizes a decade from 1000.", metavar="N")]
Runs = Annotated[int, typer.Option("--runs", help="Runs at each point, on each of two inputs.", metavar="R")]

_SLOPES = {
    **{"error": "slope", "ones_error": "ones_slope", "bound": "bound_slope"},
    **{"without_log": "slope_without_log", "bound_without_log": "bound_slope_without_log"},
}
"""The name in JSON of every slope, by what it is the slope of."""


@experiment(swept=True)
def experiment_counter(
    going: Going,
    shufflers: Shufflers = "1,2,3",
    largest: Largest = 1_000_000,
    runs: Runs = 100,
    seed: options.FixedSeed = 1,
) -> Told:
    """How the error of a running count grows with its users, beside the theory's n^(1/(2k+1)) for k shufflers.

    A picture's rows, or a table's, are kept beside it: a second run goes on.
    """
    from shuffledp.experiments.counter import counter_exponent

    numbers = whole_numbers(shufflers, "shufflers", "1,2,3")
    asked = {"shufflers": numbers, "largest": largest, "runs": runs, "seed": seed}
    result = going.measured("counting", counter_exponent, **asked, **going.kept)
    same = f"papers counter --shufflers {shufflers} --runs {runs} --seed {seed}"
    return Told(
        document={
            "rows": [flat(row, "log_factor") for row in result.rows],
            "slopes": [flat(row, **_SLOPES) for row in result.slopes],
            "runs": runs,
            "seed": seed,
        },
        tables=_tables(result),
        rows=result.rows,
        words=[
            "The theory leaves out logarithms, which make slopes larger; less log: divided by the union's part of "
            "them.",
            "The lower shape is the paper's rep_(n,k): no constant is claimed; its proof asks for more users.",
        ],
        again=[("see it", f"{same} --largest {largest} --picture slopes.png"), ("go on", f"{same} --largest 10000000")],
        draw=lambda picture: _draw(result, picture),
    )


def _tables(result: "CounterExponent") -> list[Any]:
    errors = listed(
        f"Largest error over the horizon with k shufflers, {result.runs} runs at epsilon 1",
        "k | users | hard input | 95% | all ones | 95% | bound | lower shape",
        result.rows,
        lambda row: (
            f"{row.shufflers} | {row.users:,} | {row.error_mean:,.1f} | {row.error_quantile:,.1f} | "
            f"{row.ones_error_mean:,.1f} | {row.ones_error_quantile:,.1f} | {row.bound:,.1f} | {row.lower_shape:,.2f}"
        ),
    )
    slopes = listed(
        "Slope of log error against log users, with its 95% interval",
        "k | theory | hard input | less log | all ones | bound | less log",
        result.slopes,
        lambda row: (
            f"{row.shufflers} | {row.theory:.3f} | {row.error:.3f} | {row.without_log.slope:.3f} | "
            f"{row.ones_error.slope:.3f} | {row.bound.slope:.3f} | {row.bound_without_log.slope:.3f}"
        ),
    )
    return [errors, slopes]


def _draw(result: "CounterExponent", picture: Path) -> None:
    from shuffledp.pictures.curves import DrawnLine, draw_lines

    lines = []
    for slope in result.slopes:
        rows = [row for row in result.rows if row.shufflers == slope.shufflers]
        noun = "shuffler" if slope.shufflers == 1 else "shufflers"
        name = f"{slope.shufflers} {noun}: slope {slope.error.slope:.3f}, theory {slope.theory:.3f}"
        lines.append(DrawnLine.through(rows, "users", "error_mean", bound="bound", name=name, theory=slope.theory))
    title = f"Running counts on the hard input: mean of {result.runs} runs, epsilon 1"
    draw_lines(picture, [{title: lines}], against="users", measures="largest error at any time")


EXPERIMENTS = {
    "arms": experiment_arms,
    "convex": experiment_convex,
    "secure-sum": experiment_secure_sum,
    "pointer-chasing": experiment_pointers,
    "counter": experiment_counter,
    "linucb": experiment_linucb,
}
"""Experiments by the names of their commands under `shuffledp papers`."""
