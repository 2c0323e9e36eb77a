"""Every histogram method side by side: the survey's Table 5 in numbers instead of orders of growth."""

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rich.table import Table

    from shuffledp.protocols.histogram.base import HistogramPlan


def method_rows(
    plan: "HistogramPlan", considered: Mapping[str, Any], max_messages: int | None = None
) -> list[dict[str, Any]]:
    """What each method would do for the same question, the best first; those not planned yet are planned here."""
    from shuffledp.errors import InfeasibleError
    from shuffledp.protocols.histogram import Histogram

    asked = {
        "users": plan.users,
        "privacy": plan.privacy,
        "categories": plan.categories,
        "honest_fraction": plan.honest_fraction,
        "constants": plan.constants,
        "max_messages": max_messages,
    }
    rows = []
    for name, method in Histogram.methods.items():
        found = plan if name == plan.method else considered.get(name)
        if found is None:
            try:
                found = method.plan(**asked)
            except InfeasibleError as refusal:
                found = refusal
        rows.append(_row(name, found, max_messages))
    return sorted(rows, key=lambda row: (not row["available"], row.get("l_inf_error", math.inf)))


def _row(name: str, found: Any, max_messages: int | None) -> dict[str, Any]:
    from shuffledp.errors import InfeasibleError

    if isinstance(found, InfeasibleError):
        return {"method": name, "available": False, "why": f"{found.parameter} {found.problem}"}
    fits = max_messages is None or found.messages_per_user_max <= max_messages
    return {
        "method": name,
        "available": fits,
        **({} if fits else {"why": f"sends up to {found.messages_per_user_max} messages, more than {max_messages}"}),
        "l_inf_error": found.error_bound,
        "l2_error": found.l2_error,
        "standard_error": found.standard_error,
        "messages_per_user_mean": found.messages_per_user_mean,
        "messages_per_user_max": found.messages_per_user_max,
        "bits_per_message": found.bits_per_message,
        "influence_of_a_lying_client": found.influence,
    }


def local_method(plan: "HistogramPlan") -> str:
    """The local model's best method for the same question, by name."""
    from shuffledp.references.local_histograms import LOCAL_METHODS, best_local_histogram

    best = best_local_histogram(users=plan.users, privacy=plan.privacy, bins=plan.bins)
    return next(name for name, kind in LOCAL_METHODS.items() if type(best) is kind)


def method_table(plan: "HistogramPlan", rows: Sequence[Mapping[str, Any]]) -> "Table":
    """The methods between what a trusted curator and what nobody but oneself could do."""
    from rich import box
    from rich.table import Table

    reference, root = plan.reference(), math.sqrt(plan.bins)
    table = Table(
        title="Every method, beside the two extremes",
        title_justify="left",
        box=box.SIMPLE_HEAD,
        title_style="bold",
        caption="worst bin: with 95% confidence no category is further off; l2: all errors together, root mean square",
        caption_justify="left",
    )
    table.add_column("method", no_wrap=True)
    for heading in ("worst bin", "l2", "msgs", "most", "bits"):
        table.add_column(heading, justify="right", no_wrap=True)
    table.add_column("", style="dim")

    def extreme(name: str, who: str, trust: str) -> None:
        worst, standard = reference[f"{who}_l_inf_error"], reference[f"{who}_standard_error"]
        l2 = None if standard is None else standard * root
        table.add_row(name, _number(worst), _number(l2), "", "", "", trust, style="dim")

    extreme("trusted curator", "central", "one party sees all")
    for row in rows:
        chosen = row["method"] == plan.method
        note = "this plan" if chosen else row.get("why", "")
        if "l_inf_error" not in row:
            table.add_row(row["method"], *["-"] * 5, note, style="dim")
            continue
        table.add_row(
            row["method"],
            _number(row["l_inf_error"]),
            _number(row["l2_error"]),
            f"{row['messages_per_user_mean']:,.3g}",
            f"{row['messages_per_user_max']:,}",
            f"{row['bits_per_message']:,}",
            note,
            style="bold" if chosen else "" if row["available"] else "dim",
        )
    extreme(f"local: {local_method(plan)}", "local", "no shuffler")
    return table


def _number(value: float | None) -> str:
    return "-" if value is None else f"{value:,.3g}" if value < 1000 else f"{value:,.0f}"
