"""Sliding windows: k shufflers take turns, and the batch that closes with a slot holds the last k slots.

The windows that close with the first slots are shorter: nobody came before. A user of slot s, counted from 0 of T, is
in the windows that close with slots s, ..., min(s + k, T) - 1. Windows overlap, so that prefixes are no sums of them.
"""

import numpy as np

from shuffledp.errors import ParameterError
from shuffledp.schedules.batches import BatchSchedule, Whole

MOST_SLOTS = 1 << 31


def window_schedule(slots: int, shufflers: int, users: int) -> BatchSchedule:
    """So many slots whose last one ends with the last user; the first ones may have a user less.

    As in every schedule there is one slot more, after the last user, which is empty.

    >>> schedule = window_schedule(slots=5, shufflers=2, users=9)
    >>> schedule.parents.tolist(), schedule.levels.tolist(), schedule.users_by(np.arange(6)).tolist()
    ([0, 0, 0, 1, 2, 3], [0, 1, 2, 1, 2, 1], [0, 1, 3, 5, 7, 9])
    """
    if not 1 <= slots <= min(users, MOST_SLOTS):
        limits = f"must lie in 1..{min(users, MOST_SLOTS)}, a user or more in each"
        raise ParameterError("slots", slots, limits, "choose fewer slots, or plan for more users")
    if not 1 <= shufflers <= 64:
        raise ParameterError("shufflers", shufflers, "must lie in 1..64", "four are a good choice")
    ends, levels = np.arange(slots + 1), np.zeros(slots + 1, dtype=np.int64)
    levels[1:] = np.resize(np.arange(1, shufflers + 1), slots)
    slot_users = -(-users // slots)
    return BatchSchedule(np.maximum(ends - shufflers, 0), levels, slot_users, slots * slot_users - users)


def window_ages(schedule: BatchSchedule, shufflers: int, size: int) -> Whole:
    """For each seat of a window of so many users: how many slots after the seat's own one the window closes.

    Windows of one size are alike: their slots have the same sizes in the same order.

    Args:
        schedule: of windows.
        shufflers: how many slots a window has, but for the first ones.
        size: the window's users.

    Raises:
        ParameterError: no window has so many users.

    >>> schedule = window_schedule(slots=5, shufflers=2, users=9)
    >>> [window_ages(schedule, 2, size).tolist() for size in (1, 3, 4)]
    [[0], [1, 0, 0], [1, 1, 0, 0]]
    """
    # All sizes that there are: of the first windows, and of those over the last slots with a user less.
    near = np.arange(1, shufflers + 1)
    ends = np.unique(np.minimum(np.concatenate((near, schedule.short + near)), schedule.batches))
    found = ends[schedule.users_by(ends) - schedule.users_by(schedule.parents[ends]) == size]
    if not found.size:
        raise ParameterError("size", size, "must be a window's number of users", "ask the schedule for its sizes")
    inside = np.arange(schedule.parents[found[0]], found[0])
    return np.repeat(inside[::-1] - inside[0], schedule.users_by(inside + 1) - schedule.users_by(inside))
