"""How an answer and a plan are shown, as data: facts, listings and a chart, with no word about how they are drawn.

A plan makes these (`Plan.present`, `Plan.compared`); a command line, a web page or a notebook renders them.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from shuffledp.accounting.guarantee import Collusion
from shuffledp.protocols.domains.domain import Categories

Emphasis = Literal["", "dim", "bold"]
_BAR = 16

CURATOR = "one, with all"
APART = "two, kept apart"
ALONE = "one's device"
"""Whom one trusts in the three models, in the words of every table."""
TRUST = "The two are the shuffler and the analyzer, which must not collude; and enough users must follow the protocol."
"""What stands below a table that says so."""


@dataclass(frozen=True, slots=True)
class Column:
    """One column of a listing.

    Attributes:
        name: the heading; empty where the cells speak for themselves.
        right: whether cells are set to the right, as numbers are.
        style: how all cells of the column are set.
        width: the most characters of a line, after which a cell is folded; None where no cell may be.
    """

    name: str
    right: bool = True
    style: Emphasis = ""
    width: int | None = None


@dataclass(frozen=True, slots=True)
class ListingRow:
    """One row of a listing: a text a column, how it is set, and whether a line parts it from the rows above."""

    cells: tuple[str, ...]
    style: Emphasis = ""
    apart: bool = False


@dataclass(frozen=True, slots=True)
class Listing:
    """A table in words: a title, columns, rows, and what is to be said below."""

    title: str
    columns: tuple[Column, ...]
    rows: tuple[ListingRow, ...]
    caption: str = ""


@dataclass(frozen=True, slots=True, eq=False)
class Chart:
    """A picture as data.

    Attributes:
        kind: what is drawn: "bars", a bar a category; "distribution", shares of users at most as large as a value;
            "difference", two groups' numbers and how far apart they are; "evaluation", how well a model does.
        data: the arguments of `pictures.bars.draw_bars` , `pictures.distribution.draw_distribution`,
            `pictures.differences.draw_difference` or `pictures.evaluation.draw_evaluation`, by name.
    """

    kind: Literal["bars", "distribution", "difference", "evaluation"]
    data: Mapping[str, Any]


@dataclass(frozen=True, slots=True, eq=False)
class Presentation:
    """An answer as a person, a table and a program read it.

    Attributes:
        facts: names and texts, to be shown below each other.
        listings: tables in words.
        chart: the picture; None where one number says it all.
        columns: the whole answer as a table with a row a category or value, to be written to a file.
        figures: further numbers, as JSON.
    """

    facts: tuple[tuple[str, str], ...]
    listings: tuple[Listing, ...] = ()
    chart: Chart | None = None
    columns: Mapping[str, NDArray[Any]] = field(default_factory=dict)
    figures: Mapping[str, Any] = field(default_factory=dict)

    def records(self) -> list[dict[str, Any]]:
        """The rows of `columns` as JSON objects."""
        columns = {name: column.tolist() for name, column in self.columns.items()}
        return [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]


@dataclass(frozen=True, slots=True, kw_only=True)
class View:
    """Which part of an answer is shown.

    Attributes:
        top: categories of a listing, the largest first; the rest is added up.
        names: of hashed categories, the public names to look up; None shows all cells.
        quantiles: ranks of a distribution.
        users: how many users came so far; None if all of the plan's did.
    """

    top: int = 20
    names: Sequence[str] | None = None
    quantiles: tuple[float, ...] = (0.25, 0.5, 0.75)
    users: int | None = None


def present_numbers(estimate: Any, truth: Any = None) -> Presentation:
    """One number, or a vector without names: the estimate in words, and how far off it is where the truth is given."""
    facts = [("estimate", str(estimate))]
    figures: dict[str, Any] = {}
    if truth is not None:
        error = float(np.sqrt(np.mean(np.square(estimate.value - truth))))
        facts.append(("true value", _truth_in_words(truth, error)))
        figures["error"] = error
    return Presentation(tuple(facts), columns=_numbers_as_columns(estimate, truth), figures=figures)


def _numbers_as_columns(estimate: Any, truth: Any) -> dict[str, NDArray[Any]]:
    """A row a number: its name or its place, the estimate, its standard error, and between which two it lies."""
    value = np.atleast_1d(np.asarray(estimate.value, dtype=np.float64))
    names = getattr(estimate, "names", ("estimate",) if value.size == 1 else tuple(map(str, range(1, value.size + 1))))
    errors, bounds = (
        np.broadcast_to(np.asarray(getattr(estimate, several, getattr(estimate, one)), dtype=np.float64), value.shape)
        for several, one in (("standard_errors", "standard_error"), ("bounds", "bound"))
    )
    return {
        "name": np.array(names, dtype=np.str_),
        "estimate": value,
        "standard_error": errors,
        "lower": value - bounds,
        "upper": value + bounds,
        **({} if truth is None else {"truth": np.atleast_1d(np.asarray(truth, dtype=np.float64))}),
    }


def _truth_in_words(truth: Any, error: float) -> str:
    if np.ndim(truth) == 0:
        shown = f"{truth:,.0f}" if float(truth).is_integer() else f"{truth:,.2f}"
        return f"{shown}  (the estimate is off by {error:,.3g})"
    shown = np.array2string(np.asarray(truth), precision=1, threshold=8, edgeitems=3, floatmode="fixed")
    return f"{shown}  (off by {error:,.3g} in root mean square)"


def present_categories(
    categories: Categories,
    estimate: Any,
    *,
    users: int,
    chart_title: str,
    truth: Any = None,
    view: View | None = None,
    counted: str = "users",
) -> Presentation:
    """How many users have each category, by name, each between two numbers.

    Args:
        categories: what the numbers of the estimate stand for, in their order.
        estimate: a vector with one bound for all categories at once.
        users: how many there are: no category has more, and none fewer than 0.
        chart_title: what is written above the picture.
        truth: the true counts, where they may be shown.
        view: what to show of it.
        counted: what is counted, in words, where it is not users.
    """
    view = view or View()
    value, names, in_order = estimate.value, categories.names, categories.is_ordered
    if view.names is None:
        listed = names()
    else:
        listed, cells = list(view.names), categories.encode(list(view.names))
        value, truth = value[cells], None if truth is None else truth[cells]
    columns: dict[str, NDArray[Any]] = {
        "category": np.array(listed, dtype=np.str_),
        "estimate": value,
        "lower": np.maximum(value - estimate.bound, 0.0),
        "upper": np.clip(value + estimate.bound, 0.0, float(users)),
        **({} if truth is None else {"truth": truth}),
    }
    confidence = f"with {estimate.confidence:.0%} confidence for all at once"
    facts = [("how far off", f"every category by at most {estimate.bound:,.4g} {counted}, {confidence}")]
    figures: dict[str, Any] = {}
    if truth is not None:
        figures["largest_error"] = float(np.abs(value - truth).max())
        facts.append(("in truth", f"the largest error of a category was {figures['largest_error']:,.3g}"))
    chart = Chart(
        "bars",
        {
            "names": listed,
            "estimates": value,
            "bound": estimate.bound,
            "confidence": estimate.confidence,
            "title": chart_title,
            "truth": truth,
            "in_order": in_order,
        },
    )
    title = f"{counted.capitalize()} in each category"
    listing = _largest(columns, estimate.bound, view.top, title, in_order=in_order)
    return Presentation(tuple(facts), (listing,), chart, columns, figures)


def _largest(columns: Mapping[str, NDArray[Any]], bound: float, top: int, title: str, *, in_order: bool) -> Listing:
    """The largest categories, and the rest added up; few of them that have an order of their own stay in it."""
    value, truth = columns["estimate"], columns.get("truth")
    largest = max(float(value.max()), 1.0)
    order = np.argsort(-value, kind="stable")
    if in_order and len(order) <= top:
        order = np.arange(len(order))
    rows = []
    for code in order[:top].tolist():
        may_be_0 = bool(value[code] <= bound)
        bar = "█" * round(_BAR * max(0.0, float(value[code])) / largest)
        cells = (
            str(columns["category"][code]),
            f"{value[code]:,.1f}",
            f"{columns['lower'][code]:,.0f}",
            f"{columns['upper'][code]:,.0f}",
            *(() if truth is None else (f"{truth[code]:,.0f}",)),
            bar + (" may be 0" if may_be_0 else ""),
        )
        rows.append(ListingRow(cells, "dim" if may_be_0 else ""))
    rest = order[top:]
    if rest.size:
        true = () if truth is None else (f"{truth[rest].sum():,.0f}",)
        cells = (f"{rest.size:,} others together", f"{value[rest].sum():,.1f}", "", "", *true, "")
        rows.append(ListingRow(cells, "dim", apart=True))
    headings = ("estimate", "from", "to", *(() if truth is None else ("truth",)))
    shown = (Column("category", right=False, width=30), *map(Column, headings), Column("", right=False))
    return Listing(title, shown, tuple(rows))


def shown_value(value: Any) -> str:
    """A value of an axis as it is shown: a number in six digits, a day as it is.

    >>> shown_value(1234567.0), shown_value("2024-02-01")
    ('1.23457e+06', '2024-02-01')
    """
    return value if isinstance(value, str) else f"{value:,.6g}"


def present_quantiles(rows: Sequence[Mapping[str, Any]]) -> Listing:
    """Quantiles with their intervals, and the truth where it is given.

    Args:
        rows: q, value, lower and upper of each, and truth and rank_error, or None for both.
    """
    shows_truth = any(row["truth"] is not None for row in rows)
    headings = ("rank", "value", "interval", *(("truth", "rank error") if shows_truth else ()))
    cells = [
        (
            f"{row['q']:g}",
            shown_value(row["value"]),
            f"{shown_value(row['lower'])} .. {shown_value(row['upper'])}",
            *((shown_value(row["truth"]), f"{row['rank_error']:.4%}") if shows_truth else ()),
        )
        for row in rows
    ]
    return Listing("Quantiles", tuple(map(Column, headings)), tuple(map(ListingRow, cells)))


def beside_others(
    title: str,
    what: tuple[str, str],
    error: float | None,
    rows: Sequence[tuple[str, float | None, str]],
    *,
    unknown: str = "not proved here",
) -> Listing:
    """A plan's error beside others': who adds noise, how large an error, how much better the plan is, trusting whom.

    Args:
        title: of the listing.
        what: headings of who it is and of the error.
        error: the plan's own; None where none is claimed.
        rows: a name, an error or None, and whom one must trust.
        unknown: what is said where there is no error.
    """
    columns = (
        Column(what[0], right=False),
        Column(what[1]),
        Column("this plan is"),
        Column("whom one trusts", right=False, style="dim", width=40),
    )
    shown = (
        ListingRow((name, unknown if other is None else f"{other:,.4g}", _better(error, other), trust))
        for name, other, trust in rows
    )
    return Listing(title, columns, tuple(shown), TRUST)


def _better(error: float | None, other: float | None) -> str:
    if not error or other is None or other == error:
        return ""
    times = other / error
    if 0.995 < times < 1.005:
        return "as good"
    return f"{times:,.3g}x better" if times > 1 else f"{1 / times:,.3g}x worse"


def collusion_rows(collusions: Iterable[Collusion], promised: float) -> list[tuple[str, str, str]]:
    """Who learns what together with whom: the parties, which epsilon is left, and in words.

    Args:
        collusions: a plan's.
        promised: the plan's epsilon: nobody is said to learn less together than the analyzer alone.

    >>> collusion_rows([Collusion("analyzer + shuffler", None, None, "see it all")], 1.0)
    [('analyzer + shuffler', 'unbounded', 'see it all')]
    """
    return [
        (
            each.parties,
            "unbounded" if each.epsilon is None else f"{each.epsilon:.4g}",
            each.in_words + ("" if each.paper_epsilon is None else f" (the paper's rule: {each.paper_epsilon:.4g})"),
        )
        for each in never_less(collusions, promised)
    ]


def never_less(collusions: Iterable[Collusion], promised: float) -> list[Collusion]:
    """Collusions as they are told: nobody learns less together than the analyzer alone, of whom a plan may
    prove a little more than it promises.
    """
    return [each if each.epsilon is None else replace(each, epsilon=max(each.epsilon, promised)) for each in collusions]


def listed(title: str, headings: Sequence[str], rows: Sequence[Sequence[str]], **more: Any) -> Listing:
    """A listing whose first column is words, and whose others are numbers."""
    first, *others = headings
    columns = (Column(first, right=False), *map(Column, others))
    return Listing(title, columns, tuple(ListingRow(tuple(cells)) for cells in rows), **more)


def noise_in_words(noise: Mapping[str, Any]) -> str:
    """The parameters of a noise with a few digits each, for people; a plan's document has them all.

    Args:
        noise: the name of its law under "law", and its parameters.

    >>> noise_in_words({"law": "random-bits", "random_probability": 0.0190277099609375, "bits_per_user": 1200})
    'random bits, random probability 0.01903, bits per user 1,200'
    """
    known = {name.replace("_", " "): value for name, value in noise.items() if value is not None}
    law = str(known.pop("law", "")).replace("-", " ")
    return ", ".join(filter(None, (law, *(f"{name} {figure(value)}" for name, value in known.items()))))


def figure(value: Any, digits: int = 4) -> str:
    """A number as people read it: few digits, and none behind the point from a thousand on; other things as they are.

    >>> figure(1828.4), figure(0.40656965), figure(262144), figure(1e-12), figure([1, 2])
    ('1,828', '0.4066', '262,144', '1e-12', '[1, 2]')
    """
    if isinstance(value, bool) or not isinstance(value, int | float):
        return str(value)
    if isinstance(value, int) or 1000 <= abs(value) < 1e9:
        return f"{value:,.0f}"
    return f"{value:.{digits}g}"


def numbered(number: int | str, what: str) -> str:
    """So many of something, in words.

    Args:
        number: how many; a text where its form matters.
        what: the word for one.

    >>> numbered(1, "report"), numbered(1200, "report"), numbered("1.09", "message")
    ('1 report', '1,200 reports', '1.09 messages')
    """
    said = number if isinstance(number, str) else f"{number:,}"
    return f"{said} {what}" if said == "1" else f"{said} {what}s"
