"""A histogram's neighbours: one bin goes up and another down, so a pair and its reverse are composed."""

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from shuffledp.accounting.composition import Composition
from shuffledp.accounting.laws import Floats
from shuffledp.accounting.pairs import RELATIVE_ERROR, Atoms, DominatingPair, ShiftPair, bounded_exp
from shuffledp.accounting.wide_bins import WIDE, WideBinsPair
from shuffledp.errors import ParameterError

# Outcomes of one bin up to which the curve is summed; beyond, a grid is faster.
_LARGEST_SUM = 1 << 18


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
    (2 epsilon, 2 delta). Swapping the two bins swaps P and Q, so both directions are equal. Once, the curve is a sum
    over one bin's outcomes of the other's tails, on no grid; several times over, or for very many outcomes, it is
    composed by FFT, and for noise that is wide and all but Gaussian a Gaussian pair stands for it.

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

    @cached_property
    def _sorted(self) -> tuple[Atoms, Floats, Floats, Floats]:
        """One bin's atoms by falling loss: the losses, and how much P and Q weigh up to each."""
        atoms = self.bin_pair.atoms()
        kept = ~(np.isneginf(atoms.log_p) & np.isneginf(atoms.log_q))
        log_p, log_q = atoms.log_p[kept], atoms.log_q[kept]
        order = np.argsort(log_q - log_p, kind="stable")
        log_p, log_q = log_p[order], log_q[order]
        ordered = Atoms(log_p, log_q, atoms.p_outside, atoms.q_outside, atoms.absolute_error)
        p_before, q_before = (np.concatenate(([0.0], np.cumsum(np.exp(log)))) for log in (log_p, log_q))
        return ordered, log_q - log_p, p_before, q_before

    @cached_property
    def _wide(self) -> WideBinsPair | None:
        """What stands for wide noise whose tails are all but Gaussian: those of Laplace noise, a pure one, are not."""
        pair = self.bin_pair
        if not isinstance(pair, ShiftPair) or pair.shift != 1 or pair.noise.variance < WIDE:
            return None
        almost = pair.noise.is_log_concave and math.isinf(pair.noise.largest_log_ratio)
        return WideBinsPair(pair.noise, 2 * self.times) if almost else None

    def forward(self, epsilon: float) -> float:
        if self._wide is not None:
            return self._wide.forward(epsilon)
        if self.times != 1 or self.bin_pair.atoms().log_p.size > _LARGEST_SUM:
            return self._composition.delta(epsilon)
        atoms, falling, p_before, q_before = self._sorted
        # The other bin is reversed: its P is Q here, and an outcome's loss is minus that of the first.
        p, q, gain = np.exp(atoms.log_q), np.exp(atoms.log_p), -falling
        slack = max(RELATIVE_ERROR, 4e-16 * p.size)
        epsilon -= 3 * slack
        # With this outcome of the second bin, P > e^epsilon Q exactly where the first bin's loss is above the rest.
        taken = np.searchsorted(falling, -gain - epsilon, side="left")
        likely, unlikely = p * p_before[taken], bounded_exp(epsilon) * q * q_before[taken]
        total = float(np.sum(np.maximum(likely - unlikely, 0.0) + slack * (likely + unlikely)))
        outside = atoms.p_outside + atoms.q_outside + (1 + bounded_exp(epsilon)) * 2 * atoms.absolute_error
        return min(1.0, total * (1 + slack) + outside)

    def delta(self, epsilon: float) -> float:
        return min(1.0, self.forward(epsilon))

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
