"""Numbers with intervals: against laws whose answer is known, and with twins that must fail."""

import math

import numpy as np
import pytest

from shuffledp.errors import ParameterError
from shuffledp.experiments.survey.measuring import (
    Effort,
    Setting,
    fewest_users,
    mean_of,
    root_mean_square,
    shares_of,
)
from shuffledp.experiments.survey.results import Line, Measured
from shuffledp.privacy import Privacy

SETTING = Setting(privacy=Privacy(1, 1e-6), effort=Effort.quick, seed=3)


def _covered(make, truth: float, draws: int = 400) -> float:
    generator = np.random.default_rng(5)
    return float(np.mean([(found := make(generator)).low <= truth <= found.high for _ in range(draws)]))


@pytest.mark.parametrize(
    ("make", "truth"),
    [
        (lambda g: root_mean_square(g.normal(0, 3, 300)), 3.0),
        (lambda g: mean_of(g.exponential(2, 200)), 2.0),
    ],
)
def test_intervals_cover_what_they_say(make, truth: float) -> None:
    # 95% of 400 draws: below 0.90 by chance with probability 1e-5; a value that is a tenth off falls out.
    assert _covered(make, truth) > 0.90
    assert _covered(make, 1.1 * truth) < 0.85


@pytest.mark.parametrize("middle", [40.0, 900.0])
def test_the_fewest_users_of_a_known_law(middle: float) -> None:
    """Success with probability 1 / (1 + (middle/n)^4): 90% at 3^(1/2) times the middle."""
    generator = np.random.default_rng(1)
    asked: list[int] = []

    def successes(users: int) -> int:
        asked.append(users)
        return int(generator.binomial(400, 1 / (1 + (middle / users) ** 4)))

    truth = middle * math.sqrt(3)
    found = fewest_users(successes, 400, target=0.9, start=200)
    assert found.low <= truth <= found.high and found.value == pytest.approx(truth, rel=0.15)
    assert found.high / found.low < 2 and len(set(asked)) == len(asked)
    twice = fewest_users(
        lambda users: int(generator.binomial(400, 1 / (1 + (2 * middle / users) ** 4))), 400, target=0.9, start=200
    )
    assert twice.low > truth


def test_nobody_is_needed_where_one_cannot_fail() -> None:
    assert fewest_users(lambda users: 50, 50, target=0.9, start=64, smallest=2).value == 2
    with pytest.raises(ParameterError, match="users"):
        fewest_users(lambda users: 0, 50, target=0.9, start=64, most=1000)


def test_exponents() -> None:
    points = [Measured(value=5 * x**0.75, low=1, high=1, runs=1) for x in (10.0, 100.0, 1000.0)]
    found = Line("local", "a", "users", [10, 100, 1000], points, claimed=0.75).exponent
    assert found is not None and found.claimed == 0.75
    assert (found.value, found.low, found.high) == (pytest.approx(0.75),) * 3
    assert Line("local", "a", "users", [1, 2], points[:2]).exponent is None
    at_zero = Measured(value=0.0, low=0, high=0, runs=1)
    assert Line("local", "a", "users", [10, 100, 1000], [at_zero, *points[:2]]).exponent is None


def test_a_purpose_has_its_own_randomness_and_keeps_it() -> None:
    assert (
        SETTING.generator("a", 1).random() == SETTING.generator("a", 1).random() != SETTING.generator("a", 2).random()
    )
    assert SETTING.number("a") != SETTING.number("b")


def test_counts_add_up() -> None:
    counts = shares_of(12_345, 1 / np.arange(1.0, 500.0))
    assert counts.sum() == 12_345 and counts.min() >= 0 and counts[0] > counts[100]
