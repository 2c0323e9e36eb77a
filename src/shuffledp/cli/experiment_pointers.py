"""`shuffledp experiment pointer-chasing`: users that PC(2, l) needs, shuffled and local."""

from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated, Any

import typer

from shuffledp.cli import options
from shuffledp.cli.experiment_shared import whole_numbers
from shuffledp.cli.output import next_steps, print_json, show, table
from shuffledp.cli.progress import of_how_much

if TYPE_CHECKING:
    from shuffledp.experiments.pointers import PointerRow

Lengths = Annotated[str, typer.Option("--lengths", help="Lengths of the permutations, with commas.", metavar="L,L")]
Runs = Annotated[int, typer.Option("--runs", help="Runs at each number of users.", metavar="R")]
Method = Annotated[str, typer.Option("--method", help="The histogram's method.", metavar="M")]


def experiment_pointers(
    lengths: Lengths = "2,3,4,5,6",
    runs: Runs = 200,
    method: Method = "decoys",
    seed: options.FixedSeed = 1,
    as_json: options.AsJson = False,
) -> None:
    """How many users pointer chasing needs for two thirds of success, with a shuffler and in the local model."""
    from shuffledp.experiments.pointers import pointer_chasing

    numbers = whole_numbers(lengths, "lengths", "2,3,4")
    with of_how_much("chasing", shown=not as_json) as progress:
        rows = pointer_chasing(lengths=numbers, method=method, runs=runs, seed=seed, progress=progress)
    if as_json:
        print_json({"schema": 1, "runs": runs, "seed": seed, "rows": [asdict(row) for row in rows]})
        return
    show(_table(rows, runs))
    show(
        "Every one-round local protocol needs a number of users that grows at least like l ([004] Theorem 17); "
        "with a shuffler it need not grow at all (Theorem 18). Epsilon 1, delta 1e-6.\n"
        "A guess is right once in l times. Messages: a user's, on average. Local: the part of local runs that are "
        "right with as many users."
    )
    again = f"experiment pointer-chasing --lengths {lengths} --runs {4 * runs}"
    next_steps([("more runs", again + ("" if method == "decoys" else f" --method {method}"))])


def _table(rows: "list[PointerRow]", runs: int) -> Any:
    headings = ("model", "method", "l", "users", "right (95%)", "messages", "local")
    cells = (
        (
            row.model,
            row.method,
            str(row.length),
            f"{row.users:,}",
            f"{row.success:.2f} ({row.success_low:.2f}-{row.success_high:.2f})",
            f"{row.messages_per_user:,.1f}",
            "" if row.local_success_with_as_many is None else f"{row.local_success_with_as_many:.2f}",
        )
        for row in rows
    )
    return table(f"Fewest users for two thirds of {runs} runs", headings, cells, left=("method",))
