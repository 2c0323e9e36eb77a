"""HTML that cannot be broken out of: every text is escaped, unless an element of this module made it."""

from collections.abc import Iterable, Sequence
from typing import Any

from shuffledp.markup import escaped
from shuffledp.protocols.presentation import Listing

_VOID = frozenset({"br", "hr", "img", "input", "link", "meta"})


class Html(str):
    """A text that is HTML already. Only this module makes any."""

    __slots__ = ()


def element(name: str, /, *children: Any, **attributes: Any) -> Html:
    """An element; children are escaped unless they are elements, and None is left out.

    Args:
        name: the tag.
        *children: elements, texts, numbers, or lists of them.
        **attributes: a trailing underscore is dropped and others become hyphens; True has no value, None and False
            leave an attribute out.

    >>> element("p", "<script>", element("b", 1), class_="note", hidden=True, title='"')
    '<p class="note" hidden title="&quot;">&lt;script&gt;<b>1</b></p>'
    """
    given = "".join(_attribute(each.rstrip("_").replace("_", "-"), value) for each, value in attributes.items())
    if name in _VOID:
        return Html(f"<{name}{given}>")
    return Html(f"<{name}{given}>{joined(children)}</{name}>")


def joined(children: Iterable[Any]) -> Html:
    """Elements and texts after each other, texts escaped.

    >>> joined(["a < b", None, [element("br"), 2]])
    'a &lt; b<br>2'
    """
    return Html("".join(map(_child, children)))


def _child(child: Any) -> str:
    if child is None:
        return ""
    if isinstance(child, Html):
        return child
    return joined(child) if isinstance(child, list | tuple) else escaped(child)


def _attribute(name: str, value: Any) -> str:
    if value is None or value is False:
        return ""
    return f" {name}" if value is True else f' {name}="{escaped(value)}"'


def facts(rows: Iterable[tuple[str, Any]]) -> Html:
    """Names and texts below each other; where a text is None there is nothing to say."""
    said = [[element("dt", name), element("dd", text)] for name, text in rows if text is not None]
    return element("dl", said)


def table(
    caption: str,
    headings: Sequence[str],
    rows: Iterable[Sequence[Any]],
    *,
    left: Sequence[bool] = (),
    note: str = "",
    **attributes: Any,
) -> Html:
    """A table that scrolls sideways by keyboard, too, where a screen is narrow.

    Args:
        caption: what it shows.
        headings: a text a column.
        rows: a text a column each; the first names its row.
        left: for each column whether it is set to the left, as words are; only the first if left out.
        note: what stands below it.
        **attributes: of the table.
    """
    sides = [None if is_left else "number" for is_left in (left or [place == 0 for place in range(len(headings))])]
    head = [element("th", each, scope="col", class_=side) for each, side in zip(headings, sides, strict=True)]
    body = []
    for first, *others in rows:
        cells = [element("td", each, class_=side) for each, side in zip(others, sides[1:], strict=True)]
        body.append(element("tr", element("th", first, scope="row", class_=sides[0]), cells))
    whole = element(
        "table",
        element("caption", caption),
        element("thead", element("tr", head)),
        element("tbody", body),
        **attributes,
    )
    below = element("p", note, class_="note") if note else None
    return joined([element("div", whole, class_="wide", role="region", aria_label=caption, tabindex=0), below])


def listing_table(listing: Listing) -> Html:
    """A listing of a plan or an answer; bars of letters are left out, as the page has pictures."""
    named = [place for place, column in enumerate(listing.columns) if column.name]
    return table(
        listing.title,
        [listing.columns[place].name for place in named],
        [[row.cells[place] for place in named] for row in listing.rows],
        left=[not listing.columns[place].right for place in named],
        note=listing.caption,
    )


def section(title: str, *children: Any, **attributes: Any) -> Html:
    """A part of a page under a heading."""
    return element("section", element("h2", title), children, **attributes)
