"""One rule for every policy: the regularizer and the confidence radius, from the noise's own quantiles.

Released are G + N and b + h, G the sum of phi phi^T and b that of phi y, N and h noise that is Gaussian of a known
deviation up to a known offset. With q the quantile of |N| and v that of |h|, union over all releases,

    V = G + N + (q + low) I = G + H,    low I <= H <= high I,    low about max(q, 1),  high = 2q + low,
    |theta^ - theta|_V  <=  |sum phi eta|_(V^-1) + |h|_(V^-1) + |H theta|_(V^-1),

where the first term is at most s sqrt(2 ln(L / failure) + ln det(V / low)) for the L different values of low together
(Abbasi-Yadkori et al. 2011), the second v / sqrt(m), and the third S min(sqrt(high), high / sqrt(m)), with m the least
eigenvalue of V, which everybody sees. Few values of low, four an octave, serve all releases. Without noise this is
plain LinUCB with regularizer 1, whose radius has 1 / sqrt(m) where the textbook's has 1.

Proof: docs/theory/002-linear-bandits.md.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from shuffledp.errors import ParameterError
from shuffledp.learn.bandits.linear.operator_norm import operator_norm_quantile, vector_norm_quantile
from shuffledp.learn.bandits.linear.setting import LinearSetting

Floats = NDArray[np.float64]

# Of the failure probability: for rewards, for the matrix's noise and for the vector's.
_REWARDS, _MATRIX, _VECTOR = 0.33, 0.33, 0.33
# Different values of `low`: more would cost in the union over them, fewer in their distance to the noise.
_PER_OCTAVE = 4
OFFSETS = 0.01
"""And for noise being further from Gaussian than the offsets say."""


@dataclass(frozen=True, eq=False)
class ReleaseNoise:
    """The noise of all releases, that of nobody first: a Gaussian deviation a coordinate, and how far that is off."""

    deviations: Floats
    offsets: Floats

    @classmethod
    def gaussian(cls, deviations: Floats) -> "ReleaseNoise":
        """Noise that is Gaussian indeed; `deviations` are those of the releases after the first users."""
        padded = np.concatenate(([0.0], deviations))
        return cls(padded, np.zeros_like(padded))

    @property
    def releases(self) -> int:
        """Without that of nobody."""
        return self.deviations.size - 1


@dataclass(frozen=True, slots=True, eq=False)
class ConfidentModel:
    """What users are sent: an estimate, the inverse of its matrix, and the radius; any leading axes."""

    draws: ClassVar[int] = 0
    """How many standard normal numbers each user draws: all choose alike."""

    theta: Floats
    inverse: Floats
    radius: Floats

    def document(self) -> dict[str, Any]:
        """The model as JSON."""
        return {name: getattr(self, name).tolist() for name in ("theta", "inverse", "radius")}

    @classmethod
    def from_document(cls, document: Mapping[str, Any]) -> Self:
        """The model that a JSON document describes."""
        return cls(*(np.asarray(document[name], dtype=np.float64) for name in ("theta", "inverse", "radius")))

    def scores(self, features: Floats) -> Floats:
        """Upper confidence bounds of features (..., arms, dimension)."""
        means = np.matmul(features, self.theta[..., np.newaxis])[..., 0]
        spread = np.einsum("...ad,...ad->...a", np.matmul(features, self.inverse), features)
        # Rounding may leave a hair below 0.
        return np.asarray(means + self.radius[..., np.newaxis] * np.sqrt(np.maximum(spread, 0.0)))

    def choose(self, features: Floats) -> NDArray[np.intp]:
        """The arm with the largest upper confidence bound; the first of equals."""
        return np.asarray(self.scores(features).argmax(axis=-1))

    def choose_each(self, features: Floats, normals: Floats) -> NDArray[np.intp]:
        """The arm that each user of the same model takes.

        Args:
            features: of the arms on offer, (..., users, arms, dimension).
            normals: numbers that users drew; none are used.
        """
        wide = ConfidentModel(self.theta[..., None, :], self.inverse[..., None, :, :], self.radius[..., None])
        return wide.choose(features)


@dataclass(frozen=True, eq=False)
class ConfidenceRule:
    """Regularizer, eigenvalue bounds and radius of every release."""

    setting: LinearSetting
    noise: ReleaseNoise
    slot_users: int
    model_age: int = 0
    """How many slots older than the newest a model may be that a user chooses by."""

    @property
    def _releases(self) -> int:
        return self.noise.releases

    @cached_property
    def _quantiles(self) -> tuple[float, float]:
        """Quantiles of the noise matrix's norm and of the noise vector's length, for noise of deviation 1."""
        size, failure, releases = self.setting.dimension, self.setting.failure, max(1, self._releases)
        if self.setting.constants == "paper":
            # Shariff and Sheffet 2018, whose (Z + Z^T)/sqrt(2) has twice the variance of N.
            matrix = math.sqrt(2) * (4 * math.sqrt(size) + 2 * math.log(2 * self.setting.users / failure))
            return matrix, math.sqrt(size) + math.sqrt(2 * math.log(2 * self.setting.users / failure))
        matrix = operator_norm_quantile(size, _MATRIX * failure / releases)
        return matrix, vector_norm_quantile(size, _VECTOR * failure / releases)

    @cached_property
    def matrix_noise(self) -> Floats:
        """No eigenvalue of a release's noise matrix is larger in absolute value."""
        # An offset of 1 in every coordinate is a matrix with 1 on and 1/sqrt(2) off the diagonal.
        off = 1 + (self.setting.dimension - 1) / math.sqrt(2)
        return np.asarray(self._quantiles[0] * self.noise.deviations + off * self.noise.offsets)

    @cached_property
    def vector_noise(self) -> Floats:
        """No release's noise vector is longer."""
        off = math.sqrt(self.setting.dimension)
        return np.asarray(self._quantiles[1] * self.noise.deviations + off * self.noise.offsets)

    @cached_property
    def low(self) -> Floats:
        """The least eigenvalue of regularizer and noise together: that of the noise alone, or 1, rounded down."""
        octaves = np.floor(_PER_OCTAVE * np.log2(np.maximum(self.matrix_noise, 1.0))) / _PER_OCTAVE
        return np.asarray(np.exp2(octaves), dtype=np.float64)

    @cached_property
    def shift(self) -> Floats:
        """The regularizer."""
        return np.asarray(self.matrix_noise + self.low)

    @cached_property
    def high(self) -> Floats:
        """The largest eigenvalue of regularizer and noise together."""
        return np.asarray(2 * self.matrix_noise + self.low)

    @cached_property
    def rewards_cost(self) -> float:
        """2 ln(L / failure)."""
        different = np.unique(self.low).size
        return 2 * math.log(different / (_REWARDS * self.setting.failure))

    def model(self, matrix: Floats, vector: Floats, release: int) -> ConfidentModel:
        """The model after this release of G + N and b + h, any leading axes.

        Where an eigenvalue is below `low`, which happens with at most the failure probability, it is raised to it.
        """
        if not 0 <= release <= self.noise.releases:
            raise ParameterError("release", release, f"must lie in 0..{self.noise.releases}", "plan for more users")
        low = float(self.low[release])
        values, vectors = np.linalg.eigh(matrix)
        values += float(self.shift[release])
        np.maximum(values, low, out=values)
        scaled = vectors / values[..., np.newaxis, :]
        inverse = np.matmul(scaled, np.swapaxes(vectors, -1, -2))
        theta = np.matmul(inverse, vector[..., np.newaxis])[..., 0]
        return ConfidentModel(theta, inverse, self.radius(values[..., 0], np.log(values / low).sum(axis=-1), release))

    def radius(self, least: Floats, log_det: Floats, release: int) -> Floats:
        """From V's least eigenvalue and ln det(V / low)."""
        low, high = float(self.low[release]), float(self.high[release])
        setting = self.setting
        if setting.constants == "paper":
            size, time = setting.dimension, release * self.slot_users
            known = 2 * math.log(2 / setting.failure) + size * math.log(high / low + time / (size * low))
            radius = setting.reward_deviation * math.sqrt(known) + setting.theta_length * math.sqrt(high)
            return np.full_like(least, radius + float(self.vector_noise[release]) / math.sqrt(low))
        root = np.sqrt(least)
        rewards = setting.reward_deviation * np.sqrt(self.rewards_cost + log_det)
        pulled = np.minimum(math.sqrt(high), high / root)
        return np.asarray(rewards + float(self.vector_noise[release]) / root + setting.theta_length * pulled)

    @cached_property
    def largest_radius(self) -> float:
        """No model has a larger one, whatever the data."""
        size = self.setting.dimension
        largest = 0.0
        # In the data's absence more noise makes a larger radius: the last of each value of `low` has the most.
        for low_here in np.unique(self.low):
            same = np.flatnonzero(self.low == low_here)
            release = int(same[np.argmax(self.matrix_noise[same])])
            low, high = float(self.low[release]), float(self.high[release])
            log_det = size * math.log(high / low + self.setting.users / (size * low))
            largest = max(largest, float(self.radius(np.array(low), np.array(log_det), release)))
        return largest

    @cached_property
    def regret_bound(self) -> float:
        """A bound on the regret of the whole horizon: at most a slot whenever the matrix doubles, and the widths.

        Where models may be older, so many slots more whenever it doubles.

        Often above the users' number, which bounds regret, too: but the order of two policies' bounds still says which
        schedule is the better one.

        Reference: docs/theory/002-linear-bandits.md.
        """
        log_det = self._log_det(float(self.low[1:].min(initial=math.inf)))
        spoiled = self.slot_users * (1 + self.model_age)
        lost = (1 - self.setting.lowest_reward) * spoiled * (1 + log_det / math.log(2))
        return lost + 2 * math.sqrt(2) * self.largest_radius * math.sqrt(2 * self.setting.users * log_det)

    def _log_det(self, low: float) -> float:
        """How much ln det(G + low I) can grow in the whole horizon; without any release, as if low were 1."""
        size, users = self.setting.dimension, self.setting.users
        return size * math.log1p(users / (size * (low if low < math.inf else 1.0)))
