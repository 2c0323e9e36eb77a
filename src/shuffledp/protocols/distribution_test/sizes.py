"""How many users a test needs for declared errors, by the proved inequalities alone."""

import math
from collections.abc import Callable

from shuffledp.errors import InfeasibleError
from shuffledp.protocols.distribution_test.base import DistributionTest

MOST_USERS = 10**9


def users_needed(plan: Callable[[int], DistributionTest], miss: float, *, start: int = 64) -> int:
    """The smallest number of users, to within 0.2%, whose plan declares at most this miss.

    More users have no less power: the signal grows like n^2, deviations like n at most.

    >>> from shuffledp.privacy import Privacy
    >>> from shuffledp.protocols.distribution_test import UniformityTest
    >>> UniformityTest.users_needed(privacy=Privacy(1, 1e-6), categories=100, distance=0.25, method="decoys")
    1088
    """

    def enough(users: int) -> bool:
        try:
            return plan(users).declared_miss <= miss
        except InfeasibleError:
            return False

    low, high = start // 2, start
    while not enough(high):
        low, high = high, 2 * high
        if high > MOST_USERS:
            raise InfeasibleError("miss", miss, f"would need more than {MOST_USERS:.0e} users", "allow larger errors")
    while high - low > max(1, math.floor(0.002 * high)):
        middle = (low + high) // 2
        low, high = (low, middle) if enough(middle) else (middle, high)
    return high
