"""Skellam masses and tails against 40-digit arithmetic, at small variances and by Debye's expansion at large ones."""

import math
from functools import lru_cache

import mpmath
import numpy as np
import pytest
from scipy import special

from shuffledp.accounting import differences
from shuffledp.accounting.differences import PolyaDifference, Skellam, negative_binomial_masses
from shuffledp.accounting.laws import DiscreteLaplace
from shuffledp.errors import ParameterError

VARIANCES = [0.01, 0.3, 1.0, 5.0, 30.0, 71.4, 399.9, 400.0, 1000.0, 1e4, 1e6, 1e7]
# Deviations out to which tails are good to 1e-11; beyond, the end of their table shows (see `Skellam._masses`).
REACH = 11.0


@lru_cache(maxsize=32)
def exact(variance: float) -> tuple[list[mpmath.mpf], list[mpmath.mpf]]:
    """Masses at 0, 1, 2, ... and tails P[X >= k], by the recurrence of Bessel functions from far outside inwards.

    I_(k-1) = I_(k+1) + (2k/v) I_k is stable in this direction; what it starts from is forgotten like
    e^-(26^2 - 17^2) at 17 deviations, and the masses add up to 1.
    """
    with mpmath.workdps(40):
        start = max(60, math.ceil(26 * math.sqrt(variance)), math.ceil(60 / math.log(2 + 60 / variance)))
        bessel = [mpmath.mpf(0)] * (start + 2)
        bessel[start] = mpmath.mpf(1)
        v = mpmath.mpf(variance)
        for k in range(start, 0, -1):
            bessel[k - 1] = bessel[k + 1] + 2 * k / v * bessel[k]
        total = bessel[0] + 2 * mpmath.fsum(bessel[1:])
        masses = [b / total for b in bessel]
        tails, sum_so_far = [mpmath.mpf(0)] * len(masses), mpmath.mpf(0)
        for k in range(len(masses) - 1, -1, -1):
            sum_so_far += masses[k]
            tails[k] = sum_so_far
        return masses, tails


def places(variance: float, reach: float) -> list[int]:
    deviation = math.sqrt(variance)
    return sorted({0, 1, 2, *(round(x * deviation) for x in np.linspace(0, reach, 49))})


def relative(ours: float, true: mpmath.mpf) -> float:
    return abs(float(mpmath.mpf(ours) / true - 1))


def test_the_recurrence_is_the_bessel_function() -> None:
    for variance, k in ((0.3, 2), (30.0, 40), (1000.0, 400)):
        with mpmath.workdps(40):
            bessel = mpmath.besseli(k, variance) * mpmath.exp(-mpmath.mpf(variance))
            assert abs(exact(variance)[0][k] / bessel - 1) < 1e-25


@pytest.mark.parametrize("variance", VARIANCES)
def test_masses(variance: float) -> None:
    masses, law = exact(variance)[0], Skellam(variance)
    reach = 14.0 if variance >= differences._LARGE_VARIANCE else REACH
    for k in places(variance, reach):
        for x in (k, -k):
            assert relative(math.exp(float(law.log_pmf(np.array([float(x)]))[0])), masses[k]) < 1e-11


@pytest.mark.parametrize("variance", VARIANCES)
def test_tails_from_both_sides(variance: float) -> None:
    tails, law = exact(variance)[1], Skellam(variance)
    for k in places(variance, REACH):
        assert relative(law.sf(k), tails[k + 1]) < 1e-11
        assert law.cdf(-k - 1) == law.sf(k)
        assert relative(law.cdf(k), 1 - tails[k + 1]) < 1e-11
        assert law.sf(-k - 1) == law.cdf(k)


@pytest.mark.parametrize("variance", [400.0, 1e4, 1e7])
def test_tails_are_never_too_large_where_tables_end(variance: float) -> None:
    """Steps of normal scores only get steeper by that, and windows are off by less than 1e-40."""
    tails, law = exact(variance)[1], Skellam(variance)
    for k in places(variance, 17.0):
        assert law.sf(k) <= tails[k + 1] * (1 + 1e-11)
        assert law.sf(k) >= tails[k + 1] * (1 - mpmath.mpf("1e-11")) - mpmath.mpf("1e-40")


