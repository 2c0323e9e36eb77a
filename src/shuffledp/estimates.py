"""Answers that know their error: one number, or a vector of them."""

import difflib
import math
from collections.abc import Iterator, Sequence
from copy import copy
from dataclasses import dataclass, fields, is_dataclass, replace
from typing import Any, Generic, Self, TypeVar

import numpy as np
from numpy.typing import NDArray

from shuffledp import markup
from shuffledp.errors import ParameterError

# Of more categories than this only some are named where an estimate is printed.
_MOST_NAMED = 8
# Among more names than this none is looked for that is spelt alike.
_MOST_COMPARED = 10_000

Value = TypeVar("Value", float, NDArray[np.float64])


class Carrying:
    """Room for the plan that an answer was made by; it is no field, so that it is no part of the answer itself."""

    __slots__ = ("_plan",)
    _plan: Any

    @property
    def plan(self) -> Any:
        """The plan that the answer was made by, where its maker said so; otherwise None."""
        return getattr(self, "_plan", None)

    def made_by(self, plan: Any) -> Self:
        """A copy of this answer that carries the plan it was made by."""
        carrying = copy(self)
        object.__setattr__(carrying, "_plan", plan)
        return carrying


@dataclass(frozen=True, slots=True, kw_only=True)
class WithError(Carrying, Generic[Value]):
    """A value with its standard error and a proved bound, and what is to be known of both.

    `bound` holds with probability `confidence` over the protocol's own noise, whatever the data;
    `dropped` counts malformed messages that were left out (the bound is widened by them); `clipped`
    the values that were brought into range first; `simulated` says that the noise came from a seeded
    source and protects nobody. `plan` is what the answer was made by, where its maker said so: it knows the names of
    the numbers, how private they are, and how to show them.

    Attributes:
        value: the answer, a number or a vector.
        standard_error: the standard deviation of the protocol's own noise.
        bound: how far off the value is at most, with probability `confidence`.
        confidence: the probability with which the bound holds, whatever the data.
        dropped: how many malformed messages were left out.
        clipped: how many values were brought into range first.
        simulated: whether the noise came from a seeded source and protects nobody.
    """

    value: Value
    standard_error: float
    bound: float
    confidence: float
    dropped: int = 0
    clipped: int = 0
    simulated: bool = False

    def labelled(self, *, simulated: bool, clipped: int = 0) -> Self:
        """A copy of this answer with what its maker says about it.

        Args:
            simulated: whether the noise came from a seeded source and protects nobody.
            clipped: how many values were brought into range first.
        """
        return replace(self, simulated=simulated, clipped=clipped)

    def _repr_html_(self) -> str:
        """A table and a small picture, as notebooks show it."""
        if self.plan is not None:
            return str(self.plan.answer_html(self))
        return markup.section(markup.facts("", [("estimate", str(self))]))

    @property
    def lower(self) -> Value:
        """The value less the bound."""
        return self.value - self.bound

    @property
    def upper(self) -> Value:
        """The value plus the bound."""
        return self.value + self.bound


