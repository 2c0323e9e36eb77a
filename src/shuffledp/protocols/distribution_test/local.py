"""The local model's uniformity test, for comparison: rows of bits that are private alone, with the same statistic."""

import math

from shuffledp.accounting.curves import smallest_integer
from shuffledp.protocols.distribution_test.groups import LARGEST_PARTS, Groups
from shuffledp.protocols.distribution_test.moments import ScoreMoments, rows_moments, smallest_distance_squared


def local_users_needed(
    *, epsilon: float, bins: int, distance: float, public_coins: bool, false_alarm: float = 1 / 3, miss: float = 1 / 3
) -> int:
    """The fewest users of a locally private test for these errors, both proved by the same inequalities.

    With private coins they grow like bins^(3/2), with public ones, which group the bins at random, like bins: as the
    lower bounds say ([004] Theorem 13 and Acharya, Canonne, Freitag, Tyagi 2019).

    >>> users = [local_users_needed(epsilon=1, bins=d, distance=0.25, public_coins=True) for d in (1024, 4096)]
    >>> round(users[1] / users[0], 1)
    4.1
    """
    score = math.sqrt((1 - false_alarm) / false_alarm)
    least = smallest_distance_squared(distance, bins)

    def enough(users: int) -> bool:
        if not public_coins:
            return min(each.miss(score, least) for each in _kinds(users, epsilon, bins)) <= miss
        return any(
            groups.miss(each, score, least) <= miss
            for groups in _partitions(bins)
            for each in _kinds(users, epsilon, groups.groups)
        )

    return smallest_integer(enough, 2)


def _kinds(users: int, epsilon: float, bins: int) -> list[ScoreMoments]:
    """Symmetric flips as in RAPPOR, and optimized unary encoding."""
    flip = 1 / (1 + math.exp(epsilon / 2))
    return [
        rows_moments(users, 1 - flip, flip, bins),
        rows_moments(users, 0.5, 1 / (1 + math.exp(epsilon)), bins),
    ]


def _partitions(bins: int) -> list[Groups]:
    # All bins as they are come last: groups are an offer.
    sizes = sorted({bins, *(min(bins, size) for size in (8, 10, 12, 16, 20, 24, 32, 48, 64, 96, 128))})
    fitting = [size for size in sizes if bins * size // math.gcd(bins, size) <= LARGEST_PARTS]
    return [Groups(cells=bins, groups=size, seed=1) for size in fitting]
