"""Declared bounds: no row is longer than 1, whatever comes in, and the way back is exact."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from shuffledp import ParameterError
from shuffledp.learn.estimators import preparation
from shuffledp.learn.estimators.preparation import Preparation
from shuffledp.learn.estimators.targets import DeclaredTargets

NUMBERS = st.floats(allow_nan=False, allow_infinity=False)


@settings(max_examples=200, deadline=None)
@given(
    features=arrays(np.float64, (3, 4), elements=NUMBERS),
    bounds=st.sampled_from([None, (0, 1), (-1e-3, 5), [(0, 1), (-2, 2), (5, 6), (-1e300, 1e300)]]),
    norm=st.sampled_from([None, 1e-3, 1.0, 7.0]),
    intercept=st.booleans(),
)
def test_no_row_is_longer_than_one(features, bounds, norm, intercept: bool) -> None:
    ready = Preparation.of(4, bounds=bounds, norm=norm or (None if bounds else 1.0), intercept=intercept)
    rows, clipped = ready.rows(features)
    assert np.isfinite(rows).all() and clipped.shape == (3,)
    assert (np.linalg.norm(rows, axis=1) <= 1).all()


@pytest.mark.parametrize("bounds", [None, (0, 3), [(0, 3), (-1, 4)]])
@pytest.mark.parametrize("intercept", [True, False])
def test_scores_are_the_same_in_both_units_where_nothing_is_clipped(bounds, intercept: bool) -> None:
    rng = np.random.default_rng(1)
    features, theta = rng.uniform(0, 3, (50, 2)), rng.normal(size=2 + intercept)
    one = Preparation.of(2, bounds=bounds, norm=5.0, intercept=intercept)
    rows, clipped = one.rows(features)
    coefficients, constant = one.features.model(theta)
    assert not clipped.any() and rows @ theta == pytest.approx(features @ coefficients + constant)
    assert (one.scores(features, coefficients, constant) == features @ coefficients + constant).all()


def test_rows_on_their_bounds_are_not_counted() -> None:
    corners = np.array([[0.1, 0.3], [0.1, 0.7], [0.2, 0.3], [0.2, 0.7]])
    assert Preparation.of(2, bounds=[(0.1, 0.2), (0.3, 0.7)], norm=None, intercept=True).rows(corners)[1].sum() == 0
    assert DeclaredTargets.of((0.1, 0.7)).scaled(np.array([0.1, 0.7]))[1].sum() == 0


@pytest.mark.parametrize("bounds", [(1e308, 1.7e308), (-8e307, 8e307), (0, 1e-99), (1, 1 + 1e-15)])
@pytest.mark.parametrize("norm", [1e-30, 1e30])
def test_models_are_finite_whatever_may_be_declared(bounds, norm: float) -> None:
    one = Preparation.of(2, bounds=bounds, norm=norm, intercept=True)
    rows, _ = one.rows(np.array([[bounds[0], bounds[1]], [0.0, -1e308]]))
    coefficients, constant = one.features.model(np.full(3, 1e30))
    assert np.isfinite(rows).all() and np.isfinite(coefficients).all() and np.isfinite(constant)


@pytest.mark.parametrize("bounds", [(0, 5e-324), (-1e308, 1e308), (-np.inf, np.inf)])
def test_bounds_that_no_number_can_be_scaled_by_are_refused(bounds) -> None:
    for refused in (
        lambda: Preparation.of(2, bounds=bounds, norm=None, intercept=True),
        lambda: DeclaredTargets.of(bounds),
    ):
        with pytest.raises(ParameterError) as found:
            refused()
        assert found.value.parameter in ("feature_bounds", "target_bounds")


def test_blocks_are_as_good_as_all_at_once(monkeypatch) -> None:
    features = np.random.default_rng(2).normal(size=(1000, 3)) * 2
    one = Preparation.of(3, bounds=(-2, 2), norm=1.2, intercept=True)
    rows, clipped = one.rows(features)
    monkeypatch.setattr(preparation, "_AT_A_TIME", 28)
    again, counted = one.rows(features)
    assert (rows == again).all() and (clipped == counted).all() and clipped.sum() > 100
