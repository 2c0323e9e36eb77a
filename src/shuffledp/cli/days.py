"""Days and times as limits and as answers, in days since 1970-01-01.

Where both limits are whole days, a time after a day counts as that day; otherwise it is a part of it.
"""

import datetime
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from shuffledp.errors import DataError, ParameterError

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from shuffledp.tables.missing import Missing

_EPOCH = datetime.datetime(1970, 1, 1)
_DAY = datetime.timedelta(days=1)
_WRITTEN = "write it as 2026-01-31, or 2026-01-31T13:05"


def limit(name: str, text: str) -> float | str:
    """A limit as it was typed: a number, or a day or time in ISO form, which stays text.

    Raises:
        ParameterError: it is neither.

    >>> limit("low", "-0.5"), limit("low", "2026-01-31")
    (-0.5, '2026-01-31')
    """
    try:
        return float(text)
    except ValueError:
        pass
    if moment(text) is None:
        raise ParameterError(name, text, "must be a number, or a day in ISO form", "write 0.5, or 2026-01-31")
    return text


def moment(text: str) -> float | None:
    """The days since 1970-01-01 of a day or a time in ISO form without a zone; None where it is none.

    >>> moment("1970-01-02"), moment("1970-01-02T12:00"), moment("tomorrow"), moment("19700102")
    (1.0, 1.5, None, None)
    """
    try:
        found = datetime.datetime.fromisoformat(text)
    except ValueError:
        return None
    return (found - _EPOCH) / _DAY if found.tzinfo is None and text[4:5] == "-" == text[7:8] else None


@dataclass(frozen=True, slots=True)
class DayRange:
    """The first and the last day or time that anybody may have, as they were typed; times are shown if either is one.

    Attributes:
        low: the first.
        high: the last.

    >>> year = DayRange("2026-01-01", "2026-12-31")
    >>> year.ends, year.shown(20454.5)
    ((20454.0, 20818.0), '2026-01-01')
    """

    low: str
    high: str

    @classmethod
    def of(cls, low: Any, high: Any) -> "DayRange":
        """The range of two limits that were typed, of which one is a day.

        Raises:
            ParameterError: the other is none, or they are in the wrong order.
        """
        for name, value in (("low", low), ("high", high)):
            if not isinstance(value, str):
                raise ParameterError(name, value, "must be a day where the other limit is one", _WRITTEN)
        found = cls(low, high)
        first, last = found.ends
        if not first < last:
            raise ParameterError("high", high, f"must be behind --low {low}", "swap the two")
        return found

    @property
    def ends(self) -> tuple[float, float]:
        """Both as numbers of days."""
        first, last = (moment(text) for text in (self.low, self.high))
        return float(first or 0.0), float(last or 0.0)

    @property
    def has_times(self) -> bool:
        """Whether a limit is a time, and not a whole day."""
        return any(not end.is_integer() for end in self.ends) or max(len(self.low), len(self.high)) > len("2026-01-31")

    def shown(self, days: float) -> str:
        """A number of days as the day that it lies in, or as a time to the minute where times are asked for."""
        found = _EPOCH + _DAY * days
        return found.isoformat(timespec="minutes") if self.has_times else found.date().isoformat()

    def numbers(self, texts: "NDArray[Any]", *, clip: bool) -> "NDArray[Any]":
        """A column of days and times as numbers of days.

        Args:
            texts: as they are written.
            clip: whether those outside the range are let through, to be brought into it.

        Raises:
            DataError: a text is no day, or lies outside; it names the row.
        """
        import numpy as np

        distinct, where = np.unique(texts, return_inverse=True)
        found = [moment(str(text)) for text in distinct]
        known = np.array([number is not None for number in found])[where]
        values = np.array([np.nan if number is None else number for number in found])[where]
        values = values if self.has_times else np.floor(values)
        first, last = self.ends
        inside = (values >= first) & (values <= last)
        for good, problem, way_out in (
            (known, "must be a day or a time in ISO form, without a zone", _WRITTEN),
            (inside | clip, f"must lie in {self.low}:{self.high}", "widen the range, or bring them into it (--clip)"),
        ):
            for row in np.flatnonzero(~good)[:1].tolist():
                raise DataError("values", f"{texts[row]} in row {row + 1}", problem, way_out)
        return np.asarray(values)

    def public(self, missing: "Missing") -> "Missing":
        """What people without a day report, as a number: a public day that somebody may have.

        Raises:
            ParameterError: it is none, or lies outside.
        """
        if missing.rule != "default":
            return missing
        number = moment(str(missing.value))
        if number is None:
            raise ParameterError(
                "missing", missing.typed, "must name a day here", "write for instance default=2026-01-31"
            )
        number = number if self.has_times else float(number // 1)
        if not self.ends[0] <= number <= self.ends[1]:
            problem = f"names a day that must lie in {self.low}:{self.high}"
            raise ParameterError("missing", missing.typed, problem, "name a public day of the range")
        return replace(missing, value=repr(number))
