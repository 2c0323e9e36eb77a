"""Which values there are along a line: whole numbers, days, or reals on a public grid.

A domain is public: one read from the data would itself be an answer about the data, without noise.
"""

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from shuffledp.errors import DataError, ParameterError
from shuffledp.protocols.domains.categories import Dates, check_days_are_iso
from shuffledp.protocols.domains.domain import Codes, Domain, Generator, refuse_first

LARGEST_AXIS = 1 << 22
_AGAIN = "make the plan again"


@dataclass(frozen=True)
class Axis:
    """The whole numbers low..high, or, with `steps`, the reals low..high in so many cells of equal width.

    >>> Axis(0, 65_535).size, Axis(0.0, 1.0, 4).encode([0.1, 0.5, 1.0]).tolist()
    (65536, [0, 2, 3])
    """

    reads: ClassVar[Literal["numbers", "words"]] = "numbers"
    """How its values stand in a table."""
    low: float
    high: float
    steps: int | None = None

    def __post_init__(self) -> None:
        for name in ("low", "high"):
            value = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
                raise ParameterError(name, value, "must be a finite number", "write the domain as LOW:HIGH")
            if self.steps is None and (not float(value).is_integer() or abs(value) >= 1 << 53):
                raise ParameterError(name, value, "must be a whole number", "give steps to put reals on a grid")
        if self.steps is not None and (isinstance(self.steps, bool) or not isinstance(self.steps, int)):
            raise ParameterError("steps", self.steps, "must be a whole number", "1024 cells suit most quantiles")
        if not math.isfinite(self.high - self.low):
            raise ParameterError("domain", f"{self.low}:{self.high}", "must have a finite width", "change the unit")
        if not self.low < self.high:
            raise ParameterError("domain", f"{self.low}:{self.high}", "must have LOW < HIGH", "swap the two")
        if not 2 <= self.size <= LARGEST_AXIS:
            raise ParameterError(
                "domain", f"{self.size} values", f"must have 2 to {LARGEST_AXIS}", "give fewer, wider steps"
            )

    @property
    def size(self) -> int:
        """How many values or cells there are."""
        return int(self.high) - int(self.low) + 1 if self.steps is None else self.steps

    def encode(self, values: ArrayLike) -> Codes:
        """The code of each value, on its owner's device; one outside the domain is an error that names its row."""
        array = np.asarray(values)
        if array.ndim != 1 or array.size == 0 or array.dtype.kind not in "buif":
            shown = f"{array.dtype} of shape {array.shape}"
            raise DataError("values", shown, "must be a column of numbers", "pass one a user")
        bad = ~((array >= self.low) & (array <= self.high))
        problem = f"must lie in the domain {self}"
        way_out = "widen the domain, or bring them into it (quantile: --clip, clip=True)"
        if self.steps is None and array.dtype.kind == "f" and not bad.any():
            bad, problem = array != np.floor(array), "must be a whole number"
            way_out = "put reals on a grid (--steps)"
        refuse_first(array, bad, problem, way_out)
        if self.steps is None:
            return array.astype(np.int64) - int(self.low)
        cells = np.floor((array - self.low) / (self.high - self.low) * self.steps).astype(np.int64)
        return np.minimum(cells, self.steps - 1)

    def clipped(self, values: ArrayLike) -> NDArray[Any]:
        """The values, those outside the domain brought to its ends."""
        return np.asarray(np.clip(np.asarray(values), self.low, self.high))

    def codes_between(self, low: Any, high: Any) -> tuple[int, int]:
        """The first and the last code of a range whose ends, both included, are ends of values or cells."""
        if not self.low <= low <= high <= self.high:
            raise ParameterError("range", f"{low}:{high}", f"must lie in the domain {self}", "give its ends in order")
        if self.steps is None:
            if not float(low).is_integer() or not float(high).is_integer():
                raise ParameterError("range", f"{low}:{high}", "must have whole ends", "values are whole numbers")
            return int(low) - int(self.low), int(high) - int(self.low)
        width = (self.high - self.low) / self.steps
        first, last = (low - self.low) / width, (high - self.low) / width
        if abs(first - round(first)) > 1e-6 or abs(last - round(last)) > 1e-6 or round(first) == round(last):
            raise ParameterError(
                "range", f"{low}:{high}", f"must end between cells of width {width:g}", "round its ends"
            )
        return round(first), round(last) - 1

    def start(self, code: int) -> Any:
        """The value itself, or the lower end of the cell."""
        if self.steps is None:
            return int(self.low) + int(code)
        return float(self.low + (self.high - self.low) * code / self.steps)

    def end(self, code: int) -> Any:
        """The value itself, or the upper end of the cell."""
        return self.start(code) if self.steps is None else self.start(code + 1)

    def middle(self, code: int) -> Any:
        """The value itself, or the middle of the cell."""
        return self.start(code) if self.steps is None else (self.start(code) + self.end(code)) / 2

    def document(self) -> dict[str, Any]:
        """The axis as JSON."""
        return {"low": self.low, "high": self.high, "steps": self.steps}

    def __str__(self) -> str:
        return f"{self.low}:{self.high}" + ("" if self.steps is None else f" in {self.steps:,} steps")


