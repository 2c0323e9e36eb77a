"""Designs that were found by search: filters for any number of slots, nearly as good as can be."""

from itertools import pairwise

import numpy as np
import pytest

from shuffledp.accounting.filter_designs import MOST_WINDOWS, design_for
from shuffledp.accounting.running_filters import RunningFilter
from shuffledp.accounting.unions import gaussian_union

SLOTS = [*range(2, 40), *np.unique(np.geomspace(40, 1 << 26, 60).astype(int)).tolist()]


@pytest.mark.parametrize("windows", range(2, MOST_WINDOWS + 1))
def test_every_number_of_slots_has_a_filter(windows: int) -> None:
    for slots in SLOTS:
        design = design_for(windows, slots)
        assert len(design.gains) == windows - 1 == len(design.poles) + 1
        zeros = tuple(g / (p + g) for p, g in design.gains)
        made = RunningFilter(zeros, design.poles)
        assert list(zeros) == sorted(zeros) and list(design.poles) == sorted(design.poles)
        # Poles are not so near to each other that digits are lost.
        rests = [1 - pole for pole in design.poles]
        assert all(later <= 0.82 * earlier for earlier, later in pairwise(rests))
        assert all(0 < pole < 1 for pole in design.poles) and design.growth > 0 and design.offset > 0
        if slots <= 4096:
            variances = design.variances(slots)
            assert variances[0] == 1 and (np.diff(variances) > 0).all()
            assert np.isfinite(made.column_lengths(variances)).all()


def product(windows: int, slots: int) -> float:
    """The largest deviation of any prefix where one user moves everything by 1."""
    design = design_for(windows, slots)
    made = RunningFilter(tuple(g / (p + g) for p, g in design.gains), design.poles)
    variances = design.variances(slots)
    weights = 1 / made.column_lengths(variances)
    return float(np.sqrt(made.prefix_variances(variances, weights).max()))


@pytest.mark.parametrize(("slots", "least"), [(64, 2.12), (256, 2.54), (4096, 3.41)])
def test_more_windows_come_near_to_the_best_factorisation(slots: int, least: float) -> None:
    """No factorisation of prefix sums has a product below about `least`; square roots have 2.39, 2.83 and 3.71."""
    found = [product(windows, slots) for windows in range(2, MOST_WINDOWS + 1)]
    assert min(found) < 1.04 * least and min(found) > 0.99 * least
    roots = np.cumprod(np.concatenate(([1.0], 1 - 0.5 / np.arange(1, slots))))
    assert min(found) < float((roots**2).sum())


def test_unions_fall_with_windows_over_long_horizons() -> None:
    def union(windows: int, slots: int) -> float:
        design = design_for(windows, slots)
        made = RunningFilter(tuple(g / (p + g) for p, g in design.gains), design.poles)
        variances = design.variances(slots)
        deviations = np.sqrt(made.prefix_variances(variances, 1 / made.column_lengths(variances)))
        return gaussian_union(deviations, 0.05)

    found = [union(windows, 30_000) for windows in (2, 3, 4)]
    assert found[0] > 1.2 * found[1] and found[1] > found[2]
