"""`shuffledp protocols`: every method side by side, the survey's Tables 2 and 5 in numbers."""

import math
from typing import TYPE_CHECKING, Any

from shuffledp.cli import options
from shuffledp.cli.asked import Asked
from shuffledp.cli.output import next_steps, print_json, show, table
from shuffledp.cli.progress import working
from shuffledp.cli.side_by_side import is_plan, numbers, plans_of, refused

if TYPE_CHECKING:
    from shuffledp.protocols.plan import Plan

_FRACTIONS = (1.0, 0.9, 0.5)
_HEADINGS = ("method", "error", "msgs", "bits", "eps 90%", "eps 50%", "liar", "also")


@options.takes_plan(without=("plan_file", "method", "noise"))
def protocols(asked: Asked, as_json: options.AsJson = False) -> None:
    """Every method side by side: error, messages, dropouts, lying clients."""
    family, users, privacy = asked.family, *asked.target()
    with working("asking every method", shown=not as_json):
        plans = plans_of(asked)
        rows = [
            (family.error(found), _row(name, found)) if is_plan(found) else (math.inf, refused(name, found))
            for name, found in plans.items()
        ]
    rows += [
        (compared["standard_error"], _comparison(compared)) for compared in map(asked.compared, family.comparisons)
    ]
    rows.sort(key=lambda each: each[0])
    if as_json:
        document = {"schema": 1, "protocol": asked.protocol, "users": users, "epsilon": privacy.epsilon}
        said = family.read_domain(asked.domain)
        print_json(document | {"delta": privacy.delta, **said, "protocols": [row for _, row in rows]})
        return
    question = next((found.question for found in plans.values() if is_plan(found)), family.summary.rstrip("."))
    title = f"{asked.protocol}: {question}, epsilon {privacy.epsilon:g}, delta {privacy.delta:g}"
    error = f"{family.error_name}{family.error_unit and f' so many{family.error_unit}'}"
    legend = (
        f"error: {error}; msgs: messages a user, mean; eps 90%, 50%: epsilon when only so many are honest; "
        "liar: how far one lying client moves a number of the answer"
    )
    show(table(title, _HEADINGS, [_cells(*row) for row in rows], left=("also",), folded=("also",)), legend)
    first = next((row["method"] for _, row in rows if row["available"] and row["method"] in family.methods), "auto")
    best = plans.get(first)
    if best is not None and is_plan(best):
        why, keeps = (asked.said.other(command, best, f"--method {first}") for command in ("explain", "audit"))
        next_steps([("why one is private", why), ("does one keep its word", keeps)])


def _row(name: str, plan: "Plan") -> dict[str, Any]:
    left = {f"{fraction:g}": plan.epsilon_with(fraction) for fraction in _FRACTIONS}
    return {
        "method": name,
        "available": True,
        **numbers(plan),
        "epsilon_at_honest_fraction": {k: v if math.isfinite(v) else None for k, v in left.items()},
        "pure": plan.is_pure,
        "zero_kept": plan.keeps_zero,
        "local_epsilon": plan.local_epsilon,
    }


def _comparison(compared: dict[str, Any]) -> dict[str, Any]:
    """A method that is for comparison only."""
    kept = ("method", "standard_error", "messages_per_user_mean", "messages_per_user_max", "bits_per_message")
    return {
        **{key: compared[key] for key in (*kept, "local_epsilon")},
        "available": True,
        "comparison_only": True,
        "epsilon_at_honest_fraction": {f"{fraction:g}": None for fraction in _FRACTIONS},
        "influence_of_a_lying_client": None,
        "pure": False,
        "zero_kept": False,
    }


def _cells(error: float, row: dict[str, Any]) -> Any:
    from shuffledp.protocols.presentation import ListingRow

    if not row["available"]:
        return ListingRow((row["method"], *["-"] * 6, row["why"]), "dim")
    compared, influence = row.get("comparison_only"), row["influence_of_a_lying_client"]
    left = [row["epsilon_at_honest_fraction"][key] for key in ("0.9", "0.5")]
    notes = {
        "for comparison: floats": compared,
        "delta = 0": row["pure"],
        "an empty count stays 0": row["zero_kept"],
        f"alone: eps {row['local_epsilon'] or 0:.3g}": row["local_epsilon"] is not None,
    }
    return (
        row["method"],
        f"{error:.3g}",
        f"{row['messages_per_user_mean']:.3g}",
        str(row["bits_per_message"]),
        *("-" if compared else "∞" if epsilon is None else f"{epsilon:.3f}" for epsilon in left),
        "any" if influence is None else f"{influence:,.0f}" if influence >= 100 else f"{influence:.3g}",
        ", ".join(note for note, holds in notes.items() if holds),
    )
