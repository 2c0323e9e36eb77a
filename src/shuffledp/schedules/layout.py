"""Which batches there are and what goes into each: all that a shuffler may know of a plan."""

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True)
class BatchLayout:
    """Batches along a schedule: one batch of everybody is the schedule with one slot.

    Attributes:
        users: how many people report in all.
        budget: batches that an estimate is made of at most; of windows, how many slots there are.
        shufflers: batches that are open at once, one a level.
        slot_users: people in a slot; some may have one less.
        every_slot: whether every slot has a batch of its own, even where a larger one closes with it.
        messages: messages that each report sends to a batch of this size.
        counts_everybody: whether the last batch ends with the last user; else the last slot is never full.
        windows: whether a batch closes with every slot and holds the last `shufflers` slots: shufflers take turns.
    """

    users: int
    budget: int
    shufflers: int
    slot_users: int
    every_slot: bool
    messages: Mapping[int, int]
    counts_everybody: bool = False
    windows: bool = False

    @classmethod
    def single(cls, users: int, messages: int) -> "BatchLayout":
        """One batch of everybody."""
        return cls(users, 1, 1, users, False, {users: messages})

    @classmethod
    def sliding(cls, users: int, slots: int, shufflers: int, messages: Mapping[int, int]) -> "BatchLayout":
        """Windows of `shufflers` slots; the last of so many slots ends with the last user.

        Args:
            users: how many people report in all, as many as slots or more.
            slots: how many there are: the first ones have a user less where users cannot be dealt out equally.
            shufflers: slots of a window, and windows that are open at once.
            messages: messages that each report sends to a window of this size.
        """
        return cls(users, slots, shufflers, -(-users // slots), False, messages, counts_everybody=True, windows=True)

    @property
    def in_words(self) -> str:
        """How many people, how many shufflers, and what an estimate is made of.

        >>> BatchLayout.single(users=1000, messages=2).in_words
        '1,000 users, 1 shufflers, at most 1 batches an estimate'
        >>> BatchLayout.sliding(users=1000, slots=40, shufflers=3, messages={25: 2, 50: 2, 75: 2}).in_words
        '1,000 users, 3 shufflers in turn: with each of 40 slots a batch of the last 3 closes'
        """
        if self.windows:
            turns = f"with each of {self.budget:,} slots a batch of the last {self.shufflers} closes"
            return f"{self.users:,} users, {self.shufflers} shufflers in turn: {turns}"
        return f"{self.users:,} users, {self.shufflers} shufflers, at most {self.budget} batches an estimate"
