"""Several rows a person of which a mean is found: how many rows there are is as private as the numbers."""

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from shuffledp.accounting.rounding import RoundedDifference
from shuffledp.errors import DataError
from shuffledp.protocols.domains.domain import Codes, Floats, Generator
from shuffledp.protocols.domains.repeated import RepeatedDomain, check_at_most
from shuffledp.protocols.domains.steps import SummedDomain
from shuffledp.protocols.domains.summed import Reals, check_range
from shuffledp.randomness import RandomBits
from shuffledp.sampling.rounding import round_randomly


@dataclass(frozen=True)
class RowMeans(SummedDomain, RepeatedDomain):
    """The sum of a person's rows and how many they are, each row in [low, high] and at most `at_most` of them.

    They are added up as two numbers: how far the rows lie above the middle of the range, in its width, and half of how
    many rows there are. The first is never further from 0 than the second.

    >>> rows = RowMeans(0.0, 10.0, 3, 20)
    >>> people = rows.encode([[10.0, 10.0, 10.0], [], [3.0, 4.0]])
    >>> people.tolist()
    [[30.0, 3.0], [0.0, 0.0], [7.0, 2.0]]
    >>> rows.to_steps(people, bits=RandomBits.seeded(0)).tolist()
    [[30, 30], [0, 0], [-6, 20]]
    """

    kind: ClassVar[str] = "row means"
    rounds: ClassVar[bool] = True
    is_row = True
    columns = 2
    moved = None
    low: float
    high: float
    at_most: int
    grid: int

    def __post_init__(self) -> None:
        check_at_most(self.at_most)
        check_range(self.low, self.high)
        most = self.at_most * self.grid // 2
        self._set(low=float(self.low), high=float(self.high), coordinates=2, step=1 / self.grid)
        self._set(lowest=-most, highest=most)

    @property
    def row(self) -> Reals:
        return Reals(1, self.low, self.high)

    @property
    def furthest(self) -> int:
        """How many single steps two people are apart at most, in both numbers together."""
        return self.at_most * self.grid

    def difference(self, failure: float) -> RoundedDifference:
        return RoundedDifference(float(self.furthest), 0.0)

    @property
    def options(self) -> str:
        return f"--low {self.low!r} --high {self.high!r} --at-most {self.at_most}"

    def check_values(self, values: ArrayLike) -> Floats:
        """A row a person: the sum of its rows, and how many they are."""
        points = np.asarray(values)
        if points.ndim != 2 or points.shape[1] != 2 or not len(points) or points.dtype.kind not in "fiu":
            problem = "must be a sum of rows and their number a person"
            raise DataError("values", f"shape {points.shape}", problem, "plan.encode(lists of each person's rows)")
        people = points.astype(np.float64, copy=False)
        sums, rows = people.T
        known = (rows >= 0) & (rows <= self.at_most) & (rows == np.floor(rows))
        for person in np.flatnonzero(~known)[:1].tolist():
            problem = f"must have a whole number of rows in 0..{self.at_most}"
            raise DataError("values", f"{rows[person]:g} in row {person + 1}", problem, "encode the values first")
        inside = (sums >= self.low * rows) & (sums <= self.high * rows)
        for person in np.flatnonzero(~inside)[:1].tolist():
            problem = f"must lie in [{self.low:g}, {self.high:g}] times the number of rows"
            raise DataError("values", f"{sums[person]:g} in row {person + 1}", problem, "encode the values first")
        return people

    def clip_values(self, values: ArrayLike) -> tuple[Floats, int]:
        points = np.array(values, dtype=np.float64)
        brought = np.clip(points[:, 0], self.low * points[:, 1], self.high * points[:, 1])
        clipped = int(np.count_nonzero(brought != points[:, 0]))
        points[:, 0] = brought
        return self.check_values(points), clipped

    def gathered(self, rows: ArrayLike, person: Codes, place: Codes, people: int) -> Floats:
        many = np.bincount(person, minlength=people).astype(np.float64)
        sums = np.bincount(person, weights=np.asarray(rows, dtype=np.float64), minlength=people)
        # Adding floats may round a hair beyond the ends.
        return np.column_stack((np.clip(sums, self.low * many, self.high * many), many))

    def to_steps(self, values: NDArray[Any], *, bits: RandomBits) -> NDArray[np.int64]:
        sums, rows = values.T
        half = rows * (self.grid / 2)
        above = (sums - rows * self.low) * (self.grid / (self.high - self.low)) - half
        # Clipping keeps what floats round beyond the ends, which are whole: rounding stays within them.
        steps = round_randomly(np.clip(above, -half, half), bits=bits)
        return np.column_stack((steps, half.astype(np.int64)))

    def numbers(self, values: NDArray[Any]) -> Floats:
        sums, rows = values.T
        return np.column_stack(((sums - rows * self.low) / (self.high - self.low) - rows / 2, rows / 2))

    def synthesize(self, users: int, generator: Generator) -> Floats:
        """Every person has a random number of rows."""
        sizes = (generator.random(users) * (self.at_most + 1)).astype(np.int64)
        person = np.repeat(np.arange(users), sizes)
        own = self.row.synthesize(max(1, person.size), generator)[: person.size]
        return self.gathered(own, person, person, users)
