"""A curator with buffers: its bound by explicit matrices, and beside what others promise."""

import math

import numpy as np
import pytest
from scipy import stats

from shuffledp.accounting.filter_designs import design_for
from shuffledp.accounting.gaussian import gaussian_standard_deviation
from shuffledp.continual.carried.planner import plan_carried
from shuffledp.privacy import Privacy
from shuffledp.references.continual.buffered import _least_union, buffered_curator_bound

PRIVACY = Privacy(1, 1e-6)


@pytest.mark.parametrize("slots", [16, 100, 300])
def test_the_union_is_that_of_explicit_matrices(slots: int) -> None:
    """Of all numbers of buffers the best; the noise is that with which every column has length 1."""
    found = []
    one, later = np.eye(slots), np.eye(slots, k=-1)
    for windows in (2, 3, 4, 5):
        design = design_for(windows, slots)
        whole = slots + design.offset
        variances = (whole / (whole - np.arange(slots))) ** (2 * design.growth)
        matrix = one
        for p, g in design.gains:
            matrix = matrix @ (one - g / (p + g) * later)
        for pole in (*design.poles, 1.0):
            matrix = np.linalg.solve(one - pole * later, matrix)
        lengths = np.sqrt((matrix**2 / variances[:, np.newaxis]).sum(axis=0))
        sums = np.tril(np.ones((slots, slots))) * lengths @ np.linalg.inv(matrix)
        deviations = np.sqrt((sums**2 * variances).sum(axis=1))
        low, high = 0.0, 20 * float(deviations.max())
        for _ in range(50):
            middle = (low + high) / 2
            few = 2 * stats.norm.sf(middle / deviations).sum() <= 0.05
            low, high = (low, middle) if few else (middle, high)
        found.append(high)
    assert _least_union(slots, 0.05) == pytest.approx(min(found), rel=3e-4)


@pytest.mark.parametrize("users", [400, 20_000])
def test_it_is_the_best_of_all_slot_sizes(users: int) -> None:
    bound = buffered_curator_bound(users, PRIVACY, 0.95)
    deviation = gaussian_standard_deviation(PRIVACY)
    every = [
        deviation * _least_union(users // size, 0.05) + (size - 1) / 2 for size in range(1, 60) if users // size >= 16
    ]
    assert min(every) * (1 - 1e-9) <= bound <= 1.02 * min(every)


def test_shufflers_pay_little_beside_the_curator() -> None:
    """Whole weights, rounding and shares cost a few per cent; nobody is below what a curator needs."""
    for users in (20_000, 200_000):
        curator = buffered_curator_bound(users, PRIVACY, 0.95)
        plan = plan_carried(users=users, shufflers=4, privacy=PRIVACY)
        assert 0.98 * curator < plan.error_bound < 1.06 * curator


def test_it_scales_as_it_should() -> None:
    one = buffered_curator_bound(20_000, PRIVACY, 0.95)
    assert buffered_curator_bound(20_000, PRIVACY, 0.95, sensitivity=2.0, reach=1.0) == pytest.approx(2 * one, rel=0.02)
    assert buffered_curator_bound(20_000, PRIVACY, 0.99) > one
    assert buffered_curator_bound(20_000, PRIVACY, 0.95, coordinates=5) > one
    assert buffered_curator_bound(20_000, Privacy(0.5, 1e-6), 0.95) > 1.5 * one
    assert buffered_curator_bound(10, PRIVACY, 0.95) == math.inf
