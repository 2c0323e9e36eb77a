"""What false slots leave of the noise, against explicit matrices with every place tried."""

import math

import numpy as np
import pytest

from harness import carried
from shuffledp.accounting.filter_designs import design_for
from shuffledp.continual.carried.exposure import shift_with_silent
from shuffledp.continual.carried.horizon import Horizon


def worst_of_all(weights, silent: int) -> float:
    slots, worst = weights.slots, 0.0
    for place in range(1, slots - silent + 1):
        rows = weights.noise_variances.copy()
        rows[:, place : place + silent] = 0
        shifts = carried.shifts(weights, carried.covariance(rows, slots))
        shifts[place : place + silent] = 0
        worst = max(worst, float(shifts.max()))
    return worst


@pytest.mark.parametrize(("windows", "slots"), [(3, 20), (3, 45), (4, 20), (4, 45), (5, 30)])
def test_silent_slots_leave_what_explicit_matrices_say(windows: int, slots: int) -> None:
    weights = Horizon(design_for(windows, slots), slots).weights(0.2355, 64)
    before = weights.shift
    assert shift_with_silent(weights, 0) == before
    for silent in range(1, windows - 1):
        claimed, truth = shift_with_silent(weights, silent), worst_of_all(weights, silent)
        assert before <= claimed and truth / 1.01 <= claimed <= truth * (1 + 1e-6)
        before = claimed
    assert shift_with_silent(weights, windows - 1) == math.inf


@pytest.mark.parametrize("windows", [2, 3, 4])
def test_as_many_silent_slots_as_noises_bare_a_sum(windows: int) -> None:
    """Then the last of these running sums has no noise at all, and everybody before is in it."""
    weights = Horizon(design_for(windows, 20), 20).weights(0.2355, 64)
    rows = weights.noise_variances.copy()
    rows[:, 9 : 9 + windows - 1] = 0
    noise = carried.covariance(rows, 20)
    bared = 9 + windows - 2
    assert np.abs(noise[bared]).max() == 0 and carried.signal(weights)[bared, 8] > 0
    assert np.diag(carried.covariance(np.where(rows == 0, 1, rows), 20)).min() > 0


def test_spread_noise_survives_longer_silence() -> None:
    weights = Horizon(design_for(3, 20), 20).weights(0.2355, 64)
    assert shift_with_silent(weights, 2) == math.inf
    rows = weights.noise_variances.copy()
    # Each noise comes from the last two slots: with two false ones half is left at both ends, and none between.
    for spread, silent in ((2, 1), (3, 2)):
        worst = 0.0
        for place in range(1, 20 - silent + 1):
            left = rows.copy()
            for time in range(20):
                suppliers = range(max(0, time - spread + 1), time + 1)
                left[:, time] *= sum(not place <= each < place + silent for each in suppliers) / len(suppliers)
            shifts = carried.shifts(weights, carried.covariance(left, 20))
            shifts[place : place + silent] = 0
            worst = max(worst, float(shifts.max()))
        claimed = shift_with_silent(weights, silent, spread)
        assert worst / 1.01 <= claimed <= worst * (1 + 1e-6)
    assert shift_with_silent(weights, 2, 2) < math.inf
