"""Every histogram method side by side: the survey's Table 5 in numbers instead of orders of growth."""

import math
from collections.abc import Mapping, Sequence
from typing import Any

from shuffledp.protocols.presentation import Column, Listing, ListingRow

_LEGEND = "worst bin: with 95% confidence no category is further off; l2: all errors together, root mean square"


def between_extremes(plan: Any, rows: Sequence[Mapping[str, Any]]) -> Listing:
    """The methods between what a trusted curator and what nobody but oneself could do.

    Args:
        plan: the histogram's plan that was chosen.
        rows: each method's name, whether it is available, and its errors and messages if they are known.
    """
    reference, root = plan.reference(), math.sqrt(plan.bins)

    def extreme(name: str, who: str) -> ListingRow:
        standard = reference[f"{who}_standard_error"]
        l2 = None if standard is None else standard * root
        return ListingRow((name, _number(reference[f"{who}_l_inf_error"]), _number(l2), "", "", ""), "dim")

    def method(row: Mapping[str, Any]) -> ListingRow:
        name, chosen = row["method"], row["method"] == plan.method
        if "l_inf_error" not in row:
            return ListingRow((name, *["-"] * 5), "dim")
        cells = (
            f"{name} (this plan)" if chosen else name,
            *(_number(row[key]) for key in ("l_inf_error", "l2_error", "messages_per_user_mean")),
            f"{row['messages_per_user_max']:,}",
            f"{row['bits_per_message']:,}",
        )
        return ListingRow(cells, "bold" if chosen else "" if row["available"] else "dim")

    return Listing(
        "Every method, beside the two extremes",
        (Column("method", right=False), *map(Column, ("worst bin", "l2", "msgs", "most", "bits"))),
        (
            extreme("trusted curator, sees all", "central"),
            *map(method, rows),
            extreme(f"no shuffler: {plan.local_method}", "local"),
        ),
        caption="\n".join([_LEGEND, *(f"{row['method']}: {row['why']}" for row in rows if row.get("why"))]),
    )


def _number(value: float | None) -> str:
    return "-" if value is None else f"{value:,.3g}" if value < 1000 else f"{value:,.0f}"
