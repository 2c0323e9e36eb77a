"""What a docstring tells of a public name, and what it leaves out."""

import ast
import dataclasses
import inspect
import re
import textwrap
from collections.abc import Iterator
from enum import Enum
from itertools import pairwise
from typing import Any

from builder import public
from shuffledp.protocols.family import Family

_SECTION = re.compile(r"^(Args|Attributes|Returns|Yields|Raises):$", re.M)
_PARAMETER = re.compile(r"^ {4}\*{0,2}(\w+): (.*(?:\n {5,}.*)*)", re.M)
# What every object has by itself.
_UNTOLD = {"self", "cls"}


def left_out(name: str) -> list[str]:
    """What is not told of a public name.

    Args:
        name: in full, as on a page of the API.

    Returns:
        A sentence for everything that is missing; none where all is told.
    """
    thing = public.named(name)
    if not public.doc_of(name).strip():
        return [f"{name} has no docstring"]
    if inspect.isclass(thing):
        return [f"{name}: {each}" for each in (*_of_fields(thing), *_of_members(thing))]
    if callable(thing) and not isinstance(thing, Family):
        return [f"{name}: {each}" for each in of_function(inspect.unwrap(thing))]
    return []


def _sections(told: str) -> dict[str, str]:
    """The sections of a docstring, by their names."""
    pieces = _SECTION.split(told)
    return dict(zip(pieces[1::2], pieces[2::2], strict=True))


def of_function(function: Any) -> Iterator[str]:
    """What a function's docstring leaves out: parameters, what is returned, what is raised in it.

    Args:
        function: the function itself.
    """
    sections = _sections(inspect.getdoc(function) or "")
    for parameter in inspect.signature(function).parameters.values():
        told = re.search(rf"^ +\*{{0,2}}{parameter.name}: ", sections.get("Args", ""), re.M)
        if parameter.name not in _UNTOLD and not told:
            yield f"its parameter {parameter.name} is not told"
    returned = function.__annotations__.get("return", "nothing said")
    if returned not in (None, "None") and not {"Returns", "Yields"} & sections.keys():
        yield "what it returns is not told"
    if _raises(function) and "Raises" not in sections:
        yield "what it raises is not told"


def _raises(function: Any) -> bool:
    """Whether a function raises an error by itself."""
    tree = ast.parse(textwrap.dedent(inspect.getsource(function)))
    return any(isinstance(node, ast.Raise) and node.exc is not None for node in ast.walk(tree))


def _of_fields(kind: type) -> Iterator[str]:
    """What of a class's own data is told neither in its docstring, nor in a base's, nor below a field."""
    # An enumeration has no parameters, and nobody makes a protocol.
    if issubclass(kind, Enum) or getattr(kind, "_is_protocol", False):
        return
    if dataclasses.is_dataclass(kind):
        names = [each.name for each in dataclasses.fields(kind) if each.init and not each.name.startswith("_")]
    elif "__init__" in vars(kind):
        names = [name for name in inspect.signature(kind).parameters if not name.startswith("_")]
    else:
        return
    texts = [_sections(inspect.cleandoc(base.__doc__ or "")) for base in kind.__mro__ if base is not object]
    told = "\n".join(text.get(part, "") for text in texts for part in ("Args", "Attributes"))
    below = {name for base in kind.__mro__ for name in _told_below(base)}
    for name in names:
        if name not in below and not re.search(rf"^ +\*{{0,2}}{name}: ", told, re.M):
            yield f"its parameter {name} is not told"


def inherited(kind: type) -> dict[str, str]:
    """What bases of a class tell of its parameters, where its own docstring does not: a text by each name.

    Args:
        kind: the class.
    """
    if not dataclasses.is_dataclass(kind):
        return {}
    own, found = _told_in(kind), {}
    for each in dataclasses.fields(kind):
        homes = [texts[each.name] for base in kind.__mro__[1:] if each.name in (texts := _told_in(base))]
        if each.init and homes and each.name not in own:
            found[each.name] = homes[0]
    return found


def _told_in(kind: type) -> dict[str, str]:
    """What the docstring of a class tells of its parameters."""
    sections = _sections(inspect.cleandoc(kind.__doc__ or "")) if kind is not object else {}
    texts = "".join(sections.get(part, "") for part in ("Args", "Attributes")).partition("\n\n")[0]
    return {name: " ".join(text.split()) for name, text in _PARAMETER.findall(texts)}


def _told_below(kind: type) -> set[str]:
    """The fields of a class that have a text of their own below them."""
    if not kind.__module__.startswith("shuffledp"):
        return set()
    found = [node for node in ast.walk(public.parsed(kind.__module__)) if isinstance(node, ast.ClassDef)]
    body = next(node.body for node in found if node.name == kind.__name__)
    return {
        target.id
        for node, after in pairwise(body)
        if isinstance(after, ast.Expr) and isinstance(after.value, ast.Constant)
        for target in (node.targets if isinstance(node, ast.Assign) else [getattr(node, "target", None)])
        if isinstance(target, ast.Name)
    }


def _of_members(kind: type) -> Iterator[str]:
    """Public methods and properties of a class without a docstring, their own or a base's."""
    below = _told_below(kind)
    for name, member in vars(kind).items():
        is_member = inspect.isfunction(member) or isinstance(member, classmethod | staticmethod | property)
        if not name.startswith("_") and is_member and name not in below and not inspect.getdoc(getattr(kind, name)):
            yield f"{name} has no docstring"
