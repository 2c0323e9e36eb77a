"""Every public name says what it is, its parameters, what it returns and raises, and is seen at work."""

import ast
import re
from importlib import import_module
from pathlib import Path

import shuffledp
from builder import examples, public, told

ROOT = Path(__file__).parents[2]
SOURCE = ROOT / "src" / "shuffledp"

PASSING_ON = {"shuffledp.continual.noise", "shuffledp.tables.whole"}
"""Modules whose `__all__` only passes on names of a lower room to this one."""
COMMAND_LINE = "shuffledp.cli"
"""What pages import from here runs commands: they are in the reference of the command line."""


def names() -> list[str]:
    return [name for page in public.names_by_page().values() for name in page]


def promising() -> dict[str, str]:
    """The modules that say what they promise, and their sources."""
    found = {}
    for file in sorted(SOURCE.rglob("*.py")):
        text = file.read_text("utf-8")
        if re.search(r"^__all__ = ", text, re.M):
            found[".".join(file.relative_to(SOURCE.parent).with_suffix("").parts).removesuffix(".__init__")] = text
    return found


def same(names: list[str]) -> set[int]:
    return {id(public.named(name)) for name in names}


def test_whatever_a_module_promises_is_in_the_reference() -> None:
    there = same(names())
    modules = set(promising()) - PASSING_ON
    assert {"shuffledp", "shuffledp.answers", "shuffledp.learn", "shuffledp.service.client"} <= modules
    for module in modules:
        for name in import_module(module).__all__:
            assert name == "__version__" or id(public.named(f"{module}.{name}")) in there, f"{module}.{name}"


def test_whatever_pages_and_examples_import_is_in_the_reference() -> None:
    there = same(names())
    used = set(examples.imported())
    for file in (ROOT / "examples").glob("*.py"):
        for node in ast.walk(ast.parse(file.read_text("utf-8"))):
            if isinstance(node, ast.ImportFrom) and str(node.module).startswith("shuffledp"):
                used |= {(str(node.module), each.name) for each in node.names}
    assert len(used) > 100
    for module, name in used:
        if not f"{module}.{name}".startswith(COMMAND_LINE):
            assert id(public.named(f"{module}.{name}")) in there, f"{module}.{name}: add it to docs/reference/api"


def test_no_name_is_listed_twice() -> None:
    assert len(names()) == len(set(names())) > 200


def test_all_docstrings_of_public_names_are_whole() -> None:
    assert not [each for name in names() for each in told.left_out(name)]


def test_every_public_name_is_seen_at_work() -> None:
    """In an example of its own docstring, or of its page in the reference, or of a page that imports it."""
    for page, listed in public.names_by_page().items():
        text = (public.PAGES / f"{page}.md").read_text("utf-8")
        for name in listed:
            own = ">>>" in public.doc_of(name) or examples.shows(text, name.rpartition(".")[2])
            assert own or examples.pages_with(name), f"{name} has no example: add one to its docstring"


def test_no_docstring_begins_in_the_middle_of_a_sentence() -> None:
    begins = re.compile(r'^\s*r?"""(?:Of|The same (?:as|for|with|by|from|when|where))\b.*', re.M)
    texts = {file.relative_to(SOURCE): file.read_text("utf-8") for file in SOURCE.rglob("*.py")}
    assert not [f"{file}: {line.strip()}" for file, text in texts.items() for line in begins.findall(text)]


def untold(users: int, *, seed: int) -> int:
    """Draw something.

    Args:
        users: how many.
    """
    if users < 0:
        raise ValueError(users)
    return seed


def whole(users: int) -> int:
    """Draw something.

    Args:
        users: how many.

    Returns:
        A number.

    Raises:
        ValueError: fewer than none.
    """
    if users < 0:
        raise ValueError(users)
    return users


def nothing_to_tell() -> None:
    """Do something."""


def test_what_a_docstring_leaves_out_is_found() -> None:
    """Wrong twins of the rule, and right ones."""
    assert list(told.of_function(untold)) == [
        "its parameter seed is not told",
        "what it returns is not told",
        "what it raises is not told",
    ]
    assert not list(told.of_function(whole)) and not list(told.of_function(nothing_to_tell))
    # A class's parameters may be told by a base, or by a text below the field; a lie about another name is found.
    assert told.left_out("shuffledp.Estimate") == [] == told.left_out("shuffledp.protocols.family.Choice")
    assert told.inherited(shuffledp.Estimate)["bound"].startswith("how far off the value is")
    assert not examples.shows(">>> Counters()\n", "Counter") and examples.shows("Of it:\n\n>>> Counter()\n", "Counter")
    assert not examples.shows("Counter\n\n>>> 1\n1\n\nCounter\n", "Counter")
