"""Plans, answers and presentations as HTML, as notebooks show them: tables, and a small picture."""

from collections.abc import Callable, Mapping
from typing import Any

from shuffledp import markup
from shuffledp.protocols.presentation import Listing, Presentation

_REFERENCES = {
    "central_standard_error": "a trusted curator's",
    "local_standard_error": "without a shuffler",
}


def _bars(data: Mapping[str, Any]) -> str:
    more = {"in_order": data["in_order"], "intervals": data.get("intervals")}
    return markup.bars(data["names"], data["estimates"], data["bound"], **more)


def _distribution(data: Mapping[str, Any]) -> str:
    words = {"against": str(data.get("column") or "value"), "measures": "share of users at or below"}
    return markup.curve(data["values"], data["shares"], data["bound"], **words, within=(0.0, 1.0))


_PICTURES: dict[str, Callable[[Mapping[str, Any]], str]] = {"bars": _bars, "distribution": _distribution}


def presentation_html(presentation: Presentation, title: str = "") -> str:
    """An answer as it is shown on a page: facts, tables, a picture where there is one."""
    chart = presentation.chart
    picture = _PICTURES[chart.kind](chart.data) if chart is not None and chart.kind in _PICTURES else ""
    return markup.section(markup.facts(title, presentation.facts), *map(listing_html, presentation.listings), picture)


def listing_html(listing: Listing) -> str:
    """A table in words; bars of letters are left out, as a page has pictures."""
    named = [place for place, column in enumerate(listing.columns) if column.name]
    return markup.listing(
        listing.title,
        [listing.columns[place].name for place in named],
        [[row.cells[place] for place in named] for row in listing.rows],
        left=[not listing.columns[place].right for place in named],
        note=listing.caption,
    )


def answer_html(plan: Any, estimate: Any) -> str:
    """An answer beside what was asked, how private it is and who is trusted with what."""
    numbers = getattr(estimate, "value", None)
    if isinstance(numbers, float):
        shown = markup.facts(plan.title, [("estimate", str(estimate)), *_privacy(plan)])
        return markup.section(shown, markup.interval(numbers, estimate.lower, estimate.upper))
    facts = markup.facts("", [("asked", plan.question), *_privacy(plan)])
    return markup.section(presentation_html(plan.present(estimate), plan.title), facts)


def plan_html(plan: Any) -> str:
    """A plan: what is asked, what it costs, how accurate it is beside others, and who is trusted with what."""
    facts = [("asked", plan.question), ("method", plan.method), *_privacy(plan), *plan.facts()]
    warned = [("take care", warning) for warning in plan.warnings]
    return markup.section(markup.facts(plan.title, [*facts, *warned]), listing_html(plan.compared()), _beside(plan))


def _beside(plan: Any) -> str:
    """Bars of the standard errors of the plan, of a trusted curator and of the local model, where all are known."""
    known = {words: plan.reference().get(name) for name, words in _REFERENCES.items()}
    if not all(known.values()):
        return ""
    curator, local = known.items()
    rows = [curator, ("this plan's", plan.standard_error), local]
    return markup.bars([name for name, _ in rows], [error for _, error in rows], in_order=True)


def _privacy(plan: Any) -> list[tuple[str, str]]:
    privacy, honest = plan.privacy, plan.honest_fraction
    followed = "everybody follows" if honest == 1 else f"{honest:.0%} of the users follow"
    return [
        ("privacy", f"epsilon {privacy.epsilon:g}, delta {privacy.delta:g}, if one user's value is replaced"),
        (
            "who is trusted",
            "the shuffler sees who reports but not what, the analyzer what but not whose; the two must not work "
            f"together, and {followed} the protocol",
        ),
        *(("take care", caution) for caution in plan.cautions),
    ]
