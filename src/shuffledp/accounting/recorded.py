"""Pairs as JSON, so that they can be composed again: shifts of known laws, Gaussian pairs, and bare claims."""

import dataclasses
from collections.abc import Mapping
from typing import Any

from shuffledp.accounting.differences import PolyaDifference, Skellam
from shuffledp.accounting.gaussian import GaussianPair
from shuffledp.accounting.laws import Binomial, DiscreteLaplace, IntegerLaw, Poisson
from shuffledp.accounting.pairs import DominatingPair, ShiftPair
from shuffledp.accounting.repeated import RepeatedPair
from shuffledp.accounting.worst_case import ClaimPair
from shuffledp.errors import DataError, ParameterError
from shuffledp.privacy import Privacy

_LAWS: dict[str, type[IntegerLaw]] = {
    "binomial": Binomial,
    "poisson": Poisson,
    "discrete-laplace": DiscreteLaplace,
    "polya-difference": PolyaDifference,
    "skellam": Skellam,
}
_NAMES = {law: name for name, law in _LAWS.items()}
_CLAIM, _GAUSSIAN = "claim", "gaussian"
# Beyond it the laws' own arithmetic, in doubles, is no longer exact.
_LARGEST_WHOLE = 1 << 53
_LARGEST_SHIFT = 1e3
_MOST_TIMES = 1 << 20
# Composing a pair takes an array of all outcomes within about twelve deviations on each side.
_LARGEST_SPREAD = 1e6
_RESTORE = "restore the file from a copy"


def pair_document(pair: DominatingPair) -> dict[str, Any] | None:
    """The pair as JSON, or None where a pair has no such form or is too wide to be composed again.

    >>> pair_document(ShiftPair(Binomial(80, 0.5)))
    {'law': 'binomial', 'trials': 80, 'p': 0.5, 'shift': 1}
    """
    if type(pair) is ClaimPair:
        return {"law": _CLAIM, "epsilon": pair.claim.epsilon, "delta": pair.claim.delta}
    if type(pair) is GaussianPair:
        return {"law": _GAUSSIAN, "shift": pair.shift}
    if type(pair) is RepeatedPair:
        once = pair_document(pair.pair)
        return None if once is None else {**once, "times": pair.times}
    if type(pair) is not ShiftPair or type(pair.noise) not in _NAMES:
        return None
    if pair.noise.standard_deviation + pair.shift > _LARGEST_SPREAD:
        return None
    parameters = {name: getattr(pair.noise, name) for name in _parameters(type(pair.noise))}
    return {"law": _NAMES[type(pair.noise)], **parameters, "shift": pair.shift}


def pair_from_document(document: Any) -> DominatingPair:
    """The pair that a JSON object describes, or a DataError that names what is wrong with it."""
    if not isinstance(document, Mapping):
        raise DataError("pair", document, "must be an object", _RESTORE)
    if "times" in document:
        times = document["times"]
        if isinstance(times, bool) or not isinstance(times, int) or not 2 <= times <= _MOST_TIMES:
            raise DataError("pair.times", times, f"must be a whole number in 2..{_MOST_TIMES}", _RESTORE)
        return RepeatedPair(pair_from_document({key: each for key, each in document.items() if key != "times"}), times)
    name = document.get("law")
    if name == _CLAIM:
        claim = _numbers(document, {"epsilon": float, "delta": float})
        return ClaimPair(Privacy(claim["epsilon"], claim["delta"]))
    if name == _GAUSSIAN:
        shift = _numbers(document, {"shift": float})["shift"]
        if not 0 < shift < _LARGEST_SHIFT:
            raise DataError("pair.shift", shift, f"must lie between 0 and {_LARGEST_SHIFT:g}", _RESTORE)
        return GaussianPair(shift)
    law = _LAWS.get(name) if isinstance(name, str) else None
    if law is None:
        raise DataError("pair.law", name, f"must be one of {', '.join([*_LAWS, _GAUSSIAN, _CLAIM])}", _RESTORE)
    numbers = _numbers(document, {**_parameters(law), "shift": int})
    shift = numbers.pop("shift")
    try:
        return ShiftPair(law(**numbers), shift)
    except ParameterError as error:
        raise DataError(f"pair.{error.parameter}", error.value, error.problem, _RESTORE) from error


def _parameters(law: type[IntegerLaw]) -> dict[str, type[int] | type[float]]:
    """Each parameter of a law, and whether it is whole."""
    return {field.name: int if field.type is int else float for field in dataclasses.fields(law)}  # type: ignore[arg-type]


def _numbers(document: Mapping[str, Any], kinds: Mapping[str, type[int] | type[float]]) -> dict[str, Any]:
    if document.keys() != {"law", *kinds}:
        raise DataError("pair", ", ".join(document), f"must have law, {', '.join(kinds)} and nothing else", _RESTORE)
    numbers: dict[str, Any] = {}
    for name, kind in kinds.items():
        value = document[name]
        whole = isinstance(value, int) and not isinstance(value, bool)
        if not whole and (kind is int or not isinstance(value, float)):
            raise DataError(f"pair.{name}", value, f"must be a {'whole ' if kind is int else ''}number", _RESTORE)
        if not abs(value) <= _LARGEST_WHOLE:
            raise DataError(f"pair.{name}", value, f"must be at most {_LARGEST_WHOLE}", _RESTORE)
        numbers[name] = kind(value)
    return numbers
