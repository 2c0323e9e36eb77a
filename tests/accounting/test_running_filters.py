"""Rational filters against explicit matrices, in exact fractions where they are small."""

from fractions import Fraction

import numpy as np
import pytest

from shuffledp.accounting import running_filters
from shuffledp.accounting.running_filters import RunningFilter
from shuffledp.errors import ParameterError

FILTERS = [
    ((0.5,), ()),
    ((0.0,), ()),
    ((0.97,), ()),
    ((0.3, 0.9), (0.6,)),
    ((0.3, 0.9), (0.0,)),
    ((0.1, 0.2), (0.95,)),
    ((0.2, 0.7, 0.98), (0.5, 0.9)),
    ((0.2, 0.25, 0.3), (0.5, 0.9)),
    ((0.1, 0.5, 0.8, 0.99), (0.3, 0.7, 0.95)),
]


def explicit(zeros: tuple[float, ...], poles: tuple[float, ...], slots: int) -> np.ndarray:
    """C, by triangular solves."""
    one, later = np.eye(slots), np.eye(slots, k=-1)
    found = one
    for zero in zeros:
        found = found @ (one - zero * later)
    for pole in (*poles, 1.0):
        found = np.linalg.solve(one - pole * later, found)
    return found


@pytest.mark.parametrize("slots", [1, 2, 60])
@pytest.mark.parametrize(("zeros", "poles"), FILTERS)
def test_columns_and_prefixes_are_those_of_the_matrix(zeros, poles, slots: int) -> None:
    made, matrix = RunningFilter(zeros, poles), explicit(zeros, poles, slots)
    np.testing.assert_allclose(made.coefficients(slots), matrix[:, 0], atol=1e-12)
    generator = np.random.default_rng(1)
    for variances in (np.ones(slots), np.linspace(1, 50, slots), generator.uniform(0.1, 10, slots)):
        weights = generator.uniform(1, 9, slots)
        lengths = np.sqrt((matrix**2 / variances[:, np.newaxis]).sum(axis=0))
        np.testing.assert_allclose(made.column_lengths(variances), lengths, rtol=1e-9)
        # Weighed so that every column has length 1.
        normal = matrix / lengths / np.sqrt(variances)[:, np.newaxis]
        np.testing.assert_allclose((normal**2).sum(axis=0), 1, rtol=1e-9)
        sums = np.tril(np.ones((slots, slots))) / weights @ np.linalg.inv(matrix)
        found = made.prefix_variances(variances, weights)
        np.testing.assert_allclose(found, (sums**2 * variances).sum(axis=1), rtol=1e-9)


def test_a_small_case_in_fractions() -> None:
    """k = 3, three slots, by hand: c = 1, 1/2 + 1 - 1 1/4, ..."""
    zeros, pole = (Fraction(1, 4), Fraction(3, 4)), Fraction(1, 2)
    series = [Fraction(1)]
    numerator = [Fraction(1), -sum(zeros), zeros[0] * zeros[1]]
    denominator = [Fraction(1), -(pole + 1), pole]
    for place in (1, 2):
        series.append(numerator[place] - sum(denominator[j] * series[place - j] for j in range(1, place + 1)))
    variances = [Fraction(1), Fraction(2), Fraction(4)]
    squares = [sum(series[s - t] ** 2 / variances[s] for s in range(t, 3)) for t in range(3)]
    made = RunningFilter((0.25, 0.75), (0.5,))
    assert made.coefficients(3).tolist() == [float(each) for each in series]
    found = made.column_lengths(np.array([1.0, 2.0, 4.0])) ** 2
    np.testing.assert_allclose(found, [float(each) for each in squares], rtol=1e-14)


@pytest.mark.parametrize(
    ("zeros", "poles"),
    [
        ((0.5,), (0.5,)),
        ((0.5, 0.5), (0.3,)),
        ((0.1, 0.2, 0.3), (0.4, 0.4)),
        ((1.0,), ()),
        ((-0.1,), ()),
        ((0.5, 0.6), (1.0,)),
        ((), ()),
    ],
)
def test_what_is_no_filter_is_refused(zeros, poles) -> None:
    with pytest.raises(ParameterError, match="zeros"):
        RunningFilter(zeros, poles)


@pytest.mark.parametrize("gap", [3.9e-9, 1.8e-9, 5.8e-11, 1e-12])
@pytest.mark.parametrize("base", [0.3, 0.7, 0.9])
def test_poles_so_near_that_rounding_would_decide_are_refused(base: float, gap: float) -> None:
    variances = np.linspace(1, 3, 40)
    with pytest.raises(ParameterError, match="poles"):
        RunningFilter((0.5, 2 / 3, 0.75), (base, base + gap)).column_lengths(variances)
    # With a zero between them nothing cancels, and the lengths are right.
    between = (0.1, base + gap / 2, 0.95)
    made, matrix = RunningFilter(between, (base, base + gap)), explicit(between, (base, base + gap), 40)
    lengths = np.sqrt((matrix**2 / variances[:, np.newaxis]).sum(axis=0))
    np.testing.assert_allclose(made.column_lengths(variances), lengths, rtol=1e-7)


def test_stretches_of_slots_change_no_bit(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of a horizon of millions tables are made in stretches: as if it were one."""
    variances, weights = 1 + np.arange(50.0) ** 1.5, 3 + np.arange(50.0) % 7
    law = RunningFilter((0.9, 0.5, 0.1), (0.8, 0.3))
    whole = law.column_lengths(variances), law.prefix_variances(variances, weights)
    monkeypatch.setattr(running_filters, "_BLOCK", 7)
    for one, other in zip(
        whole, (law.column_lengths(variances), law.prefix_variances(variances, weights)), strict=True
    ):
        np.testing.assert_array_equal(one, other)
