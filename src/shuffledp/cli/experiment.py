"""`shuffledp experiment`: figures of the papers, measured again."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from shuffledp.cli import options
from shuffledp.cli.experiment_arms import experiment_arms
from shuffledp.cli.experiment_convex import experiment_convex
from shuffledp.cli.experiment_interaction import experiment_secure_sum
from shuffledp.cli.experiment_pointers import experiment_pointers
from shuffledp.cli.experiment_scaling import experiment_scaling
from shuffledp.cli.experiment_shared import going_on, slope_document, whole_numbers
from shuffledp.cli.output import next_steps, print_json, show, table
from shuffledp.cli.progress import of_how_much

if TYPE_CHECKING:
    from shuffledp.experiments.counter import CounterExponent
    from shuffledp.experiments.linucb import RegretRow

experiment_app = typer.Typer(help="Measure again what the papers say.")
experiment_app.command("arms")(experiment_arms)
experiment_app.command("convex")(experiment_convex)
experiment_app.command("secure-sum")(experiment_secure_sum)
experiment_app.command("pointer-chasing")(experiment_pointers)

Shufflers = Annotated[str, typer.Option("--shufflers", help="Numbers of shufflers, with commas.", metavar="K,K")]
Largest = Annotated[int, typer.Option("--largest", help="The most users; four sizes a decade from 1000.", metavar="N")]
Runs = Annotated[int, typer.Option("--runs", help="Runs at each point, on each of two inputs.", metavar="R")]
Figure = Annotated[
    int | None, typer.Option("--figure", help="Of the paper: 1 (dimension 5) or 2 (10 and 15).", metavar="F")
]
Instances = Annotated[
    int | None,
    typer.Option("--instances", help="Random worlds to average over: 50, or 20 with --scaling.", metavar="I"),
]
Scaling = Annotated[bool, typer.Option("--scaling", help="How regret grows with the users, instead of a figure.")]
Most = Annotated[
    int | None,
    typer.Option("--largest", help="With --scaling, the most users; two sizes a decade from 1000.", metavar="N"),
]


_MEASURED = (
    *("shufflers", "users", "bound", "error_mean", "error_quantile", "ones_error_mean", "ones_error_quantile"),
    *("within_bound", "lower_shape"),
)


@experiment_app.command("counter")
def experiment_counter(
    shufflers: Shufflers = "1,2,3",
    largest: Largest = 1_000_000,
    runs: Runs = 100,
    seed: options.FixedSeed = 1,
    picture: options.Picture = None,
    as_json: options.AsJson = False,
) -> None:
    """How the error of a running count grows with its users, beside the theory's n^(1/(2k+1)) for k shufflers."""
    from shuffledp.experiments.counter import counter_exponent

    numbers = whole_numbers(shufflers, "shufflers", "1,2,3")
    going_on(picture)
    with of_how_much("counting", shown=not as_json) as progress:
        result = counter_exponent(shufflers=numbers, largest=largest, runs=runs, seed=seed, progress=progress)
    if picture is not None:
        _draw(result, picture)
    if as_json:
        print_json(_document(result))
        return
    show(_errors(result), _slopes(result))
    typer.echo(
        "The theory leaves out logarithms, which make slopes larger; less log: divided by the union's part of them.\n"
        "The lower shape is the paper's rep_(n,k): no constant is claimed; its proof asks for more users."
    )
    if picture is not None:
        typer.echo(f"picture: {picture}")
    same = f"experiment counter --shufflers {shufflers} --runs {runs} --seed {seed}"
    next_steps(
        [("see it", f"{same} --largest {largest} --picture slopes.png"), ("go on", f"{same} --largest 10000000")]
    )


@experiment_app.command("linucb")
def experiment_linucb(
    figure: Figure = None,
    scaling: Scaling = False,
    largest: Most = None,
    instances: Instances = None,
    seed: options.FixedSeed = 1,
    picture: options.Picture = None,
    as_json: options.AsJson = False,
) -> None:
    """Regret of linear bandits in every trust model. A picture's rows are kept beside it: a second run goes on."""
    from shuffledp.errors import ParameterError
    from shuffledp.experiments.linucb import figure_tasks, linucb_figure

    if scaling:
        if figure is not None:
            raise ParameterError("figure", figure, "must be left out with --scaling", "ask for one of them")
        experiment_scaling(
            largest=1_000_000 if largest is None else largest,
            instances=20 if instances is None else instances,
            seed=seed,
            picture=picture,
            as_json=as_json,
        )
        return
    if largest is not None:
        raise ParameterError("largest", largest, "is for --scaling", "a figure has 20,000 users")
    figure, instances = 1 if figure is None else figure, 50 if instances is None else instances
    tasks = figure_tasks(figure, instances=instances, seed=seed)
    going = going_on(picture)
    with of_how_much("choosing", shown=not as_json) as progress:
        rows = linucb_figure(tasks, progress=progress, **going)
    if picture is not None:
        _draw_regrets(rows, picture, instances)
    if as_json:
        print_json({"schema": 1, "figure": figure, "seed": seed, "rows": [_regret_document(row) for row in rows]})
        return
    show(_regrets(rows))
    typer.echo(
        "Epsilon is at delta 0.1; a user is replaced. jdp-*, shuffle-amp and ldp are references: floating noise."
    )
    if picture is not None:
        typer.echo(f"picture: {picture}")
    same = f"experiment linucb --figure {figure} --instances {instances} --seed {seed}"
    next_steps(
        [
            ("see it", f"{same} --picture regret.png"),
            ("higher dimensions", "experiment linucb --figure 2"),
            ("slopes", "experiment linucb --scaling"),
        ]
    )


