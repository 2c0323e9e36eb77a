"""Slots that end with the last user: a part of the same schedule, its slots of one size or of two."""

import numpy as np
import pytest

from shuffledp.continual.planner import batch_sizes
from shuffledp.schedules.combinatorial import combinatorial_schedule, ending_schedule, slots, whole_slots
from shuffledp.schedules.joined import joined_batches

SMALL = [(c, k) for c in range(1, 6) for k in range(1, 5) if slots(c, k) <= 70]


@pytest.mark.parametrize(("budget", "shufflers"), SMALL)
def test_every_number_of_users_by_enumeration(budget: int, shufflers: int) -> None:
    most = slots(budget, shufflers) - 1
    for users in range(1, 4 * most + 2):
        found, schedule = whole_slots(budget, shufflers, users), ending_schedule(budget, shufflers, users)
        whole = combinatorial_schedule(budget, shufflers, found.users)
        # No smaller slots would do, and no slot has more users than that.
        assert found.count <= most and found.users == -(-users // most)
        sizes = np.diff(schedule.users_by(np.arange(schedule.slots)))
        assert sizes.sum() == users and sizes.size == found.count
        assert set(sizes.tolist()) <= {found.users, found.users - 1} and sizes.min() >= 1
        # Nothing but a part of the schedule: so many noises in every estimate, so many batches a user.
        assert schedule.parents.tolist() == whole.parents[: found.count + 1].tolist()
        assert schedule.depths.tolist() == whole.depths[: found.count + 1].tolist()
        assert schedule.overlap() <= shufflers
        said = batch_sizes(found.users, budget, shufflers, found.short)
        edges = schedule.users_by(np.arange(schedule.slots))
        for time in range(users + 1):
            slot, since = schedule.place_of(time)
            assert edges[slot] + since == time and (since == 0 or time < edges[slot + 1])
        over, since = schedule.place_of(np.arange(users + 1))
        assert (edges[over] + since).tolist() == list(range(users + 1))
        for slot in range(found.count):
            for level, first, end in joined_batches(schedule, slot, every_slot=True):
                size = schedule.batch_users(first, end)
                assert end <= found.count and size in said[level]
                assert size == sizes[first:end].sum()
        for level, actual in enumerate(schedule.sizes_with(every_slot=True), 1):
            assert actual <= set(said[level])
