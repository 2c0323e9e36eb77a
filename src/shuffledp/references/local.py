"""The local model: each user answers for itself and nobody shuffles."""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from shuffledp.estimates import Estimate
from shuffledp.privacy import Privacy


@dataclass(frozen=True, slots=True, kw_only=True)
class LocalRandomizedResponse:
    """Binary randomized response, the best local protocol for a count.

    The true bit is kept with the largest probability that (epsilon, delta) allows,
    (e^epsilon + delta) / (e^epsilon + 1).

    Reference: [004] section 3.1.

    >>> round(LocalRandomizedResponse(users=10_000, privacy=Privacy(1, 1e-6)).standard_error, 1)
    96.0
    """

    users: int
    privacy: Privacy

    @property
    def lie_probability(self) -> float:
        """The probability of the wrong answer."""
        # Divided by e^epsilon: no overflow, and no digit lost, at a large epsilon.
        shrink = math.exp(-self.privacy.epsilon)
        return shrink * (1 - self.privacy.delta) / (1 + shrink)

    @property
    def standard_error(self) -> float:
        """The standard error of the unbiased estimate, whatever the values."""
        lie = self.lie_probability
        return math.sqrt(self.users * lie * (1 - lie)) / (1 - 2 * lie)

    def sample_estimate(self, values: ArrayLike, *, generator: np.random.Generator) -> Estimate:
        """Randomize every value and estimate their sum."""
        true = np.asarray(values, dtype=np.bool_)
        lie = self.lie_probability
        answers = true ^ (generator.random(true.size) < lie)
        value = (float(answers.sum()) - true.size * lie) / (1 - 2 * lie)
        error = self.standard_error
        # Chebyshev at 95%: the reference needs no sharper bound.
        return Estimate(value=value, standard_error=error, bound=error * math.sqrt(20), confidence=0.95, simulated=True)
