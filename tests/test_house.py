"""Rules of the house that are read from the source: names, cycles, and who may look behind a plan."""

import ast
from collections import defaultdict
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import grimp
import pytest

import shuffledp
from shuffledp.protocols.catalogue import PROTOCOLS

SOURCE = Path(shuffledp.__file__).parent

ROOMS = (
    "accounting",
    "audit",
    "cli",
    "dashboard",
    "experiments",
    "learn",
    "pictures",
    "references",
    "sampling",
    "schedules",
    "service",
    "shuffle",
    "simulation",
    "tables",
    "testing",
)
"""Rooms that ask plans for members only: never for their class, nor for the name of a protocol or method."""

# A protocol or a method is asked for its name by these members.
_NAMES = ("protocol", "method")


@cache
def _trees() -> dict[Path, ast.Module]:
    return {file.relative_to(SOURCE): ast.parse(file.read_text("utf-8")) for file in sorted(SOURCE.rglob("*.py"))}


def _classes() -> Iterator[tuple[Path, ast.ClassDef]]:
    for file, tree in _trees().items():
        yield from ((file, node) for node in ast.walk(tree) if isinstance(node, ast.ClassDef))


@cache
def _plan_classes() -> frozenset[str]:
    """The names of all classes of plans, by the bases that the source names, whatever the depth."""
    bases = {
        node.name: {name for base in node.bases for name in _named(base)}
        for file, node in _classes()
        if file.parts[0] in ("protocols", "continual")
    }
    known = {"Plan"}
    while more := {name for name, of in bases.items() if of & known} - known:
        known |= more
    return frozenset(known)


def _named(node: ast.AST) -> set[str]:
    """The last names of what an expression names: of a.B, of B | C, of (B, C) and of B[T]."""
    if isinstance(node, ast.Name):
        return {node.id}
    if isinstance(node, ast.Attribute):
        return {node.attr}
    if isinstance(node, ast.BinOp):
        return _named(node.left) | _named(node.right)
    if isinstance(node, ast.Subscript):
        return _named(node.value)
    return {name for each in node.elts for name in _named(each)} if isinstance(node, ast.Tuple) else set()


def _asks_for_a_class(node: ast.AST) -> bool:
    is_call = isinstance(node, ast.Call) and isinstance(node.func, ast.Name)
    if is_call and node.func.id in ("isinstance", "issubclass") and len(node.args) == 2:
        return bool(_named(node.args[1]) & _plan_classes())
    # type(plan) is Coins; case Coins():
    if isinstance(node, ast.Compare) and any(isinstance(each, ast.Is | ast.Eq) for each in node.ops):
        return bool(set().union(*(_named(each) for each in node.comparators)) & _plan_classes())
    return isinstance(node, ast.MatchClass) and bool(_named(node.cls) & _plan_classes())


def _compares_a_name(node: ast.AST) -> bool:
    if not isinstance(node, ast.Compare):
        return False
    sides = [node.left, *node.comparators]
    asked = any(isinstance(side, ast.Attribute) and side.attr in _NAMES for side in sides)
    return asked and any(_is_text(side) for side in sides)


def _is_text(node: ast.AST) -> bool:
    """A text, several of them, or a class's own name for itself."""
    if isinstance(node, ast.Constant):
        return isinstance(node.value, str)
    if isinstance(node, ast.Tuple | ast.List | ast.Set):
        return any(_is_text(each) for each in node.elts)
    return isinstance(node, ast.Attribute) and node.attr in _NAMES and bool(_named(node.value) & _plan_classes())


def _offenders(room: str) -> list[str]:
    return [
        f"{file}:{node.lineno}: {ast.unparse(node)}"
        for file, tree in _trees().items()
        if file.parts[0].removesuffix(".py") == room
        for node in ast.walk(tree)
        if _asks_for_a_class(node) or _compares_a_name(node)
    ]


def test_no_class_name_is_given_twice() -> None:
    where = defaultdict(list)
    for file, node in _classes():
        where[node.name].append(str(file))
    twice = {name: files for name, files in where.items() if len(files) > 1}
    assert not twice


def test_no_modules_import_one_another_in_a_circle() -> None:
    graph = grimp.build_graph("shuffledp")
    imports = {module: graph.find_modules_directly_imported_by(module) for module in graph.modules}
    # A module on no circle goes once all that it imports has gone.
    while gone := {module for module, others in imports.items() if not others & imports.keys()}:
        imports = {module: others for module, others in imports.items() if module not in gone}
    assert not {module for module in imports if module in _reached(imports, module)}


def _reached(imports: dict[str, set[str]], start: str) -> set[str]:
    """All modules that a module imports, at whatever distance."""
    found: set[str] = set()
    todo = [start]
    while todo:
        new = (imports.get(todo.pop(), set()) & imports.keys()) - found
        found |= new
        todo += new
    return found


@pytest.mark.parametrize("room", ROOMS)
def test_nobody_asks_a_plan_for_its_class_or_its_name(room: str) -> None:
    assert not _offenders(room)


def test_these_rules_see_what_breaks_them() -> None:
    """Wrong twins of the rules: each of these lines must be found."""
    assert {"Plan", "RoundPlan", "CounterPlan", "Coins", "HistogramPlan", "Mean", "GroupSearch"} <= _plan_classes()
    for line in (
        "isinstance(plan, Coins)",
        "isinstance(plan, base.HistogramPlan | CounterPlan)",
        "issubclass(kind, (Shares, Response))",
        "type(plan) is ZSum",
    ):
        assert any(map(_asks_for_a_class, ast.walk(ast.parse(line)))), line
    for line in (
        "plan.method == 'shares'",
        "'counter' != plan.protocol",
        "plan.method in ('rr', 'pure')",
        "document['protocol'] == CounterPlan.protocol",
    ):
        assert any(map(_compares_a_name, ast.walk(ast.parse(line)))), line
    for line in ("plan.method == other.method", "isinstance(value, int)", "name == 'shares'"):
        assert not any(_asks_for_a_class(node) or _compares_a_name(node) for node in ast.walk(ast.parse(line))), line


def test_no_name_of_a_class_of_plans_is_missed() -> None:
    for name in PROTOCOLS:
        assert {kind.__name__ for kind in PROTOCOLS[name].methods.values()} <= _plan_classes()
