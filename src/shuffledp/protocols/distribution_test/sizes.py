"""How many users a test needs for declared errors, by the proved inequalities alone."""

import math
from collections.abc import Callable

from shuffledp.errors import InfeasibleError
from shuffledp.protocols.distribution_test.base import DistributionTest

MOST_USERS = 10**9


def users_needed(plan: Callable[[int], DistributionTest], miss: float, guess: int) -> int:
    """The smallest number of users, to within 0.2%, whose plan declares at most this miss.

    More users have no less power: the signal grows like n^2, deviations like n at most. The guess only saves time.

    >>> from shuffledp.privacy import Privacy
    >>> from shuffledp.protocols.distribution_test import UniformityTest
    >>> UniformityTest.users_needed(privacy=Privacy(1, 1e-6), categories=100, distance=0.25, method="decoys")
    1108
    """

    def enough(users: int) -> bool:
        try:
            return plan(users).declared_miss <= miss
        except InfeasibleError:
            return False

    near = max(2, guess)
    step = max(1, near // 200)
    low, high = (near, 0) if not enough(near) else (0, near)
    while not high:
        if enough(low + step):
            high = low + step
        else:
            low, step = low + step, 2 * step
        if low > MOST_USERS:
            raise InfeasibleError("miss", miss, f"would need more than {MOST_USERS:.0e} users", "allow larger errors")
    while not low:
        below = max(1, high - step)
        if below > 1 and enough(below):
            high, step = below, 2 * step
        else:
            low = below
    while high - low > max(1, math.floor(0.002 * high)):
        middle = (low + high) // 2
        low, high = (low, middle) if enough(middle) else (middle, high)
    return high


def guessed_users(predicted: Callable[[int], float], miss: float) -> int:
    """Where a predicted miss falls to this, by doubling and halving.

    >>> guessed_users(lambda n: 1000 / n, 0.5)
    2000
    """
    high = 2
    while predicted(high) > miss and high <= MOST_USERS:
        high *= 2
    low = high // 2
    while high - low > max(1, high // 500):
        middle = (low + high) // 2
        low, high = (low, middle) if predicted(middle) <= miss else (middle, high)
    return high
