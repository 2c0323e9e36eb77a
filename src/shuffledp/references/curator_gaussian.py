"""The trusted curator of a sum of vectors: sees all data and adds Gaussian noise once."""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike
from scipy import special

from shuffledp.accounting.gaussian import gaussian_standard_deviation
from shuffledp.errors import ParameterError
from shuffledp.estimates import VectorEstimate
from shuffledp.privacy import Privacy


def gaussian_bound(standard_deviation: float, dimension: int, failure: float = 0.05) -> float:
    """What all of so many independent Gaussian errors stay within, but for the failure probability: exact.

    >>> round(gaussian_bound(1.0, 1), 4), round(gaussian_bound(1.0, 100_000), 4)
    (1.96, 5.0214)
    """
    each = -math.expm1(math.log1p(-failure) / dimension)
    return standard_deviation * float(-special.ndtri(each / 2))


@dataclass(frozen=True, slots=True, kw_only=True)
class CuratorGaussian:
    """A curator's sum with Gaussian noise in every coordinate: the error to come close to.

    `sensitivity` is how far, in Euclidean norm, one user's replacement moves the sum: twice the radius of a ball.

    Reference: Balle, Wang 2018 (the analytic Gaussian mechanism).

    >>> round(CuratorGaussian(privacy=Privacy(1, 1e-6), sensitivity=2).standard_error, 3)
    8.449
    """

    privacy: Privacy
    sensitivity: float

    def __post_init__(self) -> None:
        if not (self.sensitivity > 0 and math.isfinite(self.sensitivity)):
            raise ParameterError("sensitivity", self.sensitivity, "must be > 0 and finite", "2 suits a unit ball")

    @property
    def standard_error(self) -> float:
        """Of a coordinate of the curator's sum."""
        return gaussian_standard_deviation(self.privacy, self.sensitivity)

    def sample_estimate(self, values: ArrayLike, *, generator: np.random.Generator) -> VectorEstimate:
        """Add up the rows and add noise; plain numbers are rows of one."""
        rows = np.asarray(values, dtype=np.float64)
        total = np.atleast_1d(rows.sum(axis=0))
        error = self.standard_error
        return VectorEstimate(
            value=total + error * generator.standard_normal(total.size),
            standard_error=error,
            bound=gaussian_bound(error, total.size),
            confidence=0.95,
            simulated=True,
        )
