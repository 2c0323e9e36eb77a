"""How a plan's fields are checked, saved and read: said once, beside each field.

    probability: float = noise("(0, 1/2]")
    shares: int = noise("[1, 64]")
    categories: Categories = domain(read=as_categories, write=Categories.document)

A field of the noise goes into the document's "noise", one of the domain beside users and epsilon. The interval is both
the check and the words of the refusal.
"""

import dataclasses
import math
import numbers
import types
import typing
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from operator import attrgetter
from typing import Any, Literal

from shuffledp.errors import DataError, InfeasibleError, ParameterError

Constants = Literal["exact", "paper"]
AGAIN = "make the plan again"
_TOLERANCE, _HUGE = 1e-9, 1e300


@dataclass(frozen=True, slots=True)
class Interval:
    """Numbers between two ends, each of which may belong to it.

    >>> half = Interval.parse("(0, 1/2]")
    >>> half.holds(0.5), half.holds(0.0), half.holds(float("nan")), half.problem
    (True, False, False, 'must lie in (0, 1/2]')
    >>> Interval.parse("[1, inf)").problem, Interval.parse("(0, 1)").problem
    ('must be >= 1', 'must lie strictly between 0 and 1')
    """

    text: str
    low: float
    high: float

    @classmethod
    @lru_cache(maxsize=256)
    def parse(cls, text: str) -> "Interval":
        """The interval as a mathematician writes it: brackets include an end, parentheses leave it out."""
        ends = [end.strip() for end in text[1:-1].split(",")]
        low, high = (float(end) if "inf" in end else float(Fraction(end)) for end in ends)
        return cls(text, low, high)

    def holds(self, value: float) -> bool:
        """Whether the number lies in the interval."""
        above = value >= self.low if self.text[0] == "[" else value > self.low
        below = value <= self.high if self.text[-1] == "]" else value < self.high
        return above and below

    @property
    def problem(self) -> str:
        """What is wrong with a number outside, after its name."""
        low, high = (end.strip() for end in self.text[1:-1].split(","))
        if math.isinf(self.high):
            return f"must be >{'=' if self.text[0] == '[' else ''} {low}"
        if self.text[0] + self.text[-1] == "()":
            return f"must lie strictly between {low} and {high}"
        return f"must lie in {self.text}"


@dataclass(frozen=True, slots=True)
class Saved:
    """How one field is kept in a plan's document: where, within which limits, and in which form."""

    where: Literal["noise", "domain"]
    interval: Interval | None = None
    read: Callable[[Any], Any] | None = None
    write: Callable[[Any], Any] | None = None
    way_out: str = AGAIN


def _saved(
    where: Literal["noise", "domain"],
    interval: str | None,
    read: Callable[[Any], Any] | None = None,
    write: Callable[[Any], Any] | None = None,
    way_out: str = AGAIN,
    **more: Any,
) -> Any:
    limits = None if interval is None else Interval.parse(interval)
    return dataclasses.field(metadata={Saved: Saved(where, limits, read, write, way_out)}, **more)


def noise(interval: str | None = None, **more: Any) -> Any:
    """A parameter of a plan's noise: a number in this interval, a list of such, or None where its type allows that."""
    return _saved("noise", interval, **more)


def domain(interval: str | None = None, **more: Any) -> Any:
    """A field that says which values there are; `read` makes it from what is given or saved, `write` makes it JSON."""
    return _saved("domain", interval, **more)


def forwarded(path: str) -> Any:
    """A member of a plan that is one of its parts', as in `forwarded("batch.messages_max")`."""
    return property(attrgetter(path), doc=f"The plan's {path}.")


def saved_fields(kind: Any, where: str) -> tuple[tuple[str, Any, Saved], ...]:
    """Name, type and form of every field of a plan that is saved there."""
    return _saved_fields(kind, where)


