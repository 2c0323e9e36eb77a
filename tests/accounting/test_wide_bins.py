"""Gaussian pairs that stand for bins of wide noise: never below exact curves, near them, and twins with less noise."""

import itertools
import math

import mpmath
import numpy as np
import pytest

from shuffledp.accounting import two_bins, visible_coins
from shuffledp.accounting.composition import Composition
from shuffledp.accounting.curves import smallest_real
from shuffledp.accounting.differences import Skellam
from shuffledp.accounting.laws import Binomial, IntegerLaw, Poisson
from shuffledp.accounting.normal_scores import normal_scores
from shuffledp.accounting.pairs import RELATIVE_ERROR, WINDOW_TAIL, ShiftPair
from shuffledp.accounting.products import FewerAtomsPair
from shuffledp.accounting.split_coins import BallsPair
from shuffledp.accounting.two_bins import TwoBinsPair
from shuffledp.accounting.visible_coins import OptInPair, gaussian_atoms
from shuffledp.accounting.wide_bins import WIDE, WideBinsPair

# Sums of masses in doubles.
ROUNDING = 1e-13
# Over the deviation of one bin's noise. Compositions ask for epsilons below 0, too.
EPSILONS = (-3.0, -1.0, 0.0, 0.5, 2.0, 5.0)
NARROW = [Binomial(110, 0.5), Binomial(150, 0.6), Poisson(100.0), Skellam(60.0)]


def bins_of(law: IntegerLaw, signs: tuple[int, ...]) -> tuple[np.ndarray, np.ndarray]:
    """The exact joint laws of bins before and after each has moved up or down by one."""
    start, end = law.window(1e-17)
    masses = np.exp(law.log_pmf(np.arange(start, end + 1, dtype=np.float64)))
    still, moved = np.append(masses, 0.0), np.insert(masses, 0, 0.0)
    p = q = np.ones(1)
    for sign in signs:
        here, there = (still, moved) if sign > 0 else (moved, still)
        p, q = np.multiply.outer(p, here).ravel(), np.multiply.outer(q, there).ravel()
    return p, q


def exact(p: np.ndarray, q: np.ndarray, epsilon: float) -> float:
    return float(np.maximum(p - math.exp(epsilon) * q, 0).sum())


def exact_two_bins(law: IntegerLaw, epsilon: float) -> float:
    """One bin up and one down, for log-concave noise: over one bin's outcomes, of the other's tails. No rounding up."""
    start, end = law.window(1e-25)
    k = np.arange(start, end + 2, dtype=np.float64)
    log_p, log_q = law.log_pmf(k), law.log_pmf(k - 1)  # a loss that falls along k
    kept = np.isfinite(log_p) & np.isfinite(log_q)
    loss = (log_p - log_q)[kept]
    p, q = np.exp(log_p[kept]), np.exp(log_q[kept])
    p_before, q_before = (np.concatenate(([0.0], np.cumsum(each))) for each in (p, q))
    # The other bin's P is Q here: their losses add up to loss(a) - loss(b).
    taken = np.searchsorted(-loss, -(epsilon + loss), side="left")
    return float(np.maximum(q * p_before[taken] - math.exp(epsilon) * p * q_before[taken], 0.0).sum())


@pytest.mark.parametrize(
    ("law", "signs"),
    [*itertools.product(NARROW, [(1,), (1, -1), (1, 1)]), (NARROW[0], (-1, 1, -1))],
)
def test_bins_that_move_are_dominated_in_both_directions_at_every_epsilon(
    law: IntegerLaw, signs: tuple[int, ...]
) -> None:
    pair, (p, q) = WideBinsPair(law, len(signs)), bins_of(law, signs)
    atoms = pair.atoms()
    for epsilon in (each / law.standard_deviation for each in EPSILONS):
        for here, there, bound, points in (
            (p, q, pair.forward(epsilon), atoms),
            (q, p, pair.reverse(epsilon), atoms.reversed()),
        ):
            true = exact(here, there, epsilon)
            assert true <= bound + ROUNDING
            assert bound <= points.hockey_stick(epsilon) * (1 + 1e-9)


@pytest.mark.parametrize("law", [Binomial(1 << 26, 0.5), Binomial(10**9, 0.02), Skellam(2.0**24)], ids=str)
def test_wide_bins_are_above_the_exact_curve_by_a_few_percent(law: IntegerLaw) -> None:
    pair = WideBinsPair(law, 2)
    for epsilon, part in ((0.0, 0.002), (0.5, 0.002), (2.0, 0.005), (5.0, 0.02), (8.0, 0.04)):
        true = exact_two_bins(law, epsilon / law.standard_deviation)
        assert true * (1 - 1e-9) <= pair.delta(epsilon / law.standard_deviation) <= true * (1 + part)


