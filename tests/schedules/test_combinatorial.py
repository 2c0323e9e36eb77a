import math

import numpy as np
import pytest

from shuffledp.errors import ParameterError
from shuffledp.schedules.combinatorial import batch_counts, combinatorial_schedule, slots
from shuffledp.schedules.prefixes import PrefixSchedule
from shuffledp.schedules.uniform import uniform_schedule

SMALL = [(budget, shufflers) for budget in range(10) for shufflers in range(1, 7) if slots(budget, shufflers) <= 3500]


def intervals(schedule: PrefixSchedule) -> list[tuple[int, int, int]]:
    """Every batch's level, first slot and the slot after its last."""
    return [(int(schedule.levels[end]), int(schedule.parents[end]), end) for end in range(1, schedule.slots)]


def described(budget: int, shufflers: int, start: int = 0) -> list[tuple[int, int, int]]:
    """The design's words, as a recursion: a first batch over what the levels below do, then the rest."""
    if budget == 0 or shufflers == 0:
        return []
    span = slots(budget, shufflers - 1)
    return [
        *described(budget, shufflers - 1, start),
        (shufflers, start, start + span),
        *described(budget - 1, shufflers, start + span),
    ]


@pytest.mark.parametrize(("budget", "shufflers"), SMALL)
def test_the_schedule_is_the_one_that_is_described(budget: int, shufflers: int) -> None:
    schedule = combinatorial_schedule(budget, shufflers, 1)
    assert sorted(intervals(schedule), key=lambda batch: batch[2]) == sorted(
        described(budget, shufflers), key=lambda batch: batch[2]
    )


@pytest.mark.parametrize(("budget", "shufflers"), SMALL)
def test_every_count_of_the_design_by_enumeration(budget: int, shufflers: int) -> None:
    schedule = combinatorial_schedule(budget, shufflers, 3)
    assert schedule.slots == math.comb(budget + shufflers, shufflers) == slots(budget, shufflers)
    if budget:
        assert schedule.slots == slots(budget, shufflers - 1) + slots(budget - 1, shufflers)
    # Exactly one batch closes with each slot but the last, and an estimate of j batches comes C(j+k-1, k-1) times.
    assert schedule.batches == schedule.slots - 1
    assert np.bincount(schedule.depths).tolist() == [math.comb(j + shufflers - 1, j) for j in range(budget + 1)]
    assert schedule.overlap() <= shufflers
    inside = np.zeros((shufflers, schedule.slots), dtype=int)
    for level, start, end in intervals(schedule):
        # The batch closes with its last slot: after all its users have come.
        assert 0 <= start < end < schedule.slots
        inside[level - 1, start:end] += 1
    # One shuffler a level is enough, and nobody joins more batches than there are shufflers.
    assert inside.max(initial=0) <= 1
    assert inside.sum(axis=0).max() == schedule.overlap()


@pytest.mark.parametrize(("budget", "shufflers"), SMALL)
def test_a_batch_is_open_only_while_a_larger_one_is_or_none(budget: int, shufflers: int) -> None:
    """Batches are nested or apart: what lies below a batch ends before it does."""
    batches = intervals(combinatorial_schedule(budget, shufflers, 1))
    if len(batches) <= 400:
        for level, start, end in batches:
            for other_level, other_start, other_end in batches:
                if other_level > level and other_start < end and start < other_end:
                    assert other_start <= start
                    assert end < other_end


@pytest.mark.parametrize(("budget", "shufflers"), SMALL)
def test_batches_of_each_size_are_as_many_as_counted(budget: int, shufflers: int) -> None:
    schedule = combinatorial_schedule(budget, shufflers, 1)
    for level, counts in enumerate(batch_counts(budget, shufflers), start=1):
        spans = [end - start for at, start, end in intervals(schedule) if at == level]
        # At level 1 every batch is one slot, whatever is left of the budget.
        expected = np.repeat([slots(left, level - 1) for left in counts], list(counts.values()))
        assert sorted(spans) == sorted(expected.tolist())


def test_sizes_for_a_million_users() -> None:
    schedule = combinatorial_schedule(budget=24, shufflers=4, slot_users=49)
    assert schedule.slots == 20_475
    assert schedule.slots * schedule.slot_users > 1_000_000
    assert schedule.depths.max() == 24
    users = (np.arange(schedule.slots) - schedule.parents) * schedule.slot_users
    sizes = [(int(users[ends].min()), int(users[ends].max())) for ends in schedule.ends_by_level]
    assert sizes == [(49, 49), (98, 1225), (147, 15_925), (196, 143_325)]


@pytest.mark.parametrize("shufflers", [2, 3, 4])
def test_it_has_more_slots_than_a_uniform_tree_of_the_same_worst_estimate(shufflers: int) -> None:
    uniform = uniform_schedule(degree=6, shufflers=shufflers, slot_users=1)
    assert slots(int(uniform.depths.max()), shufflers) > uniform.slots


@pytest.mark.parametrize(
    ("budget", "shufflers", "slot_users"), [(-1, 2, 1), (2, 0, 1), (2, 2, 0), (10, 65, 1), (10**6, 3, 1)]
)
def test_bad_parameters_are_refused(budget: int, shufflers: int, slot_users: int) -> None:
    with pytest.raises(ParameterError, match="budget"):
        combinatorial_schedule(budget, shufflers, slot_users)
