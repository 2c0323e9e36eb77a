"""Answers that know their error: one number, or a vector of them."""

import math
from dataclasses import dataclass, fields, is_dataclass, replace
from typing import Any, Generic, Self, TypeVar

import numpy as np
from numpy.typing import NDArray

Value = TypeVar("Value", float, NDArray[np.float64])


@dataclass(frozen=True, slots=True, kw_only=True)
class WithError(Generic[Value]):
    """A value with its standard error and a proved bound, and what is to be known of both.

    `bound` holds with probability `confidence` over the protocol's own noise, whatever the data;
    `dropped` counts malformed messages that were left out (the bound is widened by them); `clipped`
    the values that were brought into range first; `simulated` says that the noise came from a seeded
    source and protects nobody.
    """

    value: Value
    standard_error: float
    bound: float
    confidence: float
    dropped: int = 0
    clipped: int = 0
    simulated: bool = False

    def labelled(self, *, simulated: bool, clipped: int = 0) -> Self:
        """The same answer, with what its maker says about it.

        Args:
            simulated: whether the noise came from a seeded source and protects nobody.
            clipped: how many values were brought into range first.
        """
        return replace(self, simulated=simulated, clipped=clipped)

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
    """A number with its standard error and a proved bound: never a bare float.

    >>> print(Estimate(value=312.0, standard_error=1.357, bound=3.0, confidence=0.95))
    312.0 ± 1.36 (within 3 with 95% confidence)
    """

    def __str__(self) -> str:
        notes = [f"within {self.bound:,.4g} with {self.confidence:.0%} confidence", *_notes(self)]
        return f"{self.value:,.{_digits(self.standard_error)}f} ± {self.standard_error:.3g} ({'; '.join(notes)})"


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class VectorEstimate(WithError[NDArray[np.float64]]):
    """A vector whose coordinates all have one standard error and one bound, which holds for all of them at once.

    >>> print(VectorEstimate(value=np.array([3.0, -4.0]), standard_error=8.45, bound=24.0, confidence=0.95))
    [ 3.0 -4.0] ± 8.45 each (all within 24 with 95% confidence)
    """

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, VectorEstimate):
            return NotImplemented
        mine, theirs = ([getattr(each, field.name) for field in fields(each)] for each in (self, other))
        return np.array_equal(mine[0], theirs[0]) and mine[1:] == theirs[1:]

    def __hash__(self) -> int:
        return hash((self.value.tobytes(), self.standard_error, self.bound))

    def __str__(self) -> str:
        shown = np.array2string(
            self.value,
            precision=_digits(self.standard_error),
            threshold=8,
            edgeitems=3,
            floatmode="fixed",
            suppress_small=True,
        )
        notes = [f"all within {self.bound:,.4g} with {self.confidence:.0%} confidence", *_notes(self)]
        return f"{shown} ± {self.standard_error:.3g} each ({'; '.join(notes)})"


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class NamedEstimate(VectorEstimate):
    """Several numbers, each with a name, a standard error and a bound of its own.

    `standard_error` and `bound` are the largest of them. With probability `confidence` all bounds hold at once.

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
        """The number of this name."""
        place = self.names.index(name)
        return Estimate(
            value=float(self.value[place]),
            standard_error=self.standard_errors[place],
            bound=self.bounds[place],
            **{note: getattr(self, note) for note in ("confidence", "dropped", "clipped", "simulated")},
        )

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
