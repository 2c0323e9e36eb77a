"""Thompson sampling on released sums: every user draws theta from what the sums leave open, and takes its best arm.

Released are G + N and b + h, G the sum of phi phi^T and b that of phi y = G theta + e. So b + h = (G + N) theta + w
with w = e + h - N theta. Under a Gaussian prior of variance S^2/d a coordinate, e has the covariance sigma^2 G, h that
of the release, s^2, and N theta on average s^2 S^2 (1 + 1/d) / 2, alike in every direction. In a direction in which
G + N has the eigenvalue g (0 where noise made it negative), the sums therefore weigh

    g^2 / (sigma^2 g + s^2 (1 + S^2 (1 + 1/d) / 2))

beside the prior's d/S^2. Without noise this is Bayesian linear regression. Nothing is proved about it: it is no
confidence bound, and regret has none. It is computed from the released sums alone, so that it costs no privacy.

Reference: Agrawal, Goyal 2013, whose posterior is wider by sqrt(d log T); docs/theory/002-linear-bandits.md.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from scipy import special

from shuffledp.errors import ParameterError
from shuffledp.learn.bandits.linear.confidence import Floats, ReleaseNoise
from shuffledp.learn.bandits.linear.setting import LinearSetting
from shuffledp.randomness import RandomBits


@dataclass(frozen=True, slots=True, eq=False)
class PosteriorModel:
    """What users are sent: the mean of theta, and a matrix whose product with its transpose is the covariance.

    Any leading axes.
    """

    theta: Floats
    root: Floats

    @property
    def draws(self) -> int:
        """How many standard normal numbers each user draws."""
        return int(self.theta.shape[-1])

    def document(self) -> dict[str, Any]:
        """The model as JSON."""
        return {"theta": self.theta.tolist(), "root": self.root.tolist()}

    @classmethod
    def from_document(cls, document: Mapping[str, Any]) -> Self:
        """The model that a JSON document describes."""
        return cls(*(np.asarray(document[name], dtype=np.float64) for name in ("theta", "root")))

    def drawn(self, normals: Floats) -> Floats:
        """Theta as users who drew these standard normal numbers (..., users, dimension) take it."""
        along = np.matmul(normals, np.swapaxes(self.root, -1, -2))
        return np.asarray(along + self.theta[..., np.newaxis, :])

    def choose_each(self, features: Floats, normals: Floats) -> NDArray[np.intp]:
        """The best arm of each user's own theta.

        Args:
            features: of the arms on offer, (..., users, arms, dimension).
            normals: standard normal numbers of each user, (..., users, dimension).
        """
        scores = np.matmul(features, self.drawn(normals)[..., np.newaxis])[..., 0]
        return np.asarray(scores.argmax(axis=-1))


@dataclass(frozen=True, eq=False)
class PosteriorRule:
    """The posterior of every release, from the covariance of its noise, which is known."""

    setting: LinearSetting
    noise: ReleaseNoise

    def model(self, matrix: Floats, vector: Floats, release: int) -> PosteriorModel:
        """The model after this release of G + N and b + h, any leading axes."""
        if not 0 <= release <= self.noise.releases:
            raise ParameterError("release", release, f"must lie in 0..{self.noise.releases}", "plan for more users")
        size, length = self.setting.dimension, self.setting.theta_length
        values, vectors = np.linalg.eigh(matrix)
        seen = np.maximum(values, 0.0)
        noisy = float(self.noise.deviations[release]) ** 2 * (1 + length**2 * (1 + 1 / size) / 2)
        spread = self.setting.reward_deviation**2 * seen + noisy
        ratio = np.divide(seen, spread, out=np.zeros_like(seen), where=spread > 0)
        variance = 1 / (ratio * seen + size / length**2)
        # In the directions of the eigenvectors everything is independent.
        along = np.matmul(np.swapaxes(vectors, -1, -2), vector[..., np.newaxis])[..., 0]
        theta = np.matmul(vectors, (variance * ratio * along)[..., np.newaxis])[..., 0]
        return PosteriorModel(theta, np.asarray(vectors * np.sqrt(variance)[..., np.newaxis, :]))


def standard_normals(shape: tuple[int, ...], *, bits: RandomBits) -> Floats:
    """Standard normal numbers for exploration, by quantiles of 53 bits each: they protect nobody.

    >>> drawn = standard_normals((2, 3), bits=RandomBits.seeded(1))
    >>> drawn.shape, bool((abs(drawn) < 9).all())
    ((2, 3), True)
    """
    if not math.prod(shape):
        return np.zeros(shape)
    words = bits.words(math.prod(shape)) >> np.uint64(11)
    return np.asarray(special.ndtri((words.astype(np.float64) + 0.5) * 2.0**-53)).reshape(shape)