@dataclass(frozen=True)
class Days(Axis):
    """The days low..high, in ISO form; a time after a day counts as that day.

    >>> year = Days("2024-01-01", "2024-12-31")
    >>> year.size, year.encode(["2024-02-01", "2024-12-31T23:59"]).tolist(), year.middle(31)
    (366, [31, 365], '2024-02-01')
    """

    reads: ClassVar[Literal["numbers", "words"]] = "words"
    low: Any
    high: Any

    def __post_init__(self) -> None:
        if self.steps is not None:
            problem = "is for numbers; days are counted one by one"
            raise ParameterError("steps", self.steps, problem, "leave it out")
        days = Dates(str(self.low), str(self.high))
        for name, text in (("low", days.first), ("high", days.last)):
            object.__setattr__(self, name, text)
        if days.size > LARGEST_AXIS:
            raise ParameterError("domain", f"{days.size} days", f"must have 2 to {LARGEST_AXIS}", "name fewer days")

    @cached_property
    def dates(self) -> Dates:
        """The days as categories."""
        return Dates(self.low, self.high)

    @property
    def size(self) -> int:
        return self.dates.size

    def encode(self, values: ArrayLike) -> Codes:
        try:
            return self.dates.encode(values)
        except DataError as refused:
            way_out = "widen the domain, or bring them into it (quantile: --clip, clip=True)"
            outside = "must lie in the domain" in refused.problem
            raise DataError(
                refused.parameter, refused.value, refused.problem, way_out if outside else refused.way_out
            ) from None

    def clipped(self, values: ArrayLike) -> NDArray[Any]:
        days = self.dates.days(values)
        return np.clip(days, np.datetime64(self.low), np.datetime64(self.high))

    def codes_between(self, low: Any, high: Any) -> tuple[int, int]:
        first, last = self.encode([str(low), str(high)]).tolist()
        if first > last:
            raise ParameterError("range", f"{low}:{high}", f"must lie in the domain {self}", "give its ends in order")
        return first, last

    def start(self, code: int) -> str:
        """The day, in ISO form."""
        return self.dates.name(int(code))


@dataclass(frozen=True)
class Axes(Domain):
    """Points on one axis, or in the rectangle of two: a code along each axis.

    >>> Axes((Axis(0, 9), Axis(0, 4))).encode([[3, 4], [9, 0]]).tolist()
    [[3, 4], [9, 0]]
    """

    kind: ClassVar[str] = "axes"
    axes: tuple[Axis, ...]

    def __post_init__(self) -> None:
        object.__setattr__(self, "columns", len(self.axes))

    @property
    def reads(self) -> Literal["numbers", "words"]:  # type: ignore[override]
        """How values stand in a table; two axes are of numbers."""
        return self.axes[0].reads

    @property
    def options(self) -> str:
        limits = "x".join(f"{axis.low}:{axis.high}" for axis in self.axes)
        return f"--domain {limits}" + ("" if self.axes[0].steps is None else f" --steps {self.axes[0].steps}")

    @property
    def parameters(self) -> dict[str, Any]:
        return {"axes": [axis.document() for axis in self.axes]}

    def encode(self, values: ArrayLike) -> Codes:
        """People's values as codes, on their own devices: a column, or one column an axis."""
        array = np.asarray(values)
        if len(self.axes) == 1:
            return self.axes[0].encode(array)
        self._check_shape(array)
        return np.stack([axis.encode(array[:, i]) for i, axis in enumerate(self.axes)], axis=1)

    def _check_shape(self, array: NDArray[Any]) -> None:
        wanted = (len(array),) if len(self.axes) == 1 and array.ndim else (len(array) if array.ndim else 0, 2)
        if array.shape != wanted or array.size == 0:
            what = "one code a user" if len(self.axes) == 1 else "two codes a user"
            raise DataError("values", f"shape {array.shape}", f"must be {what}", "pass a row for each user")

    def check_values(self, values: ArrayLike) -> Codes:
        """The codes as whole numbers in 0..size-1 along each axis."""
        array = np.asarray(values)
        self._check_shape(array)
        if array.dtype.kind not in "bui":
            raise DataError("values", f"dtype {array.dtype}", "must be codes", "encode them: plan.encode(x)")
        sizes = np.array([axis.size for axis in self.axes])
        outside = (array < 0) | (array >= (sizes if array.ndim == 2 else sizes[0]))
        limits = " x ".join(f"0..{size - 1}" for size in sizes)
        bad = np.asarray(outside.reshape(len(array), -1).any(axis=1))
        refuse_first(array, bad, f"must lie in {limits}", "encode them first")
        return array.astype(np.int64, copy=False)

    def clip_own_values(self, values: ArrayLike) -> tuple[NDArray[Any], int]:
        array = np.asarray(values)
        if array.ndim > 1:
            inside = np.stack([axis.clipped(array[:, place]) for place, axis in enumerate(self.axes)], axis=1)
        else:
            inside = self.axes[0].clipped(array)
        changed = inside != array.astype(inside.dtype)
        return inside, int((changed.any(axis=1) if changed.ndim > 1 else changed).sum())

    def synthesize(self, users: int, generator: Generator) -> Codes:
        """Around a place in each axis's lower half, with a long tail upwards."""
        columns = []
        for axis in self.axes:
            draws = generator.gamma(3.0, axis.size / 12, users)
            columns.append(np.minimum(draws, axis.size - 1).astype(np.int64))
        return columns[0] if len(columns) == 1 else np.stack(columns, axis=1)


