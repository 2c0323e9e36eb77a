"""Plans that do not count on some slots in a row: wherever those are, explicit matrices say what is left is enough."""

import numpy as np
import pytest

from harness import carried
from shuffledp.continual.carried import messages
from shuffledp.continual.carried.plan import CarriedPlan
from shuffledp.continual.carried.planner import plan_of
from shuffledp.continual.request import CountRequest
from shuffledp.privacy import Privacy
from shuffledp.randomness import RandomBits


def drawn_by_slot(plan: CarriedPlan, monkeypatch) -> np.ndarray:
    """The variance of N_i (first axis) of each running sum (second) that each slot's people (third) draw."""
    slots, noises = plan.weights.slots, plan.weights.windows - 1
    asked: list[np.ndarray] = []

    def sampler(variances, shape=None, *, bits):
        asked.append(np.array(variances))
        return np.zeros(np.shape(variances), dtype=np.int64)

    monkeypatch.setattr(messages, "sample_discrete_gaussian", sampler)
    plan._contributions(np.zeros(slots, dtype=np.int64), np.arange(slots), RandomBits.seeded(1))
    people = np.diff(plan.schedule.users_by(np.arange(slots + 1)))
    found = np.zeros((noises, slots, slots))
    for draw, variances in enumerate(asked):
        late, number = divmod(draw, noises)
        for slot in range(slots - late):
            found[number, slot + late, slot] = people[slot] * variances[slot]
    return found


def worst_shift(plan: CarriedPlan, drawn: np.ndarray, silent: int) -> float:
    """Of anybody who came in another slot, over all places of so many false slots in a row."""
    slots, worst = plan.weights.slots, 0.0
    signal = carried.signal(plan.weights)
    for place in range(slots - silent + 1):
        honest = np.r_[0:place, place + silent : slots]
        noise = carried.covariance(drawn[:, :, honest].sum(axis=2), slots)
        # Running sums before anybody honest came show nothing.
        seen = slice(honest[0], None)
        moved = signal[seen][:, honest]
        squares = np.einsum("st,st->t", moved, np.linalg.solve(noise[seen, seen], moved))
        worst = max(worst, float(np.sqrt(squares.max())))
    return worst


@pytest.mark.parametrize(("windows", "shufflers", "silent"), [(2, 4, 1), (2, 4, 2), (3, 4, 1), (3, 6, 3), (4, 6, 2)])
def test_slots_that_are_not_counted_on_may_be_false_anywhere(
    windows: int, shufflers: int, silent: int, monkeypatch
) -> None:
    asked = CountRequest(users=240, shufflers=shufflers, privacy=Privacy(4, 1e-2), silent_slots=silent)
    plan = plan_of(asked, windows, 12)
    drawn = drawn_by_slot(plan, monkeypatch)
    shift = plan.weights.shift
    assert 0.9 * shift < worst_shift(plan, drawn, silent) <= shift
    # Wrong twins: a fifth less noise, and one false slot more than was planned for.
    assert worst_shift(plan, 0.64 * drawn, silent) > 1.1 * shift
    if silent + 1 < plan.fatal_silence:
        assert worst_shift(plan, drawn, silent + 1) > 1.05 * shift
