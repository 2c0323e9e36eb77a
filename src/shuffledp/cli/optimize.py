"""`shuffledp plan optimize`: every solver's predicted bound for a convex problem, and the choice."""

import math
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated, Any

import typer

from shuffledp.cli import options
from shuffledp.cli.asked import target
from shuffledp.cli.output import facts, next_steps, print_json, show, table
from shuffledp.cli.progress import working
from shuffledp.cli.said import target_options
from shuffledp.errors import ParameterError

if TYPE_CHECKING:
    from shuffledp.learn.optimize import PredictedBound, Problem, Solver

Smooth = Annotated[float | None, typer.Option(help="How fast gradients change; none if they jump.", metavar="B")]
REHEARSED = ("logistic", "hinge", "squared", "huber")
"""Losses that solvers rehearse here: all that is known of them is their name."""

RoundsAllowed = Annotated[int, typer.Option(help="Rounds at most.", metavar="R")]
LossName = Annotated[
    str | None, typer.Option(help="The loss, of rows no longer than 1: solvers then rehearse it.", metavar="NAME")
]
SolverName = Annotated[str, typer.Option(help="auto, least-bound, or one of those compared.", metavar="NAME")]


def plan_optimize(
    users: options.Users = None,
    dimension: Annotated[int | None, typer.Option(help="Numbers of a model.", metavar="D")] = None,
    radius: Annotated[float, typer.Option(help="Models are no longer.", metavar="R")] = 1.0,
    lipschitz: Annotated[float, typer.Option(help="Gradients are no longer, or clipped.", metavar="L")] = 1.0,
    smooth: Smooth = None,
    strong: Annotated[float, typer.Option(help="Strong convexity of the loss; 0 if it has none.", metavar="S")] = 0.0,
    proximal: Annotated[bool, typer.Option(help="Whether the loss has a proximal map.")] = True,
    linear: Annotated[bool, typer.Option("--linear", help="The loss is one of a linear model.")] = False,
    loss: LossName = None,
    epsilon: options.Epsilon = None,
    delta: options.Delta = None,
    rounds_allowed: RoundsAllowed = 1000,
    visits: Annotated[int | None, typer.Option(help="Rounds one user may be in; else all.", metavar="V")] = None,
    solver: SolverName = "auto",
    honest_fraction: options.HonestFraction = 1.0,
    as_json: options.AsJson = False,
) -> None:
    """A convex loss, minimized by shuffled gradients: what every solver can promise, and which one to take."""
    from shuffledp.learn.estimators.declared import check_moderate
    from shuffledp.learn.optimize import L2Ball, Problem, plan, predicted_bounds
    from shuffledp.learn.optimize.outlook import outlook, words_before
    from shuffledp.learn.optimize.vacuous import proves_nothing

    people, privacy = target(users, epsilon, delta)
    if dimension is None:
        raise ParameterError("dimension", None, "must be given", "add --dimension, the numbers of a model")
    check_moderate("radius", radius, "say how long a model may be")
    check_moderate("lipschitz", lipschitz, "say how long a gradient can be")
    if smooth is not None:
        check_moderate("smoothness", smooth, "leave it out if gradients jump")
    if strong != 0:
        check_moderate("strong_convexity", strong, "0 leaves it out")
    problem = Problem(
        users=people,
        domain=L2Ball(dimension=dimension, radius=radius),
        lipschitz=lipschitz,
        smoothness=smooth,
        strong_convexity=strong,
        has_prox=proximal,
        linear=linear,
        privacy=privacy,
        honest_fraction=honest_fraction,
        rounds=rounds_allowed,
        visits=visits,
        loss=None if loss is None else _loss_document(loss),
        row_bound=None if loss is None else 1.0,
    )
    with working("asking every solver", shown=not as_json):
        rows = [_row(row, problem) for row in predicted_bounds(problem)]
        chosen = plan(problem, solver=solver)
        few, expected = words_before(chosen), outlook(chosen)
        vain = proves_nothing(problem, chosen.bound)
    if as_json:
        told = {"expected": None if expected is None else expected.document(), "bound_proves_nothing": vain}
        print_json(_document(problem, rows, chosen, [] if few is None else [few]) | told)
        return
    guarantee = chosen.guarantee()
    most = guarantee.messages_per_user
    shown = [
        ("asked", f"{people:,} users, {dimension:,} numbers, epsilon {privacy.epsilon:g}, delta {privacy.delta:g}"),
        ("solver", f"{chosen.name}: {chosen.chosen}"),
        ("expected", None if expected is None else str(expected)),
        ("look at", few),
        ("excess loss", _proved(chosen.bound, vain=vain)),
        ("rounds", f"{chosen.rounds:,}, of {guarantee.users_per_round:,} users or more"),
        ("each user", f"is in {guarantee.rounds_per_user:,} of them, sends {most:,} messages at most"),
        ("delta proved", f"{guarantee.delta:.3g}"),
    ]
    show(facts("Shuffle private convex optimization", shown), _table(rows, chosen.name))
    next_steps(
        [
            ("learn from a file", f"fit YOUR.csv --target C {target_options(privacy)}"),
            ("for a program", "plan optimize ... --json"),
        ]
    )


