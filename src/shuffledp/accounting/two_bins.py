"""A histogram's neighbours: one bin goes up and another down, so a pair and its reverse are composed."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from shuffledp.accounting.composition import Composition
from shuffledp.accounting.pairs import Atoms, DominatingPair
from shuffledp.errors import ParameterError


@dataclass(frozen=True, eq=False)
class ReversedPair(DominatingPair):
    """A pair with P and Q swapped."""

    pair: DominatingPair

    def atoms(self) -> Atoms:
        return self.pair.atoms().reversed()

    def forward(self, epsilon: float) -> float:
        return self.pair.reverse(epsilon)

    def reverse(self, epsilon: float) -> float:
        return self.pair.forward(epsilon)

    def describe(self) -> str:
        return f"P and Q swapped in: {self.pair.describe()}"


@dataclass(frozen=True, eq=False)
class TwoBinsPair(DominatingPair):
    """The product of a one-bin pair and its reverse, `times` over: what replacing one user's category shows.

    The user leaves one bin and joins another, and the bins' noises are independent. Composed exactly: never
    (2 epsilon, 2 delta). Swapping the two bins swaps P and Q, so both directions are equal.

    >>> import math
    >>> from shuffledp.accounting.laws import DiscreteLaplace
    >>> from shuffledp.accounting.pairs import ShiftPair
    >>> laplace = ShiftPair(DiscreteLaplace(math.exp(-0.5)))
    >>> TwoBinsPair(laplace).delta(1.0) < 1e-9 < 1e-3 < TwoBinsPair(laplace).delta(0.9)
    True
    """

    bin_pair: DominatingPair
    times: int = 1

    @cached_property
    def _composition(self) -> Composition:
        return Composition([(self.bin_pair, self.times), (ReversedPair(self.bin_pair), self.times)])

    def forward(self, epsilon: float) -> float:
        return self._composition.delta(epsilon)

    def reverse(self, epsilon: float) -> float:
        return self.forward(epsilon)

    def atoms(self) -> Atoms:
        """Those of the plain product, as many as the bin's squared; several times over they would be too many."""
        if self.times != 1:
            raise ParameterError("times", self.times, "must be 1 for atoms", "compose the bins' own pairs instead")
        one, other = self.bin_pair.atoms(), self.bin_pair.atoms().reversed()
        p_outside, q_outside = one.p_outside + other.p_outside, one.q_outside + other.q_outside
        return Atoms(
            np.add.outer(one.log_p, other.log_p).ravel(),
            np.add.outer(one.log_q, other.log_q).ravel(),
            p_outside,
            q_outside,
            2 * one.absolute_error,
        )

    def describe(self) -> str:
        often = "" if self.times == 1 else f", {self.times} times over"
        return f"one bin up and another down{often}; each: {self.bin_pair.describe()}"
