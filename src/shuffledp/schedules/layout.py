"""Which batches there are and what goes into each: all that a shuffler may know of a plan."""

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True)
class BatchLayout:
    """Batches along a schedule: one batch of everybody is the schedule with one slot.

    Attributes:
        users: how many people report in all.
        budget: batches that an estimate is made of at most.
        shufflers: batches that are open at once, one a level.
        slot_users: people in the smallest batch.
        every_slot: whether every slot has a batch of its own, even where a larger one closes with it.
        messages: messages that each report sends to a batch of this size.
        counts_everybody: whether the last batch ends with the last user; else the last slot is never full.
    """

    users: int
    budget: int
    shufflers: int
    slot_users: int
    every_slot: bool
    messages: Mapping[int, int]
    counts_everybody: bool = False

    @classmethod
    def single(cls, users: int, messages: int) -> "BatchLayout":
        """One batch of everybody."""
        return cls(users, 1, 1, users, False, {users: messages})
