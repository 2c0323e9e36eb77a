"""What two numbers a group say: its people, their part at the high end, and intervals that hold for all at once."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from shuffledp.estimates import NamedEstimate
from shuffledp.protocols.presentation import Chart, Column, Listing, ListingRow, Presentation

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class GroupsEstimate(NamedEstimate):
    """A number for every group, each in an interval; with probability `confidence` all intervals hold at once.

    `bounds` are the distances to the intervals' farther ends. `ends` are the noisy numbers that all is made of: how
    many people, or parts of people, are at the low and at the high end of each group, every one within `ends_bound`;
    none where only the number itself was reported;
    where they are combined with weights, the standard error is at most `ends_error` times the weights' length.
    """

    intervals: tuple[tuple[float, float], ...]
    ends: tuple[tuple[float, float], ...]
    ends_error: float
    ends_bound: float

    @property
    def lower(self) -> Floats:
        """The lower ends of the intervals."""
        return np.array([low for low, _ in self.intervals])

    @property
    def upper(self) -> Floats:
        """The upper ends of the intervals."""
        return np.array([high for _, high in self.intervals])


def parts_at_the_high_end(low: Floats, high: Floats, bound: float) -> tuple[Floats, Floats, Floats]:
    """The part of each group at the high end, and the least and the largest that it can be.

    Where the true numbers are within `bound` of both and not below 0, the part h/(l + h) grows with h and falls with
    l: its ends are those of the box. A group that may be empty may have any part.

    >>> [part.tolist() for part in parts_at_the_high_end(np.array([60.0]), np.array([40.0]), 10.0)]
    [[0.4], [0.3], [0.5]]
    """
    total = low + high
    part = np.clip(np.divide(high, total, out=np.full_like(total, 0.5), where=total > 0), 0.0, 1.0)
    least_high, most_high = np.maximum(high - bound, 0.0), np.maximum(high + bound, 0.0)
    least_low, most_low = np.maximum(low - bound, 0.0), np.maximum(low + bound, 0.0)
    lower = _ratio(least_high, most_low, 0.0)
    upper = _ratio(most_high, least_low, 1.0)
    return np.clip(part, lower, upper), lower, upper


def _ratio(high: Floats, low: Floats, where_empty: float) -> Floats:
    total = high + low
    return np.divide(high, total, out=np.full_like(total, where_empty), where=total > 0)


def groups_estimate(
    names: tuple[str, ...],
    estimate: Any,
    ends: Floats,
    value: Floats,
    intervals: tuple[Floats, Floats],
    standard_errors: Floats,
    ends_error: float,
) -> GroupsEstimate:
    """A number for every group, made of this estimate of the ends.

    Args:
        names: the groups'.
        estimate: the vector that the ends are from.
        ends: a row a group: its low end and its high end, or the one number that was reported.
        value: the numbers.
        intervals: their lower and upper ends.
        standard_errors: of each number.
        ends_error: of each end, where several are combined.
    """
    lower, upper = intervals
    bounds = np.maximum(value - lower, upper - value)
    return GroupsEstimate(
        value=value,
        standard_error=float(standard_errors.max()),
        bound=float(bounds.max()),
        names=names,
        standard_errors=tuple(standard_errors.tolist()),
        bounds=tuple(bounds.tolist()),
        intervals=tuple(zip(lower.tolist(), upper.tolist(), strict=True)),
        ends=tuple((float(row[0]), float(row[1])) for row in ends if len(row) == 2),
        ends_error=ends_error,
        ends_bound=estimate.bound,
        **{note: getattr(estimate, note) for note in ("confidence", "dropped", "clipped", "simulated")},
    )


def present_groups(estimate: GroupsEstimate, what: str, title: str, truth: Any = None) -> Presentation:
    """A number for every group with its interval, as a table and a picture.

    Args:
        estimate: the groups' numbers.
        what: what the numbers are, in a word or two.
        title: of the picture.
        truth: the true numbers, where they may be shown.
    """
    columns: dict[str, NDArray[Any]] = {
        "group": np.array(estimate.names, dtype=np.str_),
        "estimate": estimate.value,
        "lower": estimate.lower,
        "upper": estimate.upper,
        **({} if truth is None else {"truth": np.asarray(truth)}),
    }
    rows = [
        ListingRow((str(name), *(f"{number:,.6g}" for number in numbers)))
        for name, *numbers in zip(*(column.tolist() for column in columns.values()), strict=True)
    ]
    headings = (what, "from", "to", *(() if truth is None else ("truth",)))
    listing = Listing(
        f"{what.capitalize()} by group", (Column("group", right=False, width=30), *map(Column, headings)), tuple(rows)
    )
    figures: dict[str, Any] = {"by_group": [dict(zip(columns, row, strict=True)) for row in _records(columns)]}
    told = f"all {len(rows)} intervals hold at once, with {estimate.confidence:.0%} confidence"
    facts = [("how far off", told)]
    if truth is not None:
        figures["largest_error"] = float(np.abs(estimate.value - np.asarray(truth)).max())
        facts.append(("in truth", f"the largest error of a group was {figures['largest_error']:,.3g}"))
    chart = Chart(
        "bars",
        {
            "names": list(estimate.names),
            "estimates": estimate.value,
            "bound": estimate.bound,
            "confidence": estimate.confidence,
            "title": title,
            "truth": truth,
            "in_order": True,
            "measures": what,
            "intervals": (estimate.lower, estimate.upper),
        },
    )
    return Presentation(tuple(facts), (listing,), chart, columns, figures)


def _records(columns: dict[str, NDArray[Any]]) -> list[tuple[Any, ...]]:
    return list(zip(*(column.tolist() for column in columns.values()), strict=True))
