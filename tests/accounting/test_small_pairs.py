"""Pairs of the survey's methods, so small that every outcome can be listed: the curves are those of the lists."""

import math
from itertools import pairwise

import numpy as np
import pytest
from scipy import stats

from shuffledp.accounting.anonymous_sum import AnonymousSumPair
from shuffledp.accounting.correlated import CorrelatedPair
from shuffledp.accounting.guarantee import delta_of_distance
from shuffledp.accounting.responses import ShuffledResponsePair
from shuffledp.accounting.split_coins import BallsPair, SplitCoinsPair

EPSILONS = (0.0, 0.2, 0.7, 1.5)


def hockey_stick(p: np.ndarray, q: np.ndarray, epsilon: float) -> float:
    """The worse of both directions."""
    scale = math.exp(epsilon)
    return float(max(np.maximum(p - scale * q, 0).sum(), np.maximum(q - scale * p, 0).sum()))


@pytest.mark.parametrize("epsilon", EPSILONS)
@pytest.mark.parametrize(("balls", "probability"), [(1, 0.3), (12, 0.1), (30, 0.02), (9, 0.5)])
def test_balls_in_two_bins(balls: int, probability: float, epsilon: float) -> None:
    """(1 + A, B) against (A, 1 + B), a multinomial law of three cells."""
    p, q = np.zeros((balls + 2, balls + 2)), np.zeros((balls + 2, balls + 2))
    for a in range(balls + 1):
        for b in range(balls + 1 - a):
            rest = max(0.0, 1 - 2 * probability)
            mass = stats.multinomial.pmf([a, b, balls - a - b], balls, [probability, probability, rest])
            p[a + 1, b] += mass
            q[a, b + 1] += mass
    assert BallsPair(balls, probability).delta(epsilon) == pytest.approx(
        hockey_stick(p, q, epsilon), rel=1e-6, abs=1e-9
    )


@pytest.mark.parametrize("epsilon", EPSILONS)
def test_poisson_coins_in_two_bins(epsilon: float) -> None:
    k = np.arange(60)
    joint = np.outer(stats.poisson.pmf(k, 4.0), stats.poisson.pmf(k, 4.0))
    p, q = np.zeros((61, 61)), np.zeros((61, 61))
    p[1:, :60], q[:60, 1:] = joint, joint
    assert SplitCoinsPair(8.0).delta(epsilon) == pytest.approx(hockey_stick(p, q, epsilon), rel=1e-6, abs=1e-9)


@pytest.mark.parametrize("honest", [1.0, 0.7, 0.4])
@pytest.mark.parametrize("epsilon", EPSILONS)
def test_correlated_noise(honest: float, epsilon: float) -> None:
    """(Z1 + Z3, Z2 + Z3) against (1 + Z1 + Z3, Z2 + Z3), cell by cell; `honest` scales every shape."""
    ratio, shape, flood = math.exp(-1.1), 1.6, math.exp(-1.0)
    k = np.arange(45)
    centre = stats.nbinom.pmf(k, honest, 1 - ratio)
    both = stats.nbinom.pmf(k, honest * shape, 1 - flood)
    p = np.zeros((91, 91))
    for z3, weight in enumerate(both):
        p[z3 : z3 + 45, z3 : z3 + 45] += weight * np.outer(centre, centre)
    q = np.zeros((91, 91))
    q[1:] = p[:-1]
    found = CorrelatedPair(ratio, shape, flood, honest).delta(epsilon)
    assert found == pytest.approx(hockey_stick(p, q, epsilon), rel=1e-6, abs=1e-9)


@pytest.mark.parametrize("ones", [0, 1, 3])
@pytest.mark.parametrize("masses", [(0.3, 0.2, 0.2, 0.3), (0.15, 0.05, 0.7, 0.1)])
def test_anonymous_bits(masses: tuple[float, ...], ones: int) -> None:
    """Four honest users, so many of the other three with a one: the number of ones that all of them send."""
    p = 0.6
    alone = []
    for bit in (0, 1):
        law = p * np.array(masses)
        law[1 + bit] += 1 - p
        alone.append(law)
    others = np.ones(1)
    for user in range(3):
        others = np.convolve(others, alone[1 if user < ones else 0])
    views = [np.convolve(others, alone[bit]) for bit in (0, 1)]
    pair = AnonymousSumPair(4, p, masses)
    assert pair.pure_epsilon_for(ones) == pytest.approx(np.abs(np.log(views[0] / views[1])).max(), rel=1e-8)
    assert pair.delta(0.1) >= hockey_stick(views[0], views[1], 0.1) * (1 - 1e-9)


def test_an_outcome_that_only_one_input_has_is_no_pure_privacy() -> None:
    assert AnonymousSumPair(2, 0.5, (0.0, 0.5, 0.5, 0.0)).pure_epsilon == math.inf


@pytest.mark.parametrize("users", [1, 2, 5, 12, 40])
@pytest.mark.parametrize("lie", [0.1, 0.3, 0.45])
def test_shuffled_responses_for_the_worst_bits_of_the_others(users: int, lie: float) -> None:
    """Every number of ones among the others, and a tail of each; the search adds a thousandth at most, and no less."""
    pair = ShuffledResponsePair(users, lie)
    for epsilon in (0.05, 0.4, 1.0):
        worst = 0.0
        for ones in range(users):
            zeros = stats.binom.pmf(np.arange(users - ones), users - 1 - ones, lie)
            others = np.convolve(zeros, stats.binom.pmf(np.arange(ones + 1), ones, 1 - lie))
            p, q = np.convolve(others, [1 - lie, lie]), np.convolve(others, [lie, 1 - lie])
            worst = max(worst, hockey_stick(p, q, epsilon))
        assert worst * (1 - 1e-9) <= pair.delta(epsilon) <= worst * 1.0011 + 1e-12


def test_the_worst_bits_are_not_always_at_an_end() -> None:
    """Otherwise a search that looked at the ends only would pass the test above."""
    found = []
    for users, lie, epsilon in ((40, 0.1, 0.4), (40, 0.3, 0.4), (12, 0.1, 1.0), (60, 0.05, 0.7), (80, 0.05, 0.6)):
        pair = ShuffledResponsePair(users, lie)
        deltas = [pair.delta_for(ones, epsilon) for ones in range((users - 1) // 2 + 1)]
        found.append(max(deltas) > 1.002 * max(deltas[0], deltas[-1]))
    assert any(found)


def test_delta_of_a_distance() -> None:
    """Two views, each moved by d: the worst that can come of it, and no more."""
    d, scale = 0.01, math.exp(0.5)
    p0, q0 = np.array([0.6, 0.4, 0.0]), np.array([0.4, 0.6, 0.0])
    p, q = p0 + np.array([-d, 0, d]), q0 + np.array([-d, d, 0])
    before, after = (hockey_stick(a, b, 0.5) for a, b in ((p0, q0), (p, q)))
    assert after <= before + delta_of_distance(scale, d) and delta_of_distance(scale, d) == pytest.approx(
        (1 + scale) * d
    )
    steps = [delta_of_distance(math.exp(epsilon), d) for epsilon in (0.0, 0.5, 1.0)]
    assert all(low < high for low, high in pairwise(steps))
