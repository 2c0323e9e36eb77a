"""Shuffled one-hot rows with random bits (RAPPOR and its kin): amplification by the rows' own blanket."""

import math
from dataclasses import dataclass

import numpy as np

from shuffledp.accounting.blanket import expected_positive_part
from shuffledp.accounting.curves import smallest_meeting
from shuffledp.accounting.pairs import Atoms, DominatingPair
from shuffledp.errors import InfeasibleError, ParameterError
from shuffledp.privacy import Privacy


@dataclass(frozen=True, slots=True)
class ShuffledRowsCurve(DominatingPair):
    """n users each send a row of bits, of any length: 1 with probability `kept` at their value, `spurious` elsewhere.

    Whatever the value, a row comes with probability at least (1 - kept) / (1 - spurious) times that of coins of
    probability `spurious` everywhere: that is the blanket. What a row says about two values it says by its two bits,
    so the blanket has four types. Proved in docs/theory/distribution-tests.md from Theorem 1 of amplification.md.

    >>> more, fewer = (ShuffledRowsCurve(kept=0.5, spurious=rate, users=1000) for rate in (0.1, 0.05))
    >>> more.delta(1.0) < fewer.delta(1.0)
    True
    """

    kept: float
    spurious: float
    users: int

    def __post_init__(self) -> None:
        if not 0 < self.spurious < self.kept < 1 or self.spurious > 1 - self.kept + 1e-12:
            raise ParameterError(
                "spurious",
                self.spurious,
                f"must lie in (0, {1 - self.kept:g}] and below kept {self.kept:g}",
                "rows with as many wrong ones as right ones say nothing",
            )
        if self.users < 1:
            raise ParameterError("users", self.users, "must be >= 1", "count the honest ones")

    @property
    def local_epsilon(self) -> float:
        """What one row satisfies alone."""
        return math.log(self.kept / self.spurious) + math.log((1 - self.spurious) / (1 - self.kept))

    def atoms(self) -> Atoms:
        """The two bits of one row, in the clear: what shuffled rows show is a post-processing of it."""
        kept, wrong = (np.log([1 - rate, rate]) for rate in (self.kept, self.spurious))
        return Atoms(np.add.outer(kept, wrong).ravel(), np.add.outer(wrong, kept).ravel(), 0.0, 0.0)

    def describe(self) -> str:
        return (
            f"P, Q = a row of bits, ones with probability {self.kept:.8g} at one of two places and {self.spurious:.8g} "
            f"elsewhere, among the rows of {self.users - 1:,} others"
        )

    def forward(self, epsilon: float) -> float:
        """The bound by amplification, which is tighter than what the atoms say."""
        return self.delta(epsilon)

    def reverse(self, epsilon: float) -> float:
        """Swapping the two values swaps the two views, so that both directions are equal."""
        return self.delta(epsilon)

    def delta(self, epsilon: float) -> float:
        """The delta, rounded up; swapping the two values swaps the two views, so both directions are equal."""
        if epsilon >= self.local_epsilon * (1 + 1e-12):
            return 0.0
        scale, wrong = math.exp(epsilon), self.spurious
        mass = (1 - self.kept) / (1 - wrong)
        likely = self.kept / (wrong * mass)
        # Bits at the two values: 11, 10, 01, 00; and no type.
        values = np.array([likely * (1 - scale), likely - scale, 1 - likely * scale, 1 - scale, 0.0])
        hidden = mass * np.array([wrong * wrong, wrong * (1 - wrong), wrong * (1 - wrong), (1 - wrong) ** 2])
        masses = np.append(hidden, 1 - hidden.sum())
        return min(1.0, expected_positive_part(values, masses, self.users) / self.users)


def smallest_spurious(privacy: Privacy, users: int, kept: float) -> float:
    """The rarest spurious ones with which so many shuffled rows are private; infeasible if 1 - kept is too rare.

    >>> rate = smallest_spurious(Privacy(1, 1e-6), 10_000, 0.5)
    >>> [ShuffledRowsCurve(0.5, part * rate, 10_000).delta(1.0) <= 1e-6 for part in (1, 0.8)]
    [True, False]
    """

    def delta(spurious: float) -> float:
        return ShuffledRowsCurve(kept, spurious, users).delta(privacy.epsilon)

    start = min(1 - kept, kept * (1 - 1e-9))
    if users < 2 or delta(start) > privacy.delta:
        raise InfeasibleError("users", users, f"are too few to hide rows kept with {kept:g}", "take more users")
    while start > 1e-12 and delta(start / 2) <= privacy.delta:
        start /= 2
    return smallest_meeting(delta, privacy.delta, start / 2, start, relative=1e-4)
