"""A Sphinx extension: places of pages that are filled from the code when the site is built.

A block `{commands}` is the table of all commands, `{commands} PANEL` the commands of one group of the help, and
`{public}` holds names that are described from their docstrings, `{file} NAME` is a page of the project's own folder,
`{notebook} NAME` a notebook with the outputs that `make notebooks` has left in build, or without any.
Diagrams are left to Mermaid. What npm fetched is copied into the site at the end.
"""

import html
import re
from pathlib import Path
from typing import Any

from builder import commands, public, shipped

_PLACE = re.compile(r"^```\{(commands|file|notebook|public)\} *(.*?)\n```$", re.M | re.S)
_ROOT = Path(__file__).parents[2]
# Links out of this folder, and from the project's own folder into it, lead to pages of the site.
_OUTSIDE = re.compile(r"\]\((?:\.\./)*(SECURITY|CONTRIBUTING|CHANGELOG)\.md")
_INTO = re.compile(r"\]\(docs/")
_DIAGRAM = re.compile(r"^```mermaid\n(.*?)\n```$", re.M | re.S)
_DRAWN = """```{raw} html
<pre class="mermaid" data-label="Who sends what to whom, in order; the text says the same">
%s
</pre>
```"""


def filled(text: str) -> str:
    """A page with what the code says in its places.

    Args:
        text: the page as it is written.
    """
    whole = _INTO.sub("](/", _PLACE.sub(_said, text))
    linked = _OUTSIDE.sub(lambda link: f"](/{link[1].lower()}.md", whole)
    return _DIAGRAM.sub(lambda diagram: _DRAWN % html.escape(diagram[1]), linked)


def _said(place: re.Match[str]) -> str:
    kind, what = place.groups()
    if kind == "public":
        return public.described(what.split())
    if kind == "file":
        return (_ROOT / what).read_text("utf-8")
    if kind == "notebook":
        return notebook(what)
    return commands.page(what) if what else commands.table_of_commands()


def notebook(name: str) -> str:
    """A notebook as a page: as it was run last, if it has not been changed since; else what it would run."""
    source, ran = _ROOT / "docs" / "notebooks" / f"{name}.py", _ROOT / "build" / "notebooks" / f"{name}.md"
    if ran.exists() and ran.stat().st_mtime >= source.stat().st_mtime:
        return ran.read_text("utf-8").replace(f"]({name}_files/", f"](/../build/notebooks/{name}_files/")
    import jupytext

    from notebooks.execute import page

    return page(jupytext.read(source), ran.parent)


def _fill(app: Any, name: str, source: list[str]) -> None:
    source[0] = filled(source[0])


def _draw(app: Any, name: str, template: str, context: dict[str, Any], tree: Any) -> None:
    if '<pre class="mermaid"' in context.get("body", ""):
        app.add_js_file("mermaid/mermaid.tiny.js", loading_method="defer")
        app.add_js_file("diagrams.js", loading_method="defer")


def _ship(app: Any, error: Exception | None) -> None:
    if error is None and app.builder.format == "html":
        shipped.ship(Path(app.outdir))


def setup(app: Any) -> dict[str, Any]:
    """Join Sphinx."""
    app.connect("source-read", _fill)
    app.connect("html-page-context", _draw)
    app.connect("build-finished", _ship)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
