"""Shuffled rows: the blanket's curve above brute force, and twins that miss."""

import itertools
import math

import pytest

from shuffledp.accounting.shuffled_rows import ShuffledRowsCurve, smallest_spurious
from shuffledp.errors import InfeasibleError, ParameterError
from shuffledp.privacy import Privacy


def _row_law(value: int, bins: int, kept: float, spurious: float) -> dict[tuple[int, ...], float]:
    rates = [kept if place == value else spurious for place in range(bins)]
    return {
        row: math.prod((1 - rate, rate)[bit] for bit, rate in zip(row, rates, strict=True))
        for row in itertools.product((0, 1), repeat=bins)
    }


def _views(values: tuple[int, ...], bins: int, kept: float, spurious: float) -> dict[tuple, float]:
    views: dict[tuple, float] = {(): 1.0}
    for value in values:
        law = _row_law(value, bins, kept, spurious)
        grown: dict[tuple, float] = {}
        for seen, chance in views.items():
            for row, weight in law.items():
                key = tuple(sorted((*seen, row)))
                grown[key] = grown.get(key, 0.0) + chance * weight
        views = grown
    return views


@pytest.mark.parametrize(("kept", "spurious"), [(0.5, 0.2), (0.7, 0.1), (0.8, 0.2)])
def test_above_the_worst_data_by_brute_force(kept: float, spurious: float) -> None:
    bins, users = 3, 4
    curve = ShuffledRowsCurve(kept, spurious, users)
    for epsilon in (0.2, 0.8):
        worst = 0.0
        for others in itertools.combinations_with_replacement(range(bins), users - 1):
            p, q = (_views((value, *others), bins, kept, spurious) for value in (0, 1))
            worst = max(worst, sum(max(0.0, mass - math.exp(epsilon) * q[seen]) for seen, mass in p.items()))
        assert worst <= curve.delta(epsilon) <= 3 * worst


def test_a_fifth_fewer_spurious_ones_miss() -> None:
    for kept in (0.5, 0.75):
        rate = smallest_spurious(Privacy(1, 1e-6), 5000, kept)
        assert ShuffledRowsCurve(kept, rate, 5000).delta(1.0) <= 1e-6
        assert ShuffledRowsCurve(kept, 0.8 * rate, 5000).delta(1.0) > 1.5e-6


def test_private_alone_needs_no_crowd() -> None:
    flip = 1 / (1 + math.exp(0.5))
    assert ShuffledRowsCurve(1 - flip, flip, 2).local_epsilon == pytest.approx(1.0)
    assert ShuffledRowsCurve(1 - flip, flip, 2).delta(1.0) < 1e-13


def test_what_cannot_be_is_refused() -> None:
    with pytest.raises(InfeasibleError):
        smallest_spurious(Privacy(0.1, 1e-9), 20, 0.85)
    for kept, spurious, users in ((0.5, 0.6, 10), (0.8, 0.3, 10), (0.5, 0.0, 10), (0.5, 0.2, 0)):
        with pytest.raises(ParameterError):
            ShuffledRowsCurve(kept, spurious, users)


def test_a_row_without_a_crowd_has_its_own_curve() -> None:
    """One user: the sum over the two bits' outcomes, exactly; with 20% less of a spurious rate it is more."""
    kept, spurious, epsilon = 0.6, 0.1, 1.0
    outcomes = [(a, b) for a in (0, 1) for b in (0, 1)]
    laws = [
        [(h if a else 1 - h) * (g if b else 1 - g) for a, b in outcomes]
        for h, g in ((kept, spurious), (spurious, kept))
    ]
    exact = sum(max(0.0, p - math.exp(epsilon) * q) for p, q in zip(*laws, strict=True))
    assert ShuffledRowsCurve(kept, spurious, 1).delta(epsilon) == pytest.approx(exact, rel=1e-6)
    assert ShuffledRowsCurve(kept, 0.8 * spurious, 1).delta(epsilon) > 1.01 * exact
