"""Mean and variance over the rows of people who have several: three sums of one batch know both."""

import math
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from shuffledp.estimates import NamedEstimate, VectorEstimate
from shuffledp.protocols.derived import DerivedFamily
from shuffledp.protocols.domains.repeated import check_at_most
from shuffledp.protocols.domains.row_parts import EVERY_ROW, RowNumbers
from shuffledp.protocols.family import AT_MOST
from shuffledp.protocols.grouped.estimates import means_in_range, places_of
from shuffledp.protocols.grouped.moments import RowMomentsFamily
from shuffledp.protocols.people.mean import RepeatedMean
from shuffledp.protocols.people.numbers import ROW_RANGE
from shuffledp.protocols.statistics.moments import check_width, farther, like

Floats = NDArray[np.float64]

# What each part of a row, at the low end, in the middle and at the high end, counts in the sum of squares.
_SQUARES = np.array([0.0, 0.0, 1.0])
# No variance of numbers in a range of width 1 is larger.
_LARGEST = 0.25


def variance_of(parts: Floats) -> float:
    """The variance of rows in a range of width 1 by their three parts; the largest there is where there are none.

    >>> variance_of(np.array([50.0, 0.0, 50.0])), variance_of(np.array([25.0, 50.0, 25.0]))
    (0.25, 0.0)
    """
    rows = float(parts.sum())
    if rows <= 0:
        return _LARGEST
    return float(parts @ _SQUARES) / rows - (float(parts @ places_of(3)) / rows) ** 2


def variance_interval(parts: Floats, bound: float) -> tuple[float, float]:
    """The least and the largest variance of rows whose three parts are within a bound of these, and not below 0.

    The variance falls with the middle part. In each of the others it rises to one place and falls behind it: the
    least is at corners, the largest on an edge, at that place or at an end (docs/theory says why).

    Args:
        parts: of the rows, at the low end, in the middle and at the high end.
        bound: no part is further off.

    >>> least, largest = variance_interval(np.array([50.0, 20.0, 50.0]), 2.0)
    >>> round(least, 3), round(largest, 3)
    (0.157, 0.176)
    """
    least, most = np.maximum(parts - bound, 0.0), np.maximum(parts + bound, 0.0)
    if least.sum() <= 0:
        return 0.0, _LARGEST
    ends = [(least[0], most[0]), (least[2], most[2])]
    corners = [variance_of(np.array([low, most[1], high])) for low in ends[0] for high in ends[1]]
    edges = []
    for place in (0, 1):
        for fixed in ends[place]:
            other = float(np.clip(_highest(float(least[1]), float(fixed)), *ends[1 - place]))
            edges.append(
                variance_of(np.array([*((fixed, least[1], other) if place == 0 else (other, least[1], fixed))]))
            )
    return max(0.0, min(corners)), min(_LARGEST, max(edges))


def _highest(middle: float, end: float) -> float:
    """How many rows at one end make the variance largest, with so many in the middle and at the other end."""
    return math.inf if end <= 0 else 2 * (middle / 2 + end) ** 2 / end - middle - end


@dataclass(frozen=True, slots=True, kw_only=True)
class RepeatedMoments(RepeatedMean):
    """The mean and the variance over all rows, where a person has many and at most `at_most` of them count.

    Each row is sent as three parts of one, which add up over all people: how many rows there are, their numbers and
    their squares. The adversary sees what it sees of the three sums.

    >>> from shuffledp import Privacy, RandomBits, simulate
    >>> plan = RepeatedMoments.plan(users=3000, privacy=Privacy(1, 1e-6), low=0, high=10, at_most=2)
    >>> answer = simulate(plan, plan.encode([[2.0, 8.0], [], [5.0]] * 1000), bits=RandomBits.secure())
    >>> abs(answer.of("mean").value - 5) < 0.3, abs(answer.of("variance").value - 6) < 0.6
    (True, True)
    """

    protocol: ClassVar[str] = "repeated-moments"
    file_command: ClassVar[str] = "variance"
    title: ClassVar[str] = "A private mean and variance of rows"
    asks: ClassVar[str] = "find mean and variance of"
    summed = RowMomentsFamily

    @classmethod
    def sum_domain(cls, *, low: float, high: float, at_most: int) -> dict[str, Any]:  # type: ignore[override]
        check_width(low, high)
        return {"groups": EVERY_ROW, "low": float(low), "high": float(high), "at_most": check_at_most(at_most)}

    @property
    def domain(self) -> RowNumbers:  # type: ignore[override]
        return RowNumbers(EVERY_ROW, self.low, self.high, self.at_most, self.sum_plan.grid)

    @property
    def standard_error(self) -> float:
        """The whole range, or the largest variance in it: nobody may have a row. An estimate knows its own."""
        width = self.high - self.low
        return max(width, _LARGEST * width**2)

    error_bound = standard_error

    def error_among(self, rows: float, error: float | None = None) -> float:
        """The standard error of the variance of so many rows around the middle of the range, at most.

        Args:
            rows: how many rows count, of all people together.
            error: of each sum; the plan's if left out.
        """
        sums = self.sum_plan.standard_error if error is None else error
        return float(min(_LARGEST, sums / (2 * rows)) * (self.high - self.low) ** 2)

    def answer(self, estimate: VectorEstimate) -> NamedEstimate:  # type: ignore[override]
        """Mean and variance that these three sums say; their bounds hold wherever those of the sums do."""
        parts, width = np.asarray(estimate.value, dtype=np.float64).reshape(3), self.high - self.low
        place, lower, upper = (float(each[0]) for each in means_in_range(parts[np.newaxis], estimate.bound))
        interval = variance_interval(parts, estimate.bound)
        spread = min(interval[1], max(interval[0], variance_of(parts)))
        rows = float(parts.sum())
        errors = [1.0, _LARGEST]
        if rows > 0:
            # The delta method: how much one more of each part moves the mean, and the variance.
            away = places_of(3) - place
            slopes = away, _SQUARES - float(parts @ _SQUARES) / rows - 2 * place * away
            errors = [
                min(most, estimate.standard_error * math.hypot(*slope) / rows)
                for most, slope in zip(errors, slopes, strict=True)
            ]
        mean, ends = self.low + width * place, (self.low + width * lower, self.low + width * upper)
        variance, limits = width**2 * spread, (width**2 * interval[0], width**2 * interval[1])
        return NamedEstimate.together(
            mean=like(estimate, mean, width * errors[0], farther(mean, ends)),
            variance=like(estimate, variance, width**2 * errors[1], farther(variance, limits)),
        )

    def true_value(self, values: ArrayLike) -> Floats:  # type: ignore[override]
        parts = self.sum_plan.true_value(values)
        rows, width = float(parts.sum()), self.high - self.low
        place = float(parts @ places_of(3)) / rows if rows > 0 else 0.5
        return np.array([self.low + width * place, width**2 * max(0.0, variance_of(parts)) if rows > 0 else 0.0])


RepeatedMomentsFamily = DerivedFamily.by(
    RepeatedMoments,
    "The mean and the variance over all rows, where a person has several and at most --at-most of them count.",
    *ROW_RANGE,
    AT_MOST,
)
