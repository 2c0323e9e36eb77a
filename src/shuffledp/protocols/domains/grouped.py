"""Values of people who also belong to a group of a public list: which group is as private as the value."""

import shlex
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from shuffledp.accounting.rounding import RoundedDifference
from shuffledp.errors import DataError, ParameterError
from shuffledp.protocols.domains.categories import Integers, Names, as_categories
from shuffledp.protocols.domains.domain import Categories, Codes, Domain, Floats, Generator
from shuffledp.protocols.domains.summed import BITS, Reals, SummedDomain
from shuffledp.randomness import RandomBits

MOST_GROUPS = 10_000


def as_groups(given: Any) -> Names:
    """The groups meant: a list of names, or a domain of names."""
    try:
        groups = as_categories(list(given) if isinstance(given, list | tuple) else given)
    except ParameterError as wrong:
        raise ParameterError("groups", wrong.value, wrong.problem, wrong.way_out) from None
    if not isinstance(groups, Names):
        raise ParameterError("groups", given, "must be a list of names", "write --groups a,b,c")
    if groups.size > MOST_GROUPS:
        raise ParameterError("groups", groups.size, f"must be at most {MOST_GROUPS:,}", "name fewer, larger groups")
    return groups


class GroupedDomain(Domain):
    """Values that come with a group of a public list."""

    groups: Names

    @property
    def group_list(self) -> Names:
        return self.groups


@dataclass(frozen=True)
class ByGroup(Categories, GroupedDomain):
    """Pairs of a group and a category: all categories of the first group, then all of the second, and so on.

    >>> pairs = ByGroup(Names(("A", "B")), Names(("red", "green")))
    >>> pairs.names(), pairs.encode([("B", "red"), ("A", "green")]).tolist()
    (['A: red', 'A: green', 'B: red', 'B: green'], [2, 1])
    """

    kind: ClassVar[str] = "by group"
    is_row = True
    groups: Names
    of: Categories

    def __post_init__(self) -> None:
        object.__setattr__(self, "groups", as_groups(self.groups))
        object.__setattr__(self, "of", as_categories(self.of))

    @property
    def size(self) -> int:
        return self.groups.size * self.of.size

    @property
    def reads(self) -> Literal["numbers", "words"]:  # type: ignore[override]
        return self.of.reads

    @property
    def row(self) -> Categories:
        return self.of

    def with_groups(self, groups: Codes, rows: ArrayLike) -> Codes:
        return groups * self.of.size + np.asarray(rows, dtype=np.int64)

    def encode(self, values: ArrayLike) -> Codes:
        """The codes of pairs of a group and a value."""
        groups, own = parted(values)
        texts = self.of.reads == "numbers" and any(isinstance(value, str) for value in own)
        return self.with_groups(self.groups.encode(groups), self.of.encode(_numbers(own) if texts else own))

    def lists(self, value: Any) -> bool:
        groups, own = parted([value])
        return self.groups.lists(groups[0]) and self.of.lists(own[0])

    def name(self, code: int) -> str:
        group, own = divmod(code, self.of.size)
        return f"{self.groups.name(group)}: {self.of.name(own)}"

    @property
    def text(self) -> str:
        return self.of.text

    @property
    def options(self) -> str:
        return f"{self.of.options} {group_options(self.groups)}"


