"""The local model for sums of vectors in a ball: each user answers for itself and nobody shuffles."""

import math
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import special

from shuffledp.accounting.gaussian import gaussian_standard_deviation
from shuffledp.errors import DataError, ParameterError
from shuffledp.estimates import VectorEstimate
from shuffledp.privacy import Privacy

Floats = NDArray[np.float64]


def check_ball(users: int, dimension: int, radius: float) -> None:
    """Refuse what is no sum over users of vectors in a ball."""
    for name, count in (("users", users), ("dimension", dimension)):
        if count < 1:
            raise ParameterError(name, count, "must be >= 1", "count them")
    if not (radius > 0 and math.isfinite(radius)):
        raise ParameterError("radius", radius, "must be > 0 and finite", "1 suits unit vectors")


def into_ball(values: ArrayLike, users: int, dimension: int, radius: float) -> tuple[Floats, int]:
    """One row a user, each brought into the ball, and how many rows were outside; plain numbers are rows of one."""
    rows = np.asarray(values, dtype=np.float64)
    rows = rows[:, None] if rows.ndim == 1 and dimension == 1 else rows
    if rows.shape != (users, dimension):
        raise DataError(
            "values", f"the shape {rows.shape}", f"must have the shape {(users, dimension)}", "a row a user"
        )
    if not np.isfinite(rows).all():
        raise DataError("values", "some that are not", "must be finite", "leave those users out")
    norms = np.linalg.norm(rows, axis=1)
    # Rounding alone may put a vector on the sphere this far outside.
    clipped = int(np.count_nonzero(norms > radius * (1 + 1e-12)))
    return rows * np.minimum(1.0, radius / np.maximum(norms, radius))[:, None], clipped


@dataclass(frozen=True, slots=True)
class Cap:
    """The cap {v: <v, u> >= height} of the unit sphere around u, and how a user whose vector is u uses it."""

    dimension: int
    height: float
    share: float
    """Of the sphere's surface."""
    probability: float
    """Of an answer from the cap."""
    mean: float
    """Of <answer, u>."""

    def sample_components(self, size: int, *, generator: np.random.Generator) -> tuple[Floats, Floats]:
        """Answers' components along u, and their lengths across."""
        inside = generator.random(size) < self.probability
        # The share of the sphere that is nearer to u than the answer: uniform on [0, 1] if the answer were.
        nearer = generator.random(size)
        nearer = np.where(inside, self.share * nearer, self.share + (1 - self.share) * nearer)
        sign = np.where(nearer < 0.5, 1.0, -1.0)
        if self.dimension == 1:
            return sign, np.zeros(size)
        # Twice the smaller side is P[<v, u>^2 >= t^2] = 1 - I_(t^2)(1/2, (d-1)/2); each of t^2 and 1 - t^2 by its own
        # inverse, as the other's rounding would eat it near 0.
        half, tail = (self.dimension - 1) / 2, 2 * np.minimum(nearer, 1 - nearer)
        return sign * np.sqrt(special.betainccinv(0.5, half, tail)), np.sqrt(special.betaincinv(half, 0.5, tail))