@dataclass(frozen=True, slots=True, kw_only=True)
class Estimate(WithError[float]):
    """A number with its standard error and a proved bound: never a bare float, but `float(estimate)` is one.

    >>> estimate = Estimate(value=312.0, standard_error=1.357, bound=3.0, confidence=0.95)
    >>> print(estimate)
    312.0 ± 1.36 (within 3 with 95% confidence)
    >>> float(estimate), f"{estimate:.0f}"
    (312.0, '312')
    """

    def __float__(self) -> float:
        return float(self.value)

    def __format__(self, spec: str) -> str:
        """The whole sentence, or the number alone where a format asks for one."""
        return format(self.value, spec) if spec else str(self)

    def __str__(self) -> str:
        notes = [f"within {self.bound:,.4g} with {self.confidence:.0%} confidence", *_notes(self)]
        return f"{self.value:,.{_digits(self.standard_error)}f} ± {self.standard_error:.3g} ({'; '.join(notes)})"


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class VectorEstimate(WithError[NDArray[np.float64]]):
    """A vector whose coordinates all have one standard error and one bound, which holds for all of them at once.

    >>> print(VectorEstimate(value=np.array([3.0, -4.0]), standard_error=8.45, bound=24.0, confidence=0.95))
    [ 3.0 -4.0] ± 8.45 each (all within 24 with 95% confidence)

    Where a plan that counts categories made it, each number can be asked for by its category's name:

    >>> from shuffledp import Histogram, Privacy, RandomBits, simulate
    >>> plan = Histogram.plan(users=900, privacy=Privacy(1, 1e-6), categories=["Köln", "München"])
    >>> estimate = simulate(plan, plan.encode(["München"] * 600 + ["Köln"] * 300), bits=RandomBits.secure())
    >>> abs(float(estimate["München"]) - 600) < 60, sorted(estimate.as_dict())
    (True, ['Köln', 'München'])
    """

    def __getitem__(self, name: Any) -> Estimate:
        """The number of a category, by its name; of a vector without names, by its place.

        Raises:
            ParameterError: there is no such category or place.
        """
        place = self._place(name)
        return self._one(float(self.value[place]), self.standard_error, self.bound)

    def __iter__(self) -> Iterator[Any]:
        """The names, as those of a dictionary."""
        return iter(self.as_dict())

    def as_dict(self) -> dict[Any, float]:
        """The numbers alone, by the names of their categories, or by their places where they have none."""
        named = self._categories
        names = range(self.value.size) if named is None else named.names()
        return dict(zip(names, self.value.tolist(), strict=True))

    @property
    def _categories(self) -> Any:
        """What the numbers stand for, where the plan says it and there is a number for each."""
        named = None if self.plan is None else self.plan.domain.named
        return None if named is None or named.size != self.value.size else named

    def _by_name(self, digits: int) -> str:
        """The largest numbers with their categories' names; empty where there are none."""
        named = self._categories
        if named is None:
            return ""
        order = np.argsort(-self.value, kind="stable")
        if named.size <= _MOST_NAMED or named.is_ordered:
            order = np.arange(named.size)
        each = [f"{named.name(code)} {self.value[code]:,.{digits}f}" for code in order[:_MOST_NAMED].tolist()]
        more = named.size - _MOST_NAMED
        return ", ".join(each) + (f" and {more:,} more" if more > 0 else "") + ";"

    def _place(self, name: Any) -> int:
        named = self._categories
        if named is not None:
            problem = f"must be one of the {named.size} categories of the domain"
            try:
                place = int(named.encode([name])[0])
            except ParameterError as refused:
                raise _unknown(name, refused.problem, named) from None
            # A misspelt name must not be answered with the number of all others.
            if not named.lists(name):
                raise _unknown(name, problem, named)
            return place
        if isinstance(name, int | np.integer) and 0 <= name < self.value.size:
            return int(name)
        problem = f"must be a place from 0 to {self.value.size - 1}, as these numbers have no names"
        raise ParameterError("name", repr(name), problem, "ask for a place, or take the array `value`")

    def _one(self, value: float, standard_error: float, bound: float) -> Estimate:
        notes = {note: getattr(self, note) for note in ("confidence", "dropped", "clipped", "simulated")}
        one = Estimate(value=value, standard_error=standard_error, bound=bound, **notes)
        return one if self.plan is None else one.made_by(self.plan)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, VectorEstimate):
            return NotImplemented
        mine, theirs = ([getattr(each, field.name) for field in fields(each)] for each in (self, other))
        return np.array_equal(mine[0], theirs[0]) and mine[1:] == theirs[1:]

    def __hash__(self) -> int:
        return hash((self.value.tobytes(), self.standard_error, self.bound))

    def __str__(self) -> str:
        digits = _digits(self.standard_error)
        shown = self._by_name(digits) or np.array2string(
            self.value, precision=digits, threshold=8, edgeitems=3, floatmode="fixed", suppress_small=True
        )
        notes = [f"all within {self.bound:,.4g} with {self.confidence:.0%} confidence", *_notes(self)]
        return f"{shown} ± {self.standard_error:.3g} each ({'; '.join(notes)})"


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class NamedEstimate(VectorEstimate):
    """Several numbers, each with a name, a standard error and a bound of its own.

    `standard_error` and `bound` are the largest of them. With probability `confidence` all bounds hold at once.

    Attributes:
        names: what each number is called.
        standard_errors: each number's own.
        bounds: each number's own.

    >>> both = NamedEstimate(value=np.array([3.0, 4.0]), standard_error=0.2, bound=0.6, confidence=0.95,
    ...                      names=("mean", "variance"), standard_errors=(0.1, 0.2), bounds=(0.3, 0.6))
    >>> print(both)
    mean 3.00 ± 0.1 (within 0.3), variance 4.00 ± 0.2 (within 0.6); all with 95% confidence
    >>> print(both.of("mean"))
    3.00 ± 0.1 (within 0.3 with 95% confidence)
    """

    names: tuple[str, ...]
    standard_errors: tuple[float, ...]
    bounds: tuple[float, ...]

    def of(self, name: str) -> Estimate:
        """The number of this name.

        Raises:
            ParameterError: there is none.
        """
        if name not in self.names:
            listed = ", ".join(self.names[:20]) or "nothing"
            way_out = _meant(name, self.names) or "check its spelling"
            raise ParameterError("name", repr(name), f"must be one of those found: {listed}", way_out)
        place = self.names.index(name)
        return self._one(float(self.value[place]), self.standard_errors[place], self.bounds[place])

    def __getitem__(self, name: Any) -> Estimate:
        return self.of(name)

    def as_dict(self) -> dict[Any, float]:
        """The numbers alone, by their names."""
        return dict(zip(self.names, self.value.tolist(), strict=True))

    @classmethod
    def together(cls, **numbers: Estimate) -> "NamedEstimate":
        """Several numbers of one answer."""
        errors, bounds = ([getattr(each, of) for each in numbers.values()] for of in ("standard_error", "bound"))
        first = next(iter(numbers.values()))
        return cls(
            value=np.array([each.value for each in numbers.values()]),
            standard_error=max(errors),
            bound=max(bounds),
            names=tuple(numbers),
            standard_errors=tuple(errors),
            bounds=tuple(bounds),
            **{note: getattr(first, note) for note in ("confidence", "dropped", "clipped", "simulated")},
        )

    def __str__(self) -> str:
        each = [
            f"{name.replace('_', ' ')} {value:,.{_digits(error)}f} ± {error:.3g} (within {bound:,.4g})"
            for name, value, error, bound in zip(
                self.names, self.value.tolist(), self.standard_errors, self.bounds, strict=True
            )
        ]
        return "; ".join([", ".join(each), f"all with {self.confidence:.0%} confidence", *_notes(self)])


