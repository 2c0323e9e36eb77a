import math

import numpy as np
import pytest
from dp_accounting.pld import pld_pmf, privacy_loss_distribution

from shuffledp.accounting.composition import Composition, advanced_composition, simple_composition
from shuffledp.accounting.differences import PolyaDifference
from shuffledp.accounting.gaussian import gaussian_delta
from shuffledp.accounting.laws import Binomial, DiscreteLaplace
from shuffledp.accounting.pairs import FinitePair, ShiftPair
from shuffledp.errors import ParameterError
from shuffledp.privacy import Privacy
from shuffledp.protocols.binary_sum.coins import smallest_fair_coins


def product(pairs: list[FinitePair]) -> FinitePair:
    """The joint distributions themselves: what composition must bound."""
    p, q = np.ones(1), np.ones(1)
    for pair in pairs:
        p, q = np.outer(p, np.asarray(pair.p)).ravel(), np.outer(q, np.asarray(pair.q)).ravel()
    return FinitePair(p, q)


def random_pair(rng: np.random.Generator, size: int) -> FinitePair:
    p, q = rng.dirichlet(np.ones(size)), rng.dirichlet(np.ones(size))
    if rng.random() < 0.5:
        p[0] = 0.0
    return FinitePair(p / p.sum(), q)


@pytest.mark.parametrize("seed", range(12))
def test_against_the_product_of_small_pairs(seed: int) -> None:
    """Brute force: an upper bound at every epsilon, negative ones too, and close."""
    rng = np.random.default_rng(seed)
    pairs = [random_pair(rng, 4) for _ in range(4)]
    joint, composed = product(pairs), Composition([(pair, 1) for pair in pairs])
    for epsilon in (-1.0, 0.0, 0.4, 1.0, 2.0, 4.0):
        assert composed.delta(epsilon) >= joint.delta(epsilon) * (1 - 1e-9)
        assert composed.delta(epsilon) <= joint.delta(epsilon) + 2e-5


def test_repeating_is_listing() -> None:
    a, b = ShiftPair(Binomial(50, 0.5)), ShiftPair(DiscreteLaplace(math.exp(-0.2)))
    grouped, listed = Composition([(a, 3), (b, 2)]), Composition([(a, 1), (b, 1), (a, 2), (b, 1)])
    assert grouped.delta(1.0) == pytest.approx(listed.delta(1.0), rel=1e-9)


def test_pure_epsilons_compose_exactly() -> None:
    pair = ShiftPair(DiscreteLaplace(math.exp(-0.125)))
    assert Composition([(pair, 8)]).delta(1.0) < 1e-8
    assert Composition([(pair, 8)]).epsilon(1e-9) <= 1 + 1e-6


def test_delta_and_epsilon_are_inverse() -> None:
    composed = Composition([(ShiftPair(Binomial(300, 0.5)), 5)])
    for delta in (1e-3, 1e-6, 1e-12, 1e-18):
        assert composed.delta(composed.epsilon(delta)) == pytest.approx(delta, rel=1e-6)


def test_many_coins_approach_the_gaussian_far_into_the_tail() -> None:
    """Without tilting the transform's rounding would hide everything below 1e-15."""
    k, coins = 16, 1_000_000
    composed = Composition([(ShiftPair(Binomial(coins, 0.5)), k)])
    sd = math.sqrt(coins) / 2
    for epsilon in (0.02, 0.05, 0.08):
        exact = gaussian_delta(epsilon, sd, math.sqrt(k))
        assert 1e-30 < exact < 1e-2
        assert composed.delta(epsilon) == pytest.approx(exact, rel=5e-3, abs=1e-24)


def test_noise_that_is_not_log_concave_composes_too() -> None:
    pair = ShiftPair(PolyaDifference(0.5, math.exp(-0.25)))
    assert Composition([(pair, 1)]).delta(0.5) == pytest.approx(0.0782, abs=5e-5)


def test_no_noise_against_one_outcome_is_infinite() -> None:
    assert Composition([(ShiftPair(Binomial(4, 0.5)), 2)]).epsilon(1e-6) == math.inf


