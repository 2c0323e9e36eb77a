"""What all bandits share: rewards in [0, 1], and states that know which spec they belong to."""

import hashlib
import json
import math
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from shuffledp.errors import DataError, ParameterError
from shuffledp.privacy import Privacy
from shuffledp.randomness import RandomBits
from shuffledp.sampling.rounding import round_randomly

SCHEMA = 1


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


def check_privacy(privacy: Any) -> None:
    """Refuse what is no Privacy."""
    if not isinstance(privacy, Privacy):
        raise ParameterError("privacy", repr(privacy), "must be a Privacy", "pass Privacy(1, 1e-6), for instance")


def check_constants(constants: Any) -> None:
    """Refuse what is neither ours nor the papers'."""
    if not isinstance(constants, str) or constants not in ("exact", "paper"):
        raise ParameterError("constants", constants, "must be exact or paper", "exact is smaller")


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


def is_real(value: Any) -> bool:
    """Whether this is a finite number, and no truth value."""
    return isinstance(value, int | float) and not isinstance(value, bool) and abs(value) < math.inf


def fingerprint_of(spec: Mapping[str, Any]) -> str:
    """SHA-256 of what decides a policy: two specs with one fingerprint are the same."""
    return hashlib.sha256(json.dumps([SCHEMA, spec], sort_keys=True).encode()).hexdigest()


def refuse_other_spec(found: str, own: str) -> None:
    """A state goes on only under the spec that it began with."""
    if found != own:
        raise ParameterError("state", str(found)[:12], f"must belong to the policy {own[:12]}", "use its own policy")


def state_fields(document: Any, names: tuple[str, ...]) -> list[Any]:
    """These fields of a saved state, or a DataError."""
    way_out = "restore it from a copy"
    if not isinstance(document, Mapping) or document.get("schema") != SCHEMA:
        raise DataError("state", type(document).__name__, f"must be an object with schema {SCHEMA}", way_out)
    missing = [name for name in names if name not in document]
    if missing:
        raise DataError("state", f"none of {', '.join(missing)}", "must have all its fields", way_out)
    return [document[name] for name in names]
