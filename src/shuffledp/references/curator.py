"""The trusted curator: sees all data and adds noise once."""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from shuffledp.accounting.laws import DiscreteLaplace
from shuffledp.estimates import Estimate
from shuffledp.privacy import Privacy


@dataclass(frozen=True, slots=True, kw_only=True)
class CuratorDiscreteLaplace:
    """A curator's count with discrete Laplace noise: the error to come close to.

    >>> round(CuratorDiscreteLaplace(privacy=Privacy(1, 1e-6)).standard_error, 3)
    1.357
    """

    privacy: Privacy

    @property
    def noise(self) -> DiscreteLaplace:
        """The law of the error."""
        return DiscreteLaplace(math.exp(-self.privacy.epsilon))

    @property
    def standard_error(self) -> float:
        """The standard error of the curator's count."""
        return self.noise.standard_deviation

    def sample_estimate(self, values: ArrayLike, *, generator: np.random.Generator) -> Estimate:
        """The sum plus the difference of two geometric variables."""
        stop = 1 - self.noise.p
        noise = int(generator.geometric(stop)) - int(generator.geometric(stop))
        return Estimate(
            value=float(np.sum(values)) + noise,
            standard_error=self.standard_error,
            bound=float(self.noise.deviation_quantile(0.05)),
            confidence=0.95,
            simulated=True,
        )
