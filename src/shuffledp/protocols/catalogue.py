"""Every family there is, of this package and of others, and plans as files.

A family or a method of another package joins by an entry point of the group `shuffledp.protocols` that names a `Family`
or a class of plans. Nothing is imported before it is asked for.
"""

import inspect
import warnings
from collections.abc import Iterator, Mapping
from dataclasses import fields, replace
from importlib import import_module
from importlib.metadata import entry_points
from pathlib import Path
from types import MappingProxyType
from typing import Any

from shuffledp.errors import DataError, ParameterError, ShuffleDPError
from shuffledp.files import kind_of_document, other_version, read_json
from shuffledp.protocols.family import Family, check_name
from shuffledp.protocols.fields import alike
from shuffledp.protocols.plan import SCHEMA, Plan
from shuffledp.protocols.request import Request

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
    "heavy-hitters": "shuffledp.protocols.heavy_hitters:HeavyHitters",
    "masked-sum": "shuffledp.protocols.masked_sum:MaskedSumFamily",
    "distribution-test": "shuffledp.protocols.distribution_test:UniformityTest",
    "repeated-count": "shuffledp.protocols.people.families:RepeatedCount",
    "repeated-sum": "shuffledp.protocols.people.families:RepeatedSumFamily",
    "repeated-histogram": "shuffledp.protocols.people.histogram:RepeatedHistogramFamily",
    "grouped-count": "shuffledp.protocols.grouped.families:GroupedCountFamily",
    "grouped-rate": "shuffledp.protocols.grouped.families:GroupedRateFamily",
    "grouped-sum": "shuffledp.protocols.grouped.families:GroupedSumFamily",
    "grouped-mean": "shuffledp.protocols.grouped.families:GroupedMeanFamily",
    "grouped-histogram": "shuffledp.protocols.grouped.families:GroupedHistogramFamily",
    "grouped-rows-count": "shuffledp.protocols.grouped.rows:GroupedRowsCountFamily",
    "grouped-rows-sum": "shuffledp.protocols.grouped.rows:GroupedRowsSumFamily",
    "grouped-moments": "shuffledp.protocols.grouped.moments:GroupedMomentsFamily",
    "grouped-rows-rate": "shuffledp.protocols.grouped.moments:GroupedRowsRateFamily",
    "grouped-rows-mean": "shuffledp.protocols.grouped.moments:GroupedRowsMeanFamily",
    "grouped-rows-moments": "shuffledp.protocols.grouped.moments:GroupedRowsMomentsFamily",
    "repeated-mean": "shuffledp.protocols.people.mean:RepeatedMeanFamily",
    "repeated-ranges": "shuffledp.protocols.people.ranges:RepeatedRangesFamily",
    "repeated-moments": "shuffledp.protocols.people.moments:RepeatedMomentsFamily",
    "counter": "shuffledp.continual.family:RunningSum",
}

_AGAIN = "make it again with `shuffledp plan ... -o FILE`"


class Catalogue(Mapping[str, Family[Any]]):
    """Families by name; a family is imported when it is looked up."""

    def __init__(self) -> None:
        self._joined: dict[str, Family[Any]] = {}
        self._has_asked = False

    def __getitem__(self, name: str) -> Family[Any]:
        self._ask_others()
        if name not in self._joined:
            module, _, attribute = _BUILT_IN[name].partition(":")
            self._joined[name] = getattr(import_module(module), attribute)
        return self._joined[name]

    def __iter__(self) -> Iterator[str]:
        self._ask_others()
        return iter([*_BUILT_IN, *(name for name in self._joined if name not in _BUILT_IN)])

    def __len__(self) -> int:
        return len(list(iter(self)))

    def _ask_others(self) -> None:
        """Let what other packages' entry points name join, once; one that cannot is left out with a warning."""
        if self._has_asked:
            return
        self._has_asked = True
        for point in entry_points(group=GROUP):
            try:
                self.join(point.load())
            except Exception as problem:  # whatever a stranger's module raises, the other families stay
                package = point.dist.name if point.dist is not None else point.value
                words = f"The protocol {point.name} of the package {package} is left out: {problem}"
                warnings.warn(words, RuntimeWarning, stacklevel=3)

    def family(self, name: str) -> Family[Any]:
        """The family of this name.

        Raises:
            ParameterError: there is none.
        """
        found = self.get(name)
        if found is None:
            raise ParameterError("protocol", name, f"must be one of {', '.join(self)}", "check its spelling")
        return found

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
            if not newcomer.methods:
                raise ParameterError("protocol", newcomer.name, "must have a method", "see Plan's contract")
            for name, method in newcomer.methods.items():
                _check_method(method, newcomer.name, name)
            self._joined[newcomer.name] = newcomer
            return newcomer.name
        _check_method(newcomer, getattr(newcomer, "protocol", None), getattr(newcomer, "method", None))
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
        """Take a family, or one method, out again: for tests and for plug-ins that are unloaded.

        A family of this package comes back as it was when it is looked up again.

        Raises:
            ParameterError: there is no such family or method; nothing is changed then.
        """
        family = self.family(protocol)
        if method is None:
            self._joined.pop(protocol)
            return
        if method not in family.methods:
            raise ParameterError("method", method, f"must be one of {', '.join(family.methods)}", "nothing to remove")
        kept = {name: kind for name, kind in family.methods.items() if name != method}
        self._joined[protocol] = replace(family, methods=MappingProxyType(kept))


