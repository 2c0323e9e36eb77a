"""`shuffledp protocols`: every method side by side, the survey's Table 2 in numbers."""

import math
from typing import Any

from shuffledp.cli import options
from shuffledp.cli.output import next_steps, print_json, show

_FRACTIONS = (1.0, 0.9, 0.5)


def protocols(
    users: options.Users = None,
    epsilon: options.Epsilon = None,
    delta: options.Delta = None,
    as_json: options.AsJson = False,
) -> None:
    """Every binary sum side by side: error, messages, dropouts, lying clients."""
    from shuffledp.errors import InfeasibleError, ParameterError
    from shuffledp.privacy import Privacy
    from shuffledp.protocols.binary_sum import BinarySum

    missing = [name for name, value in (("users", users), ("epsilon", epsilon), ("delta", delta)) if value is None]
    if missing or users is None or epsilon is None or delta is None:
        raise ParameterError(missing[0], None, "must be given", f"add --{missing[0]}")
    privacy = Privacy(epsilon, delta)
    rows: list[dict[str, Any]] = []
    for name in BinarySum.methods:
        try:
            plan = BinarySum.plan(users=users, privacy=privacy, method=name)
        except InfeasibleError as error:
            rows.append({"method": name, "available": False, "why": f"{error.parameter} {error.problem}"})
            continue
        left = {f"{fraction:g}": plan.epsilon_with(fraction) for fraction in _FRACTIONS}
        rows.append(
            {
                "method": name,
                "available": True,
                "standard_error": plan.standard_error,
                "messages_per_user_mean": plan.messages_per_user_mean,
                "messages_per_user_max": plan.messages_per_user_max,
                "bits_per_message": plan.bits_per_message,
                "epsilon_at_honest_fraction": {k: v if math.isfinite(v) else None for k, v in left.items()},
                "influence_of_a_lying_client": plan.influence,
                "pure": plan.is_pure,
                "zero_kept": plan.keeps_zero,
                "local_epsilon": plan.local_epsilon,
            }
        )
    rows.sort(key=lambda row: row.get("standard_error", math.inf))
    if as_json:
        document = {"schema": 1, "users": users, "epsilon": privacy.epsilon, "delta": privacy.delta, "protocols": rows}
        print_json(document)
        return
    from rich import box
    from rich.table import Table

    table = Table(
        title=f"Binary sums: {users:,} users, epsilon {privacy.epsilon:g}, delta {privacy.delta:g}",
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
            f"{row['standard_error']:.3g}",
            f"{row['messages_per_user_mean']:.3g}",
            str(row["bits_per_message"]),
            *("∞" if left[key] is None else f"{left[key]:.3f}" for key in ("0.9", "0.5")),
            "any" if influence is None else f"{influence:.3g}",
            _also(row),
        )
    legend = (
        "error: standard error of the count; msgs: messages a user, mean; eps 90%, 50%: epsilon when only so many "
        "are honest; liar: how far one lying client moves the count"
    )
    show(table, legend)
    first = next((row["method"] for row in rows if row["available"]), "auto")
    asked = f"--users {users} --epsilon {privacy.epsilon!r} --delta {privacy.delta!r}"
    next_steps(
        [
            ("why one is private", f"explain {asked} --method {first}"),
            ("does one keep its word", f"audit binary-sum {asked} --method {first}"),
        ]
    )


def _also(row: dict[str, Any]) -> str:
    notes = [
        "delta = 0" if row["pure"] else "",
        "an empty count stays 0" if row["zero_kept"] else "",
        f"alone: eps {row['local_epsilon']:.3g}" if row["local_epsilon"] is not None else "",
    ]
    return ", ".join(note for note in notes if note)
