"""Every family there is, of this package and of others, and plans as files.

A family or a method of another package joins by an entry point of the group `shuffledp.protocols` that names a `Family`
or a class of plans. Nothing is imported before it is asked for.
"""

import inspect
import json
from collections.abc import Iterator, Mapping
from functools import cached_property
from importlib import import_module
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any

from shuffledp.errors import DataError, ParameterError
from shuffledp.protocols.family import Family
from shuffledp.protocols.plan import SCHEMA, Plan

GROUP = "shuffledp.protocols"
_BUILT_IN = {
    "binary-sum": "shuffledp.protocols.binary_sum:BinarySum",
    "bounded-sum": "shuffledp.protocols.bounded_sum:BoundedSum",
    "vector-sum": "shuffledp.protocols.vector_sum:VectorSum",
    "histogram": "shuffledp.protocols.histogram:Histogram",
    "ranges": "shuffledp.protocols.ranges:Ranges",
    "distinct-elements": "shuffledp.protocols.distinct_elements:DistinctElements",
    "mean": "shuffledp.protocols.statistics:MeanFamily",
    "moments": "shuffledp.protocols.statistics:MomentsFamily",
    "weighted-mean": "shuffledp.protocols.statistics:WeightedMeanFamily",
    "heavy-hitters": "shuffledp.protocols.heavy_hitters:HeavyHittersFamily",
    "masked-sum": "shuffledp.protocols.masked_sum:MaskedSumFamily",
    "counter": "shuffledp.continual.family:RunningSum",
}

_AGAIN = "make it again with `shuffledp plan ... -o FILE`"


class Catalogue(Mapping[str, Family[Any]]):
    """Families by name; a family is imported when it is looked up."""

    def __init__(self) -> None:
        self._joined: dict[str, Family[Any]] = {}

    def __getitem__(self, name: str) -> Family[Any]:
        _ = self._others
        if name not in self._joined:
            module, _, attribute = _BUILT_IN[name].partition(":")
            self._joined[name] = getattr(import_module(module), attribute)
        return self._joined[name]

    def __iter__(self) -> Iterator[str]:
        _ = self._others
        return iter([*_BUILT_IN, *(name for name in self._joined if name not in _BUILT_IN)])

    def __len__(self) -> int:
        return len(list(iter(self)))

    @cached_property
    def _others(self) -> tuple[str, ...]:
        """What other packages' entry points added; each is looked at once."""
        points = tuple(entry_points(group=GROUP))
        self.__dict__["_others"] = ()
        return tuple(self.join(point.load()) for point in points)

    def join(self, newcomer: Any) -> str:
        """Add a family, or a method to a family that is here, and return the family's name.

        Args:
            newcomer: a `Family`, or a class of plans whose `protocol` is a family's name.

        Raises:
            ParameterError: it breaks the contract, or its name is taken; nothing is changed then.
        """
        if isinstance(newcomer, Family):
            if newcomer.name in self:
                raise ParameterError("protocol", newcomer.name, "must be a new name", "another family has it")
            for method in newcomer.methods.values():
                _check_method(method, newcomer.name)
            self._joined[newcomer.name] = newcomer
            return newcomer.name
        _check_method(newcomer, getattr(newcomer, "protocol", None))
        family = self.get(newcomer.protocol)
        if family is None:
            listed = ", ".join(self)
            raise ParameterError("protocol", newcomer.protocol, f"must be one of {listed}", "join a Family of your own")
        if newcomer.method in family.methods:
            problem = f"must be a new method of {newcomer.protocol}, as fingerprints name it"
            raise ParameterError("method", newcomer.method, problem, "choose another name")
        self._joined[newcomer.protocol] = family.with_method(newcomer)
        return str(newcomer.protocol)

    def leave(self, protocol: str, method: str | None = None) -> None:
        """Take a family, or one method, out again: for tests and for plug-ins that are unloaded."""
        family = self._joined.pop(protocol, None)
        if family is not None and method is not None:
            kept = {name: kind for name, kind in family.methods.items() if name != method}
            self._joined[protocol] = Family.of(
                family.name,
                family.summary,
                *kept.values(),
                domain=family.domain,
                error=family.error,
                error_name=family.error_name,
            )


PROTOCOLS = Catalogue()


def _check_method(method: Any, protocol: Any) -> None:
    """Refuse a class that is no plan, leaves a member of the contract out, or names itself otherwise."""
    shown = getattr(method, "__name__", repr(method))
    if not (inspect.isclass(method) and issubclass(method, Plan)):
        raise ParameterError("protocol", shown, "must be a Family or a class of plans", "derive it from Plan")
    missing = sorted(getattr(method, "__abstractmethods__", ()))
    if missing:
        raise ParameterError("protocol", shown, f"must have the member {missing[0]}", "see Plan's contract")
    for name in ("protocol", "method", "theory_page"):
        if not getattr(method, name, None):
            raise ParameterError("protocol", shown, f"must say its {name}", "see Plan's contract")
    if method.protocol != protocol:
        raise ParameterError("protocol", method.protocol, f"must be {protocol}, its family's", "name it so")


def plan_from_document(document: Any) -> Plan:
    """The plan that a JSON document describes; refused where any number was changed."""
    if not isinstance(document, dict):
        raise DataError("plan", type(document).__name__, "must be a JSON object", _AGAIN)
    if document.get("schema") != SCHEMA:
        raise DataError("plan.schema", document.get("schema"), f"must be {SCHEMA}", _AGAIN)
    family = PROTOCOLS.get(str(document.get("protocol")))
    if family is None:
        raise DataError("plan.protocol", document.get("protocol"), f"must be one of {', '.join(PROTOCOLS)}", _AGAIN)
    plan: Plan = family.method_of(document).from_document(document)
    expected = plan.document()
    for key in expected:
        if document.get(key) != expected.get(key):
            raise DataError(
                f"plan.{key}",
                document.get(key),
                f"must be {expected.get(key)} in this plan",
                f"it was changed; {_AGAIN}",
            )
    return plan


def load_plan(path: Path | str) -> Plan:
    """A plan from its file.

    Args:
        path: a file that `shuffledp plan ... -o FILE` wrote.

    Raises:
        DataError: the file is no plan, or a number in it was changed.
    """
    file = Path(path)
    try:
        document = json.loads(file.read_bytes())
    except FileNotFoundError:
        raise ParameterError("plan", file, "must be a file that exists", _AGAIN) from None
    except IsADirectoryError:
        raise ParameterError("plan", file, "must be a file, not a folder", "name the file in it") from None
    except (ValueError, RecursionError):
        raise DataError("plan", file, "must be a JSON document", _AGAIN) from None
    return plan_from_document(document)
