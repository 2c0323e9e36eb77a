"""Specs whose fields say how they are checked, and refusals that name the first bad row."""

import dataclasses
import math
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from shuffledp.errors import DataError, ParameterError
from shuffledp.privacy import Privacy


def check_whole(name: str, value: Any, least: int, most: int, way_out: str) -> int:
    """A whole number in least..most."""
    if isinstance(value, bool) or not isinstance(value, int | np.integer) or not least <= value <= most:
        raise ParameterError(name, _shown(value), f"must be a whole number in {least}..{most}", way_out)
    return int(value)


def check_number(name: str, value: Any, least: float, most: float, way_out: str) -> float:
    """A number in [least, most] as a float, so that equal specs have equal fingerprints.

    >>> check_number("growth", 2, 1.05, 16, "batches double in the paper")
    2.0
    """
    real = isinstance(value, int | float | np.integer | np.floating) and not isinstance(value, bool)
    if not real or not least <= value <= most:
        raise ParameterError(name, _shown(value), f"must be a number in {least:g}..{most:g}", way_out)
    return float(value)


def check_positive(name: str, value: Any, way_out: str) -> Any:
    """A positive number that is finite, as it was given."""
    if isinstance(value, bool) or not isinstance(value, int | float | np.floating) or not 0 < value < math.inf:
        raise ParameterError(name, value, "must be a positive number", way_out)
    return value


def check_not_negative(name: str, value: Any) -> Any:
    """A finite number >= 0, as it was given."""
    if isinstance(value, bool) or not isinstance(value, int | float | np.floating) or not 0 <= value < math.inf:
        raise ParameterError(name, value, "must be a number >= 0", "0 leaves it out")
    return value


def _shown(value: Any) -> Any:
    """Text in quotes: what looks like a number may be none."""
    return repr(value) if isinstance(value, str) else value


def check_flag(name: str, value: Any, way_out: str) -> bool:
    """True or False, and nothing that only counts as one of them."""
    if not isinstance(value, bool | np.bool_):
        raise ParameterError(name, repr(value), "must be True or False", way_out)
    return bool(value)


def check_kind(name: str, value: Any, kind: type, way_out: str) -> Any:
    """One of this class, and nothing else."""
    if not isinstance(value, kind):
        raise ParameterError(name, repr(value), f"must be a {kind.__name__}", way_out)
    return value


def check_privacy(name: str, privacy: Any) -> Any:
    """A Privacy, and nothing else."""
    return check_kind(name, privacy, Privacy, "pass Privacy(1, 1e-6), for instance")


def check_constants(name: str, constants: Any) -> Any:
    """Exact constants or the papers', and nothing else."""
    if not isinstance(constants, str) or constants not in ("exact", "paper"):
        raise ParameterError(name, constants, "must be exact or paper", "exact is smaller")
    return constants


def as_floats(name: str, values: Any) -> NDArray[np.float64]:
    """The values as an array of real numbers, or a DataError."""
    way_out = "pass rows of equal length"
    try:
        array = np.asarray(values)
    except (TypeError, ValueError):
        raise DataError(name, type(values).__name__, "must be an array of numbers", way_out) from None
    if array.dtype.kind not in "buif":
        raise DataError(name, f"an array of {array.dtype}", "must be an array of numbers", way_out)
    return array.astype(np.float64)


def in_row(row: int, value: Any = None) -> str:
    """Where something is wrong, without what it is: a person's value belongs in no log. What is no number is named.

    Args:
        row: which one, from 0.
        value: what is there.

    >>> in_row(1, 38.7), in_row(1, math.nan), in_row(0, "Oslo")
    ('something else in row 2', 'nan in row 2', 'something else in row 1')
    """
    no_number = isinstance(value, float | np.floating) and not math.isfinite(value)
    return f"{value if no_number else 'something else'} in row {row + 1}"


def refuse_first(name: str, values: NDArray[Any], bad: NDArray[np.bool_], problem: str, way_out: str) -> None:
    """A DataError that names the first row that is bad, and not its value; nothing where none is.

    >>> refuse_first("targets", np.array([1.0, 3.0]), np.array([False, True]), "must be -1 or 1", "map the classes")
    Traceback (most recent call last):
        ...
    shuffledp.errors.DataError: targets must be -1 or 1, got something else in row 2: map the classes.
    """
    for row in np.flatnonzero(bad)[:1].tolist():
        raise DataError(name, in_row(row, values[row]), problem, way_out)


def declared(check: Callable[[str, Any], Any], **more: Any) -> Any:
    """A field of a spec with its check, which returns what is kept; `more` goes to `dataclasses.field`."""
    return dataclasses.field(metadata={"check": check}, **more)


def whole(least: int, most: int, way_out: str, **more: Any) -> Any:
    """A field of a spec that is a whole number in least..most."""
    return declared(lambda name, value: check_whole(name, value, least, most, way_out), **more)


def number(least: float, most: float, way_out: str, **more: Any) -> Any:
    """A field of a spec that is a number in [least, most]."""
    return declared(lambda name, value: check_number(name, value, least, most, way_out), **more)


def positive(way_out: str, **more: Any) -> Any:
    """A field of a spec that is a positive number."""
    return declared(lambda name, value: check_positive(name, value, way_out), **more)


def not_negative(**more: Any) -> Any:
    """A field of a spec that is a number >= 0."""
    return declared(check_not_negative, **more)


def check_declared(spec: Any) -> None:
    """Check the fields of a frozen spec and keep them in plain types; those left out where None is allowed stay so."""
    for field in dataclasses.fields(spec):
        check, value = field.metadata.get("check"), getattr(spec, field.name)
        if check is not None and (value is not None or field.default is not None):
            object.__setattr__(spec, field.name, check(field.name, value))
