"""What a plan's own numbers must be."""

from typing import Any

from shuffledp.errors import DataError, InfeasibleError
from shuffledp.protocols.base import Constants


def only_exact(constants: Constants) -> None:
    """Refuse the paper's constants where the paper gives none."""
    if constants == "paper":
        raise InfeasibleError("constants", "paper", "are not given for this method", "use exact constants")


def whole_number(noise: Any, name: str) -> int:
    """A parameter of a plan's noise that must be a whole number."""
    value = noise.get(name)
    if isinstance(value, bool) or not isinstance(value, int):
        raise DataError(f"noise.{name}", value, "must be a whole number", "make the plan again")
    return value


def real_number(noise: Any, name: str) -> float:
    """A parameter of a plan's noise that must be a number."""
    value = noise.get(name)
    if isinstance(value, bool) or not isinstance(value, int | float) or not abs(value) < 1e300:
        raise DataError(f"noise.{name}", value, "must be a finite number", "make the plan again")
    return float(value)


def optional_whole_number(noise: Any, name: str) -> int | None:
    """A parameter of a plan's noise that may be left out."""
    return None if noise.get(name) is None else whole_number(noise, name)
