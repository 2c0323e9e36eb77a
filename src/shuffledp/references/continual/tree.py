"""The trusted curator's binary tree, with Gaussian or Laplace noise, and Honaker's better use of it."""

import math
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike
from scipy import special

from shuffledp.accounting.gaussian import gaussian_standard_deviation
from shuffledp.errors import ParameterError
from shuffledp.privacy import Privacy
from shuffledp.references.continual.horizon import (
    Floats,
    bits_of,
    check_time,
    check_users,
    chernoff_bound,
    failure_of,
    gaussian_factor,
)

Noise = Literal["gaussian", "laplace"]


@dataclass(frozen=True, slots=True, kw_only=True)
class CuratorTree:
    """A curator that adds noise to every full node of a binary tree over the users, the root included.

    The count after t users is the sum of one node for every binary digit 1 of t. A user is in one node of
    each level, which is the sensitivity: its square root for Gaussian noise, itself for Laplace noise.
    With `honaker` a node's own sum is averaged with that of its two children, by inverse variance.

    Law: the noise after t users is a weighted sum of independent noises of the nodes, in all with the
    deviation `standard_error_at(t)`; normal if the noise is.

    Reference: Dwork, Naor, Pitassi, Rothblum 2010; Chan, Shi, Song 2011; Honaker 2015.

    >>> count = CuratorTree(users=2**16, privacy=Privacy(1, 1e-6))
    >>> better = CuratorTree(users=2**16, privacy=Privacy(1, 1e-6), honaker=True)
    >>> [round(tree.standard_error / 4.2247, 1) for tree in (count, better)]
    [16.5, 12.2]
    """

    users: int
    privacy: Privacy
    noise: Noise = "gaussian"
    honaker: bool = False

    def __post_init__(self) -> None:
        check_users(self.users)
        if self.noise not in ("gaussian", "laplace"):
            raise ParameterError("noise", self.noise, "must be gaussian or laplace", "gaussian has the smaller error")

    @property
    def levels(self) -> int:
        """Levels with a full node, the leaves included: as many as the users' number has binary digits."""
        return self.users.bit_length()

    @property
    def node_deviation(self) -> float:
        """The noise of every node."""
        if self.noise == "gaussian":
            return gaussian_standard_deviation(self.privacy, math.sqrt(self.levels))
        return math.sqrt(2) * self.levels / self.privacy.epsilon

    @property
    def node_variances(self) -> Floats:
        """What a full node's estimate has of one noise's variance, leaves first."""
        variances = np.ones(self.levels)
        if self.honaker:
            for level in range(1, self.levels):
                variances[level] = 1 / (1 + 1 / (2 * variances[level - 1]))
        return variances

    @property
    def standard_error(self) -> float:
        """The largest of all times."""
        return max(self.standard_error_at(time) for time in self._hardest_times())

    def standard_error_at(self, time: int) -> float:
        """Of the estimate after so many users."""
        check_time(time, self.users)
        return self.node_deviation * math.sqrt(float(self.node_variances[self._digits(time)].sum()))

    def error_bound(self, confidence: float) -> float:
        """What no estimate of the whole horizon is off by more, but for 1 - confidence."""
        failure = failure_of(confidence)
        if self.noise == "gaussian":
            return gaussian_factor(self.users, failure) * self.standard_error
        # E[e^(rate X)] of a sum of Laplace noises grows with every one that is added, so the hardest times
        # bound all others; both signs and a union over all times make the cost.
        scale = self.levels / self.privacy.epsilon
        squares, counts = self._node_weights()
        digits = [self._digits(time) for time in self._hardest_times()]

        def log_moment(rate: float) -> float:
            by_level = -(counts * np.log1p(-squares * (rate * scale) ** 2)).sum(axis=1)
            return max(float(by_level[levels].sum()) for levels in digits)

        return chernoff_bound(log_moment, math.log(2 * self.users / failure), 1 / scale)

    def run(self, values: ArrayLike, *, generator: np.random.Generator) -> Floats:
        """The estimate after every user."""
        bits = bits_of(values, self.users)
        after = np.arange(1, self.users + 1)
        estimates = np.cumsum(bits).astype(np.float64)
        weights, deviation = self.node_variances, self.node_deviation
        errors = np.zeros(2 * self.users)
        for level in range(self.levels):
            own = deviation * self._standard_noise(self.users >> level, generator)
            # The users' bits add up the same way in a node and in its children, so only errors are averaged.
            errors = own * weights[level] + (1 - weights[level]) * (
                errors[: 2 * own.size : 2] + errors[1::2][: own.size]
            )
            ends = after[(after >> level) & 1 == 1]
            estimates[ends - 1] += errors[(ends >> level) - 1]
        return estimates

    def _standard_noise(self, count: int, generator: np.random.Generator) -> Floats:
        """Of deviation 1."""
        if self.noise == "gaussian":
            return generator.standard_normal(count)
        return generator.laplace(scale=math.sqrt(0.5), size=count)

    def _digits(self, time: int) -> list[int]:
        return [level for level in range(self.levels) if time >> level & 1]

    def _hardest_times(self) -> list[int]:
        """Times one of which has all the binary digits of any given time.

        A time below the last agrees with it down to some digit 1 of the last that it lacks; what follows
        is part of all ones.
        """
        lacking = [(self.users >> level << level) - 1 for level in self._digits(self.users)]
        return [self.users, *(time for time in lacking if time > 0)]

    def _node_weights(self) -> tuple[Floats, Floats]:
        """The squared weight of a node (second index, its level) in a full node (first index), and how many there are.

        A node passes on its own share times that which every node above it leaves to its children.
        """
        shares = self.node_variances
        weights = np.zeros((self.levels, self.levels))
        for level in range(self.levels):
            weights[level, level] = shares[level]
            weights[level, :level] = (1 - shares[level]) * weights[level - 1, :level] if level else 0.0
        depth = np.subtract.outer(np.arange(self.levels), np.arange(self.levels))
        return weights**2, np.where(depth >= 0, special.exp2(np.maximum(depth, 0)), 0.0)
