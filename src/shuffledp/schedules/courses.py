"""The batches of a stretch of time: which of each shuffler's batches hold some of these slots.

A shuffler has one batch open at a time, so that its batches follow each other along the users. Whoever runs through
more users than memory holds asks for one stretch after the other.
"""

from abc import abstractmethod
from dataclasses import dataclass

import numpy as np

from shuffledp.schedules.batches import BatchSchedule, Whole
from shuffledp.schedules.slots import SlotTimes


class Course(SlotTimes):
    """All batches of all shufflers, a stretch at a time."""

    @property
    @abstractmethod
    def levels(self) -> int:
        """How many shufflers there are."""

    @abstractmethod
    def batches(self, level: int, first: int, end: int) -> tuple[Whole, Whole]:
        """The batches of a level, from 1, that hold any of the slots first..end-1.

        Returns:
            The slots that are over when each batch opens, and when it closes, in the order of time.
        """


@dataclass(frozen=True, eq=False)
class ScheduledCourse(Course):
    """The course of a schedule that is known slot by slot.

    Attributes:
        schedule: which batch closes with which slot.
        every_slot: whether every slot but the last has a batch of level 1 of its own.

    >>> from shuffledp.schedules.combinatorial import combinatorial_schedule
    >>> course = ScheduledCourse(combinatorial_schedule(budget=2, shufflers=2, slot_users=10), every_slot=False)
    >>> [[slots.tolist() for slots in course.batches(level, 1, 4)] for level in (1, 2)]
    [[[1, 3], [2, 4]], [[0, 3], [3, 5]]]
    """

    schedule: BatchSchedule
    every_slot: bool

    @property
    def slot_users(self) -> int:  # type: ignore[override]
        """The users of a slot, but for those that have one less."""
        return self.schedule.slot_users

    @property
    def short(self) -> int:  # type: ignore[override]
        """The first so many slots have a user less."""
        return self.schedule.short

    @property
    def levels(self) -> int:
        return len(self.schedule.ends_by_level)

    def batches(self, level: int, first: int, end: int) -> tuple[Whole, Whole]:
        schedule = self.schedule
        if level == 1 and self.every_slot:
            ends = np.arange(first + 1, min(end, schedule.slots - 1) + 1)
            return ends - 1, ends
        closing = schedule.ends_by_level[level - 1]
        # The one that closes after the stretch may have opened before its end.
        begin, behind = int(closing.searchsorted(first, side="right")), int(closing.searchsorted(end, side="right"))
        ends = closing[begin : behind + 1]
        firsts = schedule.parents[ends]
        inside = firsts < end
        return firsts[inside], ends[inside]


@dataclass(frozen=True)
class WindowCourse(Course):
    """The course of sliding windows: nothing is kept of a slot, however many there are.

    Attributes:
        slots: how many there are; the last one ends with the last user.
        shufflers: slots of a window, but for the first ones; they take turns.
        slot_users: people in a slot.
        short: the first so many slots have a user less.

    >>> course = WindowCourse(slots=5, shufflers=2, slot_users=2, short=1)
    >>> [[slots.tolist() for slots in course.batches(level, 1, 3)] for level in (1, 2)]
    [[[1], [3]], [[0, 2], [2, 4]]]
    """

    slots: int
    shufflers: int
    slot_users: int
    short: int

    @property
    def levels(self) -> int:
        return min(self.shufflers, self.slots)

    def batches(self, level: int, first: int, end: int) -> tuple[Whole, Whole]:
        # Windows of a level close with slots level, level + shufflers, ...
        earliest = level + -(-max(0, first + 1 - level) // self.shufflers) * self.shufflers
        ends = np.arange(earliest, min(end - 1 + self.shufflers, self.slots) + 1, self.shufflers)
        return np.maximum(ends - self.shufflers, 0), ends
