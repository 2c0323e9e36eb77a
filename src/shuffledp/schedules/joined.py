"""Which batches the users of a slot join: one a level at most."""

from shuffledp.schedules.batches import BatchSchedule

Joined = list[tuple[int, int, int]]
"""Level, first slot and end of every batch over a slot, lowest level first."""


def joined_batches(schedule: BatchSchedule, slot: int, *, every_slot: bool = False) -> Joined:
    """Level, first slot and end of every batch over this slot, lowest level first.

    With `every_slot` each slot but the last has a batch of level 1 of its own, even where a larger one closes
    with it.

    >>> from shuffledp.schedules.combinatorial import combinatorial_schedule
    >>> schedule = combinatorial_schedule(budget=2, shufflers=2, slot_users=10)
    >>> joined_batches(schedule, 0), joined_batches(schedule, 2), joined_batches(schedule, 2, every_slot=True)
    ([(1, 0, 1), (2, 0, 3)], [(2, 0, 3)], [(1, 2, 3), (2, 0, 3)])
    """
    found = []
    for level, ends in enumerate(schedule.ends_by_level, 1):
        place = int(ends.searchsorted(slot, side="right"))
        if place < ends.size and schedule.parents[ends[place]] <= slot:
            end = int(ends[place])
            found.append((level, int(schedule.parents[end]), end))
    alone = not found or found[0][0] > 1
    if every_slot and alone and slot + 1 < schedule.slots:
        found.insert(0, (1, slot, slot + 1))
    return found
