"""`shuffledp papers arms` and `shuffledp papers linucb`: regret of private bandits beside their references."""

import re
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from shuffledp.cli import options
from shuffledp.cli.experiment_log import log_told
from shuffledp.cli.experiment_shared import Going, Told, experiment, flat, listed
from shuffledp.cli.output import table

if TYPE_CHECKING:
    from shuffledp.experiments.arms import ArmsRegret, ArmsRow
    from shuffledp.experiments.linucb import RegretRow
    from shuffledp.experiments.linucb_scaling import RegretGrowth

Arms = Annotated[int, typer.Option("--arms", help="Arms to choose among.", metavar="K")]
Largest = Annotated[int, typer.Option("--largest", help="The most users; two sizes a decade from 10000.", metavar="T")]
Instances = Annotated[int, typer.Option("--instances", help="Random worlds at each point.", metavar="N")]
Figure = Annotated[
    int | None, typer.Option("--figure", help="Of the paper: 1 (dimension 5) or 2 (10 and 15).", metavar="F")
]
Worlds = Annotated[
    int | None,
    typer.Option("--instances", help="Random worlds to average over: 50, or 20 with --scaling.", metavar="I"),
]
Log = Annotated[
    Path | None,
    typer.Argument(help="A log to run them on, CSV or Parquet.", metavar="[FILE]", show_default=False),
]
LogArms = Annotated[int | None, typer.Option("--arms", help="Of a log: how many arms there were.", metavar="K")]
Smallest = Annotated[
    float | None, typer.Option("--smallest", help="Of a log: the least probability that any arm ever had.", metavar="P")
]
Scaling = Annotated[bool, typer.Option("--scaling", help="How regret grows with the users, instead of a figure.")]
Most = Annotated[
    int | None,
    typer.Option("--largest", help="With --scaling, the most users; two sizes a decade from 1000.", metavar="N"),
]

# A policy has the same colour and dashes in every picture; any number of concurrent shufflers looks like several.
_STYLES = {
    "linucb": ("0.25", "-"),
    "thompson": ("0.25", "--"),
    "thompson-concurrent": ("#c44e52", "--"),
    "jdp-buffers": ("#4c72b0", "-"),
    "jdp-sqrt": ("#4c72b0", "-."),
    "jdp-tree": ("#4c72b0", "--"),
    "concurrent": ("#c44e52", "-"),
    "shuffle-vec": ("#dd8452", "-"),
    "shuffle-amp": ("#dd8452", "--"),
    "ldp": ("#8172b3", "-"),
}
CURVES = ("times", "curve_mean", "curve_standard_error")
_OTHER = ("#55a868", "-")


@experiment(swept=True)
def experiment_arms(
    going: Going,
    arms: Arms = 10,
    largest: Largest = 1_000_000,
    instances: Instances = 200,
    seed: options.FixedSeed = 1,
) -> Told:
    """Regret of private arm elimination, with batches that double and fixed ones, beside its references.

    A picture's rows are kept beside it: a second run goes on.
    """
    from shuffledp.experiments.arms import arms_regret

    asked = {"arms": arms, "largest": largest, "instances": instances, "seed": seed}
    result = going.measured("playing", arms_regret, **asked, **going.kept)
    exponents = listed(
        "How the extra regret grows: its exponent, with the 95% interval of a straight line",
        "against | exponent | interval | theory",
        result.exponents,
        lambda row: f"{row.against} | {row.exponent:.2f} | {row.low:.2f} .. {row.high:.2f} | {row.theory:g}",
    )
    same = f"papers arms --arms {arms} --instances {instances} --seed {seed}"
    return Told(
        document=result,
        tables=[_arms_table(result), exponents],
        rows=result.rows,
        words=[
            "Extra: regret of doubling batches beyond that of the same policy without noise, at gaps from 0.3 to 0.6;",
            "the theory is k log T / epsilon. Where gaps are below epsilon, noise costs less than that.",
        ],
        again=[("see it", f"{same} --largest {largest} --picture regret.png"), ("go on", f"{same} --largest 10000000")],
        draw=lambda picture: _draw_arms(result, picture),
    )