@dataclass(frozen=True)
class GroupedBits(SummedDomain, GroupedDomain):
    """A group and a 0 or 1, encoded as the codes of pairs: twice the group's number, and one more for a 1.

    Where they are added up, a person with a 1 adds one to its group's coordinate.

    >>> GroupedBits(Names(("A", "B"))).encode([("A", 1), ("B", 0), ("B", 1)]).tolist()
    [1, 2, 3]
    """

    kind: ClassVar[str] = "grouped bits"
    reads: ClassVar[Literal["numbers", "words"]] = "words"
    is_row = True
    columns = 2
    moved = 2
    groups: Names
    row = BITS

    def __post_init__(self) -> None:
        object.__setattr__(self, "groups", as_groups(self.groups))
        self._set(coordinates=self.groups.size)

    def difference(self, failure: float) -> RoundedDifference:
        """Two people's ones: in two coordinates at most."""
        return RoundedDifference(np.sqrt(2).item() * (1 + 1e-15), 0.0)

    def to_steps(self, values: NDArray[Any], *, bits: RandomBits) -> NDArray[np.int64]:
        steps = np.zeros((values.size, self.coordinates), dtype=np.int64)
        steps[np.arange(values.size), values // 2] = values % 2
        return steps

    @property
    def pairs(self) -> ByGroup:
        """What is counted."""
        return ByGroup(self.groups, Integers(0, 1))

    @property
    def options(self) -> str:
        return group_options(self.groups)

    def encode(self, values: ArrayLike) -> Codes:
        """The codes of pairs of a group and a bit; whole codes are taken as they are."""
        if isinstance(values, np.ndarray) and values.ndim == 1 and values.dtype.kind in "bui":
            return values
        groups, own = parted(values)
        return self.with_groups(self.groups.encode(groups), BITS.check_values(_numbers(own)))

    def check_values(self, values: ArrayLike) -> Codes:
        return self.pairs.check_values(values)

    def with_groups(self, groups: Codes, rows: ArrayLike) -> Codes:
        return 2 * groups + np.asarray(rows, dtype=np.int64)

    def synthesize(self, users: int, generator: Generator) -> Codes:
        return self.with_groups(self.groups.synthesize(users, generator), BITS.synthesize(users, generator))


@dataclass(frozen=True)
class GroupedReals(SummedDomain, GroupedDomain):
    """A group and a number in [low, high]; a person is a part of one in each of its group's two ends.

    A number x is the part a = (x - low) / (high - low) of the high end and 1 - a of the low one, rounded at random to
    whole steps of 1/grid: of the 2 * groups coordinates a person's two add up to one. The sum of a group is low times
    its low end plus high times its high end, their sum is how many people it has.

    >>> points = GroupedReals(Names(("A", "B")), 0.0, 10.0, 10)
    >>> points.to_steps(points.encode([("B", 3.0), ("A", 10.0)]), bits=RandomBits.seeded(0)).tolist()
    [[0, 0, 7, 3], [0, 10, 0, 0]]
    """

    kind: ClassVar[str] = "grouped reals"
    reads: ClassVar[Literal["numbers", "words"]] = "words"
    rounds: ClassVar[bool] = True
    is_row = True
    columns = 2
    moved = None
    groups: Names
    low: float
    high: float
    grid: int

    def __post_init__(self) -> None:
        object.__setattr__(self, "groups", as_groups(self.groups))
        row = Reals(self.grid, self.low, self.high)
        self._set(low=row.low, high=row.high, coordinates=2 * self.groups.size, highest=self.grid, step=1 / self.grid)

    @property
    def row(self) -> Reals:
        return Reals(self.grid, self.low, self.high)

    def difference(self, failure: float) -> RoundedDifference:
        """Two people's points: both lie in a simplex of side sqrt(2) steps."""
        return RoundedDifference(np.sqrt(2).item() * self.grid * (1 + 1e-15), 0.0)

    @property
    def options(self) -> str:
        return f"--low {self.low!r} --high {self.high!r} {group_options(self.groups)}"

    def encode(self, values: ArrayLike) -> Floats:
        """A row a person, its group's number and its own; from pairs of a group's name and a number."""
        if isinstance(values, np.ndarray) and values.dtype.kind in "fiu":
            return values
        groups, own = parted(values)
        return self.with_groups(self.groups.encode(groups), self.row.check_values(_numbers(own)))

    def with_groups(self, groups: Codes, rows: ArrayLike) -> Floats:
        return np.column_stack((groups.astype(np.float64), np.asarray(rows, dtype=np.float64)))

    def check_values(self, values: ArrayLike) -> Floats:
        """A row a person: the number of its group, and a number in the range."""
        points = np.asarray(values)
        if points.ndim != 2 or points.shape[1] != 2 or not len(points) or points.dtype.kind not in "fiu":
            problem = "must be a group's number and a value a person"
            raise DataError("values", f"shape {points.shape}", problem, "encode pairs of a group and a value")
        rows = points.astype(np.float64, copy=False)
        self.row.check_values(rows[:, 1])
        known = (rows[:, 0] >= 0) & (rows[:, 0] < self.groups.size) & (rows[:, 0] == np.floor(rows[:, 0]))
        for row in np.flatnonzero(~known)[:1].tolist():
            problem = f"must have a group's number in 0..{self.groups.size - 1}"
            raise DataError("values", f"{rows[row, 0]:g} in row {row + 1}", problem, "encode the values first")
        return rows

    def clip_values(self, values: ArrayLike) -> tuple[Floats, int]:
        points = np.array(values, dtype=np.float64)
        points[:, 1], clipped = self.row.clip_values(points[:, 1])
        return self.check_values(points), clipped

    def to_steps(self, values: NDArray[Any], *, bits: RandomBits) -> NDArray[np.int64]:
        high = self.row.to_steps(values[:, 1], bits=bits)
        steps = np.zeros((len(values), self.coordinates), dtype=np.int64)
        people, group = np.arange(len(values)), values[:, 0].astype(np.int64)
        steps[people, 2 * group] = self.grid - high
        steps[people, 2 * group + 1] = high
        return steps

    def synthesize(self, users: int, generator: Generator) -> Floats:
        return self.with_groups(self.groups.synthesize(users, generator), self.row.synthesize(users, generator))


def parted(values: ArrayLike) -> tuple[list[Any], list[Any]]:
    """Pairs of a group and a value as two lists; a text is such a pair with a comma between.

    >>> parted(["A,1", ("B", 0)])
    (['A', 'B'], ['1', 0])
    """
    given: Any = list(values)  # type: ignore[arg-type]
    pairs = [pair.rsplit(",", 1) if isinstance(pair, str) else pair for pair in given]
    if not pairs or not all(np.ndim(pair) == 1 and len(pair) == 2 for pair in pairs):
        raise DataError("values", f"{len(pairs)} values", "must be pairs of a group and a value", "pass one a person")
    return [str(group) for group, _ in pairs], [own for _, own in pairs]


def _numbers(own: list[Any]) -> Floats:
    """Values of pairs as numbers."""
    try:
        return np.array([float(value) for value in own])
    except (TypeError, ValueError):
        raise DataError("values", "text", "must be a number beside each group", "write A,1") from None


def group_options(groups: Names) -> str:
    """The options that name these groups."""
    other = "" if groups.other is None else f" --other-group {shlex.quote(groups.other)}"
    return f"--groups {shlex.quote(groups.text if groups.can_be_typed else 'NAMES.txt')}{other}"