def test_where_the_two_ways_meet() -> None:
    """Convolution below a variance of 400, Debye's expansion from there on."""
    k = np.arange(0.0, 241.0)
    below, above = Skellam(math.nextafter(400.0, 0.0)), Skellam(400.0)
    assert below.log_pmf(k) == pytest.approx(above.log_pmf(k), abs=1e-12)


def test_debye_with_a_term_less_is_caught() -> None:
    """The twin: the leading term alone is off by 1/(8v), 3e-4 at a variance of 400."""
    law, masses = Skellam(400.0), exact(400.0)[0]
    leading = math.log(1 / math.sqrt(2 * math.pi * 400))
    assert relative(math.exp(leading), masses[0]) > 2e-4
    assert relative(math.exp(float(law.log_pmf(np.array([0.0]))[0])), masses[0]) < 1e-11


@pytest.mark.parametrize("variance", [1e9, 1e11])
def test_very_large_variances_against_the_normal_law(variance: float) -> None:
    """Masses add up to 1, and the normal law with a correction for whole numbers is off by order 1/v."""
    law, deviation = Skellam(variance), math.sqrt(variance)
    k = np.array([round(x * deviation) for x in (0.0, 1.0, 3.0, 5.0)], dtype=np.float64)
    z = k / deviation
    # Edgeworth: the fourth cumulant of a Skellam is its variance.
    edgeworth = -(z**2) / 2 - 0.5 * math.log(2 * math.pi * variance) + (z**4 - 6 * z**2 + 3) / (24 * variance)
    assert law.log_pmf(k) == pytest.approx(edgeworth, abs=1e-12 + 1e4 / variance**2)
    if variance < 1e10:
        assert law.sf(-1) + law.cdf(-1) == pytest.approx(1.0, abs=1e-11)
        assert law.sf(k[2] - 1) == pytest.approx(float(special.ndtr(-(k[2] - 0.5) / deviation)), rel=1e-8)


def test_masses_add_up_and_fall_from_the_middle() -> None:
    for variance in (0.3, 50.0, 5000.0):
        law = Skellam(variance)
        k = np.arange(-2000.0, 2001.0) if variance > 1 else np.arange(-30.0, 31.0)
        log_masses = law.log_pmf(k)
        inside = log_masses > -80
        assert np.exp(log_masses).sum() == pytest.approx(1.0, abs=1e-13)
        assert (np.diff(log_masses[inside], 2) < 1e-11).all()  # log-concave
        assert log_masses == pytest.approx(log_masses[::-1], abs=0)


def test_polya_differences_of_shape_1_are_discrete_laplace() -> None:
    ours, law = PolyaDifference(1.0, 0.7), DiscreteLaplace(0.7)
    k = np.arange(-60.0, 61.0)
    assert ours.log_pmf(k) == pytest.approx(law.log_pmf(k), abs=1e-11)
    assert [ours.sf(j) for j in range(0, 60, 7)] == pytest.approx([law.sf(j) for j in range(0, 60, 7)], rel=1e-11)


@pytest.mark.parametrize("variance", [0.0, -1.0, math.nan, math.inf, 1e14])
def test_bad_variances_are_named(variance: float) -> None:
    with pytest.raises(ParameterError, match="variance"):
        Skellam(variance)


@pytest.mark.parametrize("shape", [0.01, 1.0, 400.0, 1600.0, 5000.0, 20_000.0])
@pytest.mark.parametrize("p", [0.001, 0.5, 0.9])
def test_masses_of_many_shares_keep_their_digits(shape: float, p: float) -> None:
    # (1 - p)^shape is 0 in doubles from shape 1075 on at p = 1/2: it may not be the unit.
    masses = negative_binomial_masses(shape, p)
    spread, mean = math.sqrt(shape * p) / (1 - p), shape * p / (1 - p)
    with mpmath.workdps(40):
        for k in {max(0, int(mean + far * spread)) for far in (-6, -2, 0, 2, 6, 12)}:
            log_mass = mpmath.loggamma(k + shape) - mpmath.loggamma(shape) - mpmath.loggamma(k + 1)
            exact = mpmath.exp(log_mass + k * mpmath.log(p) + shape * mpmath.log(1 - mpmath.mpf(p)))
            assert float(masses[k]) == pytest.approx(float(exact), rel=2e-12)
    assert abs(float(masses.sum()) - 1) < 1e-14
