"""A Sphinx extension: docstrings are prose with quoted names, and bars or stars in it are no markup."""

import inspect
import re
from dataclasses import is_dataclass
from typing import Any

from numpy.typing import ArrayLike

from builder import told

_QUOTED = re.compile(r"(``[^`]*``|`[^`]*`)")
_STARRED = re.compile(r"\s*\*{1,2}\w+: ")
# Sphinx makes the lines of a signature descriptions of nothing.
_PARAMETERS = re.compile(r'<dl>\n((?:<dd><em class="sig-param">.*</dd>\n)+)</dl>')
# What scikit-learn adds to every estimator, in its own words.
_NOT_OURS = re.compile(r"set_\w+_request")


def as_written(lines: list[str]) -> list[str]:
    """The lines of a docstring such that reStructuredText shows what was written.

    Args:
        lines: before any markup is read; examples among them stay as they are.
    """
    shown, is_example = [], False
    for line in lines:
        is_example = line.lstrip().startswith(">>>") or (is_example and bool(line.strip()))
        shown.append(line if is_example or _STARRED.match(line) else _escaped(line))
    return shown


def _escaped(line: str) -> str:
    """A line of prose, in which nothing but backticks means anything."""
    pieces = _QUOTED.split(line)
    return "".join(piece if piece.startswith("`") else re.sub(r"([|*])", r"\\\1", piece) for piece in pieces)


def _mend(app: Any, what: str, name: str, obj: Any, options: Any, lines: list[str]) -> None:
    if what == "class" and inspect.isclass(obj):
        lines[:] = _with_inherited(lines, told.inherited(obj))
        if is_dataclass(obj):
            # What a dataclass has is what it is made with.
            lines[:] = ["Args:" if line == "Attributes:" else line for line in lines]
    lines[:] = as_written(lines)


def _with_inherited(lines: list[str], texts: dict[str, str]) -> list[str]:
    """A class's docstring with the parameters that its bases tell, after its own."""
    if not texts:
        return lines
    more = [f"    {name}: {text}" for name, text in texts.items()]
    for section in ("Attributes:", "Args:"):
        if section in lines:
            end = lines.index(section) + 1
            while end < len(lines) and lines[end].startswith(" "):
                end += 1
            return [*lines[:end], *more, *lines[end:]]
    first = next((place for place, line in enumerate(lines) if line.startswith(">>>")), len(lines))
    return [*lines[:first], "", "Attributes:", *more, "", *lines[first:]]


def _shorten(
    app: Any, what: str, name: str, obj: Any, options: Any, signature: str | None, returned: str | None
) -> tuple[str | None, ...]:
    """Say ArrayLike, as the source does, and not the eight kinds that it is."""
    from sphinx.util.typing import stringify_annotation

    whole = stringify_annotation(ArrayLike, mode="smart")
    return tuple(text and text.replace(whole, "ArrayLike") for text in (signature, returned))


def _punctuate(app: Any, tree: Any) -> None:
    """A colon after a parameter's name, where Sphinx has two hyphens for a dash."""
    from docutils.nodes import Text

    for node in list(tree.findall(lambda node: isinstance(node, Text) and str(node) == " -- ")):
        node.parent.replace(node, Text(": "))


def in_lines(body: str) -> str:
    """A page's HTML in which a signature's parameters are lines, and no list that screen readers stumble over.

    Args:
        body: as Sphinx wrote it.
    """
    return _PARAMETERS.sub(
        lambda found: found[1].replace("<dd>", '<span class="sig-line">').replace("</dd>", "</span>"), body
    )


def _line_up(app: Any, name: str, template: str, context: dict[str, Any], tree: Any) -> None:
    if "body" in context:
        context["body"] = in_lines(context["body"])


def _skip(app: Any, what: str, name: str, obj: Any, is_skipped: bool, options: Any) -> bool | None:
    return True if _NOT_OURS.fullmatch(name) else None


def setup(app: Any) -> dict[str, Any]:
    """Join Sphinx before Napoleon does."""
    app.connect("autodoc-process-docstring", _mend, priority=100)
    app.connect("autodoc-process-signature", _shorten)
    app.connect("autodoc-skip-member", _skip)
    app.connect("doctree-read", _punctuate)
    app.connect("html-page-context", _line_up)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