def _arms_table(result: "ArmsRegret") -> Any:
    largest = max(row.horizon for row in result.rows)
    rows = [row for row in result.rows if row.horizon == largest]
    found = {(row.policy, row.epsilon): row for row in rows}

    def cell(policy: str, epsilon: float) -> str:
        row = found.get((policy, epsilon), found.get((policy, None)))
        return "" if row is None else f"{row.regret_mean:,.0f} ± {row.regret_standard_error:,.0f}"

    title = f"Regret of {largest:,} users with {rows[0].arms} arms, mean of {rows[0].instances} worlds"
    cells = [
        (policy, *(cell(policy, epsilon) for epsilon in result.epsilons))
        for policy in dict.fromkeys(row.policy for row in rows)
    ]
    return table(title, ("policy", *(f"epsilon {epsilon:g}" for epsilon in result.epsilons)), cells)


def _draw_arms(result: "ArmsRegret", picture: Path) -> None:
    from shuffledp.pictures.curves import DrawnLine, draw_lines

    panels = {}
    for epsilon in result.epsilons:
        lines: dict[str, list[ArmsRow]] = {}
        for row in result.rows:
            if row.epsilon in (None, epsilon) and not row.policy.startswith("fixed"):
                lines.setdefault(row.policy, []).append(row)
        horizons = dict.fromkeys(row.horizon for row in result.rows)
        lines["fixed, best in hindsight"] = [result.best_fixed(epsilon, horizon) for horizon in horizons]
        panels[f"epsilon {epsilon:g}"] = [
            DrawnLine.through(rows, "horizon", "regret_mean", name=name, dashes="--" if name in result.free else "-")
            for name, rows in lines.items()
        ]
    instances, arms = result.rows[0].instances, result.rows[0].arms
    title = f"Regret with {arms} arms, mean of {instances} worlds with gaps from 0.02 to 0.5"
    draw_lines(picture, [panels], against="users", measures="regret", title=title)


@experiment(swept=True)
def experiment_linucb(
    going: Going,
    file: Log = None,
    figure: Figure = None,
    scaling: Scaling = False,
    largest: Most = None,
    instances: Worlds = None,
    epsilon: options.Epsilon = None,
    delta: options.Delta = None,
    arms: LogArms = None,
    smallest: Smallest = None,
    seed: options.FixedSeed = 1,
) -> Told:
    """Regret of linear bandits in every trust model, or with FILE what each would have earned on a log.

    A log has columns arm, reward, propensity and features, or those of the Open Bandit Dataset.
    A picture's rows are kept beside it: a second run goes on.
    """
    from shuffledp.errors import ParameterError

    of_worlds = {"figure": figure, "scaling": scaling or None, "largest": largest, "instances": instances}
    of_logs = {"epsilon": epsilon, "delta": delta, "arms": arms, "smallest": smallest}
    for name, value in (of_worlds if file is not None else of_logs).items():
        if value is not None:
            wrong = "is for worlds, not for a log" if file is not None else "is for a log"
            raise ParameterError(name, value, wrong, "leave it out" if file is not None else "name the log's file")
    if file is not None:
        return log_told(going, file, epsilon=epsilon, delta=delta, arms=arms, smallest=smallest, seed=seed)
    if scaling:
        if figure is not None:
            raise ParameterError("figure", figure, "must be left out with --scaling", "ask for one of them")
        return _scaling(going, 1_000_000 if largest is None else largest, 20 if instances is None else instances, seed)
    if largest is not None:
        raise ParameterError("largest", largest, "is for --scaling", "a figure has 20,000 users")
    return _figure(going, 1 if figure is None else figure, 50 if instances is None else instances, seed)


def _figure(going: Going, figure: int, instances: int, seed: int) -> Told:
    """A figure of the paper: regret along the way of every policy, at three epsilons."""
    from shuffledp.experiments.linucb import figure_tasks, linucb_figure

    tasks = figure_tasks(figure, instances=instances, seed=seed)
    rows = going.measured("choosing", linucb_figure, tasks=tasks, **going.kept)
    regrets = listed(
        f"Regret after {rows[0].times[-1]:,} users, mean of {rows[0].instances} worlds",
        "policy | epsilon | dimension | regret | ± | users a slot | seconds",
        rows,
        lambda row: (
            f"{row.policy} | {'-' if row.epsilon is None else f'{row.epsilon:g}'} | {row.dimension} | "
            f"{row.regret_mean:,.0f} | {row.regret_standard_error:,.0f} | {row.slot_users} | {row.seconds:.1f}"
        ),
    )
    same = f"papers linucb --figure {figure} --instances {instances} --seed {seed}"
    return Told(
        document={"figure": figure, "seed": seed, "rows": [flat(row, *CURVES) for row in rows]},
        tables=[regrets],
        rows=rows,
        words=[
            "Epsilon is at delta 0.1; a user is replaced. jdp-*, shuffle-amp and ldp are references: floating noise.",
            "thompson-*: the releases of the policy after it, users draw theta; no bound is proved of its regret.",
        ],
        again=[
            ("see it", f"{same} --picture regret.png"),
            ("higher dimensions", "papers linucb --figure 2"),
            ("slopes", "papers linucb --scaling"),
        ],
        draw=lambda picture: _draw_figure(rows, picture, instances),
    )


