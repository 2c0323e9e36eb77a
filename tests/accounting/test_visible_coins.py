"""A visible number of coins: the curve against all outcomes, grids that dominate by little, and repetitions."""

import itertools
import math

import numpy as np
import pytest

from shuffledp.accounting.composition import Composition
from shuffledp.accounting.laws import Binomial
from shuffledp.accounting.pairs import ShiftPair
from shuffledp.accounting.repeated import RepeatedPair
from shuffledp.accounting.split_coins import BallsPair
from shuffledp.accounting.two_bins import ReversedPair, TwoBinsPair
from shuffledp.accounting.visible_coins import GridBallsPair, OptInPair
from shuffledp.errors import ParameterError


def _brute_force(users: int, probability: float, epsilon: float) -> float:
    """Over every number that opts in and every outcome of both bins."""
    total = 0.0
    for n in range(users + 1):
        weight = math.comb(users, n) * probability**n * (1 - probability) ** (users - n)
        fair = [math.comb(n, k) / 2**n for k in range(n + 1)] + [0.0]
        for a, b in itertools.product(range(n + 2), repeat=2):
            p, q = (fair[a - 1] if a else 0.0) * fair[b], fair[a] * (fair[b - 1] if b else 0.0)
            total += weight * max(0.0, p - math.exp(epsilon) * q)
    return total


@pytest.mark.parametrize(("users", "probability"), [(1, 0.5), (6, 0.4), (9, 1.0), (12, 0.9)])
@pytest.mark.parametrize("epsilon", [0.0, 0.5, 1.2])
def test_the_curve_is_exact(users: int, probability: float, epsilon: float) -> None:
    pair = OptInPair(users, probability)
    exact = _brute_force(users, probability, epsilon)
    assert pair.delta(epsilon) == pytest.approx(exact, rel=1e-8)
    for atoms in (pair.atoms(), pair.atoms().reversed()):
        assert exact * (1 - 1e-9) <= atoms.hockey_stick(epsilon) <= 1.02 * exact


@pytest.mark.parametrize("epsilon", [36.0, 40.0, 100.0])
def test_what_only_one_side_can_show_counts_at_any_epsilon(epsilon: float) -> None:
    # Nobody but a user in the first bin makes it fuller than its coins: rounding took that for a tie.
    for coins in (1, 2, 10, 20):
        exact = 1 - (1 - 0.5**coins) ** 2
        assert OptInPair(coins, 1.0).delta(epsilon) == pytest.approx(exact, rel=1e-6)


@pytest.mark.parametrize("coins", [40, 160, 1000])
def test_a_certain_number_is_two_bins_of_fair_coins(coins: int) -> None:
    two_bins = TwoBinsPair(ShiftPair(Binomial(coins, 0.5))).delta(0.5)
    assert OptInPair(coins, 1.0).delta(0.5) == pytest.approx(two_bins, rel=1e-6 if coins < 512 else 1e-3)
    assert OptInPair(coins, 1.0).delta(0.5) >= two_bins * (1 - 1e-8)


@pytest.mark.parametrize("pair", [OptInPair(5000, 0.015), GridBallsPair(40_000, 1e-3)], ids=["opt-in", "balls"])
def test_the_grid_dominates_by_little(pair: OptInPair | GridBallsPair) -> None:
    for epsilon in (0.2, 0.6, 1.0):
        exact = pair.delta(epsilon)
        assert exact <= pair.atoms().hockey_stick(epsilon) <= 1.05 * exact
        assert exact <= pair.atoms().reversed().hockey_stick(epsilon) <= 1.05 * exact


def test_repetitions_are_compositions() -> None:
    balls = BallsPair(30, 0.2)
    plain = Composition([(balls, 3)]).delta(1.0)
    assert RepeatedPair(GridBallsPair(30, 0.2), 3).delta(1.0) == pytest.approx(plain, rel=0.02)
    fair = ShiftPair(Binomial(90, 0.5))
    plain = Composition([(fair, 4), (ReversedPair(fair), 4)]).delta(1.0)
    repeated = RepeatedPair(OptInPair(90, 1.0), 4)
    assert plain * (1 - 1e-3) <= repeated.delta(1.0) <= 1.01 * plain
    assert repeated.delta(1.0) == repeated.reverse(1.0) and "4 times" in repeated.describe()
    with pytest.raises(ParameterError):
        repeated.atoms()


def test_more_coins_hide_more() -> None:
    """What groups rest on: the curve falls in the number of coins."""
    deltas = np.array([OptInPair(n, 1.0).delta(0.7) for n in range(1, 60)])
    assert (np.diff(deltas) <= 1e-12).all()
