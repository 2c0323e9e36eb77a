"""What all pages have in common: the head, the way around, and pages that only say one thing."""

from collections.abc import Sequence
from typing import Any

from shuffledp.dashboard.elements import Html, element, joined, section

_NAVIGATION = (("/", "Tasks"), ("/plan", "Planner"))


def page(
    title: str,
    *children: Any,
    here: str = "",
    scripts: Sequence[str] = (),
    form: str | None = None,
) -> str:
    """A whole page.

    Args:
        title: of its tab, and its heading.
        *children: what it shows.
        here: the path among those of the navigation.
        scripts: files below /static, run in this order when the page is there.
        form: the secret that the form for logging out repeats; None where nobody is logged in.
    """
    head = [
        element("meta", charset="utf-8"),
        element("meta", name="viewport", content="width=device-width, initial-scale=1"),
        element("meta", name="color-scheme", content="light dark"),
        element("title", f"{title} · ShuffleDP"),
        element("link", rel="icon", href="/static/icon.svg", type="image/svg+xml"),
        element("link", rel="stylesheet", href="/static/vendor/uplot/uPlot.min.css"),
        element("link", rel="stylesheet", href="/static/dashboard.css"),
        [element("script", src=f"/static/{script}", defer=True) for script in scripts],
    ]
    links = [
        element("a", words, href=path, aria_current="page" if path == here else None) for path, words in _NAVIGATION
    ]
    leave = None
    if form is not None:
        leave = element("form", form_field(form), element("button", "Log out"), method="post", action="/logout")
    body = [
        element("a", "Skip to the content", href="#content", class_="skip"),
        element(
            "header",
            element("span", "ShuffleDP analyzer", class_="brand"),
            element("nav", links, aria_label="Pages"),
            leave,
        ),
        element("main", element("h1", title), children, id="content", tabindex="-1"),
    ]
    return f"<!doctype html>{element('html', element('head', head), element('body', body), lang='en')}"


def form_field(secret: str) -> Html:
    """What every form that changes something repeats."""
    return element("input", type="hidden", name="form", value=secret)


def login_page(form: str, complaint: str = "") -> str:
    """Where the token for read is asked for."""
    asked = element(
        "form",
        form_field(form),
        element("label", "Token for read", for_="token"),
        element(
            "input",
            id="token",
            name="token",
            type="password",
            autocomplete="current-password",
            required=True,
            autofocus=True,
            aria_describedby="where",
        ),
        element("p", "It is in read.token, in the folder of keys; the operator has it.", id="where", class_="note"),
        element("p", complaint, class_="warning", role="alert") if complaint else None,
        element("button", "Log in"),
        method="post",
        action="/login",
        class_="login",
    )
    return page("Log in", asked)


def refusal_page(title: str, detail: str) -> str:
    """Why something was refused, in a sentence."""
    return page(title, section("What to do", element("p", detail), element("p", element("a", "All tasks", href="/"))))


def warnings_of(*sentences: str) -> Html:
    """What whoever looks must not miss."""
    return joined(element("p", each, class_="warning") for each in sentences)