def _regret_document(row: "RegretRow") -> dict[str, Any]:
    names = ("policy", "epsilon", "dimension", "instances", "regret_mean", "regret_standard_error", "seconds")
    return {name: getattr(row, name) for name in (*names, "slot_users")}


def _regrets(rows: "list[RegretRow]") -> Any:
    cells = (
        (
            row.policy,
            "-" if row.epsilon is None else f"{row.epsilon:g}",
            str(row.dimension),
            f"{row.regret_mean:,.0f}",
            f"{row.regret_standard_error:,.0f}",
            str(row.slot_users),
            f"{row.seconds:.1f}",
        )
        for row in rows
    )
    title = f"Regret after {rows[0].times[-1]:,} users, mean of {rows[0].instances} worlds"
    return table(title, ("policy", "epsilon", "dimension", "regret", "±", "users a slot", "seconds"), cells)


def _draw_regrets(rows: "list[RegretRow]", picture: Path, instances: int) -> None:
    from shuffledp.pictures.regrets import RegretLine, RegretPanel, draw_regrets

    epsilons = sorted({row.epsilon for row in rows if row.epsilon is not None})
    panels = [
        [
            RegretPanel(
                title=f"epsilon = {epsilon:g}, dimension {dimension}",
                lines=[
                    RegretLine(
                        name=row.policy,
                        times=row.times,
                        mean=row.curve_mean,
                        standard_error=row.curve_standard_error,
                    )
                    for row in rows
                    if row.dimension == dimension and row.epsilon in (None, epsilon)
                ],
            )
            for epsilon in epsilons
        ]
        for dimension in sorted({row.dimension for row in rows})
    ]
    draw_regrets(picture, panels, f"LinUCB in every trust model: {instances} worlds, bands of two standard errors")


def _document(result: "CounterExponent") -> dict[str, Any]:
    return {
        "schema": 1,
        "rows": [{name: getattr(row, name) for name in _MEASURED} for row in result.rows],
        "slopes": [
            {
                "shufflers": row.shufflers,
                **slope_document("slope", row.error),
                **slope_document("ones_slope", row.ones_error),
                **slope_document("bound_slope", row.bound),
                **slope_document("slope_without_log", row.without_log),
                **slope_document("bound_slope_without_log", row.bound_without_log),
                "theory": row.theory,
            }
            for row in result.slopes
        ],
        "runs": result.runs,
        "seed": result.seed,
    }


def _errors(result: "CounterExponent") -> Any:
    cells = []
    for row in result.rows:
        errors = (row.error_mean, row.error_quantile, row.ones_error_mean, row.ones_error_quantile, row.bound)
        numbers = (f"{error:,.1f}" for error in errors)
        cells.append((str(row.shufflers), f"{row.users:,}", *numbers, f"{row.lower_shape:,.2f}"))
    headings = ("k", "users", "hard input", "95%", "all ones", "95%", "bound", "lower shape")
    return table(f"Largest error over the horizon with k shufflers, {result.runs} runs at epsilon 1", headings, cells)


def _slopes(result: "CounterExponent") -> Any:
    cells = []
    for row in result.slopes:
        others = (row.without_log, row.ones_error, row.bound, row.bound_without_log)
        measured = f"{row.error.slope:.3f} ± {row.error.high - row.error.slope:.3f}"
        cells.append((str(row.shufflers), f"{row.theory:.3f}", measured, *(f"{slope.slope:.3f}" for slope in others)))
    headings = ("k", "theory", "hard input", "less log", "all ones", "bound", "less log")
    return table("Slope of log error against log users, with its 95% interval", headings, cells)


def _draw(result: "CounterExponent", picture: Path) -> None:
    from shuffledp.pictures.slopes import SlopeLine, draw_slopes

    lines = []
    for slope in result.slopes:
        rows = [row for row in result.rows if row.shufflers == slope.shufflers]
        noun = "shuffler" if slope.shufflers == 1 else "shufflers"
        lines.append(
            SlopeLine(
                name=f"{slope.shufflers} {noun}: slope {slope.error.slope:.3f}, theory {slope.theory:.3f}",
                users=[row.users for row in rows],
                errors=[row.error_mean for row in rows],
                bounds=[row.bound for row in rows],
                theory=slope.theory,
            )
        )
    draw_slopes(picture, lines, f"Running counts on the hard input: mean of {result.runs} runs, epsilon 1")