def test_wide_noise_is_where_a_gaussian_pair_begins_to_stand_for_it(monkeypatch: pytest.MonkeyPatch) -> None:
    wide, narrow = (TwoBinsPair(ShiftPair(Binomial(coins, 0.5))) for coins in (4 * WIDE, 4 * WIDE - 4))
    epsilon = 5 / math.sqrt(WIDE)
    assert wide.forward(epsilon) == WideBinsPair(Binomial(4 * WIDE, 0.5), 2).forward(epsilon)
    assert narrow.forward(epsilon) == pytest.approx(exact_two_bins(Binomial(4 * WIDE - 4, 0.5), epsilon), rel=1e-4)
    # Several times over it moves as many more bins.
    twice = TwoBinsPair(ShiftPair(Binomial(4 * WIDE, 0.5)), 2)
    assert twice.forward(epsilon) == WideBinsPair(Binomial(4 * WIDE, 0.5), 4).forward(epsilon)
    monkeypatch.setattr(two_bins, "WIDE", 1 << 60)
    composed = TwoBinsPair(ShiftPair(Binomial(4 * WIDE, 0.5)), 2).forward(epsilon)
    assert twice.forward(epsilon) == pytest.approx(composed, rel=0.01)


@pytest.mark.parametrize(("epsilon", "delta"), [(1e-3, 1e-6), (2e-3, 1e-12)])
def test_a_fifth_less_of_wide_noise_is_refused(epsilon: float, delta: float) -> None:
    def coins(fair: float) -> Binomial:
        return Binomial(math.ceil(fair), 0.5)

    enough = smallest_real(lambda n: WideBinsPair(coins(n), 2).delta(epsilon) <= delta, 1e6, 1e7, relative=1e-6)
    assert exact_two_bins(coins(enough), epsilon) <= delta
    assert exact_two_bins(coins(0.99 * enough), epsilon) > delta, "the bound asks for a hundredth too much"
    for twin in (exact_two_bins, lambda law, at: WideBinsPair(law, 2).delta(at)):
        assert twin(coins(0.8 * enough), epsilon) > delta


def test_what_windows_leave_out_is_in_the_curve_and_in_the_atoms() -> None:
    pair = WideBinsPair(Binomial(10**8, 0.5), 3)
    assert pair.forward(1.0) >= 3 * WINDOW_TAIL and pair.reverse(1.0) >= 3 * WINDOW_TAIL
    plain, atoms = pair.gaussian.atoms(), pair.atoms()
    for with_it, without in ((atoms.p_outside, plain.p_outside), (atoms.q_outside, plain.q_outside)):
        assert with_it >= 3 * WINDOW_TAIL and with_it >= without


def test_a_product_with_another_pair_is_dominated() -> None:
    """Step (5): the bound at every real epsilon is what composes."""
    law, other = Skellam(60.0), Binomial(30, 0.5)
    (p, q), (r, s) = bins_of(law, (1,)), bins_of(other, (-1,))
    joint = np.multiply.outer(p, r).ravel(), np.multiply.outer(q, s).ravel()
    composed = Composition([(WideBinsPair(law, 1), 1), (two_bins.ReversedPair(ShiftPair(other)), 1)])
    for epsilon in (0.0, 0.3, 0.8, 1.5):
        true = max(exact(*joint, epsilon), exact(*joint[::-1], epsilon))
        assert true <= composed.delta(epsilon) + ROUNDING and composed.delta(epsilon) <= 1.1 * true


# --- a visible number of coins -----------------------------------------------------------------------


