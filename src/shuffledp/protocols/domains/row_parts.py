"""Rows as parts of people at places of the range, by group or in all: what means and variances are made of."""

from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from shuffledp.protocols.domains.categories import Names
from shuffledp.protocols.domains.domain import Codes, Floats
from shuffledp.protocols.domains.grouped_rows import GroupedRowBits, GroupedRows
from shuffledp.protocols.domains.repeated import RepeatedDomain
from shuffledp.randomness import RandomBits
from shuffledp.sampling.rounding import round_randomly


@dataclass(frozen=True)
class RowEnds(GroupedRows):
    """At most `at_most` rows a person, each a group and a number in [low, high]; a row is one, in parts of its group.

    A number x lies at a = (x - low) / (high - low) of its range: 1 - a of the row is at the low end of its group, a at
    its high end. Parts are whole steps of 1/grid that add up to the grid. A row that is missing adds nothing.

    >>> from shuffledp.protocols.domains.categories import Names
    >>> rows = RowEnds(Names(("A", "B")), 0.0, 10.0, 2, 10)
    >>> people = rows.encode([[("B", 3.0), ("B", 10.0)], [("A", 1.0)], []])
    >>> rows.to_steps(people, bits=RandomBits.seeded(0)).tolist()
    [[0, 0, 7, 13], [9, 1, 0, 0], [0, 0, 0, 0]]
    """

    kind: ClassVar[str] = "row ends"
    parts: ClassVar[int] = 2
    """How many numbers a group has."""

    def __post_init__(self) -> None:
        super().__post_init__()
        most = self.at_most * self.grid
        self._set(coordinates=self.parts * self.groups.size, step=1 / self.grid, lowest=0, highest=most)

    @staticmethod
    def below(place: Floats) -> Floats:
        """How much of a row at such places of the range is in the first part, in the first two, and so on, but all."""
        return (1 - place)[:, np.newaxis]

    def _below(self, own: Floats) -> Floats:
        place = np.clip((own - self.low) / (self.high - self.low), 0.0, 1.0)
        # What floats round is put in order again: no part may be below 0.
        return np.maximum.accumulate(np.clip(self.below(place), 0.0, 1.0), axis=1)

    def to_steps(self, values: NDArray[Any], *, bits: RandomBits) -> NDArray[np.int64]:
        people = np.arange(len(values))
        steps = np.zeros((len(values), self.groups.size + 1, self.parts), dtype=np.int64)
        for group, own in zip(values[:, 0::2].T, values[:, 1::2].T, strict=True):
            # One random number a row: parts stay in order, so that none is below 0, and they add up to the grid.
            below = round_randomly(self.grid * self._below(own), bits=bits, together=True)
            np.add.at(steps, (people, group.astype(np.int64)), np.diff(below, axis=1, prepend=0, append=self.grid))
        return steps[:, :-1].reshape(len(values), -1)

    def sums(self, values: NDArray[Any]) -> Floats:
        group, own = values[:, 0::2].reshape(-1).astype(np.int64), values[:, 1::2].reshape(-1)
        each = np.diff(self._below(own), axis=1, prepend=0.0, append=1.0).T
        totals = [np.bincount(group, part, self.groups.size + 1)[:-1] for part in each]
        return np.stack(totals, axis=1).reshape(-1).astype(np.float64)


@dataclass(frozen=True)
class RowMoments(RowEnds):
    """A row's number in three parts a group, (1 - a)^2, 2 a (1 - a) and a^2: they know squares, too.

    Numbers add up to half of the second part and all of the third, squares to the third.

    >>> from shuffledp.protocols.domains.categories import Names
    >>> rows = RowMoments(Names(("A", "B")), 0.0, 10.0, 1, 100)
    >>> rows.to_steps(rows.encode([[("B", 3.0)], [("A", 10.0)]]), bits=RandomBits.seeded(0)).tolist()
    [[0, 0, 0, 49, 42, 9], [0, 0, 100, 0, 0, 0]]
    """

    kind: ClassVar[str] = "row moments"
    parts: ClassVar[int] = 3

    @staticmethod
    def below(place: Floats) -> Floats:
        return np.stack(((1 - place) ** 2, 1 - place**2), axis=1)


@dataclass(frozen=True)
class RowPairs(GroupedRowBits, RowEnds):
    """At most `at_most` rows a person, each a group and a 0 or 1: a row is at one end, and nothing is rounded."""

    kind: ClassVar[str] = "row pairs"


@dataclass(frozen=True)
class EveryRow(Names):
    """One group that all rows are in, where none are asked for: nobody is put into it by a name."""

    kind: ClassVar[str] = "every row"
    listed: tuple[Any, ...] = ("rows",)

    def __post_init__(self) -> None:
        """A list of one name, which a domain of categories would not be."""


EVERY_ROW = EveryRow()


@dataclass(frozen=True)
class RowNumbers(RepeatedDomain, RowMoments):
    """At most `at_most` numbers in [low, high] a person, in the three parts of `RowMoments`: all rows are one group.

    >>> rows = RowNumbers(EVERY_ROW, 0.0, 10.0, 2, 100)
    >>> people = rows.encode([[3.0], [10.0, 0.0], []])
    >>> people.tolist()
    [[0.0, 3.0, 1.0, 0.0], [0.0, 10.0, 0.0, 0.0], [1.0, 0.0, 1.0, 0.0]]
    >>> rows.to_steps(people, bits=RandomBits.seeded(0)).tolist()
    [[49, 42, 9], [100, 0, 100], [0, 0, 0]]
    """

    kind: ClassVar[str] = "row numbers"
    reads: ClassVar[Literal["numbers", "words"]] = "numbers"

    @property
    def group_list(self) -> None:  # type: ignore[override]
        return None

    @property
    def options(self) -> str:
        return f"{self._range} --at-most {self.at_most}"

    def gathered(self, rows: ArrayLike, person: Codes, place: Codes, people: int) -> Floats:
        one = np.zeros(len(person), dtype=np.int64)
        return super().gathered(self.with_groups(one, rows), person, place, people)
