import math
from fractions import Fraction

import mpmath
import numpy as np
import pytest
from scipy import stats

from shuffledp.errors import ParameterError
from shuffledp.randomness import RandomBits
from shuffledp.sampling import laws
from shuffledp.sampling.laws import (
    discrete_laplace,
    geometric,
    negative_binomial,
    poisson,
    sample_polya_difference,
    sample_skellam,
    truncated_discrete_laplace,
)
from shuffledp.sampling.table import TableLaw
from shuffledp.testing.statistics import assert_law, assert_not_law

P = math.exp(-1)


def exact_poisson(k: int, mean: Fraction) -> mpmath.mpf:
    rate = mpmath.mpf(mean.numerator) / mean.denominator
    return mpmath.exp(-rate) * rate**k / mpmath.factorial(k)


def exact_negative_binomial(k: int, shape: Fraction, p: float) -> mpmath.mpf:
    r = mpmath.mpf(shape.numerator) / shape.denominator
    return mpmath.binomial(k + r - 1, k) * mpmath.mpf(p) ** k * (1 - mpmath.mpf(p)) ** r


def distance(law: TableLaw, exact) -> mpmath.mpf:
    """The true total variation distance to the ideal law, in 60 digits."""
    with mpmath.workdps(60):
        ideal = [exact(k) for k in range(law.low, law.high + 1)]
        table = [mpmath.mpf(m.numerator) / m.denominator for m in law.masses()]
        outside = 1 - mpmath.fsum(ideal)
        return (mpmath.fsum(abs(a - b) for a, b in zip(ideal, table, strict=True)) + outside) / 2


