"""`shuffledp protocols`: every method side by side, the survey's Tables 2 and 5 in numbers."""

import math
from typing import TYPE_CHECKING, Annotated, Any

import typer

from shuffledp.cli import options
from shuffledp.cli.domains import domain_options
from shuffledp.cli.output import next_steps, print_json, show
from shuffledp.cli.progress import working

if TYPE_CHECKING:
    from shuffledp.privacy import Privacy

_FRACTIONS = (1.0, 0.9, 0.5)

Protocol = Annotated[
    str, typer.Argument(help="binary-sum, bounded-sum, vector-sum or histogram.", metavar="[PROTOCOL]")
]


def protocols(
    protocol: Protocol = "binary-sum",
    users: options.Users = None,
    epsilon: options.Epsilon = None,
    delta: options.Delta = None,
    low: options.Low = None,
    high: options.High = None,
    dimension: options.Dimension = None,
    radius: options.Radius = None,
    rotation: options.Rotation = None,
    domain: options.Domain = None,
    categories: options.Count = None,
    other: options.Other = None,
    as_json: options.AsJson = False,
) -> None:
    """Every method side by side: error, messages, dropouts, lying clients."""
    from shuffledp.errors import InfeasibleError
    from shuffledp.protocols.catalogue import PROTOCOLS

    given: dict[str, Any] = {"low": low, "high": high, "dimension": dimension, "radius": radius, "rotation": rotation}
    given |= {"domain": domain, "categories": categories, "other": other}
    values = options.domain_of(protocol, **given)
    people, privacy = options.target(users, epsilon, delta)
    family = PROTOCOLS[protocol]
    rows: list[dict[str, Any]] = []
    question = ""
    with working("asking every method", shown=not as_json):
        for name in family.methods:
            try:
                plan = family.choose(users=people, privacy=privacy, method=name, **values).plan
            except InfeasibleError as error:
                rows.append({"method": name, "available": False, "why": f"{error.parameter} {error.problem}"})
                continue
            question = plan.question
            left = {f"{fraction:g}": plan.epsilon_with(fraction) for fraction in _FRACTIONS}
            rows.append(
                {
                    "method": name,
                    "available": True,
                    "standard_error": plan.standard_error,
                    **plan.further_numbers(),
                    "messages_per_user_mean": plan.messages_per_user_mean,
                    "messages_per_user_max": plan.messages_per_user_max,
                    "bits_per_message": plan.bits_per_message,
                    "epsilon_at_honest_fraction": {k: v if math.isfinite(v) else None for k, v in left.items()},
                    "influence_of_a_lying_client": plan.influence,
                    "pure": getattr(plan, "is_pure", False),
                    "zero_kept": getattr(plan, "keeps_zero", False),
                    "local_epsilon": plan.local_epsilon,
                }
            )
    if hasattr(family, "comparison"):
        rows.append(_comparison(family, people, privacy, values))
    measure = "l_inf_error" if protocol == "histogram" else "standard_error"
    rows.sort(key=lambda row: row.get(measure, math.inf))
    if as_json:
        document = {"schema": 1, "protocol": protocol, "users": people, "epsilon": privacy.epsilon}
        listed = values | ({"categories": values["categories"].document()} if protocol == "histogram" else {})
        print_json(document | {"delta": privacy.delta, **listed, "protocols": rows})
        return
    from rich import box
    from rich.table import Table

    table = Table(
        title=f"{protocol}: {question}, epsilon {privacy.epsilon:g}, delta {privacy.delta:g}",
        title_justify="left",
        box=box.SIMPLE_HEAD,
        title_style="bold",
    )
    table.add_column("method", no_wrap=True)
    for heading in ("error", "msgs", "bits", "eps 90%", "eps 50%", "liar"):
        table.add_column(heading, justify="right", no_wrap=True)
    table.add_column("also")
    for row in rows:
        if not row["available"]:
            table.add_row(row["method"], *["-"] * 6, row["why"], style="dim")
            continue
        left = row["epsilon_at_honest_fraction"]
        influence = row["influence_of_a_lying_client"]
        table.add_row(
            row["method"],
            f"{row[measure]:.3g}",
            f"{row['messages_per_user_mean']:.3g}",
            str(row["bits_per_message"]),
            *(
                "-" if row.get("comparison_only") else "∞" if left[key] is None else f"{left[key]:.3f}"
                for key in ("0.9", "0.5")
            ),
            "any" if influence is None else f"{influence:.3g}",
            _also(row),
        )
    named = "standard error (of a coordinate)" if protocol != "histogram" else "of the worst category, 95%"
    moved = "the sum" if protocol != "histogram" else "a category"
    legend = (
        f"error: {named}; msgs: messages a user, mean; eps 90%, 50%: epsilon when only so "
        f"many are honest; liar: how far one lying client moves {moved}"
    )
    show(table, legend)
    first = next((row["method"] for row in rows if row["available"] and row["method"] in family.methods), "auto")
    asked = f"--users {people} --epsilon {privacy.epsilon!r} --delta {privacy.delta!r}"
    if protocol == "histogram":
        asked += f" {domain_options(values['categories'], domain)}"
    else:
        asked += "".join(f" --{name} {value!r}" for name, value in values.items())
    next_steps(
        [
            ("why one is private", f"explain {protocol} {asked} --method {first}"),
            ("does one keep its word", f"audit {protocol} {asked} --method {first}"),
        ]
    )


def _comparison(family: Any, users: int, privacy: "Privacy", domain: dict[str, Any]) -> dict[str, Any]:
    """The method gaussian, which is for comparison only."""
    compared = family.comparison(
        users=users, privacy=privacy, **{key: value for key, value in domain.items() if key != "rotation"}
    )
    kept = ("method", "standard_error", "messages_per_user_mean", "messages_per_user_max", "bits_per_message")
    return {
        **{key: compared[key] for key in kept},
        "available": True,
        "comparison_only": True,
        "epsilon_at_honest_fraction": {f"{fraction:g}": None for fraction in _FRACTIONS},
        "influence_of_a_lying_client": None,
        "pure": False,
        "zero_kept": False,
        "local_epsilon": compared["local_epsilon"],
    }


def _also(row: dict[str, Any]) -> str:
    notes = [
        "for comparison: floats" if row.get("comparison_only") else "",
        "delta = 0" if row["pure"] else "",
        "an empty count stays 0" if row["zero_kept"] else "",
        f"alone: eps {row['local_epsilon']:.3g}" if row["local_epsilon"] is not None else "",
    ]
    return ", ".join(note for note in notes if note)
