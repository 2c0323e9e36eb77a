"""The constants of [001] Theorem 3.2, kept for comparison."""

import math

from shuffledp.privacy import Privacy
from shuffledp.protocols.bounded_sum.paper import paper_bits


def paper_vector_bits(users: int, privacy: Privacy, dimension: int) -> tuple[int, int, float]:
    """Grid, noise bits a user and coordinate, and their probability, for a ball of radius 1.

    The grid is max(2 sqrt(n), sqrt(d), 4); every coordinate runs the scalar protocol, on the range 2, with
    epsilon / (18 sqrt(ln(1/gamma))) and delta / (d + 1), gamma being that, too.

    >>> paper_vector_bits(1000, Privacy(1, 1e-6), 10)[:2]
    (64, 65479717)
    """
    grid = math.ceil(max(2 * math.sqrt(users), math.sqrt(dimension), 4))
    part = privacy.delta / (dimension + 1)
    smaller = Privacy(privacy.epsilon / (18 * math.sqrt(math.log(1 / part))), part)
    return grid, *paper_bits(users, smaller, grid)


def paper_standard_error(users: int, privacy: Privacy, dimension: int, radius: float) -> float | None:
    """The standard error of a coordinate by [001] Algorithm 2; None beyond its epsilon of 15."""
    if privacy.epsilon > 15:
        return None
    grid, coins, probability = paper_vector_bits(users, privacy, dimension)
    return 2 * radius / grid * math.sqrt(users * coins * probability * (1 - probability) + users / 4)
