"""Two bins that move, one up and one down: composed exactly, and against brute force."""

import math

import numpy as np
import pytest

from shuffledp.accounting.laws import Binomial, DiscreteLaplace, IntegerLaw, Poisson
from shuffledp.accounting.pairs import FinitePair, ShiftPair
from shuffledp.accounting.split_coins import BallsPair, SplitCoinsPair
from shuffledp.accounting.two_bins import ReversedPair, TwoBinsPair
from shuffledp.privacy import Privacy
from shuffledp.references.curator_histogram import CuratorHistogram


def _plane(law: IntegerLaw, epsilon: float) -> float:
    """The hockey stick of (Z1 + 1, Z2) against (Z1, Z2 + 1), cell by cell."""
    low, high = law.window(1e-14)
    masses = np.exp(law.log_pmf(np.arange(low, high + 1, dtype=np.float64)))
    here, there = np.append(0.0, masses), np.append(masses, 0.0)
    p, q = np.outer(here, there), np.outer(there, here)
    return float(np.maximum(p - math.exp(epsilon) * q, 0.0).sum())


@pytest.mark.parametrize("law", [Binomial(12, 0.5), Poisson(7.0), DiscreteLaplace(0.6)])
@pytest.mark.parametrize("epsilon", [0.0, 0.5, 1.5])
def test_the_product_of_two_bins(law: IntegerLaw, epsilon: float) -> None:
    exact = _plane(law, epsilon)
    found = TwoBinsPair(ShiftPair(law)).delta(epsilon)
    assert exact * (1 - 1e-9) - 1e-12 <= found <= exact * 1.002 + 1e-9


def test_twice_epsilon_and_delta_is_far_off() -> None:
    """What (2 eps, 2 delta) by hand would cost: a delta hundreds of times larger for this noise."""
    law = Poisson(42.66)
    two_bins = TwoBinsPair(ShiftPair(law))
    assert two_bins.delta(1.0) <= 1.001e-6 < 3e-4 < 2 * ShiftPair(law).delta(0.5)


def test_balls_with_few_throws_and_with_many() -> None:
    assert BallsPair(10**9, 42.66 / 10**9).delta(1.0) == pytest.approx(SplitCoinsPair(85.32).delta(1.0), rel=1e-4)
    fair = BallsPair(80, 0.5)
    assert fair.delta(1.0) == pytest.approx(ShiftPair(Binomial(80, 0.5)).delta(1.0), rel=1e-8)


def test_the_reverse_swaps_directions() -> None:
    pair = FinitePair([0.5, 0.5, 0.0], [0.5, 0.25, 0.25])
    back = ReversedPair(pair)
    assert back.forward(0.3) == pair.reverse(0.3)
    assert back.reverse(0.3) == pair.forward(0.3)
    atoms = TwoBinsPair(pair).atoms()
    assert atoms.hockey_stick(0.3) == pytest.approx(TwoBinsPair(pair).delta(0.3), rel=1e-3)


@pytest.mark.parametrize(("epsilon", "delta"), [(1.0, 1e-6), (0.3, 1e-9), (2.0, 1e-2)])
def test_the_curators_noise_is_the_least(epsilon: float, delta: float) -> None:
    ratio = CuratorHistogram(privacy=Privacy(epsilon, delta), bins=100).noise.p
    assert ratio <= math.exp(-epsilon / 2)
    assert TwoBinsPair(ShiftPair(DiscreteLaplace(ratio))).delta(epsilon) <= delta * (1 + 1e-3) + 1e-9
    less = DiscreteLaplace(ratio * 0.9)
    assert TwoBinsPair(ShiftPair(less)).delta(epsilon) > delta
