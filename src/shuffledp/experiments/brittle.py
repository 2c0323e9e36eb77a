"""Two protocols that are private with everybody and not with one user less: why robustness must be proved.

In both all messages are equal, so that the adversary sees their number alone. Its law is computed exactly, for
every input of the others.

Reference: [004] Appendix C, Theorems 36 and 37, with a corrected pair of inputs; docs/theory/interaction.md.
"""

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import reduce
from typing import Any

import numpy as np

from shuffledp.accounting.pairs import FinitePair
from shuffledp.errors import ParameterError

# Laws are exact whole numbers of up to (users + 3)^users.
MOST_USERS = 40


@dataclass(frozen=True, slots=True, kw_only=True)
class BrittleProtocol:
    """A randomizer for `users` users that sends a number of equal messages, uniform on a set that its bit chooses.

    >>> protocol = theorem_36(users=3)
    >>> round(protocol.epsilon(3), 4), protocol.epsilon(2)
    (0.9808, inf)
    """

    users: int
    lengths: tuple[tuple[int, ...], tuple[int, ...]]

    def epsilon(self, present: int) -> float:
        """The pure epsilon when so many users take part, over all inputs of the others; infinite if there is none."""
        worst = Fraction(1)
        for zero, one in self._neighbours(present):
            for p, q in zip(zero, one, strict=True):
                if (p == 0) != (q == 0):
                    return math.inf
                if p:
                    worst = max(worst, p / q, q / p)
        return math.log(worst)

    def delta(self, present: int, epsilon: float) -> float:
        """The smallest delta at this epsilon when so many users take part, over all inputs of the others."""
        return max(FinitePair([*map(float, p)], [*map(float, q)]).delta(epsilon) for p, q in self._neighbours(present))

    def _neighbours(self, present: int) -> list[tuple[list[Fraction], list[Fraction]]]:
        """For each number of ones among the others: the law of all messages with the user's bit 0, and 1."""
        if not 1 <= present <= self.users:
            raise ParameterError("present", present, f"must lie in 1..{self.users}", "count those who take part")
        # Of a user's equally likely choices so many lead to 0, 1, 2, ... messages: whole numbers of any size.
        numbers = range(1 + max(map(max, self.lengths)))
        choices = [np.array([lengths.count(number) for number in numbers], dtype=object) for lengths in self.lengths]
        pairs = []
        for ones in range(present):
            others = [choices[0]] * (present - 1 - ones) + [choices[1]] * ones
            zero, one = (_normalized(reduce(np.convolve, others, choice)) for choice in choices)
            pairs.append((zero, one))
        return pairs


def theorem_36(*, users: int) -> BrittleProtocol:
    """Uniform on 0..n+2 messages for 0 and on {0, 1, n+1, n+2} for 1: pure with n users, not with n - 1.

    With n - 1 users exactly n messages are possible if one of them has a 0 and impossible if all have a 1.

    Args:
        users: how many follow the protocol as it was proved.

    Returns:
        The protocol, whose delta is exact for any number of users.

    >>> protocol = theorem_36(users=4)
    >>> protocol.delta(4, epsilon=3.0) < protocol.delta(3, epsilon=3.0)
    True
    """
    _check(users)
    return BrittleProtocol(users=users, lengths=(tuple(range(users + 3)), (0, 1, users + 1, users + 2)))


def theorem_37(*, users: int) -> BrittleProtocol:
    """Uniform on {0, 1} messages for 0 and on {n, n+1} for 1: neighbours overlap with n users, never with n - 1.

    With n users delta is 1 - 2^-n at every epsilon: below 1, and no protection either.

    Args:
        users: how many follow the protocol as it was proved.

    Returns:
        The protocol, whose delta is exact for any number of users.

    >>> protocol = theorem_37(users=4)
    >>> round(protocol.delta(4, epsilon=1.0), 6), protocol.delta(3, epsilon=1.0)
    (0.9375, 1.0)
    """
    _check(users)
    return BrittleProtocol(users=users, lengths=((0, 1), (users, users + 1)))


def _check(users: int) -> None:
    if isinstance(users, bool) or not isinstance(users, int) or not 2 <= users <= MOST_USERS:
        raise ParameterError("users", users, f"must lie in 2..{MOST_USERS}", "the laws are exact, for few users")


def _normalized(weights: Any) -> list[Fraction]:
    total = sum(weights)
    return [Fraction(weight, total) for weight in weights]
