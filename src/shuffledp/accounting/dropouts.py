"""How many users follow the protocol."""

import math
from fractions import Fraction

from shuffledp.errors import ParameterError


def check_honest_fraction(honest_fraction: float) -> float:
    """The fraction as a float in (0, 1]."""
    if (
        isinstance(honest_fraction, bool)
        or not isinstance(honest_fraction, int | float)
        or not 0 < honest_fraction <= 1
    ):
        raise ParameterError(
            "honest_fraction",
            honest_fraction,
            "must lie in (0, 1]",
            "1 trusts that everybody follows the protocol",
        )
    return float(honest_fraction)


def honest_users(users: int, honest_fraction: float) -> int:
    """The users of one batch assumed to follow the protocol, the protected one included; at least 1.

    The fraction is read as the rational a person means (0.9, 1/3), and rounded down to whole users.

    >>> honest_users(80, 1 / 3), honest_users(10, 0.7), honest_users(100, 0.29)
    (26, 7, 29)
    """
    if check_honest_fraction(honest_fraction) == 1:
        return max(1, math.floor(users))
    exact = Fraction(honest_fraction)
    meant = exact.limit_denominator(10**9)
    fraction = meant if float(meant) == honest_fraction else exact
    return max(1, math.floor(fraction * users))
