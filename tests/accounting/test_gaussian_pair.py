"""The Gaussian pair cut into atoms: dominates the exact one, and composes to within a thousandth of it."""

import math

import mpmath
import numpy as np
import pytest

from shuffledp.accounting.composition import Composition
from shuffledp.accounting.gaussian import GaussianPair, _log_interval_masses, gaussian_delta
from shuffledp.accounting.laws import Binomial
from shuffledp.accounting.pairs import Atoms, ShiftPair
from shuffledp.errors import ParameterError

SHIFTS = [1e-3, 0.01, 0.05, 0.2368, 0.5, 1.0, 3.0, 8.0]


def exact(epsilon: float, shift: float) -> mpmath.mpf:
    with mpmath.workdps(60):
        e, mu = mpmath.mpf(epsilon), mpmath.mpf(shift)
        return mpmath.ncdf(mu / 2 - e / mu) - mpmath.exp(e) * mpmath.ncdf(-mu / 2 - e / mu)


def places(shift: float, furthest: float) -> list[float]:
    """Epsilons so many deviations of the privacy loss above its mean."""
    return [shift * (shift / 2 + z) for z in np.linspace(0, furthest, 15).tolist()]


@pytest.mark.parametrize("shift", SHIFTS)
def test_the_curve_is_the_exact_one_rounded_up(shift: float) -> None:
    pair = GaussianPair(shift)
    for epsilon in (0.0, *places(shift, 30.0)):
        true = exact(epsilon, shift)
        assert pair.forward(epsilon) >= true and pair.reverse(epsilon) == pair.forward(epsilon)
        if true > 1e-20:
            assert pair.delta(epsilon) <= true * (1 + 1e-6)


@pytest.mark.parametrize("shift", SHIFTS)
def test_atoms_dominate(shift: float) -> None:
    """In both directions, at negative epsilons too: what composition needs."""
    atoms = GaussianPair(shift).atoms()
    for side in (atoms, atoms.reversed()):
        assert np.exp(side.log_p).sum() + side.p_outside >= 1 - 1e-12
        for epsilon in (-5.0, -1.0, -shift, -shift / 3, 0.0, *places(shift, 12.0)):
            assert side.hockey_stick(epsilon) >= exact(epsilon, shift)


@pytest.mark.parametrize("shift", SHIFTS[:6])
def test_atoms_are_close(shift: float) -> None:
    atoms = GaussianPair(shift).atoms()
    for epsilon in places(shift, 4.5):
        assert atoms.hockey_stick(epsilon) <= exact(epsilon, shift) * (1 + 1e-4)


def test_merging_each_interval_is_no_bound() -> None:
    """The twin: one atom an interval is a post-processing, easier to bear than the Gaussian pair itself."""
    shift, ends = 1.0, np.arange(-13.0, 14.0, 1 / 256)
    merged = Atoms(_log_interval_masses(ends), _log_interval_masses(ends - shift), 0.0, 0.0)
    # Where P/Q = e^epsilon amid an interval, not at its end.
    for epsilon in (shift / 2 + (k + 0.5) / 256 for k in (-100, 0, 200, 700)):
        assert merged.hockey_stick(epsilon) < exact(epsilon, shift)
        assert GaussianPair(shift).atoms().hockey_stick(epsilon) > exact(epsilon, shift)


def test_interval_masses_in_60_digits() -> None:
    ends = np.arange(-13.0, 14.0, 1 / 256)
    ours = _log_interval_masses(ends)
    with mpmath.workdps(60):
        for i in range(0, ours.size, 97):
            left, right = (mpmath.mpf(float(x)) for x in ends[i : i + 2])
            assert abs(float(mpmath.log(mpmath.ncdf(right) - mpmath.ncdf(left)) - float(ours[i]))) < 1e-12


@pytest.mark.parametrize(
    ("shift", "times"), [(0.2368, 1), (0.2368, 2), (0.2368, 10), (0.05, 16), (0.01, 60), (1.0, 1), (1.0, 4), (0.1, 200)]
)
def test_composition_against_one_larger_shift(shift: float, times: int) -> None:
    composed, together = Composition([(GaussianPair(shift), times)]), shift * math.sqrt(times)
    for epsilon in (0.0, *(together * (together / 2 + z) for z in (0.5, 2.0, 3.0, 4.0))):
        true = exact(epsilon, together)
        assert true <= composed.delta(epsilon) <= true * (1 + 1e-3)


def test_composition_of_unequal_shifts() -> None:
    composed = Composition([(GaussianPair(0.3), 2), (GaussianPair(0.7), 1)])
    together = math.sqrt(2 * 0.3**2 + 0.7**2)
    for epsilon in (0.0, 0.5, 2.0, 3.5):
        true = exact(epsilon, together)
        assert true <= composed.delta(epsilon) <= true * (1 + 1e-3)
    assert composed.delta(composed.epsilon(1e-6)) == pytest.approx(1e-6, rel=1e-5)


def test_beside_many_coins() -> None:
    """Coins enough that a binomial is all but Gaussian."""
    coins = 10**6
    gaussian = Composition([(GaussianPair(2 / math.sqrt(coins) * 8), 3), (ShiftPair(Binomial(coins, 0.5), 8), 3)])
    assert gaussian.delta(0.1) == pytest.approx(gaussian_delta(0.1, math.sqrt(coins) / 2, 8 * math.sqrt(6)), rel=1e-3)


@pytest.mark.parametrize("shift", [0.0, -1.0, math.inf, math.nan])
def test_bad_shifts_are_named(shift: float) -> None:
    with pytest.raises(ParameterError, match="shift"):
        GaussianPair(shift)
