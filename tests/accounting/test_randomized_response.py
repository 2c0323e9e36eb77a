import math

import numpy as np
import pytest

from shuffledp.accounting.amplification import stronger_clones
from shuffledp.accounting.blanket import BlanketCurve
from shuffledp.accounting.curves import epsilon_at
from shuffledp.accounting.randomized_response import (
    OthersHoldAThird,
    response_matrix,
    shuffled_response,
    smallest_provable,
)
from shuffledp.errors import ParameterError


def view(matrix: np.ndarray, inputs: list[int]) -> np.ndarray:
    symbols = matrix.shape[1]
    law = np.zeros((len(inputs) + 1,) * symbols)
    law[(0,) * symbols] = 1.0
    for x in inputs:
        law = sum(matrix[x, y] * np.roll(law, 1, axis=y) for y in range(symbols))
    return law


def hockey_stick(p: np.ndarray, q: np.ndarray, epsilon: float) -> float:
    return float(np.maximum(p - math.exp(epsilon) * q, 0).sum())


def test_three_columns_do_for_every_number_of_symbols() -> None:
    for symbols in (2, 3, 5, 8):
        short, whole = shuffled_response(1.5, 40, symbols), BlanketCurve(response_matrix(1.5, symbols), 40)
        for epsilon in (0.0, 0.4, 1.0):
            assert short.delta(epsilon) == pytest.approx(whole.delta(epsilon), rel=1e-9)


def test_the_figures_of_the_protocols() -> None:
    assert shuffled_response(1.0, 20, 5).delta(0.5) == pytest.approx(0.00056, abs=5e-6)
    assert shuffled_response(1.0, 20, 2).delta(0.5) == pytest.approx(stronger_clones(1.0, 20).delta(0.5), rel=1e-6)


@pytest.mark.parametrize(("local_epsilon", "users", "symbols"), [(2.0, 6, 3), (2.0, 6, 4), (1.0, 8, 4), (3.0, 5, 5)])
def test_others_hold_a_third_against_brute_force(local_epsilon: float, users: int, symbols: int) -> None:
    matrix = response_matrix(local_epsilon, symbols)
    p, q = (view(matrix, [x] + [2] * (users - 1)) for x in (0, 1))
    two = tuple(range(2, symbols))
    for epsilon in (0.0, 0.2, 0.5, 0.9):
        found = OthersHoldAThird(local_epsilon, users, symbols).delta(epsilon)
        assert found == pytest.approx(hockey_stick(p.sum(axis=two), q.sum(axis=two), epsilon), rel=1e-9)
        whole = hockey_stick(p, q, epsilon)
        assert found <= whole * (1 + 1e-12) <= shuffled_response(local_epsilon, users, symbols).delta(epsilon) * 1.001


def test_counting_two_symbols_is_no_upper_bound() -> None:
    """The variation-ratio pair for k >= 4 is exceeded by a real data set, so it must not be sold as a bound."""
    matrix = response_matrix(2.0, 4)
    p, q = (view(matrix, [x] + [2] * 7) for x in (0, 1))
    assert OthersHoldAThird(2.0, 8, 4).delta(1.0) == pytest.approx(0.1325854, abs=1e-7)
    assert hockey_stick(p, q, 1.0) == pytest.approx(0.1340138, abs=1e-7)


@pytest.mark.parametrize("symbols", [3, 10, 100])
def test_lower_and_upper_bounds_meet_for_many_users(symbols: int) -> None:
    lower = smallest_provable(OthersHoldAThird(2.0, 50_000, symbols), 1e-6)
    upper = epsilon_at(shuffled_response(2.0, 50_000, symbols), 1e-6)
    assert lower < upper < lower * 1.01
    assert upper < epsilon_at(stronger_clones(2.0, 50_000), 1e-6)


def test_a_twin_with_a_fifth_fewer_users_is_told_apart() -> None:
    for curve in (shuffled_response, OthersHoldAThird):
        assert curve(1.0, 8000, 5).delta(0.03) > curve(1.0, 10_000, 5).delta(0.03)


def test_bad_parameters_are_named() -> None:
    with pytest.raises(ParameterError, match="symbols"):
        shuffled_response(1.0, 10, 1)
    with pytest.raises(ParameterError, match="symbols"):
        OthersHoldAThird(1.0, 10, 2)
    assert OthersHoldAThird(1.0, 10, 3).delta(1.0) == 0
