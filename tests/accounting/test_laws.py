import math

import mpmath
import numpy as np
import pytest
from scipy import stats

from shuffledp.accounting.differences import PolyaDifference
from shuffledp.accounting.laws import Binomial, DiscreteLaplace, IntegerLaw, Poisson
from shuffledp.accounting.pairs import RELATIVE_ERROR
from shuffledp.errors import ParameterError

LAWS = [
    Binomial(1, 0.5),
    Binomial(80, 0.5),
    Binomial(10_000, 0.0034),
    Poisson(0.2),
    Poisson(34.07),
    DiscreteLaplace(math.exp(-1)),
    DiscreteLaplace(math.exp(-0.01)),
    PolyaDifference(1.0, math.exp(-0.5)),
    PolyaDifference(0.5, math.exp(-0.5)),
    PolyaDifference(2.5, math.exp(-0.5)),
]


def points(law: IntegerLaw) -> np.ndarray:
    low, high = law.window(1e-30)
    return np.arange(low, high + 1, dtype=np.float64)


@pytest.mark.parametrize("law", LAWS, ids=str)
def test_masses_mean_variance_and_tails_agree(law: IntegerLaw) -> None:
    k = points(law)
    masses = np.exp(law.log_pmf(k))
    assert masses.sum() == pytest.approx(1, abs=1e-11)
    assert masses @ k == pytest.approx(law.mean, abs=1e-9 * (1 + law.standard_deviation))
    assert masses @ (k - law.mean) ** 2 == pytest.approx(law.variance, rel=1e-9)
    for at in k[:: max(1, k.size // 25)]:
        assert law.cdf(at) == pytest.approx(masses[k <= at].sum(), rel=1e-9, abs=1e-28)
        assert law.sf(at) == pytest.approx(masses[k > at].sum(), rel=1e-9, abs=1e-28)


@pytest.mark.parametrize("law", LAWS, ids=str)
def test_ratios_are_those_of_the_masses(law: IntegerLaw) -> None:
    k = points(law)
    logs = law.log_pmf(k)
    for i in range(1, k.size, max(1, k.size // 40)):
        assert law.log_ratio(int(k[i])) == pytest.approx(logs[i] - logs[i - 1], abs=1e-9)


@pytest.mark.parametrize("law", LAWS, ids=str)
def test_log_concave_exactly_where_it_is_said(law: IntegerLaw) -> None:
    ratios = np.diff(law.log_pmf(points(law)))
    falls = bool((np.diff(ratios) <= 1e-9).all())
    assert falls or not law.is_log_concave
    if isinstance(law, PolyaDifference) and law.shape < 1:
        assert not falls, "the law that needs the whole curve must be one that is not log-concave"


@pytest.mark.parametrize("law", [law for law in LAWS if math.isfinite(law.largest_log_ratio)], ids=str)
def test_the_largest_ratio_is_never_passed_but_reached(law: IntegerLaw) -> None:
    ratios = np.abs(np.diff(law.log_pmf(points(law))))
    assert ratios.max() <= law.largest_log_ratio * (1 + 1e-9)
    assert ratios.max() >= law.largest_log_ratio * 0.95


@pytest.mark.parametrize(("trials", "p"), [(80, 0.5), (10_000, 0.0034), (5279, 0.5), (10**6, 0.5), (10**9, 3.4e-8)])
def test_binomial_masses_and_tails_in_40_digits(trials: int, p: float) -> None:
    """Within a tenth of the relative error that every upper bound allows for."""
    law = Binomial(trials, p)
    with mpmath.workdps(40):
        q, n = mpmath.mpf(p), mpmath.mpf(trials)
        for k in np.linspace(*law.window(1e-30), 12).astype(int).tolist():
            log_mass = mpmath.loggamma(n + 1) - mpmath.loggamma(k + 1) - mpmath.loggamma(n - k + 1)
            log_mass += k * mpmath.log(q) + (n - k) * mpmath.log1p(-q)
            assert abs(float(law.log_pmf(np.array([float(k)]))[0] - log_mass)) < RELATIVE_ERROR / 10
            if law.standard_deviation > 100:
                continue
            mass, total, down, i = mpmath.exp(log_mass), mpmath.mpf(0), k <= law.mean, k
            while 0 <= i <= trials and mass > total * mpmath.mpf(10) ** -25:
                total += mass
                mass *= (i * (1 - q) / ((n - i + 1) * q)) if down else ((n - i) * q / ((i + 1) * (1 - q)))
                i += -1 if down else 1
            tail = law.cdf(k) if down else law.sf(k - 1)
            assert abs(float(tail / total) - 1) < RELATIVE_ERROR / 10


def test_polya_difference_of_shape_one_is_discrete_laplace() -> None:
    k = np.arange(-60, 61, dtype=np.float64)
    p = math.exp(-0.7)
    assert PolyaDifference(1.0, p).log_pmf(k) == pytest.approx(DiscreteLaplace(p).log_pmf(k), abs=1e-10)


def test_polya_difference_by_fast_transform_for_long_tables() -> None:
    """With epsilon 0.002 the direct convolution would take seconds; its error is in every delta."""
    law = PolyaDifference(0.5, math.exp(-0.002))
    assert 0 < law.numerical_error < 1e-11
    k = points(law)
    assert np.exp(law.log_pmf(k)).sum() == pytest.approx(1, abs=law.numerical_error)
    shorter = PolyaDifference(0.5, math.exp(-0.02))
    assert shorter.numerical_error == 0


def test_discrete_laplace_against_scipy() -> None:
    k = np.arange(-20, 21)
    ours = np.exp(DiscreteLaplace(math.exp(-0.4)).log_pmf(k.astype(float)))
    assert ours == pytest.approx(stats.dlaplace.pmf(k, 0.4), rel=1e-12)


@pytest.mark.parametrize("law", LAWS, ids=str)
@pytest.mark.parametrize("probability", [0.5, 0.05, 1e-6])
def test_deviation_quantile_is_the_smallest(law: IntegerLaw, probability: float) -> None:
    a = law.deviation_quantile(probability)
    k = points(law)
    masses = np.exp(law.log_pmf(k))

    def outside(radius: int) -> float:
        return float(masses[np.abs(k - law.mean) > radius].sum())

    assert outside(a) <= probability * (1 + 1e-9)
    assert a == 0 or outside(a - 1) > probability


@pytest.mark.parametrize(
    "make",
    [
        lambda: Binomial(0, 0.5),
        lambda: Binomial(10, 0.0),
        lambda: Binomial(10, 1.0),
        lambda: Poisson(0.0),
        lambda: DiscreteLaplace(1.0),
        lambda: PolyaDifference(0.0, 0.5),
        lambda: PolyaDifference(1.0, math.nan),
    ],
)
def test_bad_parameters_are_named(make) -> None:
    with pytest.raises(ParameterError):
        make()
