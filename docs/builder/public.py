"""The public names: those in the `{public}` blocks of the API's pages, and how Sphinx is asked to describe each."""

import ast
import inspect
import re
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from builder import examples, families
from shuffledp.protocols.family import Family

PAGES = Path(__file__).parents[1] / "reference" / "api"
_BLOCK = re.compile(r"^```\{public\}\n(.*?)\n```$", re.M | re.S)


def names_by_page() -> dict[str, list[str]]:
    """Every public name in full, by the page that describes it."""
    return {page.stem: names_in(page.read_text("utf-8")) for page in sorted(PAGES.glob("*.md"))}


def names_in(text: str) -> list[str]:
    """The names in the blocks of a page."""
    return [name for block in _BLOCK.findall(text) for name in block.split()]


def named(name: str) -> Any:
    """What a full name names."""
    module, _, last = name.rpartition(".")
    return getattr(import_module(module), last)


def doc_of(name: str) -> str:
    """What the source says of a public name: a docstring, or of a constant the text below it."""
    thing = named(name)
    if isinstance(thing, Family) or callable(thing):
        return inspect.getdoc(thing) or ""
    module, _, last = name.rpartition(".")
    return _below(module, last)


def _below(module: str, name: str) -> str:
    """The text below a constant, in its module or in the one that the module has it from."""
    body = parsed(module).body
    for node, after in zip(body, [*body[1:], None], strict=True):
        targets = node.targets if isinstance(node, ast.Assign) else [getattr(node, "target", None)]
        if any(isinstance(target, ast.Name) and target.id == name for target in targets):
            is_text = isinstance(after, ast.Expr) and isinstance(after.value, ast.Constant)
            return inspect.cleandoc(str(after.value.value)) if is_text else ""
    homes = [node.module for node in body if isinstance(node, ast.ImportFrom) and name in {a.name for a in node.names}]
    return _below(homes[0], name) if homes and homes[0] else ""


@cache
def parsed(module: str) -> ast.Module:
    """The source of a module."""
    spec = find_spec(module)
    assert spec is not None and spec.origin is not None, module
    return ast.parse(Path(spec.origin).read_text("utf-8"))


def described(names: list[str]) -> str:
    """The sections that describe these names, in Markdown."""
    return "\n\n".join(_section(name) for name in names)


def _section(name: str) -> str:
    lines = [f"### {name.rpartition('.')[2]}", "", "```{eval-rst}", _directive(name), "```"]
    if pages := examples.pages_with(name):
        links = (f"[{examples.title_of(page)}](/{page.relative_to(examples.DOCS)})" for page in pages)
        lines += ["", f"At work in: {', '.join(links)}."]
    return "\n".join(lines)


def _directive(name: str) -> str:
    thing = named(name)
    if isinstance(thing, Family):
        return families.described(name, thing)
    if inspect.isclass(thing):
        return f".. autoclass:: {name}\n"
    if callable(thing):
        return f".. autofunction:: {name}\n"
    told = doc_of(name).replace("\n", "\n   ")
    return f".. py:data:: {name}\n\n   {told}\n"
