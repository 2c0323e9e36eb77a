"""The figures that were computed twice before this code was written: mathematics, sections 1 and 2."""

import math
import time

import pytest

from shuffledp.accounting.composition import Composition
from shuffledp.accounting.curves import epsilon_at, smallest_real
from shuffledp.accounting.gaussian import gaussian_standard_deviation
from shuffledp.accounting.laws import Binomial, DiscreteLaplace, Poisson
from shuffledp.accounting.pairs import ShiftPair
from shuffledp.privacy import Privacy
from shuffledp.protocols.binary_sum.coins import smallest_fair_coins, smallest_probability
from shuffledp.protocols.binary_sum.paper import paper_coins

COINS = [  # epsilon, delta, N, sd, Gaussian sd, the paper's sd
    (0.1, 1e-6, 5279, 36.33, 36.30, 186.6),
    (0.5, 1e-6, 268, 8.185, 8.058, 37.3),
    (1, 1e-6, 80, 4.472, 4.225, 18.7),
    (1, 1e-9, 136, 5.831, 5.495, 22.7),
    (0.5, 1e-8, 401, None, None, None),
    (0.1, 1e-9, 10097, None, None, None),
]


def digits(figure: float) -> float:
    """Half a unit of the last digit given."""
    text = str(figure)
    return 0.5000001 * 10 ** -(len(text) - text.index(".") - 1)


@pytest.mark.parametrize(("epsilon", "delta", "coins", "sd", "gaussian", "paper"), COINS)
def test_section_1_fair_coins(epsilon, delta, coins, sd, gaussian, paper) -> None:
    privacy = Privacy(epsilon, delta)
    found = smallest_fair_coins(privacy)
    assert found == coins
    if sd is not None:
        assert math.sqrt(found) / 2 == pytest.approx(sd, abs=digits(sd))
        assert gaussian_standard_deviation(privacy) == pytest.approx(gaussian, abs=digits(gaussian))
        assert math.sqrt(paper_coins(privacy)) / 2 == pytest.approx(paper, abs=digits(paper))


@pytest.mark.parametrize("epsilon, delta, coins", [row[:3] for row in COINS])
def test_a_twin_with_20_percent_less_noise_is_not_private(epsilon, delta, coins) -> None:
    assert ShiftPair(Binomial(int(coins * 0.8), 0.5)).delta(epsilon) > 1.5 * delta


@pytest.mark.parametrize(("users", "p", "sd"), [(1000, 0.0340006, 5.731), (10**6, 3.40679e-5, 5.837)])
def test_section_1_rare_coins(users: int, p: float, sd: float) -> None:
    found = smallest_probability(users, Privacy(1, 1e-6))
    assert found == pytest.approx(p, rel=2e-6)
    assert Binomial(users, found).standard_deviation == pytest.approx(sd, abs=digits(sd))
    assert ShiftPair(Binomial(users, 0.8 * found)).delta(1) > 1.5e-6


def test_section_1_poisson_limit_and_laplace() -> None:
    rate = smallest_real(lambda r: ShiftPair(Poisson(r)).delta(1) <= 1e-6, 0.0, 1.0)
    assert rate == pytest.approx(34.1, abs=0.05) and math.sqrt(rate) == pytest.approx(5.84, abs=0.005)
    assert DiscreteLaplace(math.exp(-1)).standard_deviation == pytest.approx(1.357, abs=0.0005)


@pytest.mark.parametrize(("coins", "epsilon"), [(72, 1.068), (40, 1.572), (26, 2.356)])
def test_section_1_honest_fraction(coins: int, epsilon: float) -> None:
    assert epsilon_at(ShiftPair(Binomial(coins, 0.5)), 1e-6) == pytest.approx(epsilon, abs=digits(epsilon))


COMPOSED = [  # k, N, sd, Gaussian sd, simple composition's sd, the paper's sd
    (2, 148, 6.083, 5.975, 8.49, 38.2),
    (4, 288, 8.485, 8.449, 16.65, 78.1),
    (10, 715, 13.370, 13.360, 41.4, 200.9),
    (20, 1429, 18.901, 18.893, 82.6, 409.9),
]


@pytest.mark.parametrize(("k", "coins", "sd", "gaussian", "simple", "paper"), COMPOSED)
def test_section_2_composed_coins(k, coins, sd, gaussian, simple, paper) -> None:
    def composed(n: int) -> float:
        return Composition([(ShiftPair(Binomial(n, 0.5)), k)]).delta(1)

    assert composed(coins) <= 1e-6 < composed(coins - 1)
    assert composed(int(0.8 * coins)) > 1.5e-6
    assert math.sqrt(coins) / 2 == pytest.approx(sd, abs=5.1e-4)
    assert gaussian_standard_deviation(Privacy(1, 1e-6), math.sqrt(k)) == pytest.approx(gaussian, abs=5.1e-4)
    part = Privacy(1 / k, 1e-6 / k)
    assert math.sqrt(smallest_fair_coins(part)) / 2 == pytest.approx(simple, abs=digits(simple))
    assert math.sqrt(paper_coins(part)) / 2 == pytest.approx(paper, abs=digits(paper))


def test_section_2_twenty_binomials() -> None:
    pair = ShiftPair(Binomial(4000, 0.5))
    assert 0.575073 <= Composition([(pair, 20)]).epsilon(1e-6) <= 0.575093
    assert Composition([(pair, 20)], grid=1e-3).epsilon(1e-6) == pytest.approx(0.575162, abs=5e-7)
    assert Composition([(pair, 1)]).epsilon(1e-6) == pytest.approx(0.11602981, abs=2e-8)
    assert epsilon_at(pair, 1e-6) == pytest.approx(0.11602981, abs=5e-9)


@pytest.mark.parametrize(("k", "sd"), [(1, 1.357), (2, 2.799), (4, 5.642), (8, 11.305)])
def test_section_2_composed_laplace(k: int, sd: float) -> None:
    assert largest_part(k) == pytest.approx(1 / k, rel=2e-4)
    assert DiscreteLaplace(math.exp(-largest_part(k))).standard_deviation == pytest.approx(sd, abs=1e-3)


def largest_part(k: int) -> float:
    """The largest epsilon of one discrete Laplace such that k of them compose to (1, 1e-6)."""

    def holds(scale: float) -> bool:
        return Composition([(ShiftPair(DiscreteLaplace(math.exp(-1 / scale))), k)]).delta(1) <= 1e-6

    return 1 / smallest_real(holds, k * 0.5, k * 0.6, relative=1e-6)


def test_section_2_delta_helps_laplace_only_from_ten_on() -> None:
    assert largest_part(10) == pytest.approx(0.1001, abs=5e-5)
    gaussian = [gaussian_standard_deviation(Privacy(1, 1e-6), math.sqrt(k)) for k in (8, 9)]
    laplace = [DiscreteLaplace(math.exp(-1 / k)).standard_deviation for k in (8, 9)]
    assert laplace[0] < gaussian[0] and laplace[1] > gaussian[1]


def test_calibration_takes_under_50_milliseconds() -> None:
    for call in (
        lambda: smallest_fair_coins(Privacy(0.1, 1e-9)),
        lambda: smallest_probability(10**6, Privacy(1, 1e-6)),
        lambda: smallest_probability(10**9, Privacy(0.1, 1e-9)),
    ):
        call()
        best = min(_seconds(call) for _ in range(5))
        assert best < 0.05, f"{best * 1000:.1f} ms"


def _seconds(call) -> float:
    started = time.perf_counter()
    call()
    return time.perf_counter() - started
