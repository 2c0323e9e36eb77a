"""From a pair's curve to an epsilon or to the smallest noise that meets a target."""

import math
from collections.abc import Callable
from typing import Protocol as Interface

from shuffledp.errors import InfeasibleError
from shuffledp.privacy import LARGEST_EPSILON

# Above this an epsilon protects nobody and is reported as infinite.
_UNBOUNDED = 4 * LARGEST_EPSILON


class Curve(Interface):
    """Anything that says which delta goes with an epsilon: a pair, a composition."""

    def delta(self, epsilon: float) -> float:
        """The smallest delta, rounded up."""
        ...


def epsilon_at(curve: Curve, delta: float) -> float:
    """The smallest epsilon >= 0 at this delta, rounded up; infinite where there is none.

    >>> from shuffledp.accounting.laws import Binomial
    >>> from shuffledp.accounting.pairs import ShiftPair
    >>> round(epsilon_at(ShiftPair(Binomial(40, 0.5)), 1e-6), 3)
    1.572
    """
    if curve.delta(0.0) <= delta:
        return 0.0
    meets = _some_epsilon(curve, delta)
    return math.inf if meets is None else smallest_real(lambda e: curve.delta(e) <= delta, 0.0, meets)


def _some_epsilon(curve: Curve, delta: float) -> float | None:
    """Any epsilon at which the curve is low enough.

    Every curve is convex in e^epsilon, also with (1 + e^epsilon) times a distance added, which rises;
    so it falls, then rises, and a search for its lowest point finds one if there is one.
    """
    epsilon = 1.0
    while epsilon <= _UNBOUNDED:
        if curve.delta(epsilon) <= delta:
            return epsilon
        epsilon *= 2
    low, high = 0.0, _UNBOUNDED
    while high - low > 1e-6:
        left, right = low + (high - low) / 3, high - (high - low) / 3
        left_delta, right_delta = curve.delta(left), curve.delta(right)
        if min(left_delta, right_delta) <= delta:
            return left if left_delta <= delta else right
        low, high = (low, right) if left_delta <= right_delta else (left, high)
    return None


def smallest_real(
    holds: Callable[[float], bool], low: float, high: float, *, relative: float = 1e-12, limit: float = 1e18
) -> float:
    """A number at which `holds` was seen to hold, within `relative` of one at which it was not.

    `holds` is not asked at `low`, where it is taken to fail; `high` is doubled until it holds.
    """
    while not holds(high):
        low, high = high, 2 * high
        if high > limit:
            raise InfeasibleError("noise", f"{high:.3g}", "must stay finite", "choose a larger epsilon or delta")
    while high - low > relative * high:
        middle = (low + high) / 2
        low, high = (low, middle) if holds(middle) else (middle, high)
    return high


def smallest_integer(holds: Callable[[int], bool], start: int = 1, *, limit: int = 1 << 62) -> int:
    """The smallest integer >= start at which a property holds that, once true, stays true.

    >>> smallest_integer(lambda n: n * n >= 50)
    8
    """
    if holds(start):
        return start
    low, step = start, 1
    while not holds(low + step):
        low += step
        step *= 2
        if low > limit:
            raise InfeasibleError("noise", f"{low:.3g}", "must stay finite", "choose a larger epsilon or delta")
    high = low + step
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if holds(middle) else (middle, high)
    return high
