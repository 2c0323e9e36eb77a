"""Pure privacy of a sum of anonymous bits: the largest likelihood ratio, over every input of the others."""

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from shuffledp.accounting.laws import Floats
from shuffledp.accounting.pairs import RELATIVE_ERROR, Atoms, DominatingPair, bounded_exp

# Extended precision for its range: tails of the sum fall below 1e-1000.
Wide = NDArray[np.longdouble]


@dataclass(frozen=True, eq=False)
class AnonymousSumPair(DominatingPair):
    """The number of ones when each honest user sends middle + x ones, or with probability p a random number.

    `masses` are those of the random number on 0..d, d odd and middle = (d-1)/2. The other users' bits
    are an input: j of them are 1. Everything is a sum of positive terms, so ratios are exact to
    rounding however far out; `pure_epsilon` is the largest over all outcomes and all j. Reflection
    swaps j with n-1-j and the two directions.
    """

    honest: int
    random_probability: float
    masses: tuple[float, ...]

    @cached_property
    def _one_user(self) -> tuple[list[Wide], list[Wide]]:
        """Laws of the ones that a user with a 0, and one with a 1, sends, each with those of 2, 4, ... such users."""
        random = np.array(self.masses, dtype=np.longdouble) * np.longdouble(self.random_probability)
        middle = (random.size - 2) // 2
        laws = []
        for bit in (0, 1):
            law = random.copy()
            law[middle + bit] += 1 - np.longdouble(self.random_probability)
            laws.append([law])
        return laws[0], laws[1]

    def _views(self, ones: int) -> tuple[Wide, Wide]:
        zero, one = self._one_user
        others = np.convolve(_power(zero, self.honest - 1 - ones), _power(one, ones))
        return np.convolve(zero[0], others), np.convolve(one[0], others)

    def pure_epsilon_for(self, ones: int) -> float:
        """The largest |log ratio| when exactly this many of the others have a 1."""
        p, q = self._views(ones)
        if not ((p > 0).all() and (q > 0).all()):
            return math.inf  # underflow, or an outcome that only one input has: nothing is proved
        return float(np.abs(np.log(p) - np.log(q)).max()) * (1 + RELATIVE_ERROR)

    @cached_property
    def pure_epsilon(self) -> float:
        """The largest |log ratio| over all inputs of the others, rounded up."""
        return max(self.pure_epsilon_for(ones) for ones in self._inputs)

    @property
    def _inputs(self) -> range:
        """Numbers of ones among the others: half of them where reflection is exact."""
        is_symmetric = self.masses == self.masses[::-1]
        return range((self.honest - 1) // 2 + 1 if is_symmetric else self.honest)

    def forward(self, epsilon: float) -> float:
        if epsilon >= self.pure_epsilon:
            return 0.0
        return max(self._delta_for(ones, epsilon) for ones in self._inputs)

    def reverse(self, epsilon: float) -> float:
        return self.forward(epsilon)

    def _delta_for(self, ones: int, epsilon: float) -> float:
        p, q = self._views(ones)
        factor = bounded_exp(epsilon - 3 * RELATIVE_ERROR)
        worst = max(np.maximum(p - factor * q, 0).sum(), np.maximum(q - factor * p, 0).sum())
        return max(float(worst) * (1 + RELATIVE_ERROR), math.ulp(0.0))

    def atoms(self) -> Atoms:
        """Randomized response at the pure epsilon: it dominates every pair with these ratios."""
        high = 1 / (1 + math.exp(-self.pure_epsilon))
        logs: Floats = np.log(np.array([high, 1 - high]))
        return Atoms(logs, logs[::-1].copy(), 0.0, 0.0)

    def describe(self) -> str:
        return (
            f"P, Q = ones sent by {self.honest:,} honest users, one of whom has a 0 (a 1), for the worst bits of the "
            f"others; largest log ratio {self.pure_epsilon:.6g}"
        )


def _power(squares: list[Wide], times: int) -> Wide:
    """The law of a sum of `times` independent draws, by squaring; squares that were missing stay in the list."""
    result = np.ones(1, dtype=np.longdouble)
    for step in range(times.bit_length()):
        if step == len(squares):
            squares.append(np.convolve(squares[-1], squares[-1]))
        if times >> step & 1:
            result = np.convolve(result, squares[step])
    return result
