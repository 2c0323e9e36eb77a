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
    many people, or parts of people, are at the low and at the high end of each group, and between them where variances
    are asked for, every one within `ends_bound`; none where only the number itself was reported;
    where they are combined with weights, the standard error is at most `ends_error` times the weights' length.
    """

    intervals: tuple[tuple[float, float], ...]
    ends: tuple[tuple[float, ...], ...]
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


def places_of(parts: int) -> Floats:
    """Where so many parts of a group lie in its range, from 0 at the low end to 1 at the high end."""
    return np.linspace(0.0, 1.0, parts)


def part_of_range(parts: Floats, where_empty: float) -> Floats:
    """Where the mean of each group lies in its range, from 0 to 1, by the people at each place.

    Args:
        parts: a row a group; the low end first, the high end last, and the middle between them where it is asked for.
        where_empty: of a group that has nobody.
    """
    total = parts.sum(axis=1)
    found: Floats = np.full_like(total, where_empty)
    np.divide(parts @ places_of(parts.shape[1]), total, out=found, where=total > 0)
    return found


def means_in_range(parts: Floats, bound: float) -> tuple[Floats, Floats, Floats]:
    """Where the mean of each group lies in its range, from 0 to 1, and the least and the largest that it can be.

    Where the true parts are within `bound` of all and not below 0, the mean grows with the people at the high end and
    falls with those at the low end; the middle draws it to the middle, so that the most extreme mean has the fewest or
    the most people there. A group that may be empty may have any mean.

    >>> [part.tolist() for part in means_in_range(np.array([[60.0, 40.0]]), 10.0)]
    [[0.4], [0.3], [0.5]]
    """
    value = np.clip(part_of_range(parts, 0.5), 0.0, 1.0)
    least, most = np.maximum(parts - bound, 0.0), np.maximum(parts + bound, 0.0)
    lows, highs = [], []
    for middle in (least, most):
        low, high = middle.copy(), middle.copy()
        low[:, 0], low[:, -1] = most[:, 0], least[:, -1]
        high[:, 0], high[:, -1] = least[:, 0], most[:, -1]
        lows.append(part_of_range(low, 0.0))
        highs.append(part_of_range(high, 1.0))
    lower, upper = np.minimum(*lows), np.maximum(*highs)
    return np.clip(value, lower, upper), lower, upper


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
        ends: a row a group: its low end, its high end, and what is between, or the one number that was reported.
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
        ends=tuple(tuple(row) for row in ends.tolist() if len(row) > 1),
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
