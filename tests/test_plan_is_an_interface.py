"""Nobody asks a plan which class it is, nor compares a name of a protocol, a method or a kind of values."""

import ast
from pathlib import Path

import pytest

from shuffledp.protocols.catalogue import PROTOCOLS
from shuffledp.protocols.domains.domain import Domain
from shuffledp.protocols.plan import Plan

SOURCE = Path(__file__).parents[1] / "src" / "shuffledp"
ROOMS = (
    "accounting",
    "audit",
    "cli",
    "dashboard",
    "experiments",
    "learn",
    "pictures",
    "references",
    "service",
    "simulation",
    "tables",
    "testing",
)
NAMES = ("protocol", "method", "kind")


def classes() -> set[str]:
    plans = [kind for family in PROTOCOLS.values() for kind in family.methods.values()]
    return {base.__name__ for plan in plans for base in plan.__mro__ if issubclass(base, Plan)}


def domains(kind: type = Domain) -> set[str]:
    return {kind.__name__}.union(*(domains(each) for each in kind.__subclasses__()))


def asks(tree: ast.AST, forbidden: set[str]) -> list[str]:
    """Every place where a class is asked for, or a name compared with a word."""
    found = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and getattr(node.func, "id", "") in ("isinstance", "issubclass"):
            named = {getattr(each, "id", getattr(each, "attr", "")) for each in ast.walk(node.args[1])}
            found += [f"line {node.lineno}: {name}" for name in sorted(named & forbidden)]
        if isinstance(node, ast.Compare):
            sides = [node.left, *node.comparators]
            words = any(isinstance(each, ast.Constant) and isinstance(each.value, str) for each in ast.walk(node))
            # An array's dtype has a kind, too.
            asked = [each for each in sides if isinstance(each, ast.Attribute) and each.attr in NAMES]
            about = [each.attr for each in asked if getattr(each.value, "attr", "") != "dtype"]
            found += [f"line {node.lineno}: .{name}" for name in about if words]
    return found


@pytest.mark.parametrize("room", ROOMS)
def test_a_room_asks_for_members_only(room: str) -> None:
    # That the options name a list of categories, and not how many there are, is no question to a plan.
    forbidden = (classes() | domains()) - {"Categories"}
    for file in sorted((SOURCE / room).rglob("*.py")):
        assert asks(ast.parse(file.read_text()), forbidden) == [], file


@pytest.mark.parametrize(
    "wrong",
    [
        "isinstance(plan, CounterPlan)",
        "isinstance(plan, base.HistogramPlan | Parities)",
        "plan.protocol == 'histogram'",
        "domain.kind in ('integers', 'dates')",
        "'coins' != plan.method",
    ],
)
def test_what_would_be_found(wrong: str) -> None:
    assert asks(ast.parse(wrong), classes() | domains())
