"""Learning in the local model: every user answers once, for itself, and nobody shuffles."""

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from shuffledp.accounting.gaussian import gaussian_standard_deviation
from shuffledp.errors import ParameterError
from shuffledp.privacy import Privacy
from shuffledp.references.curator_descent import into_radius
from shuffledp.references.local_vector import LocalPrivUnit, local_vector_standard_error

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True, kw_only=True)
class LocalDescent:
    """Accelerated stochastic gradients, each answered by PrivUnit or with Gaussian noise, whichever is better.

    Steps are those that minimise the bound of docs/theory/001-convex-optimization.md for the variance that the local
    model has: the same rule as P_AGD's.

    Reference: Duchi, Jordan, Wainwright 2018; `LocalPrivUnit`.

    >>> asked = {"privacy": Privacy(4, 1e-6), "dimension": 1, "clip": 1, "smoothness": 1, "radius": 1}
    >>> descent = LocalDescent(users=20_000, batch=1000, **asked)
    >>> answers = lambda first, count, theta: np.full((count, 1), theta[0] - 0.5)
    >>> bool(abs(descent.fit(answers, generator=np.random.default_rng(1))[0] - 0.5) < 0.1)
    True
    """

    users: int
    privacy: Privacy
    dimension: int
    clip: float
    smoothness: float
    radius: float
    batch: int

    def __post_init__(self) -> None:
        if not 1 <= self.batch <= self.users:
            raise ParameterError("batch", self.batch, f"must lie in 1..{self.users}", "try a hundredth of the users")
        for name in ("clip", "smoothness", "radius"):
            if not 0 < getattr(self, name) < math.inf:
                raise ParameterError(name, getattr(self, name), "must be > 0 and finite", "take the solver's")

    @property
    def rounds(self) -> int:
        """As many as there are whole batches."""
        return self.users // self.batch

    @property
    def standard_error(self) -> float:
        """Of a coordinate of a batch's sum."""
        return local_vector_standard_error(self.batch, self.privacy, self.dimension, self.clip)

    @property
    def weight(self) -> float:
        """What steps are divided by: the smoothness, and more for the noise."""
        variance = self.clip**2 / self.batch + self.dimension * (self.standard_error / self.batch) ** 2
        times = self.rounds * (self.rounds + 1) * (2 * self.rounds + 1)
        return self.smoothness + math.sqrt(variance * times / 24) / self.radius

    def fit(self, gradients: Callable[[int, int, Floats], Floats], *, generator: np.random.Generator) -> Floats:
        """The model; `gradients(first, count, theta)` gives some users' clipped gradients, a row a user."""
        point = average = np.zeros(self.dimension)
        weight = self.weight
        for time in range(1, self.rounds + 1):
            part = 2 / (time + 1)
            rows = gradients((time - 1) * self.batch, self.batch, part * point + (1 - part) * average)
            mean = self._sum(rows, generator) / self.batch
            point = into_radius(point - mean * (time / (2 * weight)), self.radius)
            average = part * point + (1 - part) * average
        return average

    def _sum(self, rows: Floats, generator: np.random.Generator) -> Floats:
        caps = LocalPrivUnit(users=self.batch, privacy=self.privacy, dimension=self.dimension, radius=self.clip)
        if caps.standard_error <= self.standard_error:
            return caps.sample_estimate(rows, generator=generator).value
        noise = math.sqrt(self.batch) * gaussian_standard_deviation(self.privacy, 2 * self.clip)
        return np.asarray(rows.sum(axis=0) + noise * generator.standard_normal(self.dimension))