PROTOCOLS = Catalogue()


def _check_method(method: Any, protocol: Any, name: Any) -> None:
    """Refuse a class that is no plan, leaves a member of the contract out, or names itself otherwise."""
    shown = getattr(method, "__name__", repr(method))
    if not (inspect.isclass(method) and issubclass(method, Plan)):
        raise ParameterError("protocol", shown, "must be a Family or a class of plans", "derive it from Plan")
    missing = sorted(getattr(method, "__abstractmethods__", ()))
    if missing:
        raise ParameterError("protocol", shown, f"must have the member {missing[0]}", "see Plan's contract")
    for member in ("protocol", "method", "theory_page"):
        if not getattr(method, member, None):
            raise ParameterError("protocol", shown, f"must say its {member}", "see Plan's contract")
    # Names that a plan could change, and a fingerprint of its own, would let two plans claim one fingerprint.
    for member in ("protocol", "method"):
        if not isinstance(getattr(method, member), str) or member in {field.name for field in fields(method)}:
            raise ParameterError("protocol", shown, f"must have a text of its class as its {member}", "see Plan")
        check_name(member, getattr(method, member))
    if method.fingerprint is not Plan.fingerprint:
        raise ParameterError("protocol", shown, "must have the fingerprint that every plan has", "do not override it")
    if method.protocol != protocol:
        raise ParameterError("protocol", method.protocol, f"must be {protocol}, its family's", "name it so")
    if method.method != name:
        raise ParameterError("method", method.method, f"must be {name}, as its family calls it", "name it so")


def live_method(plan: Plan) -> str | None:
    """The method by which the live service takes the question of this plan; None where no method of its family does.

    Args:
        plan: any plan, such as one that the service refuses.
    """
    family = PROTOCOLS.family(plan.protocol)
    try:
        return str(family.choice(Request(**plan.common, live=True), **family.question_of(plan)).plan.method)
    except ParameterError:
        return None


def plan_from_document(document: Any, *, whole: bool = False) -> Plan:
    """The plan that a JSON document describes; refused where any number was changed.

    What decides the plan must be the same to the last bit. Numbers that follow from it may differ by the last bits of
    another machine's arithmetic.

    Args:
        document: what `Plan.document` wrote.
        whole: whether keys that the plan does not write are refused, and not passed over.

    Returns:
        The plan, as it was when it was written.

    Raises:
        DataError: it is no plan's document, or one of another version, or a number in it was changed.

    >>> from shuffledp import BinarySum
    >>> plan = BinarySum.plan(users=1000, privacy=(1, 1e-6), method="coins")
    >>> plan_from_document(plan.document()).fingerprint == plan.fingerprint
    True
    """
    try:
        return _read_plan(document, whole)
    except ShuffleDPError:
        raise
    except (ArithmeticError, AttributeError, LookupError, RecursionError, TypeError, ValueError) as problem:
        # Whatever stands in a file that somebody edited: numbers that no float holds, lists where numbers belong.
        said = f"one with which it cannot be computed ({type(problem).__name__})"
        raise DataError("plan", said, "must be what Plan.document wrote", _AGAIN) from None


def _read_plan(document: Any, whole: bool) -> Plan:
    if not isinstance(document, dict):
        raise DataError("plan", type(document).__name__, "must be a JSON object", _AGAIN)
    if (kind := kind_of_document(document)) not in (None, "a plan"):
        raise DataError("plan", kind, "must be a plan's document", "name the file that `shuffledp plan ... -o` wrote")
    if document.get("schema") != SCHEMA:
        raise other_version("plan.schema", document.get("schema"), SCHEMA, _AGAIN)
    family = PROTOCOLS.get(str(document.get("protocol")))
    if family is None:
        raise DataError("plan.protocol", document.get("protocol"), f"must be one of {', '.join(PROTOCOLS)}", _AGAIN)
    plan: Plan = family.method_of(document).from_document(document)
    known, decisive = plan.document(), plan.decisive_keys
    missing = set(known) - set(document) - set(plan.later_numbers)
    if whole and (other := sorted(missing | (set(document) - set(known)))):
        raise DataError(f"plan.{other[0]}", "another", "must be there in this plan, and no other", _AGAIN)
    for key, expected in known.items():
        found = document.get(key)
        if found == expected or (key in plan.later_numbers and key not in document):
            continue
        if key in decisive or not alike(found, expected):
            raise DataError(f"plan.{key}", found, f"must be {expected} in this plan", f"it was changed; {_AGAIN}")
    return plan


def load_plan(path: Path | str) -> Plan:
    """A plan from its file.

    Args:
        path: a file that `shuffledp plan ... -o FILE` wrote.

    Returns:
        The plan, as it was when it was written.

    Raises:
        DataError: the file is no plan, or a number in it was changed.

    >>> import json, tempfile
    >>> from shuffledp import BinarySum
    >>> plan = BinarySum.plan(users=1000, privacy=(1, 1e-6), method="coins")
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = (Path(folder) / "plan.json").write_text(json.dumps(plan.document()))
    ...     load_plan(Path(folder) / "plan.json") == plan
    True
    """
    return plan_from_document(read_json(Path(path), "plan", if_missing=_AGAIN, if_broken=_AGAIN))
