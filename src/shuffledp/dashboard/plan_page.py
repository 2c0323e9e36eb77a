"""The planner's page: a form that works without a script, and the plan for what is in it."""

from collections.abc import Mapping
from urllib.parse import urlencode

from shuffledp.dashboard.elements import Html, element, facts, joined, listing_table, section
from shuffledp.dashboard.knowledge import collusions_section
from shuffledp.dashboard.planner import KINDS, WISHES, PlanAnswer, Wish


def plan_page(query: Mapping[str, str], answer: PlanAnswer | None, complaint: str = "") -> Html:
    """The form with what was asked, and the plan for it, or why there is none.

    Args:
        query: what was typed.
        answer: the plan.
        complaint: why there is none.
    """
    shown = element("div", answer_part(query, answer, complaint), id="answer", aria_live="polite")
    words = "Errors, messages and bytes of a question before anybody is asked. All numbers are the plan's own."
    return joined(
        [element("p", words), _form(query), element("p", "", id="state", class_="note", role="status"), shown]
    )


def _form(query: Mapping[str, str]) -> Html:
    chosen = query.get("protocol", "count")
    kinds = [element("option", each.words, value=name, selected=name == chosen) for name, each in KINDS.items()]
    fields = [
        element(
            "div",
            element("label", "Question", for_="protocol"),
            element("select", kinds, id="protocol", name="protocol"),
            class_="field",
        ),
        [_field(name, wish, query.get(name)) for name, wish in WISHES.items()],
        element(
            "div",
            element(
                "input",
                type="checkbox",
                id="live",
                name="live",
                value="1",
                checked=query.get("live") in ("1", "on", "true"),
            ),
            element("label", "Only what the live service takes: no liar can spoil it", for_="live"),
            class_="field check",
        ),
    ]
    return element(
        "form", fields, element("button", "Plan"), id="wishes", method="get", action="/plan", class_="wishes"
    )


def _field(name: str, wish: Wish, typed: str | None) -> Html:
    """A number with its label; the script adds a slider, and hides what the question does not have."""
    only = " ".join(kind for kind, each in KINDS.items() if name in each.takes) or None
    value = f"{wish.default:g}" if typed is None else typed
    if typed is None and wish.whole:
        value = str(int(wish.default))
    number = element(
        "input", id=name, name=name, type="text", inputmode="decimal", value=value, autocomplete="off", size=12
    )
    slider = None
    if wish.scale:
        slider = element(
            "input",
            type="range",
            id=f"{name}-slider",
            aria_label=f"{wish.words}, slider",
            data_for=name,
            data_scale=wish.scale,
            data_least=wish.least,
            data_most=wish.most,
            data_whole=wish.whole,
            min=0,
            max=1000,
            hidden=True,
        )
    return element("div", element("label", wish.words, for_=name), number, slider, class_="field", data_only=only)


def answer_part(query: Mapping[str, str], answer: PlanAnswer | None, complaint: str = "") -> Html:
    """The plan: its error beside others', what a person sends, what collusions learn, and its file."""
    if answer is None:
        return element("p", complaint, class_="warning", role="alert")
    sent = [
        ("Messages a person", f"at most {answer.messages:,}"),
        ("Bytes a person", f"at most {answer.report_bytes:,}, encrypted; whatever the answer is"),
        ("The live service", answer.complaint or None),
    ]
    known = {name: query[name] for name in ("protocol", "live", *WISHES) if name in query}
    file = element("a", "Download the plan's file", href=f"/plan/file?{urlencode(known)}", download="plan.json")
    return joined(
        [
            section("The plan", facts([*answer.facts, *sent]), element("p", file, class_="downloads")),
            section("Its error beside others", listing_table(answer.compared)),
            collusions_section(answer.collusions),
        ]
    )
