"""Rows of people by group: everybody has the same number of them over all groups, filled up with rows of no group."""

from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from shuffledp.accounting.rounding import RoundedDifference
from shuffledp.errors import DataError
from shuffledp.protocols.domains.categories import Names
from shuffledp.protocols.domains.domain import Codes, Domain, Floats, Generator
from shuffledp.protocols.domains.grouped import GroupedDomain, as_groups, group_options, parted
from shuffledp.protocols.domains.repeated import check_at_most
from shuffledp.protocols.domains.summed import BITS, Reals, SummedDomain, check_range
from shuffledp.randomness import RandomBits


@dataclass(frozen=True)
class GroupedRows(SummedDomain, GroupedDomain):
    """At most `at_most` rows a person, each a group and a number in [low, high], in whatever groups.

    A value is so many pairs of a group's number and a number; the size of the list of groups stands for no row.
    A row adds its number, in steps of max(|low|, |high|)/grid and rounded at random, to its group's coordinate.

    >>> rows = GroupedRows(Names(("A", "B")), 0.0, 10.0, 2, 10)
    >>> people = rows.encode([[("B", 3.0), ("B", 10.0)], [("A", 1.0)], []])
    >>> people.tolist()
    [[1.0, 3.0, 1.0, 10.0], [0.0, 1.0, 2.0, 0.0], [2.0, 0.0, 2.0, 0.0]]
    >>> rows.to_steps(people, bits=RandomBits.seeded(0)).tolist()
    [[0, 13], [1, 0], [0, 0]]
    """

    kind: ClassVar[str] = "grouped rows"
    reads: ClassVar[Literal["numbers", "words"]] = "words"
    rounds: ClassVar[bool] = True
    is_row = True
    moved = None
    groups: Names
    low: float
    high: float
    at_most: int
    grid: int

    def __post_init__(self) -> None:
        check_at_most(self.at_most)
        check_range(self.low, self.high)
        low, high = float(self.low), float(self.high)
        largest = max(abs(low), abs(high))
        self._set(groups=as_groups(self.groups), low=low, high=high, coordinates=self.groups.size)
        self._set(columns=2 * self.at_most, step=largest / self.grid)
        # Every row is within a whole grid of 0: a person's numbers add up to so many of them, in whatever coordinates.
        most = self.at_most * self.grid
        self._set(lowest=-most if low < 0 else 0, highest=most if high > 0 else 0)

    @property
    def most_rows(self) -> int | None:
        return self.at_most

    @property
    def row(self) -> Domain:
        return Reals(self.grid, self.low, self.high)

    @property
    def furthest(self) -> int:
        """How many single steps two people are apart at most, over all coordinates."""
        return 2 * self.at_most * self.grid

    def difference(self, failure: float) -> RoundedDifference:
        return RoundedDifference(float(self.furthest), 0.0)

    @property
    def options(self) -> str:
        return f"{self._range} {group_options(self.groups)} --at-most {self.at_most}".strip()

    @property
    def _range(self) -> str:
        return f"--low {self.low!r} --high {self.high!r}"

    def with_groups(self, groups: Codes, rows: ArrayLike) -> Floats:
        """A group's number and a number a row, as `gathered` takes them."""
        return np.column_stack((groups.astype(np.float64), np.asarray(rows, dtype=np.float64)))

    def gathered(self, rows: ArrayLike, person: Codes, place: Codes, people: int) -> Floats:
        filled = np.zeros((people, self.at_most, 2))
        filled[:, :, 0] = self.groups.size
        filled[person, place] = rows
        return filled.reshape(people, -1)

    def encode(self, values: ArrayLike) -> Floats:
        """What people contribute, from a list of pairs of a group and a number for each; a text has ; between them."""
        if isinstance(values, np.ndarray) and values.dtype.kind in "fiu":
            return values
        given: Any = list(values)  # type: ignore[arg-type]
        lists = [list(filter(None, rows.split(";"))) if isinstance(rows, str) else list(rows) for rows in given]
        for rows in lists:
            if len(rows) > self.at_most:
                problem = f"must have at most {self.at_most} rows, as every person"
                raise DataError("values", f"{len(rows)} rows", problem, "keep the first so many of them")
        sizes = np.array([len(rows) for rows in lists], dtype=np.int64)
        person = np.repeat(np.arange(sizes.size), sizes)
        place = np.arange(person.size) - np.repeat(np.cumsum(sizes) - sizes, sizes)
        pairs = [pair for rows in lists for pair in rows]
        own = np.zeros((0, 2))
        if pairs:
            groups, numbers = parted(pairs)
            try:
                read = np.array([float(number) for number in numbers])
            except (TypeError, ValueError):
                raise DataError("values", "text", "must be a number beside each group", "write A,1") from None
            own = self.with_groups(self.groups.encode(groups), self.row.check_values(read))
        return self.gathered(own, person, place, sizes.size)

    def check_values(self, values: ArrayLike) -> Floats:
        """A row a person: for each of its rows the number of a group and a number in the range, or no group and 0."""
        points = np.asarray(values)
        if points.ndim != 2 or points.shape[1] != self.columns or not len(points) or points.dtype.kind not in "fiu":
            problem = f"must be {self.at_most} pairs of a group's number and a value a person"
            raise DataError("values", f"shape {points.shape}", problem, "plan.encode(lists of each person's rows)")
        rows = points.astype(np.float64, copy=False)
        group, own = rows[:, 0::2], rows[:, 1::2]
        known = (group >= 0) & (group <= self.groups.size) & (group == np.floor(group))
        for person in np.flatnonzero(~known.all(axis=1))[:1].tolist():
            problem = f"must have groups' numbers in 0..{self.groups.size}"
            shown = f"{rows[person].tolist()} in row {person + 1}"
            raise DataError("values", shown, problem, "encode the values first")
        has_row = group < self.groups.size
        if (own[~has_row] != 0).any():
            raise DataError("values", "a number", "must be 0 where there is no row", "encode the values first")
        if has_row.any():
            self.row.check_values(own[has_row])
        return rows

    def clip_values(self, values: ArrayLike) -> tuple[Floats, int]:
        points = np.array(values, dtype=np.float64)
        group, own = points[:, 0::2], points[:, 1::2]
        brought = np.where(group < self.groups.size, np.clip(own, self.low, self.high), own)
        clipped = int(np.count_nonzero(brought != own))
        points[:, 1::2] = brought
        return self.check_values(points), clipped

    def to_steps(self, values: NDArray[Any], *, bits: RandomBits) -> NDArray[np.int64]:
        steps = np.zeros((len(values), self.coordinates + 1), dtype=np.int64)
        largest, people = self.step * self.grid, np.arange(len(values))
        # A grid on both sides of 0, which is on it: nobody's row is further from 0 than a whole grid.
        around = Reals(2 * self.grid, -largest, largest)
        for group, own in zip(values[:, 0::2].T, values[:, 1::2].T, strict=True):
            np.add.at(steps, (people, group.astype(np.int64)), around.to_steps(own, bits=bits) - self.grid)
        return steps[:, :-1]

    def sums(self, values: NDArray[Any]) -> Floats:
        """What all checked values add up to, for every group."""
        group, own = values[:, 0::2].reshape(-1).astype(np.int64), values[:, 1::2].reshape(-1)
        return np.asarray(np.bincount(group, own, self.groups.size + 1)[:-1], dtype=np.float64)

    def synthesize(self, users: int, generator: Generator) -> Floats:
        """Every person has a random number of rows."""
        sizes = (generator.random(users) * (self.at_most + 1)).astype(np.int64)
        columns = []
        for place in range(self.at_most):
            group = np.where(place < sizes, self.groups.synthesize(users, generator), self.groups.size)
            own = np.where(place < sizes, self.row.synthesize(users, generator), 0.0)
            columns += [group.astype(np.float64), own]
        return np.column_stack(columns)


@dataclass(frozen=True)
class GroupedRowBits(GroupedRows):
    """At most `at_most` rows a person, each a group and a 0 or 1: nothing is rounded."""

    kind: ClassVar[str] = "grouped row bits"
    rounds: ClassVar[bool] = False
    low: float = 0.0
    high: float = 1.0
    at_most: int = 1
    grid: int = 1
    row = BITS

    @property
    def _range(self) -> str:
        return ""
