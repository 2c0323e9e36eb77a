"""A pair that one user meets several times: in several batches, rows or rounds."""

import math
from dataclasses import dataclass
from functools import cached_property

from shuffledp.accounting.composition import Composition
from shuffledp.accounting.gaussian import GaussianPair
from shuffledp.accounting.pairs import Atoms, DominatingPair, ShiftPair
from shuffledp.accounting.worst_case import EitherOrder
from shuffledp.errors import ParameterError


@dataclass(frozen=True, eq=False)
class RepeatedPair(DominatingPair):
    """A pair, independently several times, each time in either direction.

    A replaced value may rise in one batch and fall in the next, so that a shift by asymmetric noise is composed as
    the larger of its two directions (see `EitherOrder`); any other pair that is repeated must be symmetric.

    >>> once = GaussianPair(0.2)
    >>> RepeatedPair(once, 4).delta(2.0) < 1e-5 < RepeatedPair(once, 4).delta(0.5)
    True
    """

    pair: DominatingPair
    times: int

    def __post_init__(self) -> None:
        if self.times < 1:
            raise ParameterError("times", self.times, "must be >= 1", "a user meets a pair at least once")
        if isinstance(self.pair, RepeatedPair):
            object.__setattr__(self, "times", self.times * self.pair.times)
            object.__setattr__(self, "pair", self.pair.pair)

    @classmethod
    def of(cls, pair: DominatingPair, times: int) -> DominatingPair:
        """The pair so many times over; itself where it is once, and one wider pair where it is Gaussian."""
        if isinstance(pair, GaussianPair):
            return GaussianPair(math.sqrt(times) * pair.shift)
        return pair if times == 1 else cls(pair, times)

    @cached_property
    def _composition(self) -> Composition:
        one_sided = isinstance(self.pair, ShiftPair) and not self.pair.noise.is_symmetric
        return Composition([(EitherOrder(self.pair) if one_sided else self.pair, self.times)])

    def forward(self, epsilon: float) -> float:
        # Where every single one is pure, so are all together: the composition's grid would leave a residue.
        if isinstance(self.pair, ShiftPair) and epsilon >= self.times * self.pair.pure_epsilon:
            return 0.0
        return self.pair.delta(epsilon) if self.times == 1 else self._composition.delta(epsilon)

    def reverse(self, epsilon: float) -> float:
        return self.forward(epsilon)

    def delta(self, epsilon: float) -> float:
        return min(1.0, self.forward(epsilon))

    def atoms(self) -> Atoms:
        if self.times != 1:
            raise ParameterError("times", self.times, "must be 1 for atoms", "compose the pair itself instead")
        return self.pair.atoms()

    def describe(self) -> str:
        return f"{self.times} times over: {self.pair.describe()}"
