"""Unions and Gaussian tails of whole noise, by formulas of their own."""

import numpy as np
import pytest
from scipy import stats

from harness import carried
from shuffledp.accounting.filter_designs import design_for
from shuffledp.continual.carried.bound import bounds_at, horizon_noise_bound
from shuffledp.continual.carried.horizon import Horizon


@pytest.mark.parametrize(("windows", "slots"), [(2, 30), (3, 60), (4, 60)])
@pytest.mark.parametrize("surplus", [1.0, 2.0])
def test_a_union_over_all_slots_with_their_own_deviations(windows: int, slots: int, surplus: float) -> None:
    weights = Horizon(design_for(windows, slots), slots).weights(0.2355, 16)
    response = carried.errors(weights)
    drawn = surplus * carried.covariance(weights.noise_variances, slots)
    # Beside everybody's noise, the noise that is only thought of, and four of its own deviations.
    thought = 4 * (response**2).sum(axis=1)
    deviations = np.sqrt(np.einsum("ts,ts->t", response @ drawn, response) + thought)
    slack = 4 * np.sqrt(thought.max())
    variances = surplus * weights.prefix_variances
    bound = horizon_noise_bound(weights, variances, 0.05)
    failed = 2 * stats.norm.sf((bound - slack) / deviations).sum() / stats.norm.cdf(4)
    assert 0.045 < failed <= 0.05
    each = bounds_at(weights, variances, 0.05)
    failed = 2 * stats.norm.sf((each - slack) / deviations).sum() / stats.norm.cdf(4)
    assert 0.045 < failed <= 0.05
    # In proportion to the deviations: every slot fails alike.
    assert np.ptp(stats.norm.sf((each - slack) / deviations)) < 0.05 * 0.05 / slots
    assert (horizon_noise_bound(weights, variances, 0.01) > bound) and each.max() > bound > each.min()
