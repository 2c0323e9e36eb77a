"""Whatever is written into a plan's file: the same plan or one sentence, never another error or a weaker promise."""

import copy
import json
import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from shuffledp.errors import DataError, ParameterError, ShuffleDPError
from shuffledp.protocols.catalogue import PROTOCOLS, plan_from_document
from shuffledp.service.task import Task

_RECORDS = Path(__file__).parents[1] / "golden" / "records"
_HOSTILE = (10**400, -1, math.nan, None, [], [[]], "x", {}, True, 1e308)
# Further entries of a list are read as these.
_ENTRIES = 2


def _documents() -> dict[str, dict[str, Any]]:
    """Of every method with a golden plan, the document with the fewest users."""
    found: dict[str, dict[str, Any]] = {}
    for file in sorted(_RECORDS.glob("*.json")):
        for record in json.loads(file.read_text("utf-8")).values():
            document = record.get("document") if isinstance(record, dict) else None
            if not isinstance(document, dict) or document.get("protocol") not in PROTOCOLS:
                continue
            if "fingerprint" in document and not document.get("comparison_only"):
                kind = document.get("method") or f"{document['noise']['family']}-{document['domain']['kind']}"
                name = f"{document['protocol']}/{kind}"
                found[name] = min(found.get(name, document), document, key=lambda each: each["users"])
    return found


_DOCUMENTS = _documents()


def _leaves(document: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """The way to every number, text and empty list of a document, and to every list and object as a whole."""
    if path:
        yield path
    if isinstance(document, dict):
        for key, each in document.items():
            yield from _leaves(each, (*path, key))
    if isinstance(document, list):
        for place, each in enumerate(document[:_ENTRIES]):
            yield from _leaves(each, (*path, place))


def _edited(document: dict[str, Any], path: tuple[Any, ...], value: Any) -> dict[str, Any]:
    changed = copy.deepcopy(document)
    inside = changed
    for step in path[:-1]:
        inside = inside[step]
    inside[path[-1]] = value
    return changed


def test_every_protocol_is_here() -> None:
    assert {name.partition("/")[0] for name in _DOCUMENTS} >= {
        *("binary-sum", "bounded-sum", "vector-sum", "histogram", "ranges", "distinct-elements", "counter"),
    }


@pytest.mark.parametrize("name", _DOCUMENTS)
def test_an_edited_document_is_the_same_plan_or_one_sentence(name: str) -> None:
    document = _DOCUMENTS[name]
    for path in _leaves(document):
        for value in _HOSTILE:
            try:
                plan = plan_from_document(_edited(document, path, value))
            except ShuffleDPError as refused:
                assert str(refused).endswith(".") and "\n" not in str(refused), (path, value)
                continue
            except Exception as other:
                raise AssertionError(f"{path} = {value!r}"[:200]) from other
            assert plan.fingerprint == document["fingerprint"] and plan.guarantee().holds, (path, value)


@pytest.mark.parametrize("document", [None, [], "x", 1, {}, {"schema": 1}, {"schema": 1, "protocol": []}])
def test_what_is_no_document_is_refused(document: Any) -> None:
    with pytest.raises(DataError):
        plan_from_document(document)


@pytest.mark.parametrize("value", [[[]], [10**400], [{}], [None], [1.5], [True], [1], "x", None, 3])
def test_a_task_over_ranges_with_another_branching_is_refused(value: Any) -> None:
    text = json.loads((_RECORDS / "tasks.json").read_text("utf-8"))["task/ranges/tree"]["text"]
    document = json.loads(text)
    document["plan"]["branching"] = value
    with pytest.raises(ParameterError, match=r"branching|plan|task"):
        Task.from_text(json.dumps(document, sort_keys=True, separators=(",", ":")))
