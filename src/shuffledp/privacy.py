"""What is promised: (epsilon, delta) between neighbours."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from shuffledp.errors import ParameterError

Neighbours = Literal["replacement"]
"""Two data sets are neighbours when one user's value is replaced: the papers' notion and ours."""

LARGEST_EPSILON = 100.0
# Beyond these a promise deserves a word of warning.
WEAK_EPSILON, WEAK_DELTA = 10.0, 0.1


def _is_huge(value: int | float) -> bool:
    """Whether a whole number is too large for a float."""
    return isinstance(value, int) and abs(value) > 10**300


@dataclass(frozen=True, slots=True)
class Privacy:
    """The target of a plan: for neighbours x, x' and any event A, P[A|x] <= e^epsilon P[A|x'] + delta.

    Attributes:
        epsilon: how much more likely one value makes anything than another, as a logarithm; smaller is safer.
        delta: the probability that is left over; well below one over the number of users.
        neighbours: which inputs must look alike: those in which one user's value is replaced.

    >>> Privacy(epsilon=1, delta=1e-6)
    Privacy(epsilon=1.0, delta=1e-06, neighbours='replacement')
    """

    epsilon: float
    delta: float
    neighbours: Neighbours = "replacement"

    def __post_init__(self) -> None:
        for name in ("epsilon", "delta"):
            value = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, int | float):
                raise ParameterError(name, repr(value), "must be a number", "pass a float such as 1.0 or 1e-6")
            if _is_huge(value):
                raise ParameterError(name, "a larger one", "must be a number below 1e300", "pass a float such as 1.0")
            object.__setattr__(self, name, float(value))
        if not (self.epsilon > 0 and math.isfinite(self.epsilon)):
            raise ParameterError("epsilon", self.epsilon, "must be > 0", "1 is a common choice, smaller is safer")
        if self.epsilon > LARGEST_EPSILON:
            raise ParameterError(
                "epsilon",
                self.epsilon,
                f"must be <= {LARGEST_EPSILON:g}",
                "beyond that nobody is protected; 1 is a common choice",
            )
        if not 0 < self.delta < 1:
            raise ParameterError(
                "delta",
                self.delta,
                "must lie strictly between 0 and 1",
                "1e-6 is a common choice, below 1/users",
            )

    def __str__(self) -> str:
        """The target in words.

        >>> print(Privacy(1, 1e-6))
        epsilon 1, delta 1e-06
        """
        return f"epsilon {self.epsilon:g}, delta {self.delta:g}"

    def cautions(self, users: int | None = None) -> tuple[str, ...]:
        """Why this protects people less than they may expect, a sentence each; none for a strong promise.

        Args:
            users: how many people report; None where that is not known.

        >>> Privacy(1, 1e-6).cautions(10_000)
        ()
        >>> for caution in Privacy(12, 1e-3).cautions(5000):
        ...     print(caution)
        epsilon 12 is weak: one person's value may make an outcome 163,000 times likelier; 1 is a common choice.
        delta 0.001 is not below 1/users: publishing one of 5,000 values, drawn at random, keeps this promise.
        """
        found = []
        if self.epsilon > WEAK_EPSILON:
            times = f"{float(f'{math.exp(self.epsilon):.3g}'):,.0f}" if self.epsilon < 30 else f"e^{self.epsilon:g}"
            found.append(
                f"epsilon {self.epsilon:g} is weak: one person's value may make an outcome {times} times likelier; "
                "1 is a common choice."
            )
        if users is not None and self.delta * users >= 1:
            found.append(
                f"delta {self.delta:g} is not below 1/users: publishing one of {users:,} values, drawn at random, "
                "keeps this promise."
            )
        elif self.delta >= WEAK_DELTA:
            found.append(
                f"delta {self.delta:g} is weak: with that probability nothing at all is promised; 1e-6 is a common "
                "choice."
            )
        return tuple(found)

    @property
    def added_or_removed(self) -> "Privacy":
        """A promise for adding or removing one person that implies this one, for replacing a person's value.

        A replacement is a removal and an addition: P(A) <= e^e R(A) + d <= e^2e Q(A) + (1 + e^e) d, so that (e, d)
        for either is (2e, (1 + e^e) d) for both. Proof: docs/theory/accounting.md.

        >>> Privacy(2, 1e-6).added_or_removed.epsilon
        1.0
        """
        half = self.epsilon / 2
        return Privacy(half, self.delta / (1 + math.exp(half)))

    def brief_caution(self, users: int | None = None) -> str:
        """The cautions in a few words, for a picture; empty where there are none.

        >>> Privacy(1, 0.1).brief_caution(5000), Privacy(1, 1e-6).brief_caution(5000)
        ('weak privacy: delta 0.1', '')
        """
        names = [caution.partition(" ")[0] for caution in self.cautions(users)]
        return "weak privacy: " + ", ".join(f"{name} {getattr(self, name):g}" for name in names) if names else ""


def as_privacy(given: Any) -> Privacy:
    """The privacy that is meant: a `Privacy`, or the pair (epsilon, delta).

    >>> as_privacy((1, 1e-6)) == Privacy(epsilon=1, delta=1e-6)
    True
    >>> as_privacy(1.0)
    Traceback (most recent call last):
        ...
    shuffledp.errors.ParameterError: privacy must be epsilon and delta, got 1.0: pass Privacy(1, 1e-6) or (1, 1e-6).
    """
    if isinstance(given, Privacy):
        return given
    if isinstance(given, tuple | list) and len(given) == 2:
        return Privacy(*given)
    if isinstance(given, Mapping) and {"epsilon", "delta"} == set(given):
        return Privacy(**given)
    raise ParameterError("privacy", repr(given), "must be epsilon and delta", "pass Privacy(1, 1e-6) or (1, 1e-6)")
