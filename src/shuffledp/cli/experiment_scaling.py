"""`shuffledp experiment linucb --scaling`: how the regret of linear bandits grows with the users."""

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from shuffledp.cli.experiment_shared import going_on, slope_document
from shuffledp.cli.output import next_steps, print_json, show, table
from shuffledp.cli.progress import of_how_much

if TYPE_CHECKING:
    from shuffledp.experiments.linucb_scaling import RegretGrowth


def experiment_scaling(*, largest: int, instances: int, seed: int, picture: Path | None, as_json: bool) -> None:
    """Slopes of log regret against log users for the local model, one shuffler and several."""
    from shuffledp.experiments.linucb_scaling import regret_growth

    going = going_on(picture)
    with of_how_much("choosing", shown=not as_json) as progress:
        result = regret_growth(largest=largest, instances=instances, seed=seed, progress=progress, **going)
    if picture is not None:
        _draw(result, picture)
    if as_json:
        print_json(_document(result))
        return
    show(_rows(result), _slopes(result))
    for sentence in result.sentences():
        typer.echo(sentence)
    if picture is not None:
        typer.echo(f"picture: {picture}")
    same = f"experiment linucb --scaling --instances {instances} --seed {seed} --largest {largest}"
    next_steps([("see it", f"{same} --picture growth.png"), ("the paper's figure", "experiment linucb --figure 1")])


def _document(result: "RegretGrowth") -> dict[str, Any]:
    return {
        "schema": 1,
        "rows": [asdict(row) for row in result.rows],
        "slopes": [
            {
                "policy": row.policy,
                "theory": row.theory,
                **slope_document("slope", row.regret),
                **slope_document("last_decade", row.last_decade),
                **slope_document("bound_slope", row.bound),
            }
            for row in result.slopes
        ],
        "notes": result.sentences(),
        "seed": result.seed,
    }


def _rows(result: "RegretGrowth") -> Any:
    headings = ("policy", "users", "regret", "±", "shufflers", "users a slot", "of the first slot", "proved bound")
    cells = (
        (
            row.policy,
            f"{row.users:,}",
            f"{row.regret_mean:,.0f}",
            f"{row.regret_standard_error:,.0f}",
            str(row.shufflers or "-"),
            f"{row.slot_users:,}",
            f"{row.first_slot_part:.0%}",
            f"{row.bound:,.0f}",
        )
        for row in result.rows
    )
    return table(f"Regret with new arms for every user, mean of {result.instances} worlds, epsilon 1", headings, cells)


def _slopes(result: "RegretGrowth") -> Any:
    cells = (
        (
            row.policy,
            *(f"{slope.slope:.3f} ± {slope.high - slope.slope:.3f}" for slope in (row.regret, row.last_decade)),
            f"{row.bound.slope:.3f}",
            f"{row.theory:.3f}",
        )
        for row in result.slopes
    )
    title = "Slope of log regret against log users, with its 95% interval"
    return table(title, ("policy", "measured", "last decade", "bound", "theory"), cells)


def _draw(result: "RegretGrowth", picture: Path) -> None:
    from shuffledp.pictures.growth import GrowthLine, draw_growth

    lines = []
    for slope in result.slopes:
        rows = [row for row in result.rows if row.policy == slope.policy]
        name = "concurrent, best k" if slope.policy == "concurrent" else slope.policy
        measured, last = (f"{found.slope:.2f}" for found in (slope.regret, slope.last_decade))
        lines.append(
            GrowthLine(
                name=slope.policy,
                label=f"{name}: slope {measured}, last decade {last}; theory {slope.theory:.2f}",
                users=[row.users for row in rows],
                mean=[row.regret_mean for row in rows],
                standard_error=[row.regret_standard_error for row in rows],
                theory=slope.theory,
            )
        )
    draw_growth(picture, lines, f"New arms for every user: {result.instances} worlds, epsilon 1, bands of two errors")