@lru_cache(maxsize=256)
def _saved_fields(kind: Any, where: str) -> tuple[tuple[str, Any, Saved], ...]:
    found = ((field.name, field.type, field.metadata.get(Saved)) for field in dataclasses.fields(kind))
    return tuple((name, given, saved) for name, given, saved in found if saved is not None and saved.where == where)


def check_fields(plan: Any) -> None:
    """Refuse a plan with a saved field outside its interval; what `read` makes of a domain's field replaces it."""
    for name, _, saved in saved_fields(type(plan), "domain"):
        if saved.read is not None:
            object.__setattr__(plan, name, saved.read(getattr(plan, name)))
    for where in ("domain", "noise"):
        for name, given, saved in saved_fields(type(plan), where):
            value = getattr(plan, name)
            if saved.interval is None or (value is None and type(None) in typing.get_args(given)):
                continue
            whole = given is int or int in typing.get_args(given)
            kind: Any = numbers.Integral if whole else numbers.Real
            for number in value if isinstance(value, tuple) else (value,):
                # Asking an abstract class takes longer than the rest.
                is_kind = type(number) is int or (type(number) is float and not whole)
                if not is_kind and (isinstance(number, bool) or not isinstance(number, kind)):
                    raise ParameterError(name, number, f"must be a {'whole ' * whole}number", saved.way_out)
                if not saved.interval.holds(number):
                    raise ParameterError(name, number, saved.interval.problem, saved.way_out)


def written(plan: Any, where: str) -> dict[str, Any]:
    """The saved fields as JSON."""
    found = {}
    for name, _, saved in saved_fields(type(plan), where):
        value = getattr(plan, name)
        found[name] = saved.write(value) if saved.write else list(value) if isinstance(value, tuple) else value
    return found


def read_noise(kind: type, document: Mapping[str, Any]) -> dict[str, Any]:
    """The fields of the noise from a document's "noise", each of its type."""
    return {name: _read(given, document.get(name), f"noise.{name}") for name, given, _ in saved_fields(kind, "noise")}


def _read(given: Any, value: Any, name: str) -> Any:
    if typing.get_origin(given) in (types.UnionType, typing.Union):
        given, *_ = (each for each in typing.get_args(given) if each is not type(None))
        if value is None:
            return None
    if typing.get_origin(given) is tuple:
        if not isinstance(value, list):
            raise DataError(name, value, "must be a list", AGAIN)
        return tuple(_read(typing.get_args(given)[0], each, name) for each in value)
    if given is int:
        if isinstance(value, bool) or not isinstance(value, int):
            raise DataError(name, value, "must be a whole number", AGAIN)
        if not abs(value) < 1 << 63:
            raise DataError(name, value, "must be below 2^63", AGAIN)
        return value
    if isinstance(value, bool) or not isinstance(value, int | float) or not abs(value) < 1e300:
        raise DataError(name, value, "must be a finite number", AGAIN)
    return float(value)


def whole_number(noise: Mapping[str, Any], name: str) -> int:
    """A parameter of a plan's noise that must be a whole number."""
    return int(_read(int, noise.get(name), f"noise.{name}"))


def only_exact(constants: Constants) -> None:
    """Refuse the paper's constants where the paper gives none."""
    if constants == "paper":
        raise InfeasibleError("constants", "paper", "are not given for this method", "use exact constants")


def alike(found: Any, expected: Any) -> bool:
    """Whether two derived values are the same, numbers up to one part in a billion."""
    if isinstance(expected, dict):
        return isinstance(found, dict) and all(alike(found.get(key), each) for key, each in expected.items())
    if isinstance(expected, list | tuple):
        same = isinstance(found, list | tuple) and len(found) == len(expected)
        return same and all(map(alike, found, expected))
    if isinstance(expected, float) and isinstance(found, int | float) and not isinstance(found, bool):
        # Whole numbers that no float can hold are not near one.
        return abs(found) < _HUGE and math.isclose(found, expected, rel_tol=_TOLERANCE)
    return bool(found == expected)
