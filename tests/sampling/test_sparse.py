"""Sparse noise: events in cells add up to the negative binomial law of each cell."""

from fractions import Fraction

import numpy as np
import pytest

from shuffledp.accounting.differences import negative_binomial_masses
from shuffledp.errors import ParameterError
from shuffledp.randomness import RandomBits
from shuffledp.sampling.laws import poisson
from shuffledp.sampling.sparse import logarithmic, sparse_negative_binomial
from shuffledp.testing.statistics import assert_law, assert_not_law


@pytest.mark.parametrize(("shape", "p"), [(0.3, 0.6), (Fraction(1, 40), 0.9), (2, 0.4)])
def test_every_cell_has_its_law(shape: float | Fraction, p: float) -> None:
    rows, cells = 30_000, 4
    law = sparse_negative_binomial(shape, p, cells)
    assert law.distance < 1e-30
    events, where, sizes = law.sample(rows, bits=RandomBits.seeded(1))
    row = np.repeat(np.arange(rows), events)
    noise = np.bincount(row * cells + where, sizes, rows * cells).astype(np.int64)
    masses = negative_binomial_masses(float(shape), p)
    assert_law(noise, 0, masses, false_alarm=1e-9)
    assert_not_law(noise, 0, negative_binomial_masses(0.8 * float(shape), p), false_alarm=1e-9)
    # Cells of one row are independent: their sum is the law of all of them.
    assert_law(noise.reshape(rows, cells).sum(axis=1), 0, negative_binomial_masses(cells * float(shape), p))


def test_logarithmic_masses_are_exact() -> None:
    masses = logarithmic(Fraction(1, 2)).masses()
    assert float(masses[1] / masses[0]) == pytest.approx(1 / 4) and float(masses[2] / masses[1]) == pytest.approx(1 / 3)
    with pytest.raises(ParameterError):
        logarithmic(1)


def test_the_distance_has_every_tables_part() -> None:
    """Too small to be seen in any sum: the events' own table, and that of the sizes once an event."""
    law = sparse_negative_binomial(0.5, 0.9, 1000)
    mean = sum(float(mass) * (law.events.low + place) for place, mass in enumerate(law.events.masses()))
    assert law.distance >= law.events.distance + mean * law.sizes.distance > law.events.distance > 0
    assert sparse_negative_binomial(1e-9, 0.9, 1).distance >= poisson(Fraction(1, 10**9)).distance
