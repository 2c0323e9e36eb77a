"""`shuffledp experiment arms`: regret of private arm elimination beside its references."""

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from shuffledp.cli import options
from shuffledp.cli.experiment_shared import going_on
from shuffledp.cli.output import next_steps, print_json, show, table
from shuffledp.cli.progress import of_how_much

if TYPE_CHECKING:
    from shuffledp.experiments.arms import ArmsRegret

Arms = Annotated[int, typer.Option("--arms", help="Arms to choose among.", metavar="K")]
Largest = Annotated[int, typer.Option("--largest", help="The most users; two sizes a decade from 10000.", metavar="T")]
Instances = Annotated[int, typer.Option("--instances", help="Random worlds at each point.", metavar="N")]


def experiment_arms(
    arms: Arms = 10,
    largest: Largest = 1_000_000,
    instances: Instances = 200,
    seed: options.FixedSeed = 1,
    picture: options.Picture = None,
    as_json: options.AsJson = False,
) -> None:
    """Regret of private arm elimination, with batches that double and fixed ones, beside its references.

    A picture's rows are kept beside it: a second run goes on.
    """
    from shuffledp.experiments.arms import arms_regret

    going = going_on(picture)
    with of_how_much("playing", shown=not as_json) as progress:
        result = arms_regret(arms=arms, largest=largest, instances=instances, seed=seed, progress=progress, **going)
    if picture is not None:
        _draw(result, picture)
    if as_json:
        print_json(_document(result))
        return
    show(_regrets(result), _exponents(result))
    typer.echo(
        "Extra: regret of doubling batches beyond that of the same policy without noise, at gaps from 0.3 to 0.6;\n"
        "the theory is k log T / epsilon. Where gaps are below epsilon, noise costs less than that."
    )
    if picture is not None:
        typer.echo(f"picture: {picture}")
    same = f"experiment arms --arms {arms} --instances {instances} --seed {seed}"
    next_steps(
        [("see it", f"{same} --largest {largest} --picture regret.png"), ("go on", f"{same} --largest 10000000")]
    )


def _document(result: "ArmsRegret") -> dict[str, Any]:
    return {
        "schema": 1,
        "rows": [asdict(row) for row in result.rows],
        "extra": [asdict(row) for row in result.extra],
        "exponents": [asdict(row) for row in result.exponents],
        "seed": result.seed,
    }


def _regrets(result: "ArmsRegret") -> Any:
    largest = max(row.horizon for row in result.rows)
    rows = [row for row in result.rows if row.horizon == largest]
    epsilons = sorted({row.epsilon for row in rows if row.epsilon is not None})
    found = {(row.policy, row.epsilon): row for row in rows}

    def cell(policy: str, epsilon: float) -> str:
        row = found.get((policy, epsilon), found.get((policy, None)))
        return "" if row is None else f"{row.regret_mean:,.0f} ± {row.regret_standard_error:,.0f}"

    title = f"Regret of {largest:,} users with {rows[0].arms} arms, mean of {rows[0].instances} worlds"
    cells = [
        (policy, *(cell(policy, epsilon) for epsilon in epsilons))
        for policy in dict.fromkeys(row.policy for row in rows)
    ]
    return table(title, ("policy", *(f"epsilon {epsilon:g}" for epsilon in epsilons)), cells)


def _exponents(result: "ArmsRegret") -> Any:
    title = "How the extra regret grows: its exponent, with the 95% interval of a straight line"
    cells = (
        (row.against, f"{row.exponent:.2f}", f"{row.low:.2f} .. {row.high:.2f}", f"{row.theory:g}")
        for row in result.exponents
    )
    return table(title, ("against", "exponent", "interval", "theory"), cells)


def _draw(result: "ArmsRegret", picture: Path) -> None:
    from shuffledp.pictures.regret import draw_regret

    epsilons = sorted({row.epsilon for row in result.rows if row.epsilon is not None})
    sizes = sorted({row.horizon for row in result.rows})
    panels: dict[str, dict[str, list[tuple[int, float]]]] = {}
    for epsilon in epsilons:
        rows = [row for row in result.rows if row.epsilon in (None, epsilon) and not row.policy.startswith("fixed")]
        lines: dict[str, list[tuple[int, float]]] = {}
        for row in rows:
            lines.setdefault(row.policy, []).append((row.horizon, row.regret_mean))
        lines["fixed, best in hindsight"] = [(size, result.best_fixed(epsilon, size).regret_mean) for size in sizes]
        panels[f"epsilon {epsilon:g}"] = lines
    instances, arms = result.rows[0].instances, result.rows[0].arms
    draw_regret(picture, panels, f"Regret with {arms} arms, mean of {instances} worlds with gaps from 0.02 to 0.5")
