"""The local model for sums of vectors in a ball: each user answers for itself and nobody shuffles."""

import math
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from scipy import special

from shuffledp.accounting.gaussian import gaussian_standard_deviation
from shuffledp.privacy import Privacy


@dataclass(frozen=True, slots=True)
class Cap:
    """The cap {v: <v, u> >= height} of the unit sphere around u, and how a user whose vector is u uses it."""

    dimension: int
    height: float
    share: float
    """The part of the sphere's surface that is in the cap."""
    probability: float
    """How likely an answer is from the cap."""
    mean: float
    """The mean of <answer, u>."""


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


def cap_standard_error(users: int, epsilon: float, dimension: int, radius: float) -> float:
    """The error of PrivUnit's sum of vectors within a radius: root mean square over coordinates, all vectors being 0.

    A user answers with a unit vector from the cap around its own, or from the rest, times radius/mean. A vector
    shorter than the radius is first rounded at random to the sphere, to its own direction or the opposite one. In
    dimension 1 this is randomized response on the sign. It is purely epsilon-private.

    >>> round(cap_standard_error(10_000, 1.0, dimension=10, radius=1), 1)
    246.4
    """
    # An answer has length radius/mean: its mean squared error is that squared less the value's square.
    return radius / best_cap(epsilon, dimension).mean * math.sqrt(users / dimension)


def local_vector_standard_error(users: int, privacy: Privacy, dimension: int, radius: float) -> float:
    """The smaller error of PrivUnit and of Gaussian noise that every user adds, root mean square a coordinate.

    PrivUnit is the strongest simple local protocol for unit vectors. Gaussian noise wins where epsilon is large, as it
    need not round short vectors to the sphere.

    >>> round(local_vector_standard_error(users=10_000, privacy=Privacy(40, 1e-6), dimension=2, radius=1), 2)
    36.72
    """
    gaussian = math.sqrt(users) * gaussian_standard_deviation(privacy, 2 * radius)
    return min(cap_standard_error(users, privacy.epsilon, dimension, radius), gaussian)
