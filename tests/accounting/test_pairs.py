import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from shuffledp.accounting.differences import PolyaDifference
from shuffledp.accounting.laws import Binomial, DiscreteLaplace, Poisson
from shuffledp.accounting.pairs import FinitePair, ShiftPair
from shuffledp.errors import ParameterError
from shuffledp.protocols.polya import pure_ratio

LAWS = [
    Binomial(12, 0.5),
    Binomial(60, 0.2),
    Poisson(9.0),
    DiscreteLaplace(math.exp(-0.6)),
    PolyaDifference(1.7, math.exp(-0.6)),
    PolyaDifference(0.4, math.exp(-0.6)),
]


def brute_force(pair: ShiftPair, epsilon: float) -> tuple[float, float]:
    low, high = pair.noise.window(1e-25)
    k = np.arange(low, high + pair.shift + 1, dtype=np.float64)
    p, q = np.exp(pair.noise.log_pmf(k)), np.exp(pair.noise.log_pmf(k - pair.shift))
    return (
        float(np.maximum(p - math.exp(epsilon) * q, 0).sum()),
        float(np.maximum(q - math.exp(epsilon) * p, 0).sum()),
    )


@pytest.mark.parametrize("law", LAWS, ids=str)
@pytest.mark.parametrize("shift", [1, 2, 5])
@pytest.mark.parametrize("epsilon", [-3.0, -0.7, 0.0, 0.3, 1.0, 2.5, 6.0])
def test_both_directions_against_the_whole_sum(law, shift: int, epsilon: float) -> None:
    pair = ShiftPair(law, shift)
    forward, reverse = brute_force(pair, epsilon)
    assert pair.forward(epsilon) == pytest.approx(forward, rel=1e-8, abs=1e-13)
    assert pair.reverse(epsilon) == pytest.approx(reverse, rel=1e-8, abs=1e-13)
    assert pair.delta(epsilon) >= max(forward, reverse) * (1 - 1e-12)


def test_one_tail_would_under_report_where_noise_is_not_log_concave() -> None:
    """Half the users of discrete Laplace shares dropped out: mathematics section 1."""
    pair = ShiftPair(PolyaDifference(0.5, math.exp(-0.25)))
    assert pair.delta(0.5) == pytest.approx(0.0782, abs=5e-5)
    below = max(pair.noise.cdf(k) - math.exp(0.5) * pair.noise.cdf(k - 1) for k in range(-60, 60))
    assert below == pytest.approx(0.0406, abs=5e-5)


@given(coins=st.integers(1, 60), p=st.floats(0.05, 0.95), shift=st.integers(1, 6), epsilon=st.floats(0, 4))
def test_for_log_concave_noise_the_largest_shift_is_the_worst(coins, p, shift, epsilon) -> None:
    noise = Binomial(coins, p)
    assert ShiftPair(noise, shift).delta(epsilon) <= ShiftPair(noise, shift + 1).delta(epsilon) * (1 + 1e-6) + 1e-15


def test_pure_noise_has_no_delta_beyond_its_epsilon() -> None:
    pair = ShiftPair(DiscreteLaplace(pure_ratio(0.5)), 2)
    assert pair.delta(1.0) == 0 and pair.delta(1.5) == 0 and pair.delta(0.999) > 0


def test_finite_pairs_against_shift_pairs() -> None:
    law = Binomial(30, 0.5)
    k = np.arange(0, 32, dtype=np.float64)
    finite = FinitePair(np.exp(law.log_pmf(k)), np.exp(law.log_pmf(k - 1)))
    for epsilon in (0.0, 0.5, 1.0, 3.0):
        assert finite.forward(epsilon) == pytest.approx(ShiftPair(law).forward(epsilon), rel=1e-8)
        assert finite.reverse(epsilon) == pytest.approx(ShiftPair(law).reverse(epsilon), rel=1e-8)


def test_directions_can_differ_and_the_worse_counts() -> None:
    pair = FinitePair([0.98, 0.02], [1.0, 0.0])
    assert pair.forward(1.0) == pytest.approx(0.02) and pair.reverse(1.0) == 0
    assert pair.delta(1.0) == pytest.approx(0.02)


def test_mass_that_is_left_out_counts_against_us() -> None:
    assert FinitePair([0.5], [1.0]).delta(1.0) == pytest.approx(0.5)


def test_bad_pairs_are_named() -> None:
    with pytest.raises(ParameterError, match="shift"):
        ShiftPair(Binomial(3, 0.5), 0)
    for p, q in (([0.5], [0.5, 0.5]), ([1.5, -0.5], [0.5, 0.5]), ([0.9, 0.9], [0.5, 0.5])):
        with pytest.raises(ParameterError):
            FinitePair(p, q).delta(1.0)


@pytest.mark.parametrize(
    ("shape", "scale", "epsilon", "true"),
    [(1.0, 0.001, 0.0005, 2.5006e-4), (1.5, 0.001, 0.0005, 8.86e-5), (1000.0, 0.5, 0.025, 5.33e-5)],
)
def test_masses_made_by_a_transform_are_summed_whole(shape, scale, epsilon, true) -> None:
    """In the transform's noise no ratio means anything: a search for a cut there once found delta 1e-26."""
    delta = ShiftPair(PolyaDifference(shape, math.exp(-scale))).delta(epsilon)
    assert delta == pytest.approx(true, rel=5e-3)


def test_a_rounding_error_does_not_skip_a_plateau() -> None:
    pair = ShiftPair(PolyaDifference(1.0, 0.01), 5)
    assert pair.forward(23.02585092994045) >= 6.5e-15


def test_a_huge_epsilon_is_no_overflow() -> None:
    assert 0 < ShiftPair(Binomial(80, 0.5)).delta(1000.0) < 1e-23
    assert ShiftPair(Poisson(1e-6)).reverse(300) <= 1


def test_a_pair_says_what_it_is() -> None:
    assert ShiftPair(Binomial(80, 0.5)).describe() == "P = Z, Q = Z + 1, where Z ~ Binomial(80, 0.5)"