def _draw_figure(rows: "list[RegretRow]", picture: Path, instances: int) -> None:
    from shuffledp.pictures.curves import DrawnLine, draw_lines, within_two_errors

    def line(row: "RegretRow") -> DrawnLine:
        band = within_two_errors(row.curve_mean, row.curve_standard_error)
        return DrawnLine(name=row.policy, x=row.times, y=row.curve_mean, band=band, **_style(row.policy))

    panels = [
        {
            f"epsilon = {epsilon:g}, dimension {dimension}": [
                line(row) for row in rows if row.dimension == dimension and row.epsilon in (None, epsilon)
            ]
            for epsilon in sorted({row.epsilon for row in rows if row.epsilon is not None})
        }
        for dimension in sorted({row.dimension for row in rows})
    ]
    title = f"LinUCB in every trust model: {instances} worlds, bands of two standard errors"
    draw_lines(picture, panels, against="users so far", measures="cumulative regret", title=title, logarithmic=False)


def _style(policy: str) -> dict[str, Any]:
    colour, dashes = _STYLES.get(re.sub(r"(concurrent)-\d+$", r"\1", policy), _OTHER)
    return {"colour": colour, "dashes": dashes}


def _scaling(going: Going, largest: int, instances: int, seed: int) -> Told:
    """Slopes of log regret against log users for the local model, one shuffler and several."""
    from shuffledp.experiments.linucb_scaling import regret_growth

    asked = {"largest": largest, "instances": instances, "seed": seed}
    result = going.measured("choosing", regret_growth, **asked, **going.kept)
    regrets = listed(
        f"Regret with new arms for every user, mean of {instances} worlds, epsilon 1",
        "policy | users | regret | ± | shufflers | users a slot | of the first slot | proved bound",
        result.rows,
        lambda row: (
            f"{row.policy} | {row.users:,} | {row.regret_mean:,.0f} | {row.regret_standard_error:,.0f} | "
            f"{row.shufflers or '-'} | {row.slot_users:,} | {row.first_slot_part:.0%} | "
            f"{row.bound:,.0f}{' (nothing)' if row.bound >= row.users else ''}"
        ),
    )
    slopes = listed(
        "Slope of log regret against log users, with its 95% interval",
        "policy | measured | last decade | bound | theory",
        result.slopes,
        lambda row: (
            f"{row.policy} | {row.regret:.3f} | {row.last_decade:.3f} | {row.bound.slope:.3f} | {row.theory:.3f}"
        ),
    )
    same = f"papers linucb --scaling --instances {instances} --seed {seed} --largest {largest}"
    return Told(
        document={
            "rows": [{**flat(row), "bound_proves_nothing": row.bound >= row.users} for row in result.rows],
            "slopes": [flat(row, regret="slope", bound="bound_slope") for row in result.slopes],
            "notes": result.sentences(),
            "seed": seed,
        },
        tables=[regrets, slopes],
        rows=result.rows,
        words=[
            *result.sentences(),
            "(nothing): a bound that proves nothing, as so many users cannot lose more than 1 each.",
        ],
        again=[("see it", f"{same} --picture growth.png"), ("the paper's figure", "papers linucb --figure 1")],
        draw=lambda picture: _draw_growth(result, picture),
    )


def _draw_growth(result: "RegretGrowth", picture: Path) -> None:
    from shuffledp.pictures.curves import DrawnLine, draw_lines

    lines = []
    for slope in result.slopes:
        rows = [row for row in result.rows if row.policy == slope.policy]
        name = "concurrent, best k" if slope.policy == "concurrent" else slope.policy
        found = f"slope {slope.regret.slope:.2f}, last decade {slope.last_decade.slope:.2f}; theory {slope.theory:.2f}"
        look: dict[str, Any] = {"name": f"{name}: {found}", "theory": slope.theory, **_style(slope.policy)}
        lines.append(DrawnLine.through(rows, "users", "regret_mean", error="regret_standard_error", **look))
    title = f"New arms for every user: {result.instances} worlds, epsilon 1, bands of two errors"
    draw_lines(picture, [{title: lines}], against="users", measures="regret")