@lru_cache(maxsize=1024)
def best_cap(epsilon: float, dimension: int) -> Cap:
    """The cap whose answer u recovers best, among all heights.

    Let q be the cap's share, A = E[<v, u>; cap] for uniform v, E = e^epsilon. The densities in and out of the cap
    are p/q and (1-p)/(1-q); their ratio is E for p = E q/(1 + (E-1) q). As the whole sphere's mean is 0, the
    answer's is A (p/q - (1-p)/(1-q)) = A (E-1)/(1 + (E-1) q). Its derivative in the height vanishes only where it
    equals the height, and it falls from there on. The search is over the logarithm of (1 - height^2)/height^2.

    Reference: Bhowmick et al. 2018 (PrivUnit2); Asi, Feldman, Talwar 2022, who show that this choice is optimal in a
    large family of local randomizers.

    >>> cap = best_cap(1.0, 10)
    >>> round(cap.mean, 6), round(cap.height, 6)
    (0.128318, 0.128318)
    """
    if dimension == 1:
        return Cap(dimension, 1.0, 0.5, float(special.expit(epsilon)), math.tanh(epsilon / 2))
    shrink, gain, half = math.exp(-epsilon), -math.expm1(-epsilon), (dimension - 1) / 2
    low, high = -150.0, 80.0
    # The mean is flat at its top, so three zooms give ten digits of it.
    for _ in range(3):
        odds = np.linspace(low, high, 501)
        squares, rests = special.expit(-odds), special.expit(odds)
        # <v, u> has the density (1-t^2)^(half-1)/B(1/2, half): integrated from the height on, with 1 and with t.
        shares = np.where(rests < 0.5, special.betainc(half, 0.5, rests), special.betaincc(0.5, half, squares)) / 2
        log_moments = half * special.log_expit(odds) - math.log(2 * half) - special.betaln(0.5, half)
        means = gain * np.exp(log_moments - np.log(shrink + gain * shares))
        top = int(means.argmax())
        low, high = odds[max(0, top - 1)], odds[min(500, top + 1)]
    height, share, mean = math.sqrt(squares[top]), float(shares[top]), float(means[top])
    return Cap(dimension, height, share, share / (shrink + gain * share), mean)


@dataclass(frozen=True, slots=True, kw_only=True)
class LocalPrivUnit:
    """PrivUnit, the strongest simple local protocol for unit vectors: answers from a cap around them, or from the rest.

    A vector shorter than the radius is first rounded at random to the sphere, to its own direction or the opposite
    one. In dimension 1 this is randomized response on the sign. It is purely epsilon-private: delta is ignored.

    Reference: `best_cap`.

    >>> round(LocalPrivUnit(users=10_000, privacy=Privacy(1, 1e-6), dimension=10, radius=1).standard_error, 1)
    246.4
    """

    users: int
    privacy: Privacy
    dimension: int
    radius: float

    def __post_init__(self) -> None:
        check_ball(self.users, self.dimension, self.radius)

    @property
    def cap(self) -> Cap:
        """Around a user's vector."""
        return best_cap(self.privacy.epsilon, self.dimension)

    @property
    def standard_error(self) -> float:
        """Root mean square over the sum's coordinates, for the worst values, which are all 0."""
        # An answer has length radius/mean: its mean squared error is that squared less the value's square.
        return self.radius / self.cap.mean * math.sqrt(self.users / self.dimension)

    def sample_estimate(self, values: ArrayLike, *, generator: np.random.Generator) -> VectorEstimate:
        """Randomize every vector and estimate their sum."""
        rows, clipped = into_ball(values, self.users, self.dimension, self.radius)
        norms = np.linalg.norm(rows, axis=1)
        rows[norms == 0, 0] = 1.0
        units = rows / np.where(norms == 0, 1.0, norms)[:, None]
        units[2 * generator.random(self.users) > 1 + norms / self.radius] *= -1
        along, across = self.cap.sample_components(self.users, generator=generator)
        if self.dimension == 1:
            total = along @ units
        else:
            others = generator.standard_normal(units.shape)
            others -= np.sum(others * units, axis=1, keepdims=True) * units
            total = along @ units + (across / np.linalg.norm(others, axis=1)) @ others
        error = self.standard_error
        return VectorEstimate(
            value=total * (self.radius / self.cap.mean),
            standard_error=error,
            # Chebyshev at 95% on the Euclidean norm: the reference needs no sharper bound.
            bound=error * math.sqrt(20 * self.dimension),
            confidence=0.95,
            clipped=clipped,
            simulated=True,
        )


def local_vector_standard_error(users: int, privacy: Privacy, dimension: int, radius: float) -> float:
    """The smaller error of PrivUnit and of Gaussian noise that every user adds, root mean square a coordinate.

    Gaussian noise wins where epsilon is large, as it need not round short vectors to the sphere.

    >>> round(local_vector_standard_error(users=10_000, privacy=Privacy(40, 1e-6), dimension=2, radius=1), 2)
    36.72
    """
    cap = LocalPrivUnit(users=users, privacy=privacy, dimension=dimension, radius=radius)
    gaussian = math.sqrt(users) * gaussian_standard_deviation(privacy, 2 * radius)
    return min(cap.standard_error, gaussian)
