"""A claim: what is printed where, how it is measured again, and whether both can be true at once.

A measurement is an interval that holds what is measured but for one run in ten thousand, or a number that is computed
exactly. A claim fails if what is printed, rounded as it is, lies outside; and if the interval is so wide that it could
not have failed.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from pathlib import Path

from evidence.printed import ROOT, NotPrintedError, Number, Printed

FALSE_ALARM = 1e-4
"""The probability that an interval misses what it measures: of 84 claims, if none were exact, one run in 119 has one
that fails by chance."""
WIDEST = 0.25
"""The widest half of an interval, as a part of the printed number, that still decides anything."""


class Says(Enum):
    """What a printed number says of the measured one."""

    EQUALS = "equals"
    AT_MOST = "at most"
    AT_LEAST = "at least"


@dataclass(frozen=True, slots=True)
class Effort:
    """How long is measured, and from which seed.

    Attributes:
        quick: whether two minutes are all there is.
        seed: of everything that is drawn; the page names it, so that a run can be repeated.
    """

    quick: bool
    seed: int

    def of(self, quick: int, whole: int) -> int:
        """How many runs there are: the first number if it must be quick."""
        return quick if self.quick else whole


@dataclass(frozen=True, slots=True)
class Measured:
    """What was measured: a value, and an interval that holds the truth but for `FALSE_ALARM`."""

    value: float
    low: float
    high: float
    note: str = ""

    @classmethod
    def exact(cls, value: float, note: str = "computed exactly") -> "Measured":
        """A number that is computed, not drawn."""
        return cls(value, value, value, note)


class LeftOutError(Exception):
    """A claim cannot be measured here, and why: a library is not installed. It neither holds nor fails."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Claim:
    """One claim, in a few lines.

    Attributes:
        name: what is claimed, in a sentence.
        printed: every place that prints it; each must agree with what is measured.
        how: how it is measured.
        because: why the tolerance is what it is.
        measure: measures it.
        says: whether what is printed is the number itself, or the most or the least that it may be.
        slack: a part of the printed number that is allowed beyond the interval, for what differs between machines.
        chapter: under which heading it stands.
    """

    name: str
    printed: tuple[Printed, ...]
    how: str
    because: str
    measure: Callable[[Effort], Measured]
    says: Says = Says.EQUALS
    slack: float = 0.0
    chapter: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """What became of a claim."""

    claim: Claim
    numbers: tuple[tuple[Printed, Number], ...]
    measured: Measured | None
    holds: bool | None
    """None where it could not be measured here."""
    why: str
    seconds: float = 0.0
    """Of CPU."""


def judge(claim: Claim, effort: Effort, *, root: Path = ROOT) -> Verdict:
    """Measure a claim and compare it with all that is printed."""
    try:
        numbers = tuple((each, each.read(root)) for each in claim.printed)
    except NotPrintedError as gone:
        return Verdict(claim=claim, numbers=(), measured=None, holds=False, why=str(gone))
    try:
        measured = claim.measure(effort)
    except LeftOutError as reason:
        return Verdict(claim=claim, numbers=numbers, measured=None, holds=None, why=str(reason))
    except AssertionError as broken:
        why = f"what must not happen has happened: {broken}"
        return Verdict(claim=claim, numbers=numbers, measured=None, holds=False, why=why)
    wrong = [
        f"{place.file}:{number.line} says {number.value:g}: {problem}"
        for place, number in numbers
        if (problem := _problem(claim, number, measured))
    ]
    return Verdict(claim=claim, numbers=numbers, measured=measured, holds=not wrong, why="; ".join(wrong))


def _problem(claim: Claim, number: Number, measured: Measured) -> str:
    """Why a printed number and the measurement cannot both be true; nothing if they can."""
    if not all(map(math.isfinite, (measured.low, measured.value, measured.high))):
        return "nothing was measured"
    # The printed number is itself a measurement where it has an error: both intervals in one.
    around = normal_quantile() * number.error
    below, above = (
        math.hypot(side, around) for side in (measured.value - measured.low, measured.high - measured.value)
    )
    # Where machines may differ by the slack, as much may be measured on one that others use, too.
    if max(below, above) > max(max(WIDEST, claim.slack) * abs(number.value), 2 * number.half) and number.value:
        return f"the interval is too wide to decide: {measured.low:.4g} to {measured.high:.4g}"
    # A computed number that is printed exactly may differ by what floating point rounds.
    room = number.half + (claim.slack + 1e-9) * abs(number.value)
    low, high = measured.value - below - room, measured.value + above + room
    if claim.says is not Says.AT_LEAST and number.value < low:
        return f"measured {measured.value:.4g}, {low:.4g} at least"
    if claim.says is not Says.AT_MOST and number.value > high:
        return f"measured {measured.value:.4g}, {high:.4g} at most"
    return ""


def normal_quantile() -> float:
    """How many standard errors an interval reaches on each side."""
    from scipy.special import ndtri

    return float(-ndtri(FALSE_ALARM / 2))
