"""Learning in the local model: every user answers once, for itself, and nobody shuffles."""

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy import special

from shuffledp import Privacy
from shuffledp.accounting.gaussian import gaussian_standard_deviation
from shuffledp.errors import ParameterError
from shuffledp.learn.optimize import L2Ball
from shuffledp.learn.optimize.agd import AgdStage, noise_weight
from shuffledp.references.local_vector import Cap, best_cap, cap_standard_error, local_vector_standard_error


def sample_components(cap: Cap, size: int, generator: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """PrivUnit's answers: components along the user's own unit vector, and their lengths across."""
    inside = generator.random(size) < cap.probability
    # The share of the sphere that is nearer to u than the answer: uniform on [0, 1] if the answer were.
    nearer = generator.random(size)
    nearer = np.where(inside, cap.share * nearer, cap.share + (1 - cap.share) * nearer)
    sign = np.where(nearer < 0.5, 1.0, -1.0)
    if cap.dimension == 1:
        return sign, np.zeros(size)
    # Twice the smaller side is P[<v, u>^2 >= t^2] = 1 - I_(t^2)(1/2, (d-1)/2); each of t^2 and 1 - t^2 by its own
    # inverse, as the other's rounding would eat it near 0.
    half, tail = (cap.dimension - 1) / 2, 2 * np.minimum(nearer, 1 - nearer)
    return sign * np.sqrt(special.betainccinv(0.5, half, tail)), np.sqrt(special.betaincinv(half, 0.5, tail))


def sample_sum(rows: np.ndarray, epsilon: float, radius: float, generator: np.random.Generator) -> np.ndarray:
    """The sum that PrivUnit's answers estimate: each of the rows, none longer than the radius, is randomized."""
    users, dimension = rows.shape
    cap, norms = best_cap(epsilon, dimension), np.linalg.norm(rows, axis=1)
    first = np.eye(1, dimension)
    units = np.where(norms[:, None] == 0, first, rows) / np.where(norms == 0, 1.0, norms)[:, None]
    # A short vector becomes its own direction, or the opposite one.
    units[2 * generator.random(users) > 1 + norms / radius] *= -1
    along, across = sample_components(cap, users, generator)
    total = along @ units
    if dimension > 1:
        others = generator.standard_normal(units.shape)
        others -= np.sum(others * units, axis=1, keepdims=True) * units
        total = total + (across / np.linalg.norm(others, axis=1)) @ others
    return total * (radius / cap.mean)


@dataclass(frozen=True, slots=True, kw_only=True)
class LocalDescent:
    """Accelerated stochastic gradients, each answered by PrivUnit or with Gaussian noise, whichever is better.

    Steps are those that minimise the bound of docs/theory/001-convex-optimization.md for the variance that the local
    model has: the same rule as P_AGD's.

    Reference: Duchi, Jordan, Wainwright 2018; Bhowmick et al. 2018 (PrivUnit).
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
        return self.smoothness + noise_weight(self.rounds, variance, self.radius)

    def fit(self, gradients: Callable[[int, int, np.ndarray], np.ndarray], *, generator: np.random.Generator):
        """The model; `gradients(first, count, theta)` gives some users' clipped gradients, a row a user."""
        ball = L2Ball(dimension=self.dimension, radius=self.radius)
        stage = AgdStage(rounds=self.rounds, users=self.batch, plan=None, bound=math.inf, weight=self.weight)
        point = average = np.zeros(self.dimension)
        for time in range(1, self.rounds + 1):
            rows = gradients((time - 1) * self.batch, self.batch, stage.query(time, point, average))
            mean = self._sum(rows, generator) / self.batch
            point, average = stage.step(time, point, average, mean, ball.project)
        return average

    def _sum(self, rows: np.ndarray, generator: np.random.Generator) -> np.ndarray:
        epsilon = self.privacy.epsilon
        if cap_standard_error(self.batch, epsilon, self.dimension, self.clip) <= self.standard_error:
            return sample_sum(rows, epsilon, self.clip, generator)
        noise = math.sqrt(self.batch) * gaussian_standard_deviation(self.privacy, 2 * self.clip)
        return rows.sum(axis=0) + noise * generator.standard_normal(self.dimension)
