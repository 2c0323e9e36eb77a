"""Prefixes as sums of batches: at the end of every slot one batch closes and makes a new prefix of an old one.

Time is cut into slots of equally many users. The batch that closes at the end of slot i covers the slots
after `parents[i]`, so the estimate of the first i slots is that of the first parents[i] plus the batch's.
How many batches an estimate is made of is the depth of i in the tree of parents; how many batches a user is
in, at most, is the number of intervals (parents[i], i] over one slot.
"""

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from shuffledp.errors import ParameterError

Whole = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class PrefixSchedule:
    """`slots` slots of `slot_users` users each; parents[i] for i = 1..slots-1, and parents[0] = 0.

    The last slot has no batch that ends with it: its users are only in larger ones, or in none. The first `short` slots
    have a user less each, so that the last batch can end with any user.
    """

    parents: Whole
    levels: Whole
    slot_users: int
    short: int = 0

    def __post_init__(self) -> None:
        times = np.arange(self.parents.size)
        if self.parents.size < 1 or (self.parents[1:] >= times[1:]).any() or (self.parents < 0).any():
            raise ParameterError("parents", self.parents.size, "must point to earlier slots", "check the schedule")

    @property
    def slots(self) -> int:
        """Slots, the last included."""
        return int(self.parents.size)

    @property
    def batches(self) -> int:
        """Batches, one for each slot but the last."""
        return self.slots - 1

    def users_by(self, slots: Any) -> Any:
        """How many users have come at the end of the first so many slots: of a number, or of an array of them."""
        short = np.minimum(slots, self.short) if isinstance(slots, np.ndarray) else min(slots, self.short)
        return slots * self.slot_users - short

    def place_of(self, times: Any) -> tuple[Any, Any]:
        """The slots that are over when so many users have come, and how many users came since.

        Args:
            times: a number of users, or an array of them.
        """
        in_short = self.short * (self.slot_users - 1)
        if not isinstance(times, np.ndarray):
            time = int(times)
            ahead, size = (0, self.slot_users - 1) if time < in_short else (self.short, self.slot_users)
            return divmod(time + ahead, size)
        over, since = np.divmod(times + self.short, self.slot_users)
        early = times < in_short
        if early.any():
            first, within = np.divmod(times, self.slot_users - 1)
            over, since = np.where(early, first, over), np.where(early, within, since)
        return over, since

    def batch_users(self, first: int, end: int) -> int:
        """The users of a batch over the slots after `first` up to `end`."""
        return int(self.users_by(end) - self.users_by(first))

    def sizes_with(self, *, every_slot: bool) -> list[set[int]]:
        """For every level, lowest first: how many users its batches have.

        Args:
            every_slot: whether every slot has a batch of level 1 of its own.
        """
        sizes = [set((self.users_by(ends) - self.users_by(self.parents[ends])).tolist()) for ends in self.ends_by_level]
        if every_slot and sizes:
            sizes[0] |= set(np.diff(self.users_by(np.arange(self.slots))).tolist())
        return sizes

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

    @cached_property
    def ends_by_level(self) -> list[Whole]:
        """For every level, lowest first: the slots at whose end one of its batches closes."""
        return [np.flatnonzero(self.levels == level) for level in range(1, int(self.levels.max(initial=0)) + 1)]

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

    def overlap(self) -> int:
        """The most batches that any slot is in."""
        changes = np.zeros(self.slots + 1, dtype=np.int64)
        ends = np.arange(1, self.slots)
        np.add.at(changes, self.parents[1:], 1)
        np.add.at(changes, ends, -1)
        return int(np.cumsum(changes).max(initial=0))