AnyAxis = Axis | int | range | tuple[float, float] | tuple[float, float, int] | Mapping[str, Any]
AnyAxes = AnyAxis | Sequence[AnyAxis]


def as_axis(given: Any) -> Axis:
    """The axis meant: a number of values, a range, (low, high), (low, high, steps), or an axis's own document.

    Two texts are the first and the last day.

    >>> as_axis(256), as_axis((0.0, 1.0, 100)).size
    (Axis(low=0, high=255, steps=None), 100)
    """
    if isinstance(given, Axis):
        return given
    if isinstance(given, int) and not isinstance(given, bool):
        return Axis(0, given - 1)
    if isinstance(given, range) and given.step == 1:
        return Axis(given.start, given.stop - 1)
    if isinstance(given, Mapping):
        if set(given) != {"low", "high", "steps"}:
            raise DataError("plan.axes", sorted(given), "must be low, high and steps", _AGAIN)
        return Days(**given) if isinstance(given["low"], str) else Axis(**given)
    if isinstance(given, tuple) and len(given) in (2, 3) and all(isinstance(each, int | float) for each in given):
        return Axis(*given)
    if isinstance(given, tuple) and len(given) == 2 and all(isinstance(each, str) for each in given):
        return Days(*given)
    raise ParameterError("domain", given, "must say which values there are", "pass a number, a range or (low, high)")


def parse_axes(text: str, steps: int | None = None) -> tuple[Axis, ...]:
    """The axes that a text describes, as it is typed after --domain.

    Args:
        text: LOW:HIGH, numbers or days, or LOW:HIGHxLOW:HIGH for two axes of numbers.
        steps: cells that each axis is cut into; None for whole numbers.

    Returns:
        One axis, or two.

    Raises:
        ParameterError: the text says something else.

    >>> parse_axes("0:9"), [axis.size for axis in parse_axes("0:1x-0.5:1.5", 4)]
    ((Axis(low=0, high=9, steps=None),), [4, 4])
    """
    if re.search(r"[0-9]{4}-[0-9]{2}-[0-9]{2}", text):
        ends = text.split(":")
        if len(ends) != 2 or "x" in text:
            problem, way_out = "must be two days where it has days", "write FIRST:LAST, such as 2026-01-01:2026-12-31"
            raise ParameterError("domain", text, problem, way_out)
        return (Days(ends[0].strip(), ends[1].strip(), steps),)
    check_days_are_iso(text)
    axes = []
    for part in text.split("x"):
        try:
            low, high = (int(end) if end.strip().lstrip("+-").isdigit() else float(end) for end in part.split(":"))
        except ValueError:
            raise ParameterError("domain", text, "must be LOW:HIGH", "two axes are LOW:HIGHxLOW:HIGH") from None
        axes.append(Axis(low, high, steps))
    return as_axes(axes)


def as_axes(given: Any) -> tuple[Axis, ...]:
    """One axis, or a list of one or two, or a text that `parse_axes` takes.

    >>> len(as_axes((64, 128))), len(as_axes([64, 128])), len(as_axes("0:63x0:127"))
    (1, 2, 2)
    """
    if isinstance(given, str):
        return parse_axes(given)
    if isinstance(given, tuple) and given and not all(isinstance(each, Axis) for each in given):
        return (as_axis(given),)
    if not isinstance(given, list | tuple):
        return (as_axis(given),)
    if not 1 <= len(given) <= 2:
        raise ParameterError("domain", f"{len(given)} axes", "must have one or two", "choose two of them")
    return tuple(as_axis(each) for each in given)
