"""What all bandits share: rewards in [0, 1], and specs whose fields say how they are checked."""

import dataclasses
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from shuffledp.errors import DataError, ParameterError
from shuffledp.privacy import Privacy
from shuffledp.randomness import RandomBits
from shuffledp.sampling.rounding import round_randomly


def check_rewards(rewards: ArrayLike) -> NDArray[np.float64]:
    """The rewards as floats in [0, 1], or a DataError that names the first bad row.

    >>> check_rewards([0, 0.5, 1.5])
    Traceback (most recent call last):
        ...
    shuffledp.errors.DataError: rewards must lie in [0, 1], got 1.5 in row 3: scale them into it.
    """
    numbers = as_floats("rewards", rewards)
    if numbers.ndim != 1 or numbers.size == 0:
        raise DataError(
            "rewards", f"shape {numbers.shape}", "must be a column of at least one number", "pass one a user"
        )
    bad = np.flatnonzero(~((numbers >= 0) & (numbers <= 1)))
    if bad.size:
        row = int(bad[0])
        raise DataError("rewards", f"{numbers[row]:g} in row {row + 1}", "must lie in [0, 1]", "scale them into it")
    return numbers


def reward_bits(rewards: ArrayLike, *, bits: RandomBits) -> NDArray[np.uint8]:
    """The client's side: each reward as a bit whose mean it is.

    >>> reward_bits([0, 1, 1], bits=RandomBits.seeded(1)).tolist()
    [0, 1, 1]
    """
    return round_randomly(check_rewards(rewards), bits=bits).astype(np.uint8)


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


def _shown(value: Any) -> Any:
    """Text in quotes: what looks like a number may be none."""
    return repr(value) if isinstance(value, str) else value


def check_flag(name: str, value: Any, way_out: str) -> bool:
    """True or False, and nothing that only counts as one of them."""
    if not isinstance(value, bool | np.bool_):
        raise ParameterError(name, repr(value), "must be True or False", way_out)
    return bool(value)


def check_privacy(name: str, privacy: Any) -> Privacy:
    """A Privacy, and nothing else."""
    if not isinstance(privacy, Privacy):
        raise ParameterError(name, repr(privacy), "must be a Privacy", "pass Privacy(1, 1e-6), for instance")
    return privacy


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


def declared(check: Callable[[str, Any], Any], **more: Any) -> Any:
    """A field of a spec with its check, which returns what is kept; `more` goes to `dataclasses.field`."""
    return dataclasses.field(metadata={"check": check}, **more)


def whole(least: int, most: int, way_out: str, **more: Any) -> Any:
    """A field of a spec that is a whole number in least..most."""
    return declared(lambda name, value: check_whole(name, value, least, most, way_out), **more)


def number(least: float, most: float, way_out: str, **more: Any) -> Any:
    """A field of a spec that is a number in [least, most]."""
    return declared(lambda name, value: check_number(name, value, least, most, way_out), **more)


def check_declared(spec: Any) -> None:
    """Check the fields of a frozen spec and keep them in plain types; those left out where None is allowed stay so."""
    for field in dataclasses.fields(spec):
        check, value = field.metadata.get("check"), getattr(spec, field.name)
        if check is not None and (value is not None or field.default is not None):
            object.__setattr__(spec, field.name, check(field.name, value))
