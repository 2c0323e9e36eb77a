"""Tallies of many batches, a row each: what runs through more batches than an object each could be kept for."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from shuffledp.protocols.tallies import Tally

Whole = NDArray[np.int64]


@dataclass(frozen=True, slots=True, eq=False)
class TallyRows:
    """The tallies of several batches of one mechanism, or of pieces of them.

    Attributes:
        counts: those of each batch along the first axis.
        reports: how many each batch has.
        messages: how many of each batch were read.
        malformed: how many of each batch could not be read.

    >>> rows = TallyRows.of([Tally(np.array([3, 1]), 4, 4), Tally(np.array([0, 2]), 1, 2)])
    >>> rows.add(1, rows[:1])
    >>> rows.row(1).counts.tolist(), rows.row(1).reports, len(rows)
    ([3, 3], 5, 2)
    """

    counts: NDArray[Any]
    reports: Whole
    messages: Whole
    malformed: Whole

    @classmethod
    def of(cls, tallies: Iterable[Tally]) -> Self:
        """The rows of these tallies, of which there is one at least."""
        each = list(tallies)
        numbers = (np.array([getattr(one, name) for one in each]) for name in ("reports", "messages", "malformed"))
        return cls(np.stack([one.counts for one in each]), *numbers)

    def empty(self, rows: int) -> Self:
        """So many tallies of nothing, of this kind."""
        nothing = (np.zeros(rows, dtype=np.int64) for _ in range(3))
        return type(self)(np.zeros((rows, *self.counts.shape[1:]), dtype=self.counts.dtype), *nothing)

    def add(self, first: int, others: "TallyRows") -> None:
        """Add the others' rows to those of this one from `first` on: whole numbers, so that no order matters."""
        here = slice(first, first + len(others))
        for mine, theirs in zip(self._arrays, others._arrays, strict=True):
            mine[here] += theirs

    def row(self, place: int) -> Tally:
        """One of the tallies."""
        numbers = (int(each[place]) for each in (self.reports, self.messages, self.malformed))
        return Tally(self.counts[place], *numbers)

    def __getitem__(self, rows: slice) -> Self:
        return type(self)(*(each[rows] for each in self._arrays))

    def chosen(self, places: Whole) -> Self:
        """The tallies at these places."""
        return type(self)(*(each[places] for each in self._arrays))

    def __len__(self) -> int:
        return len(self.counts)

    @property
    def _arrays(self) -> tuple[NDArray[Any], ...]:
        return self.counts, self.reports, self.messages, self.malformed


def run_lengths(starts: Whole, users: int) -> Whole:
    """How many users each run has, where runs follow each other from these places on.

    >>> run_lengths(np.array([0, 3, 4]), 9).tolist()
    [3, 1, 5]
    """
    return np.diff(starts, append=users)


def seats_of_runs(starts: Whole, users: int, first_seat: int) -> Whole:
    """The seat of every user: the first run goes on from `first_seat`, all others begin a batch.

    >>> seats_of_runs(np.array([0, 3, 4]), 6, 10).tolist()
    [10, 11, 12, 0, 0, 1]
    """
    seats = np.arange(users) - np.repeat(starts, run_lengths(starts, users))
    seats[: starts[1] if starts.size > 1 else users] += first_seat
    return seats