@pytest.mark.parametrize("grouped", [True, False])
def test_groups_of_many_coins_are_above_the_exact_mean(grouped: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(visible_coins, "_VERY_MANY_COINS", 1 << 22 if grouped else 0)
    pair = OptInPair(620, 0.6)  # summed outcome by outcome: 200 to 512 coins
    atoms, balls = gaussian_atoms(pair.total_law, 2), gaussian_atoms(pair.total_law, 1)
    one_bin = BallsPair(620, 0.3)
    for epsilon in (0.0, 0.05, 0.1, 0.2, 0.4):
        for true, found in ((pair, atoms), (one_bin, balls)):
            for direction in (found, found.reversed()):
                assert true.delta(epsilon) <= direction.hockey_stick(epsilon)
                # So few coins are far from Gaussian: near the exact curve where it is large.
                if epsilon <= 0.1:
                    assert direction.hockey_stick(epsilon) <= (1.4 if grouped else 4.0) * true.delta(epsilon)


def test_groups_count_as_their_fewest_and_weigh_all_there_is() -> None:
    law = Binomial(620, 0.6)
    atoms = gaussian_atoms(law, 2)
    assert np.exp(atoms.log_p).sum() + atoms.p_outside == pytest.approx(1, abs=1e-9)
    losses = np.unique(np.round(np.abs(atoms.log_p - atoms.log_q), 12))
    # The widest losses are those of the fewest coins there are.
    steepest = normal_scores(Binomial(law.window(WINDOW_TAIL)[0], 0.5), 1, WINDOW_TAIL).steepest
    shift = math.sqrt(2) * steepest
    assert losses[-1] >= shift * (shift / 2 + 12.9)


def test_many_coins_are_near_the_grid(monkeypatch: pytest.MonkeyPatch) -> None:
    law = Binomial(1 << 20, 0.5)
    found = gaussian_atoms(law, 2), gaussian_atoms(law, 1)
    fewer = FewerAtomsPair(BallsPair(1 << 20, 0.25)).atoms()
    assert np.array_equal(fewer.log_p, found[1].log_p), "products of bins take them as well"
    monkeypatch.setattr(visible_coins, "MANY_COINS", 1 << 60)
    grid = visible_coins.grid_atoms(law, bins=2), visible_coins.grid_atoms(law, bins=1)
    for gaussian, other in zip(found, grid, strict=True):
        for epsilon in (0.002, 0.005, 0.01):
            assert 0.99 <= gaussian.hockey_stick(epsilon) / other.hockey_stick(epsilon) <= 1.02


@pytest.mark.parametrize("bins", [1, 2])
def test_a_fifth_fewer_of_many_coins_are_refused(bins: int) -> None:
    """A certain number: enough by the Gaussian pair and by the exact curve; the twin by neither."""
    epsilon, delta = 0.01, 1e-6

    def found(coins: float) -> float:
        return gaussian_atoms(math.ceil(coins), bins).hockey_stick(epsilon)

    def true(coins: float) -> float:
        law = Binomial(math.ceil(coins), 0.5)
        return exact_two_bins(law, epsilon) if bins == 2 else ShiftPair(law).delta(epsilon)

    enough = smallest_real(lambda coins: found(coins) <= delta, 1 << 18, 1 << 20, relative=1e-5)
    assert true(enough) <= delta < true(0.99 * enough)
    assert found(0.8 * enough) > delta and true(0.8 * enough) > delta


# --- tails of very many coins ----------------------------------------------------------------------


def tail_by_integral(trials: int, p: float, k: int, *, down: bool) -> mpmath.mpf:
    """P[X <= k] or P[X > k]: a sum of masses is their integral to k + 1/2, less a 24th of the slope there."""
    n, q, edge = mpmath.mpf(trials), mpmath.mpf(p), mpmath.mpf(k) + mpmath.mpf(1) / 2
    deviation, sign = mpmath.sqrt(n * q * (1 - q)), -1 if down else 1
    centre = mpmath.loggamma(n + 1) + n * mpmath.log1p(-q)

    def mass(x: mpmath.mpf) -> mpmath.mpf:
        log_odds = x * (mpmath.log(q) - mpmath.log1p(-q))
        return mpmath.exp(centre + log_odds - mpmath.loggamma(x + 1) - mpmath.loggamma(n - x + 1))

    whole = mpmath.quad(lambda u: mass(edge + sign * deviation * u) * deviation, [0, 1, 4, 16])
    return whole + sign * (mass(edge + 0.5) - mass(edge - 0.5)) / 24


@pytest.mark.parametrize(("trials", "p"), [(10**9, 0.02), (10**12, 0.5), (10**12, 0.05), (1 << 53, 0.5)])
def test_tails_of_very_many_coins_in_40_digits(trials: int, p: float) -> None:
    """What blocks of normal scores rest on: they allow for 1e-9 in a tail, and for a millionth in all."""
    law = Binomial(trials, p)
    with mpmath.workdps(40):
        for deviations in (-11.4, -3, 3, 11.4):
            k = round(law.mean + deviations * law.standard_deviation)
            down = deviations < 0
            true = tail_by_integral(trials, p, k, down=down)
            assert abs(float((law.cdf(k) if down else law.sf(k)) / true - 1)) < 1e-9


@pytest.mark.parametrize("rate", [1.5e5, 1e6, 3e7, 1e12])
def test_upper_tails_of_wide_poisson_laws_in_40_digits(rate: float) -> None:
    """A library's series for them stops too soon: at 3e7 it misses a seventh of the tail beyond five deviations."""
    law = Poisson(rate)
    with mpmath.workdps(40):
        r, deviation = mpmath.mpf(rate), mpmath.sqrt(rate)

        def mass(x: mpmath.mpf) -> mpmath.mpf:
            return mpmath.exp(x * mpmath.log(r) - r - mpmath.loggamma(x + 1))

        for deviations in (3.9, 4.1, 5, 11.4):
            k = round(rate + deviations * math.sqrt(rate))
            edge = mpmath.mpf(k) + mpmath.mpf(1) / 2
            whole = mpmath.quad(lambda u, edge=edge: mass(edge + deviation * u) * deviation, [0, 1, 4, 16])
            # The sum of masses is the integral, by the slopes at its edge.
            true = whole + mpmath.diff(mass, edge) / 24 - 7 * mpmath.diff(mass, edge, 3) / 5760
            assert abs(float(law.sf(k) / true - 1)) < RELATIVE_ERROR
