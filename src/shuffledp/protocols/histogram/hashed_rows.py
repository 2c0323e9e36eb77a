"""Histograms of hashed categories, several times over: a category's count is the smallest of its cells.

A category that meets no other in some row has its own count there, and no row says less. With m other categories in
the data at most, d categories and T rows of s columns, some category meets others in all rows with probability at most
d (m/s)^T: Theorem 31 of [004], with the m that can be there in place of n.
"""

import math
from abc import abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from shuffledp.accounting.curves import smallest_meeting
from shuffledp.errors import InfeasibleError
from shuffledp.messages import Reports
from shuffledp.protocols.counted import counted_in_runs
from shuffledp.protocols.cut import LARGEST_MEAN, LARGEST_MOST
from shuffledp.protocols.domains.domain import Codes, Floats
from shuffledp.protocols.fields import forwarded, noise
from shuffledp.protocols.histogram.base import HistogramPlan
from shuffledp.protocols.histogram.public_hash import PRIME, PublicHashes
from shuffledp.randomness import RandomBits

# The probability that some category meets others in all rows: part of the 5% that the error's bound allows.
COLLISIONS = 0.01
_MOST_ROWS = 64
# So many decoys a person are not searched beyond: what they cannot hide is refused.
_MOST_DECOYS = 1e12
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


def fewest_messages(draft: Callable[[int], Draft], max_messages: int | None) -> Draft:
    """The number of rows whose draft has the fewest messages on average among those that keep to the limits."""
    every = [draft(rows) for rows in range(1, _MOST_ROWS + 1)]
    limit = LARGEST_MOST if max_messages is None else min(max_messages, LARGEST_MOST)
    fitting = [found for found in every if found.most <= limit and found.mean <= LARGEST_MEAN]
    if not fitting:
        most, mean = min(found.most for found in every), min(found.mean for found in every)
        average = f"of {mean:,.3g} on average, which must be at most {LARGEST_MEAN:,}"
        way_out = "allow more, hash the categories into fewer cells, or take the method decoys"
        raise InfeasibleError("max_messages", max_messages, f"must be at least {most:,} ({average})", way_out)
    return min(fitting, key=lambda found: found.mean)


def smallest_near(value: Callable[[float], float], target: float, guess: float) -> float:
    """The smallest number whose value meets the target, within a thousandth, likely to be a little below the guess.

    >>> round(smallest_near(lambda x: 1 / x, 0.4, 10.0), 2)
    2.5
    """
    low, high = 0.85 * guess, guess
    while value(low) <= target:
        low, high = 0.7 * low, low
    return smallest_meeting(value, target, low, high, relative=1e-3, limit=max(_MOST_DECOYS, 2 * high))


@dataclass(frozen=True, slots=True, kw_only=True)
class HashedRowsPlan(HistogramPlan):
    """A plan that counts hashed categories in `rows` rows of `columns`, and takes the smallest."""

    theory_page: ClassVar[str] = "docs/theory/parallel-counts.md"
    is_unbiased: ClassVar[bool] = False
    also_saved: ClassVar[tuple[str, ...]] = ("rows", "columns", "hash_seed")

    rows: int = noise(f"[1, {_MOST_ROWS}]")
    columns: int = noise(f"[2, {PRIME})")
    hash_seed: int = noise(f"[0, {PRIME})", default=0)

    @property
    def hashes(self) -> PublicHashes:
        """The public hash functions, one a row, that put a category into a column."""
        return PublicHashes(self.hash_seed, self.rows, self.columns)

    @property
    def collision_probability(self) -> float:
        """That some category meets others of the data in all rows, over the seed, whatever the data."""
        return min(1.0, self.bins * (min(self.users, self.bins - 1) / self.columns) ** self.rows)

    def further_numbers(self) -> dict[str, Any]:
        found = super(HashedRowsPlan, self).further_numbers()
        return {**found, "collision_probability": self.collision_probability}

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

    letters: ClassVar[int] = forwarded("columns")
    """Different messages of one row: its columns, and perhaps others."""

    @property
    def alphabet_size(self) -> int:
        return self.rows * self.letters

    @abstractmethod
    def _in_one_row(self, cells: Codes, bits: RandomBits) -> Reports:
        """What users in these columns send in one row."""

    def _reports(self, codes: Codes, bits: RandomBits) -> Reports:
        """A report of as many users as there are rows, each in a row of its own, is one user's report."""
        sent = self._in_one_row(self.hashes.all_cells(codes).reshape(-1), bits)
        offsets = (np.arange(len(sent)) % self.rows * self.letters).astype(self._kind)
        payloads = sent.payloads.astype(self._kind) + np.repeat(offsets, sent.sizes)
        return Reports(payloads, sent.sizes.reshape(-1, self.rows).sum(axis=1))

    @abstractmethod
    def _table(self, seen: Codes) -> Floats:
        """The columns' counts as estimated from how often each message of one row came."""

    @abstractmethod
    def _noisy_row(self, seen: Codes, row: int, bits: RandomBits) -> Codes:
        """How often each message of one row comes where so many users are in each column, drawn from its law."""

    def _own(self, seen: Codes) -> Sequence[Codes]:
        return tuple(seen.reshape(self.rows, -1)[:, : self.columns])

    def _read(self, seen: Codes) -> Floats:
        """The smallest of every category's cells."""
        tables = [self._table(row) for row in seen.reshape(self.rows, -1)]
        value = np.empty(self.bins)
        for start in range(0, self.bins, _BLOCK):
            codes = np.arange(start, min(start + _BLOCK, self.bins), dtype=np.int64)
            cells = [table[self.hashes.cells(codes, row)] for row, table in enumerate(tables)]
            value[start : start + codes.size] = np.minimum.reduce(cells)
        return value

    def _summed(self, codes: Codes, bits: RandomBits) -> Codes:
        rows = range(self.rows)
        return np.concatenate([np.bincount(self.hashes.cells(codes, row), minlength=self.columns) for row in rows])

    def _noisy(self, summed: Codes, bits: RandomBits) -> Codes:
        rows = enumerate(summed.reshape(self.rows, -1))
        return np.concatenate([self._noisy_row(seen, row, bits) for row, seen in rows])

    def summaries(self, reports: Reports, trials: int) -> NDArray[np.int64]:
        """How many messages name the first category's cells, in all rows together, and how many the second's."""
        cells = self.hashes.all_cells(np.arange(2)) + np.arange(self.rows) * self.letters
        return np.stack([counted_in_runs(np.isin(reports.payloads, own), reports, trials) for own in cells], axis=1)