AnyEstimate = Estimate | VectorEstimate


def answer_document(answer: Any) -> Any:
    """An answer of any kind as JSON: numbers, lists, and an object for what has fields.

    >>> mean = Estimate(value=0.25, standard_error=0.01, bound=math.inf, confidence=0.95)
    >>> answer_document({"mean": mean})["mean"]["bound"] is None, answer_document(np.arange(2.0))
    (True, [0.0, 1.0])
    """
    if is_dataclass(answer):
        return {field.name: answer_document(getattr(answer, field.name)) for field in fields(answer)}
    if isinstance(answer, dict):
        return {str(name): answer_document(value) for name, value in answer.items()}
    if isinstance(answer, np.ndarray | np.generic):
        return answer_document(answer.tolist())
    if isinstance(answer, list | tuple):
        return [answer_document(value) for value in answer]
    # JSON has no number that is none.
    return None if isinstance(answer, float) and not math.isfinite(answer) else answer


def _unknown(name: Any, problem: str, named: Any) -> ParameterError:
    """A refusal of a name that is none of these, with those that are spelt alike."""
    meant = _meant(name, named.names() if named.size <= _MOST_COMPARED else [])
    way_out = f"{meant}; " if meant else ""
    return ParameterError("name", repr(name), problem, f"{way_out}see as_dict() for all names")


def _meant(name: Any, names: Sequence[str]) -> str:
    """The names that are spelt alike, as a question; empty if none is."""
    close = difflib.get_close_matches(str(name), names, n=3, cutoff=0.7)
    return f"did you mean {' or '.join(close)}?" if close else ""


def _digits(standard_error: float) -> int:
    """One digit below the standard error's first."""
    return max(0, 1 - math.floor(math.log10(standard_error))) if standard_error > 0 else 0


def _notes(estimate: AnyEstimate) -> list[str]:
    notes = []
    if estimate.dropped:
        notes.append(f"{estimate.dropped} malformed messages dropped")
    if estimate.clipped:
        notes.append(f"{estimate.clipped} values clipped into range")
    if estimate.simulated:
        notes.append("a simulation: seeded bits protect nobody")
    return notes