def _proved(bound: float | None, *, vain: bool) -> str:
    from shuffledp.learn.optimize.vacuous import PROVES_NOTHING

    if bound is None:
        return "nothing is proved of this solver's: it was best in rehearsals, or asked for"
    return f"at most {bound:.4g} in expectation, for users drawn independently" + (
        f", {PROVES_NOTHING}" if vain else ""
    )


def _loss_document(name: str) -> dict[str, Any]:
    """A loss of rows no longer than 1, by its name."""
    if name not in REHEARSED:
        raise ParameterError("loss", name, f"must be one of {', '.join(REHEARSED)}", "leave it out to rank by bounds")
    return {"loss": name}


def _row(row: "PredictedBound", problem: "Problem") -> dict[str, Any]:
    """What a solver promises, as JSON; an infinite bound is none."""
    from shuffledp.learn.optimize.vacuous import proves_nothing

    endless = row.bound is not None and not math.isfinite(row.bound)
    known = asdict(row) | ({"bound": None, "refusal": "needs more users"} if endless else {})
    return known | {"bound_proves_nothing": proves_nothing(problem, known["bound"])}


def _document(problem: "Problem", rows: list[dict[str, Any]], chosen: "Solver", warned: list[str]) -> dict[str, Any]:
    guarantee = chosen.guarantee()
    asked = problem.document()
    return {
        "schema": 1,
        "protocol": "optimize",
        **{name: asked[name] for name in ("users", "epsilon", "delta", "honest_fraction", "visits")},
        "dimension": problem.dimension,
        "radius": problem.domain.reach,
        "lipschitz": problem.lipschitz,
        "smooth": problem.smoothness,
        "strong": problem.strong_convexity,
        "proximal": problem.has_prox,
        "linear": problem.linear,
        "rounds_allowed": problem.rounds,
        "smallest_batch": problem.smallest_batch,
        "solver": chosen.name,
        "why": str(chosen.chosen),
        "chosen_by": chosen.chosen.by,
        "rehearsed": dict(chosen.chosen.losses) or None,
        "warnings": warned,
        "bound": chosen.bound,
        "rounds": chosen.rounds,
        **{name: getattr(guarantee, name) for name in ("users_per_round", "rounds_per_user", "messages_per_user")},
        "delta_proved": guarantee.delta,
        "rows": rows,
        "fingerprint": chosen.fingerprint,
    }


def _table(rows: list[dict[str, Any]], chosen: str) -> Any:
    cells = (
        (
            row["solver"] + (" <" if row["solver"] == chosen else ""),
            "-"
            if row["bound"] is None
            else f"{row['bound']:.4g}" + (" (nothing)" if row["bound_proves_nothing"] else ""),
            row["refusal"] or row["reference"],
        )
        for row in rows
    )
    title = "Predicted bounds on the expected excess loss"
    vain = any(row["bound_proves_nothing"] for row in rows)
    caption = "(nothing): proves nothing at this size, a model that says nothing is no worse" if vain else ""
    return table(title, ("solver", "bound", "reference"), cells, words=("reference",), caption=caption)
