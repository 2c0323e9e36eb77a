import math
from collections.abc import Callable

import pytest

from shuffledp.accounting.curves import epsilon_at, smallest_integer, smallest_meeting, smallest_real
from shuffledp.accounting.laws import Binomial, DiscreteLaplace
from shuffledp.accounting.pairs import ShiftPair
from shuffledp.accounting.split_coins import BallsPair
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


@pytest.mark.parametrize("lost", [3e-3, 0.5, 1.0])
def test_that_no_epsilon_is_enough_is_seen_soon(lost: float) -> None:
    """Lost for good with this probability, or a curve that comes down to twice delta before it rises."""
    asked: list[float] = []

    class Counted(Rising):
        def delta(self, epsilon: float) -> float:
            asked.append(epsilon)
            return super().delta(epsilon) + lost

    assert epsilon_at(Counted(0.0), 2e-3) == math.inf and len(asked) <= 12
    asked.clear()
    assert epsilon_at(Counted(1e-4), lost) == math.inf and len(asked) <= 40


def test_a_curve_that_is_low_in_one_place_alone_is_found() -> None:
    """Wherever it is: no curve is given up whose lowest point meets delta."""
    for steps in range(1, 60):
        lowest = steps / 5

        class Sharp:
            def delta(self, epsilon: float, lowest: float = lowest) -> float:
                return 1e-6 + 1e-3 * abs(math.exp(epsilon - lowest) - 1)

        assert epsilon_at(Sharp(), 1.01e-6) == pytest.approx(lowest, rel=1e-4)


def test_searches() -> None:
    assert smallest_integer(lambda n: n >= 1) == 1
    assert smallest_integer(lambda n: n >= 12345, 7) == 12345
    assert 2 <= smallest_real(lambda x: x * x >= 2, 0.0, 1e-3) ** 2 == pytest.approx(2, rel=1e-11)
    with pytest.raises(ParameterError):
        smallest_integer(lambda n: False)
    with pytest.raises(ParameterError):
        smallest_real(lambda x: False, 0.0, 1.0)


FALLING: dict[str, tuple[Callable[[float], float], float, float, float]] = {
    "a curve": (ShiftPair(Binomial(4000, 0.5)).delta, 1e-6, 4.0, 1e-12),
    "noise": (lambda p: BallsPair(100_000, p).delta(1.0), 1e-6, 1e-4, 1e-9),
    "saturated": (lambda x: max(0.0, min(1.0, 2 - x)), 0.3, 1.0, 1e-12),
    "steps": (lambda x: float(x < 7) + 0.1 * float(x < 3), 0.5, 1.0, 1e-12),
    "down to nothing": (lambda x: max(0.0, 1 - x * x), 0.0, 0.1, 1e-12),
    "infinite": (lambda x: math.inf if x < 2 else 1 / x, 0.2, 1.0, 1e-6),
}


@pytest.mark.parametrize("name", FALLING)
def test_what_a_value_meets_is_what_halving_finds_and_takes_less(name: str) -> None:
    value, target, high, relative = FALLING[name]
    asked: list[float] = []

    def counted(x: float) -> float:
        asked.append(x)
        return value(x)

    by_halves = smallest_real(lambda x: counted(x) <= target, 0.0, high, relative=relative)
    halvings = len(asked)
    asked.clear()
    assert smallest_meeting(counted, target, 0.0, high, relative=relative) == by_halves
    assert len(asked) <= (halvings / 2 if name in ("a curve", "noise", "saturated") else halvings + 8)


def test_a_value_that_rises_somewhere_is_met_where_it_was_computed() -> None:
    def value(x: float) -> float:
        return math.exp(-x) * (1 + 0.03 * math.sin(3000 * x))

    for exponent in range(20, 80):
        target = math.exp(-exponent / 10)
        assert value(smallest_meeting(value, target, 0.0, 1.0, relative=1e-3)) <= target
    with pytest.raises(ParameterError):
        smallest_meeting(lambda x: 1.0, 0.5, 0.0, 1.0)


@pytest.mark.parametrize(("at_zero", "least"), [(0.0, 0.0), (1.0, 5e-324)])
def test_whatever_is_above_nothing_is_enough(at_zero: float, least: float) -> None:
    """Halves of the smallest float are 0 or itself: the search ends there, with 0 if that is enough."""

    def value(x: float) -> float:
        return 0.0 if x > 0 else at_zero

    assert smallest_meeting(value, 0.5, 0.0, 1.0, relative=1e-4) == least
    assert smallest_real(lambda x: value(x) <= 0.5, 0.0, 1.0, relative=1e-4) == least