def peer_by_rounding(law: Binomial, times: int, grid: float) -> float:
    """dp-accounting's composition of two mass functions: every loss is rounded up to the grid."""
    k = np.arange(0, law.trials + 2, dtype=np.float64)
    upper = {int(i): float(v) for i, v in zip(k, law.log_pmf(k), strict=True) if math.isfinite(v)}
    lower = {int(i): float(v) for i, v in zip(k, law.log_pmf(k - 1), strict=True) if math.isfinite(v)}
    # Its default, symmetric=True, reports one direction only; here both directions are equal.
    pld = privacy_loss_distribution.from_two_probability_mass_functions(
        lower, upper, value_discretization_interval=grid, symmetric=False
    )
    return float(pld.self_compose(times).get_epsilon_for_delta(1e-6))


def peer_by_dots(law: Binomial, times: int, grid: float) -> float:
    """dp-accounting's connect-the-dots through our exact one-fold curve."""
    pair, steps = ShiftPair(law), int(2 / grid)
    deltas = np.array([pair.forward(i * grid) for i in range(-steps, steps + 1)])
    pmf = pld_pmf.create_pmf_pessimistic_connect_dots_fixed_gap(grid, -steps, steps, deltas)
    return float(pmf.self_compose(times).get_epsilon_for_delta(1e-6))


CASES = [(148, 2), (715, 10), (1429, 20), (4000, 20)]


@pytest.mark.filterwarnings("ignore::RuntimeWarning")  # its own logarithms of empty sums
@pytest.mark.parametrize(("coins", "times"), CASES)
def test_tighter_than_dp_accounting_on_two_mass_functions(coins: int, times: int) -> None:
    law, grid = Binomial(coins, 0.5), 1e-4
    ours, theirs = Composition([(ShiftPair(law), times)]).epsilon(1e-6), peer_by_rounding(law, times, grid)
    assert ours < theirs < ours + times * grid


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize(("coins", "times"), CASES)
def test_equal_to_dp_accounting_by_connect_the_dots(coins: int, times: int) -> None:
    law, grid = Binomial(coins, 0.5), 1e-3
    ours, theirs = Composition([(ShiftPair(law), times)], grid=grid).epsilon(1e-6), peer_by_dots(law, times, grid)
    assert ours == pytest.approx(theirs, abs=2e-6)


def test_textbook_compositions() -> None:
    assert simple_composition(Privacy(0.1, 1e-7), 10) == pytest.approx((1.0, 1e-6))
    epsilon, delta = advanced_composition(Privacy(0.1, 1e-7), 10, 1e-6)
    assert epsilon == pytest.approx(10 * 0.1 * math.expm1(0.1) + 0.1 * math.sqrt(20 * math.log(1e6)))
    assert delta == pytest.approx(2e-6)


def test_advanced_composition_is_beaten_by_exact_composition() -> None:
    part = Privacy(0.05, 1e-8)
    coins = smallest_fair_coins(part)
    epsilon, delta = advanced_composition(part, 50, 5e-7)
    assert Composition([(ShiftPair(Binomial(coins, 0.5)), 50)]).epsilon(delta) < epsilon / 1.3


@pytest.mark.parametrize("pair", [FinitePair([1, 0], [0, 1]), ShiftPair(Binomial(1, 0.5), 2)])
def test_disjoint_views_hide_nothing(pair) -> None:
    assert Composition([(pair, 1)]).delta(1.0) == 1.0


def test_an_outcome_that_hardly_happens_does_not_stretch_the_grid() -> None:
    lopsided = FinitePair([1 - 1e-30, 1e-30], [0.5, 0.5])
    assert Composition([(lopsided, 1)]).delta(1.0) == pytest.approx(0.5, abs=1e-6)


@pytest.mark.parametrize("pairs", [[], [(ShiftPair(Binomial(9, 0.5)), 0)]])
def test_nothing_to_compose_is_named(pairs) -> None:
    with pytest.raises(ParameterError, match="pairs"):
        Composition(pairs)
