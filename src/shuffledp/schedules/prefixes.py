"""Prefixes as sums of batches: at the end of every slot one batch closes and makes a new prefix of an old one.

The batch that closes at the end of slot i covers the slots after `parents[i]`, so the estimate of the first i slots is
that of the first parents[i] plus the batch's. How many batches an estimate is made of is the depth of i in the tree of
parents.
"""

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from shuffledp.schedules.batches import BatchSchedule, Whole


@dataclass(frozen=True, eq=False)
class PrefixSchedule(BatchSchedule):
    """Batches that add up: every prefix is an earlier one and the batch that closes with it."""

    @cached_property
    def depths(self) -> Whole:
        """Batches in the estimate of the first i slots."""
        return self.prefix_sums(np.ones(self.batches, dtype=np.int64))

    @cached_property
    def _runs(self) -> list[tuple[Whole, Whole, Whole]]:
        """For every level, highest first: its batches, where runs of them begin, and each one's run.

        In a run each batch's parent is the one before; the first one's is a batch of a higher level, or 0.
        """
        runs = []
        for level in range(int(self.levels.max(initial=0)), 0, -1):
            members = np.flatnonzero(self.levels == level)
            if members.size:
                begins = self.parents[members] != np.concatenate(([-1], members[:-1]))
                runs.append((members, np.flatnonzero(begins), np.cumsum(begins) - 1))
        return runs

    @property
    def large_ends(self) -> Whole:
        """The slots at whose end a batch of the highest level closes."""
        return self.ends_by_level[-1]

    def prefix_sums(self, batch_values: NDArray[Any]) -> NDArray[Any]:
        """Every prefix's value from those of the batches that close at slots 1, 2, ...; the empty prefix's is 0."""
        totals = np.zeros((self.slots, *batch_values.shape[1:]), dtype=batch_values.dtype)
        for members, starts, run in self._runs:
            values = batch_values[members - 1]
            along = np.cumsum(values, axis=0)
            first = members[starts]
            before = totals[self.parents[first]] - (along[starts] - values[starts])
            totals[members] = along + before[run]
        return totals
