"""Gradient descent by a trusted curator, who sees all gradients and adds Gaussian noise in every round."""

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from shuffledp.accounting.gaussian import gaussian_standard_deviation
from shuffledp.errors import ParameterError
from shuffledp.privacy import Privacy

Floats = NDArray[np.float64]


def into_radius(theta: Floats, radius: float) -> Floats:
    """The nearest point of the ball around 0."""
    return np.asarray(theta * min(1.0, radius / max(float(np.linalg.norm(theta)), radius)))


@dataclass(frozen=True, slots=True, kw_only=True)
class CuratorDescent:
    """Noisy gradient descent in the central model: the loss that P_GD has to come close to.

    No user's gradient is longer than `clip`. Rounds of Gaussian noise compose exactly: T of them are one with sqrt(T)
    times the shift, so that each needs sqrt(T) times the noise of one.

    Reference: Bassily, Smith, Thakurta 2014, with the analytic Gaussian mechanism of Balle, Wang 2018.

    >>> descent = CuratorDescent(users=1000, privacy=Privacy(1, 1e-6), clip=1, radius=1, rounds=4, step_size=0.5)
    >>> round(descent.standard_error, 3)
    16.899
    >>> model = descent.fit(lambda theta: 1000 * (theta - 0.5), dimension=1, generator=np.random.default_rng(1))
    >>> bool(0.2 < model[0] < 0.5)
    True
    """

    users: int
    privacy: Privacy
    clip: float
    radius: float
    rounds: int
    step_size: float

    def __post_init__(self) -> None:
        for name in ("users", "clip", "radius", "rounds", "step_size"):
            if not 0 < getattr(self, name) < math.inf:
                raise ParameterError(name, getattr(self, name), "must be > 0 and finite", "take P_GD's")

    @property
    def standard_error(self) -> float:
        """Of a coordinate of one round's sum."""
        return math.sqrt(self.rounds) * gaussian_standard_deviation(self.privacy, 2 * self.clip)

    def fit(self, sums: Callable[[Floats], Floats], *, dimension: int, generator: np.random.Generator) -> Floats:
        """The mean of the points after each step, from 0; `sums` gives all users' clipped gradients' sum at a point."""
        point = average = np.zeros(dimension)
        for time in range(1, self.rounds + 1):
            noisy = sums(point) + self.standard_error * generator.standard_normal(dimension)
            point = into_radius(point - self.step_size / self.users * noisy, self.radius)
            average = average + (point - average) / time
        return average