CASES = {
    "poisson 0.01": (poisson(Fraction(1, 100)), lambda k: exact_poisson(k, Fraction(1, 100))),
    "poisson 85": (poisson(85), lambda k: exact_poisson(k, Fraction(85))),
    "polya share": (
        negative_binomial(Fraction(1, 10_000), P),
        lambda k: exact_negative_binomial(k, Fraction(1, 10_000), P),
    ),
    "wide shape": (negative_binomial(Fraction(7, 2), 0.9), lambda k: exact_negative_binomial(k, Fraction(7, 2), 0.9)),
    "geometric": (geometric(0.5), lambda k: exact_negative_binomial(k, Fraction(1), 0.5)),
    "laplace": (
        discrete_laplace(P),
        lambda k: mpmath.mpf(P) ** abs(k) * (1 - mpmath.mpf(P)) / (1 + mpmath.mpf(P)),
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_the_certified_distance_is_an_upper_bound_and_small(name: str) -> None:
    law, exact = CASES[name]
    true = distance(law, exact)
    assert 0 < true <= law.distance < 1e-33


@pytest.mark.parametrize("name", CASES)
def test_samples_follow_the_table(name: str) -> None:
    law, _ = CASES[name]
    samples = law.sample(300_000, bits=RandomBits.seeded(1))
    assert_law(samples, law.low, [float(m) for m in law.masses()])


def test_masses_add_up_exactly() -> None:
    for law, _ in CASES.values():
        assert sum(law.masses()) == 1


@pytest.mark.parametrize(
    ("wrong", "law"),
    [
        (poisson(Fraction(85) * Fraction(8, 10)), poisson(85)),
        (negative_binomial(Fraction(8, 1000), P), negative_binomial(Fraction(1, 100), P)),
        (discrete_laplace(math.exp(-1 / 0.8)), discrete_laplace(P)),
        (geometric(0.8 * 0.5), geometric(0.5)),
    ],
)
def test_twins_with_20_percent_less_are_caught(wrong: TableLaw, law: TableLaw) -> None:
    samples = wrong.sample(1_000_000, bits=RandomBits.seeded(1))
    inside = samples[(samples >= law.low) & (samples <= law.high)]
    assert_not_law(inside, law.low, [float(m) for m in law.masses()])


def test_the_swapped_negative_binomial_of_public_code_is_caught() -> None:
    """(1-p)/p where p/(1-p) belongs: almost no noise."""
    law, swapped = negative_binomial(Fraction(1, 100), P), negative_binomial(Fraction(1, 100), 1 - P)
    assert_not_law(swapped.sample(300_000, bits=RandomBits.seeded(1)), law.low, [float(m) for m in law.masses()])


def test_polya_shares_add_up_to_a_discrete_laplace() -> None:
    users = 20
    noise = sample_polya_difference(Fraction(1, users), P, 20_000 * users, bits=RandomBits.seeded(1))
    law = discrete_laplace(P)
    assert_law(noise.reshape(-1, users).sum(axis=1), law.low, [float(m) for m in law.masses()])


def test_skellam() -> None:
    k = np.arange(-60, 61)
    samples = sample_skellam(20, 200_000, bits=RandomBits.seeded(1))
    assert_law(samples, -60, stats.skellam.pmf(k, 10, 10))
    assert_not_law(sample_skellam(16, 200_000, bits=RandomBits.seeded(1)), -60, stats.skellam.pmf(k, 10, 10))


def test_ties_with_a_table_entry_are_decided_by_more_bits() -> None:
    """A table whose two entries share their high word: only the low word tells the values apart."""
    law = TableLaw(
        low=10,
        high_words=np.array([5, 5], dtype=np.uint64),
        low_words=np.array([1 << 61, 1 << 63], dtype=np.uint64),
        distance=0.0,
    )

    class Fixed(RandomBits):
        def words(self, count: int):
            drawn = super().words(count)
            self.calls = getattr(self, "calls", 0) + 1
            return np.full(count, 5, dtype=np.uint64) if self.calls == 1 else drawn

    samples = law.sample(100_000, bits=Fixed(bytes(32)))
    assert_law(samples, 10, [0.125, 0.375, 0.5])


@pytest.mark.parametrize(("make", "value"), [(poisson, 0), (poisson, -1), (geometric, 0), (geometric, 1)])
def test_bad_parameters_are_named(make, value) -> None:
    with pytest.raises(ParameterError):
        make(value)


def test_laws_that_are_nearly_certain() -> None:
    for law in (discrete_laplace(math.exp(-70)), negative_binomial(1, math.exp(-90)), poisson(1e-40)):
        assert (law.sample(100, bits=RandomBits.seeded(1)) == 0).all() and sum(law.masses()) == 1


@pytest.mark.parametrize("value", [math.nan, math.inf])
def test_numbers_that_are_none_are_named(value: float) -> None:
    for make in (poisson, geometric, discrete_laplace):
        with pytest.raises(ParameterError):
            make(value)


def test_a_table_too_large_for_memory_is_refused() -> None:
    with pytest.raises(ParameterError, match="table"):
        discrete_laplace(math.exp(-1e-6))


@pytest.mark.parametrize("largest", [1, 3, 4.9])
def test_skellam_in_several_parts_has_the_whole_variance(largest: float, monkeypatch: pytest.MonkeyPatch) -> None:
    """A variance too large for one table is drawn in parts; here tables are said to be small."""
    monkeypatch.setattr(laws, "_LARGEST_POISSON", largest)
    samples = sample_skellam(20, 100_000, bits=RandomBits.seeded(2))
    assert_law(samples, -60, stats.skellam.pmf(np.arange(-60, 61), 10, 10))


@pytest.mark.parametrize("bits", [1, 3, 7, 41])
def test_truncated_laplace_masses_are_symmetric_and_end_where_they_should(bits: int) -> None:
    law = truncated_discrete_laplace(bits, P)
    weights = np.array([P ** abs(k - bits / 2) for k in range(bits + 1)])
    assert (law.low, law.high) == (0, bits)
    assert [float(mass) for mass in law.masses()] == pytest.approx(weights / weights.sum(), rel=1e-12)
