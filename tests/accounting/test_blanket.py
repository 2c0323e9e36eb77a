import itertools
import math

import numpy as np
import pytest

from shuffledp.accounting.amplification import stronger_clones
from shuffledp.accounting.blanket import BlanketCurve, expected_positive_part
from shuffledp.accounting.curves import epsilon_at
from shuffledp.errors import ParameterError


def convolved_positive_part(values: np.ndarray, masses: np.ndarray, times: int) -> float:
    """Directly: every multiset of values, no grid."""
    total = 0.0
    for drawn in itertools.combinations_with_replacement(range(values.size), times):
        how_often = np.bincount(drawn, minlength=values.size)
        ways = math.factorial(times) / math.prod(math.factorial(int(c)) for c in how_often)
        total += ways * float(np.prod(masses**how_often)) * max(0.0, float(values @ how_often))
    return total


def shuffled_views(matrix: np.ndarray, users: int) -> dict:
    """For every multiset of inputs the law of the number of each symbol."""
    symbols = matrix.shape[1]
    views = {}
    for inputs in itertools.combinations_with_replacement(range(matrix.shape[0]), users):
        law = np.zeros((users + 1,) * symbols)
        law[(0,) * symbols] = 1.0
        for x in inputs:
            law = sum(matrix[x, y] * np.roll(law, 1, axis=y) for y in range(symbols))
        views[inputs] = law.ravel()
    return views


@pytest.mark.parametrize("seed", range(25))
def test_at_least_the_exact_delta_of_random_randomizers(seed: int) -> None:
    """All data of up to 6 users, all replacements of one value, enumerated."""
    rng = np.random.default_rng(seed)
    users = int(rng.integers(1, 7))
    matrix = rng.dirichlet(np.full(3, 2.0), size=3)
    if seed % 5 == 0:
        matrix[0, 0] = 0.0  # a symbol that one input never sends
        matrix /= matrix.sum(axis=1, keepdims=True)
    views = shuffled_views(matrix, users)
    curve = BlanketCurve(matrix, users)
    for epsilon in (0.0, 0.3, 1.0):
        exact = 0.0
        for others in itertools.combinations_with_replacement(range(3), users - 1):
            for a, b in itertools.permutations(range(3), 2):
                p, q = (views[tuple(sorted((*others, x)))] for x in (a, b))
                exact = max(exact, float(np.maximum(p - math.exp(epsilon) * q, 0).sum()))
        assert exact <= curve.delta(epsilon) * (1 + 1e-12)


@pytest.mark.parametrize("seed", range(25))
def test_the_transform_against_direct_convolution(seed: int) -> None:
    rng = np.random.default_rng(seed)
    size, times = int(rng.integers(2, 5)), int(rng.integers(1, 9))
    values, masses = rng.normal(-0.4, 1.5, size), rng.dirichlet(np.ones(size))
    exact = convolved_positive_part(values, masses, times)
    found = expected_positive_part(values, masses, times)
    assert found >= exact * (1 - 1e-12)
    assert found == pytest.approx(exact, rel=1e-3, abs=1e-6)


def test_a_finer_grid_is_closer_and_both_are_above() -> None:
    values, masses = np.array([-1.37, 0.0, math.sqrt(2)]), np.array([0.3, 0.5, 0.2])
    exact = convolved_positive_part(values, masses, 30)
    coarse, fine = (expected_positive_part(values, masses, 30, points) for points in (1 << 9, 1 << 14))
    assert exact < fine < coarse
    assert fine == pytest.approx(exact, rel=1e-4)


def test_sums_far_in_the_tail_keep_their_digits() -> None:
    """On the integers the grid is off by nothing: against exact binomial sums, far below 1e-16."""
    times = 400
    found = expected_positive_part(np.array([-1.0, 1.0]), np.array([0.8, 0.2]), times)
    exact = sum((2 * j - times) * math.comb(times, j) * 0.2**j * 0.8 ** (times - j) for j in range(200, times + 1))
    assert 1e-45 < exact < 1e-30
    # What is allowed for rounding of the values is far above this.
    assert exact <= found < exact + 1e-11


def test_degenerate_sums() -> None:
    assert expected_positive_part(np.array([0.5]), np.array([1.0]), 4) == 2.0
    assert expected_positive_part(np.array([-0.5]), np.array([1.0]), 4) == 0.0
    assert BlanketCurve([[0.5, 0.5], [0.5, 0.5]], 3).delta(0.0) == 0.0
    assert BlanketCurve([[0.3, 0.7]], 3).delta(0.0) == 0.0
    assert BlanketCurve([[1.0, 0.0], [0.0, 1.0]], 3).delta(2.0) == 1.0


@pytest.mark.parametrize(("local_epsilon", "users"), [(1.0, 20), (1.0, 10_000), (2.0, 100_000), (4.0, 1_000_000)])
def test_binary_randomized_response_is_the_stronger_clone(local_epsilon: float, users: int) -> None:
    """Two computations that share nothing but the binomial."""
    truth = 1 / (1 + math.exp(-local_epsilon))
    curve = BlanketCurve([[truth, 1 - truth], [1 - truth, truth]], users)
    exact = epsilon_at(stronger_clones(local_epsilon, users), 1e-6)
    found = epsilon_at(curve, 1e-6)
    assert exact * (1 - 1e-9) <= found <= exact * (1 + 2e-4)


def test_a_twin_with_a_fifth_fewer_users_is_told_apart() -> None:
    matrix = np.array([[0.6, 0.3, 0.1], [0.2, 0.5, 0.3], [0.3, 0.3, 0.4]])
    for users, epsilon in ((50, 0.3), (1000, 0.1), (20_000, 0.03)):
        assert BlanketCurve(matrix, users * 4 // 5).delta(epsilon) > 1.05 * BlanketCurve(matrix, users).delta(epsilon)


def test_the_order_of_symbols_and_inputs_does_not_matter() -> None:
    matrix = np.array([[0.6, 0.3, 0.1], [0.2, 0.5, 0.3], [0.3, 0.3, 0.4]])
    for rows, columns in (([2, 0, 1], [0, 1, 2]), ([0, 1, 2], [1, 2, 0])):
        shuffled = BlanketCurve(matrix[np.ix_(rows, columns)], 30)
        assert shuffled.delta(0.3) == pytest.approx(BlanketCurve(matrix, 30).delta(0.3), rel=1e-12)
    assert BlanketCurve(matrix, 30).blanket_mass == pytest.approx(0.6)


@pytest.mark.parametrize(
    ("matrix", "users"),
    [([0.5, 0.5], 3), ([[0.5, 0.6], [0.5, 0.5]], 3), ([[1.5, -0.5], [0.5, 0.5]], 3), ([[0.5, 0.5]] * 2, 0)],
)
def test_what_is_no_randomizer_is_refused(matrix, users: int) -> None:
    with pytest.raises(ParameterError):
        BlanketCurve(matrix, users)
    with pytest.raises(ParameterError):
        BlanketCurve([[math.nan, 0.5], [0.5, 0.5]], 3)


def test_values_almost_all_far_below_zero_are_bounded_by_their_positive_parts() -> None:
    """Just below a randomizer's own epsilon: tilting would need numbers beyond the largest float."""
    values, masses = np.array([1e-9, -1.0, -3e3]), np.array([1e-3, 0.5, 0.499])
    for times in (2, 100, 5000):
        bound = expected_positive_part(values, masses, times)
        # Only if all are the first is the sum positive.
        assert times * 1e-9 * 1e-3**times <= bound <= times * 1.001e-12
