import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from shuffledp.errors import ParameterError
from shuffledp.schedules.combinatorial import combinatorial_schedule, slots
from shuffledp.schedules.prefixes import PrefixSchedule
from shuffledp.schedules.uniform import uniform_schedule


@st.composite
def schedules(draw) -> PrefixSchedule:
    shufflers = draw(st.integers(1, 5))
    if draw(st.booleans()):
        budget = draw(st.integers(0, 8).filter(lambda budget: slots(budget, shufflers) <= 1500))
        return combinatorial_schedule(budget, shufflers, draw(st.integers(1, 5)))
    degree = draw(st.integers(2, 6).filter(lambda degree: degree**shufflers <= 1500))
    return uniform_schedule(degree, shufflers, draw(st.integers(1, 5)))


@given(schedules(), st.integers(0, 2**32 - 1))
def test_prefix_sums_are_those_of_a_plain_loop(schedule: PrefixSchedule, seed: int) -> None:
    values = np.random.default_rng(seed).integers(-9, 10, (schedule.batches, 2))
    totals = np.zeros((schedule.slots, 2), dtype=np.int64)
    for end in range(1, schedule.slots):
        totals[end] = totals[schedule.parents[end]] + values[end - 1]
    np.testing.assert_array_equal(schedule.prefix_sums(values), totals)
    np.testing.assert_array_equal(schedule.prefix_sums(values[:, 0]), totals[:, 0])
    np.testing.assert_allclose(schedule.prefix_sums(values / 7), totals / 7, atol=1e-9)


@given(schedules(), st.integers(0, 2**32 - 1))
def test_exact_batches_make_exact_prefixes(schedule: PrefixSchedule, seed: int) -> None:
    """Batches cover every slot of a prefix once and no other one."""
    in_slots = np.random.default_rng(seed).integers(0, 100, schedule.slots)
    before = np.concatenate(([0], np.cumsum(in_slots)))
    batches = before[1 : schedule.slots] - before[schedule.parents[1:]]
    np.testing.assert_array_equal(schedule.prefix_sums(batches), before[: schedule.slots])


@given(schedules())
def test_depths_and_overlap_are_those_of_a_plain_count(schedule: PrefixSchedule) -> None:
    depths, inside = [0], np.zeros(schedule.slots, dtype=int)
    for end in range(1, schedule.slots):
        start = int(schedule.parents[end])
        depths.append(depths[start] + 1)
        # Batch `end` holds the slots start, ..., end - 1, counted from 0.
        inside[start:end] += 1
    assert schedule.depths.tolist() == depths
    assert schedule.overlap() == inside.max()
    assert schedule.batches == schedule.slots - 1


@given(schedules())
def test_levels_end_where_they_say(schedule: PrefixSchedule) -> None:
    for level, ends in enumerate(schedule.ends_by_level, start=1):
        assert ends.tolist() == [end for end in range(schedule.slots) if schedule.levels[end] == level]
    assert sum(ends.size for ends in schedule.ends_by_level) == schedule.batches
    if schedule.batches:
        highest = np.flatnonzero(schedule.levels == schedule.levels.max())
        assert schedule.large_ends.tolist() == highest.tolist()


def test_a_single_slot_has_no_batch() -> None:
    schedule = PrefixSchedule(np.zeros(1, dtype=np.int64), np.zeros(1, dtype=np.int64), 3)
    assert (schedule.slots, schedule.batches, schedule.overlap()) == (1, 0, 0)
    assert schedule.depths.tolist() == [0]
    assert schedule.prefix_sums(np.zeros(0)).tolist() == [0.0]


@pytest.mark.parametrize("parents", [[], [0, 1], [0, 0, 2], [0, -1], [-1, 0], [0, 5, 0]])
def test_parents_that_are_not_earlier_are_refused(parents: list[int]) -> None:
    with pytest.raises(ParameterError, match="parents"):
        PrefixSchedule(np.array(parents, dtype=np.int64), np.ones(len(parents), dtype=np.int64), 1)
