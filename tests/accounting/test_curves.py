import math

import pytest

from shuffledp.accounting.curves import epsilon_at, smallest_integer, smallest_real
from shuffledp.accounting.laws import Binomial, DiscreteLaplace
from shuffledp.accounting.pairs import ShiftPair
from shuffledp.errors import ParameterError


@pytest.mark.parametrize("delta", [1e-2, 1e-6, 1e-12])
def test_epsilon_is_where_the_curve_crosses_delta(delta: float) -> None:
    pair = ShiftPair(Binomial(200, 0.5))
    epsilon = epsilon_at(pair, delta)
    assert pair.delta(epsilon) <= delta < pair.delta(epsilon * (1 - 1e-9))


def test_no_epsilon_is_infinite_and_any_is_zero() -> None:
    assert epsilon_at(ShiftPair(Binomial(10, 0.5)), 1e-6) == math.inf
    assert epsilon_at(ShiftPair(Binomial(10, 0.5)), 0.9) == 0.0


def test_pure_noise_gives_its_own_epsilon() -> None:
    assert epsilon_at(ShiftPair(DiscreteLaplace(math.exp(-0.8))), 1e-15) == pytest.approx(0.8)


class Rising:
    """A curve to which (1 + e^epsilon) times a distance was added: it falls, then rises."""

    def __init__(self, distance: float) -> None:
        self.distance = distance

    def delta(self, epsilon: float) -> float:
        return ShiftPair(DiscreteLaplace(math.exp(-0.8))).delta(epsilon) + (1 + math.exp(epsilon)) * self.distance


def test_a_curve_that_rises_again_is_met_where_it_is_low() -> None:
    assert epsilon_at(Rising(2.9e-7), 1e-6) == pytest.approx(0.8, abs=1e-5)
    assert epsilon_at(Rising(3.2e-7), 1e-6) == math.inf


def test_searches() -> None:
    assert smallest_integer(lambda n: n >= 1) == 1
    assert smallest_integer(lambda n: n >= 12345, 7) == 12345
    assert smallest_real(lambda x: x * x >= 2, 0.0, 1e-3) == pytest.approx(math.sqrt(2), rel=1e-11)
    with pytest.raises(ParameterError):
        smallest_integer(lambda n: False)
    with pytest.raises(ParameterError):
        smallest_real(lambda x: False, 0.0, 1.0)
