"""Batches along time: at the end of every slot one batch closes.

Time is cut into slots of equally many users. The batch that closes at the end of slot i covers the slots after
`parents[i]`. How many batches a user is in, at most, is the number of intervals (parents[i], i] over one slot.
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from shuffledp.errors import ParameterError
from shuffledp.schedules.slots import SlotTimes

Whole = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class BatchSchedule(SlotTimes):
    """`slots` slots of `slot_users` users each; parents[i] for i = 1..slots-1, and parents[0] = 0.

    The batch that closes with slot i is one of level levels[i], from 1, which one shuffler holds; levels[0] = 0.

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

    def batch_users(self, first: int, end: int) -> int:
        """The users of a batch over the slots after `first` up to `end`."""
        return int(self.users_by(end) - self.users_by(first))

    def sizes_with(self, *, every_slot: bool) -> list[set[int]]:
        """For every level, lowest first: how many users its batches have.

        Args:
            every_slot: whether every slot has a batch of level 1 of its own.
        """
        sizes = [_different(self.users_by(ends) - self.users_by(self.parents[ends])) for ends in self.ends_by_level]
        if every_slot and sizes:
            sizes[0] |= _different(np.diff(self.users_by(np.arange(self.slots))))
        return sizes

    @cached_property
    def ends_by_level(self) -> list[Whole]:
        """For every level, lowest first: the slots at whose end one of its batches closes."""
        highest = int(self.levels.max(initial=0))
        # As small numbers as will do: each level looks at all of them.
        levels = self.levels.astype(np.min_scalar_type(highest))
        return [np.flatnonzero(levels == level) for level in range(1, highest + 1)]

    @property
    def large_ends(self) -> Whole:
        """The slots at whose end a batch closes that is larger than most: none, where they are alike."""
        return np.zeros(0, dtype=np.int64)

    def overlap(self) -> int:
        """The most batches that any slot is in."""
        changes = np.bincount(self.parents[1:], minlength=self.slots)
        # One batch ends with every slot but the last.
        changes[1:] -= 1
        return int(np.cumsum(changes).max(initial=0))


def _different(numbers: Whole) -> set[int]:
    """The numbers that there are; few are looked at where many in a row are the same."""
    return set(numbers[np.flatnonzero(np.diff(numbers, prepend=-1))].tolist())
