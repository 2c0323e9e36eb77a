"""Negative binomial noise in very many cells, most of which are 0: drawn by events, exactly.

NB(shape, p) is a Poisson number of events, of mean -shape log(1 - p), each of logarithmic size. So the events of many
cells together are Poisson too, and each falls into a cell drawn uniformly: what is drawn costs what is not 0.
"""

from dataclasses import dataclass
from decimal import Decimal, localcontext
from fractions import Fraction
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from shuffledp.randomness import RandomBits
from shuffledp.sampling.bernoulli import Probability, exact_probability
from shuffledp.sampling.laws import Rational, poisson, ratio_parameter
from shuffledp.sampling.table import TableLaw
from shuffledp.sampling.uniform import uniform_below

# The events' mean is taken to a multiple of this.
_MEAN_STEP = Fraction(1, 1 << 160)


@lru_cache(maxsize=256)
def logarithmic(p: Probability) -> TableLaw:
    """P[k] proportional to p^k / k for k >= 1.

    >>> logarithmic(0.5).low, logarithmic(0.5).distance < 1e-35
    (1, True)
    """
    ratio = ratio_parameter(p)
    top, bottom = ratio.numerator, ratio.denominator
    # P[k] / P[k-1] = p (k-1) / k, with k = 1 + j.
    return TableLaw.from_ratios(1, up=lambda j: (top * j, bottom * (j + 1)), down=lambda j: (0, 1), up_limit=ratio)


def _minus_log_of_rest(p: Probability) -> Fraction:
    """-log(1 - p), to 60 digits."""
    rest = 1 - exact_probability(p)
    with localcontext() as context:
        context.prec = 70
        value = -(Decimal(rest.numerator) / Decimal(rest.denominator)).ln()
    return Fraction(value)


@dataclass(frozen=True, slots=True)
class SparseNegativeBinomial:
    """Independent NB(shape, p) in each of `cells` cells, as a list of events.

    >>> law = sparse_negative_binomial(0.001, 0.5, 2000)
    >>> events, cells, sizes = law.sample(10_000, bits=RandomBits.seeded(0))
    >>> round(sizes.sum() / 10_000), events.size, sizes.size == cells.size
    (2, 10000, True)
    """

    cells: int
    events: TableLaw
    sizes: TableLaw
    distance: float

    def sample(self, rows: int, *, bits: RandomBits) -> tuple[NDArray[np.int64], NDArray[Any], NDArray[np.int64]]:
        """For so many rows: how many events each has, and, row by row, every event's cell and size.

        A row is within `distance` of its law in total variation.
        """
        events = self.events.sample(rows, bits=bits)
        total = int(events.sum())
        return events, uniform_below(self.cells, total, bits=bits), self.sizes.sample(total, bits=bits)


@lru_cache(maxsize=256)
def sparse_negative_binomial(shape: Rational, p: Probability, cells: int) -> SparseNegativeBinomial:
    """The law of one row of cells, with what its tables cut off and round."""
    exact = _minus_log_of_rest(p) * Fraction(shape) * cells
    mean = max(1, round(exact / _MEAN_STEP)) * _MEAN_STEP
    events, sizes = poisson(mean), logarithmic(p)
    # Two Poisson laws are as far apart as their means, at most; every event's size is off by its own table.
    distance = events.distance + float(2 * _MEAN_STEP) + (float(mean) + 1) * sizes.distance
    return SparseNegativeBinomial(cells, events, sizes, distance * (1 + 1e-12))
