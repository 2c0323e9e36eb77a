"""Sliding windows, by enumeration: one closes a slot, k are open, and a shuffler holds one at a time."""

import time

import numpy as np
import pytest

from shuffledp.errors import ParameterError
from shuffledp.schedules.batches import BatchSchedule
from shuffledp.schedules.joined import joined_batches
from shuffledp.schedules.windows import window_ages, window_schedule

SMALL = [(slots, shufflers) for slots in range(1, 8) for shufflers in range(1, 5)]


def slot_sizes(slots: int, users: int) -> list[int]:
    """The users of each slot, dealt out from the last one on."""
    sizes = [0] * slots
    for user in range(users):
        sizes[slots - 1 - user % slots] += 1
    return sizes


@pytest.mark.parametrize(("slots", "shufflers"), SMALL)
def test_windows_are_those_of_the_definition(slots: int, shufflers: int) -> None:
    for users in range(slots, 3 * slots + 2):
        schedule, sizes = window_schedule(slots, shufflers, users), slot_sizes(slots, users)
        assert (schedule.slots, schedule.batches) == (slots + 1, slots)
        edges = np.cumsum([0, *sizes])
        assert schedule.users_by(np.arange(slots + 1)).tolist() == edges.tolist() and edges[-1] == users
        # Window t holds the slots max(0, t - k + 1)..t, and belongs to shuffler t mod k.
        windows = [(t % shufflers + 1, max(0, t - shufflers + 1), t + 1) for t in range(slots)]
        assert list(zip(schedule.levels[1:], schedule.parents[1:], range(1, slots + 1), strict=True)) == windows
        for slot in range(slots):
            joined = joined_batches(schedule, slot)
            assert joined == sorted(window for window in windows if window[1] <= slot < window[2])
            assert sorted(end - 1 for _, _, end in joined) == list(range(slot, min(slot + shufflers, slots)))
            # One closes with the slot, k are open at most, and no shuffler has two of them.
            assert [end for _, _, end in joined].count(slot + 1) == 1
            assert len({level for level, _, _ in joined}) == len(joined) == min(shufflers, slots - slot)
        assert joined_batches(schedule, slots) == []
        # No window stands out: a picture marks none.
        assert schedule.overlap() == min(shufflers, slots) and schedule.large_ends.size == 0
        for position in range(users):
            slot, within = schedule.place_of(position)
            assert edges[slot] + within == position < edges[slot + 1]
        assert schedule.place_of(users) == (slots, 0)
        by_level = schedule.sizes_with(every_slot=False)
        for level, said in enumerate(by_level, 1):
            assert said == {sum(sizes[first:end]) for of, first, end in windows if of == level}


@pytest.mark.parametrize(("slots", "shufflers"), SMALL)
def test_a_windows_size_says_when_its_seats_came(slots: int, shufflers: int) -> None:
    """All windows of one size are alike, so that what a seat does follows from the size alone."""
    for users in range(slots, 3 * slots + 2):
        schedule, sizes = window_schedule(slots, shufflers, users), slot_sizes(slots, users)
        for closes in range(slots):
            first = max(0, closes - shufflers + 1)
            ages = [closes - slot for slot in range(first, closes + 1) for _ in range(sizes[slot])]
            assert window_ages(schedule, shufflers, len(ages)).tolist() == ages
        others = set(range(users + 2)) - {size for each in schedule.sizes_with(every_slot=False) for size in each}
        for size in others:
            with pytest.raises(ParameterError, match="size must be a window's number of users"):
                window_ages(schedule, shufflers, size)


@pytest.mark.parametrize(
    ("slots", "shufflers", "users", "name"),
    [(0, 2, 5, "slots"), (6, 2, 5, "slots"), (1 << 32, 2, 1 << 40, "slots"), (3, 0, 5, "shufflers"),
     (3, 65, 100, "shufflers")],
)  # fmt: skip
def test_what_is_no_schedule_is_refused(slots: int, shufflers: int, users: int, name: str) -> None:
    with pytest.raises(ParameterError, match=f"{name} must lie in 1"):
        window_schedule(slots, shufflers, users)


def test_sixteen_million_slots_take_seconds_and_a_slot_less_than_a_millisecond() -> None:
    """The limit of a routing; a window's batches are looked up once a slot."""
    begun = time.process_time()
    slots, users = 1 << 24, (1 << 24) * 22 - 5
    schedule = window_schedule(slots, 4, users)
    assert isinstance(schedule, BatchSchedule) and schedule.short == 5 and schedule.slot_users == 22
    assert schedule.sizes_with(every_slot=False) == [{21, 84, 88}, {42, 85, 88}, {63, 86, 88}, {84, 87, 88}]
    assert schedule.overlap() == 4 and int(window_ages(schedule, 4, 87).sum()) == 21 * 3 + 22 * 3
    made = time.process_time()
    for slot in range(0, slots, slots // 500):
        assert [end - slot for _, _, end in sorted(joined_batches(schedule, slot), key=lambda window: window[2])] == [
            1, 2, 3, 4
        ]  # fmt: skip
    assert made - begun < 20 and time.process_time() - made < 1
