"""A histogram as a person, a table and a program read it: categories by name, estimates, how far off."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from rich.table import Table

    from shuffledp.estimates import VectorEstimate
    from shuffledp.protocols.domains.domain import Categories

TOP = 20
_BAR = 16


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Read:
    """What is read out: names, their estimates, how far off all of them are at most, and the truth if it is shown."""

    names: Sequence[str]
    estimates: NDArray[np.float64]
    bound: float
    confidence: float
    users: int
    in_order: bool
    truth: NDArray[np.float64] | None = None

    @classmethod
    def of(
        cls,
        categories: "Categories",
        estimate: "VectorEstimate",
        users: int,
        truth: Any = None,
        candidates: Sequence[str] | None = None,
    ) -> "Read":
        """All categories; of hashed ones, the cells of candidates if there are any."""
        value, names, true = estimate.value, None, truth
        if candidates is not None:
            cells = categories.encode(list(candidates))
            value, names = value[cells], list(candidates)
            true = None if truth is None else truth[cells]
        return cls(
            names=categories.names() if names is None else names,
            estimates=value,
            bound=estimate.bound,
            confidence=estimate.confidence,
            users=users,
            in_order=categories.kind in ("integers", "dates"),
            truth=true,
        )

    @property
    def lower(self) -> NDArray[np.float64]:
        """No category has fewer users than none."""
        return np.maximum(self.estimates - self.bound, 0.0)

    @property
    def upper(self) -> NDArray[np.float64]:
        """No category has more users than there are."""
        return np.clip(self.estimates + self.bound, 0.0, float(self.users))

    def columns(self) -> dict[str, NDArray[Any]]:
        """The columns of a table, a row a category."""
        found = {
            "category": np.array(self.names, dtype=np.str_),
            "estimate": self.estimates,
            "lower": self.lower,
            "upper": self.upper,
        }
        return found if self.truth is None else found | {"truth": self.truth}

    def rows(self) -> list[dict[str, Any]]:
        """The same as objects."""
        columns = {name: column.tolist() for name, column in self.columns().items()}
        return [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]


def category_table(read: Read, top: int = TOP, title: str = "Users in each category") -> "Table":
    """The largest categories with how far off they are, and the rest added up; few in an order stay in it."""
    from rich import box
    from rich.table import Table

    table = Table(title=title, title_justify="left", box=box.SIMPLE_HEAD, title_style="bold")
    table.add_column("category", overflow="fold", max_width=30)
    headings = ["estimate", "from", "to", *(["truth"] if read.truth is not None else [])]
    for heading in headings:
        table.add_column(heading, justify="right", no_wrap=True)
    table.add_column("", no_wrap=True)
    largest = max(float(read.estimates.max()), 1.0)
    order = np.argsort(-read.estimates, kind="stable")
    if read.in_order and len(order) <= top:
        order = np.arange(len(order))
    for code in order[:top]:
        estimate = float(read.estimates[code])
        full = round(_BAR * max(0.0, estimate) / largest)
        noise = estimate <= read.bound
        truth = [] if read.truth is None else [f"{read.truth[code]:,.0f}"]
        table.add_row(
            str(read.names[code]),
            f"{estimate:,.1f}",
            f"{read.lower[code]:,.0f}",
            f"{read.upper[code]:,.0f}",
            *truth,
            "█" * full + (" may be 0" if noise else ""),
            style="dim" if noise else "",
        )
    rest = order[top:]
    if rest.size:
        truth = [] if read.truth is None else [f"{read.truth[rest].sum():,.0f}"]
        others = f"{rest.size:,} others together"
        table.add_section()
        table.add_row(others, f"{read.estimates[rest].sum():,.1f}", "", "", *truth, "", style="dim")
    return table


def how_far_off(read: Read) -> list[tuple[str, str]]:
    """The bound in words, and the largest error if the truth is shown."""
    rows = [
        (
            "how far off",
            f"every category by at most {read.bound:,.4g} users, with {read.confidence:.0%} confidence for all at once",
        )
    ]
    if read.truth is not None:
        seen = float(np.abs(read.estimates - read.truth).max())
        rows.append(("in truth", f"the largest error of a category was {seen:,.3g}"))
    return rows
