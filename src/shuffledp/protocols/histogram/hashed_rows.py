"""Histograms of hashed categories, several times over: a category's count is the smallest of its cells.

A category that meets no other in some row has its own count there, and no row says less. With m other categories in
the data at most, d categories and T rows of s columns, some category meets others in all rows with probability at most
d (m/s)^T: Theorem 31 of [004], with the m that can be there in place of n.
"""

import math
from abc import abstractmethod
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from shuffledp.accounting.curves import smallest_real
from shuffledp.errors import InfeasibleError, ParameterError
from shuffledp.messages import Reports
from shuffledp.protocols.cut import LARGEST_MEAN, LARGEST_MOST
from shuffledp.protocols.histogram.base import Floats, HistogramPlan
from shuffledp.protocols.histogram.public_hash import PublicHashes

# The probability that some category meets others in all rows: part of the 5% that the error's bound allows.
COLLISIONS = 0.01
_MOST_ROWS = 64
# Categories looked up at a time.
_BLOCK = 1 << 22


def columns_for(users: int, bins: int, rows: int) -> int:
    """The fewest columns with so few collisions: others (100 d)^(1/T).

    >>> columns_for(10**5, 1000, 6), columns_for(1000, 10**9, 12)
    (6807, 8255)
    """
    spread = float((bins / COLLISIONS) ** (1 / rows))
    return max(2, math.ceil(min(users, bins - 1) * spread))


@dataclass(frozen=True, slots=True)
class Draft:
    """A number of rows, and about what it costs."""

    rows: int
    columns: int
    mean: float
    most: int


def fewest_messages(drafts: Iterable[Draft], max_messages: int | None) -> Draft:
    """The draft with the fewest messages on average among those that keep to the limits."""
    every = list(drafts)
    limit = LARGEST_MOST if max_messages is None else min(max_messages, LARGEST_MOST)
    fitting = [draft for draft in every if draft.most <= limit and draft.mean <= LARGEST_MEAN]
    if not fitting:
        raise InfeasibleError(
            "max_messages",
            max_messages,
            f"must be at least {min(draft.most for draft in every):,} (of {min(draft.mean for draft in every):,.3g} on "
            f"average, which must be at most {LARGEST_MEAN:,})",
            "allow more, hash the categories into fewer cells, or take the method decoys",
        )
    return min(fitting, key=lambda draft: draft.mean)


def smallest_near(enough: Callable[[float], bool], guess: float) -> float:
    """The smallest number that is enough, within a thousandth, when it is likely to be a little below the guess.

    >>> round(smallest_near(lambda x: x >= 3.3, 10.0), 2)
    3.3
    """
    low, high = 0.85 * guess, guess
    while enough(low):
        low, high = 0.7 * low, low
    return smallest_real(enough, low, high, relative=1e-3)


def row_numbers() -> range:
    """How many rows there may be."""
    return range(1, _MOST_ROWS + 1)


@dataclass(frozen=True, slots=True, kw_only=True)
class HashedRowsPlan(HistogramPlan):
    """A plan that counts hashed categories in `rows` rows of `columns`, and takes the smallest."""

    theory_page: ClassVar[str] = "docs/theory/parallel-counts.md"
    is_unbiased: ClassVar[bool] = False

    rows: int
    columns: int
    hash_seed: int = 0

    @property
    def hashes(self) -> PublicHashes:
        """The public functions."""
        return PublicHashes(self.hash_seed, self.rows, self.columns)

    def _check_rows(self) -> None:
        _ = self.hashes
        if self.rows > _MOST_ROWS:
            raise ParameterError("rows", self.rows, f"must be at most {_MOST_ROWS}", "make the plan again")

    @property
    def collision_probability(self) -> float:
        """That some category meets others of the data in all rows, over the seed, whatever the data."""
        return min(1.0, self.bins * (min(self.users, self.bins - 1) / self.columns) ** self.rows)

    def further_numbers(self) -> dict[str, Any]:
        # A method's own super() would name this class before slots made it anew.
        return {
            "l_inf_error": self.error_bound,
            "l2_error": self.l2_error,
            "collision_probability": self.collision_probability,
        }

    @property
    @abstractmethod
    def _cell_error(self) -> float:
        """The root mean square error of one cell, at most."""

    @property
    def standard_error(self) -> float:
        """The root mean square error at most, where a category is alone in some row.

        The error lies between the smallest of its cells' errors and that of the row it is alone in: its square is at
        most the sum of all rows' squares.
        """
        return math.sqrt(self.rows) * self._cell_error

    def _virtual(self, values: ArrayLike) -> NDArray[np.int64]:
        """The column of each user in each row, users first."""
        return self.hashes.all_cells(self.check_values(values)).reshape(-1)

    def _smallest(self, tables: list[Floats]) -> Floats:
        """Of every category's cells."""
        value = np.empty(self.bins)
        for start in range(0, self.bins, _BLOCK):
            codes = np.arange(start, min(start + _BLOCK, self.bins), dtype=np.int64)
            cells = [table[self.hashes.cells(codes, row)] for row, table in enumerate(tables)]
            value[start : start + codes.size] = np.minimum.reduce(cells)
        return value

    def _summed(self, cells: NDArray[np.int64], reports: Reports, trials: int) -> NDArray[np.int64]:
        """For each run, how many messages name the first category's cells, and how many the second's.

        `cells` are the messages as row * columns + column, or below 0.
        """
        run = np.repeat(np.arange(trials), reports.sizes.reshape(trials, -1).sum(axis=1))
        sums = []
        for code in (0, 1):
            own = self.hashes.all_cells(np.array([code]))[0] + np.arange(self.rows) * self.columns
            hit = np.isin(cells, own)
            sums.append(np.bincount(run[hit], minlength=trials))
        return np.stack(sums, axis=1)
