"""From a pair's curve to an epsilon or to the smallest noise that meets a target."""

import math
from collections.abc import Callable
from typing import Protocol as Interface

from shuffledp.errors import InfeasibleError
from shuffledp.privacy import LARGEST_EPSILON

# Above this an epsilon protects nobody and is reported as infinite.
_UNBOUNDED = 4 * LARGEST_EPSILON
# Within this part of a number a curve may be rough, by rounding.
_ROUGH = 1e-10
# How much further than a guess a search goes, in parts of what the guess may be off; and guesses that may be bad.
_DOUBT, _MOST_STRIKES = 0.1, 8


class Curve(Interface):
    """Anything that says which delta goes with an epsilon: a pair, a composition."""

    def delta(self, epsilon: float) -> float:
        """The smallest delta, rounded up."""
        ...


def epsilon_at(curve: Curve, delta: float) -> float:
    """The smallest epsilon >= 0 at this delta, rounded up; infinite where there is none.

    Args:
        curve: anything that has a delta at every epsilon, such as a pair, a composition or a plan's terms.
        delta: the delta that must hold.

    Returns:
        The epsilon, 0 where delta holds without any.

    >>> from shuffledp.accounting.laws import Binomial
    >>> from shuffledp.accounting.pairs import ShiftPair
    >>> round(epsilon_at(ShiftPair(Binomial(40, 0.5)), 1e-6), 3)
    1.572
    """
    at_zero = curve.delta(0.0)
    if at_zero <= delta:
        return 0.0
    meets = _some_epsilon(curve, delta, at_zero)
    return math.inf if meets is None else smallest_meeting(curve.delta, delta, 0.0, meets)


def _some_epsilon(curve: Curve, delta: float, at_zero: float) -> float | None:
    """Any epsilon at which the curve is low enough.

    Every curve is convex in e^epsilon, also with (1 + e^epsilon) times a distance added, which rises;
    so it falls, then rises, and a search for its lowest point finds one if there is one.
    """
    known = {0.0: at_zero}

    def asked(epsilon: float) -> float:
        known[epsilon] = curve.delta(epsilon)
        return known[epsilon]

    epsilon = 1.0
    while epsilon <= _UNBOUNDED:
        if asked(epsilon) <= delta:
            return epsilon
        epsilon *= 2
    low, high = 0.0, _UNBOUNDED
    while high - low > 1e-6 and not _stays_above(known, delta):
        left, right = low + (high - low) / 3, high - (high - low) / 3
        left_delta, right_delta = asked(left), asked(right)
        if min(left_delta, right_delta) <= delta:
            return left if left_delta <= delta else right
        low, high = (low, right) if left_delta <= right_delta else (left, high)
    return None


def _stays_above(known: dict[float, float], delta: float) -> bool:
    """Whether a curve through these points, convex in e^epsilon, is above delta everywhere up to _UNBOUNDED.

    It is lowest beside its lowest point, where it lies above the lines through the points on either side.
    """
    points = [(math.exp(epsilon), known[epsilon]) for epsilon in sorted(known)]
    lowest = min(range(len(points)), key=lambda place: points[place][1])
    if lowest == len(points) - 1:
        (x, y), (before, higher) = points[-1], points[-2]
        if not y + (y - higher) / (x - before) * (math.exp(_UNBOUNDED) - x) > delta * (1 + 1e-9):
            return False
    return all(_lowest_between(points, place) > delta * (1 + 1e-9) for place in (lowest - 1, lowest) if place >= 0)


def _lowest_between(points: list[tuple[float, float]], place: int) -> float:
    """A lower bound of a convex curve between a point and the next, from the two points around them."""
    if place + 1 == len(points):
        return math.inf
    (x, y), (right_x, right_y) = points[place : place + 2]
    width = right_x - x
    down = (y - points[place - 1][1]) / (x - points[place - 1][0]) if place else -math.inf
    if place + 2 == len(points):
        return y + min(0.0, down) * width
    up = (points[place + 2][1] - right_y) / (points[place + 2][0] - right_x)
    if down >= 0 or up <= 0:
        return min(y, right_y)
    if down == -math.inf:
        return right_y - up * width
    # Where the line that comes down from the left meets the one that goes up to the right.
    at = (right_y - y - up * width) / (down - up)
    return y + down * at if 0 < at < width else min(y, right_y)


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
        if not low < middle < high:
            # No float lies between the two; the lower may be 0, which nobody has asked for yet.
            return middle if middle < high and holds(middle) else high
        low, high = (low, middle) if holds(middle) else (middle, high)
    return high


def smallest_meeting(
    value: Callable[[float], float],
    target: float,
    low: float,
    high: float,
    *,
    relative: float = 1e-12,
    limit: float = 1e18,
) -> float:
    """What `smallest_real` finds for `value(x) <= target`, where the value falls: the same halvings, most not computed.

    A halving whose middle lies outside of what was seen to fail and to hold is decided by that; where it lies between,
    the target is looked for by interpolating logarithms. So a smooth curve is computed a third as often. Close to the
    target, where rounding may make a curve rise and fall, every middle is computed, as it is where guesses do not help.

    Args:
        value: what must come down to the target. Not asked at `low`, where it is taken to be above.
        target: what is low enough.
        low: below what is sought.
        high: doubled until its value is low enough.
        relative: how near to a number that is not enough the answer lies.
        limit: of doubling.

    Returns:
        A number whose value was computed and meets the target.

    Raises:
        InfeasibleError: no number up to the limit is enough.
    """
    known: dict[float, float] = {}

    def meets(x: float) -> bool:
        if x not in known:
            known[x] = value(x)
        return known[x] <= target

    while not meets(high):
        low, high = high, 2 * high
        if high > limit:
            raise InfeasibleError("noise", f"{high:.3g}", "must stay finite", "choose a larger epsilon or delta")
    first, fails, holds, strikes = (low, high), low, high, 0
    while high - low > relative * high:
        middle = (low + high) / 2
        if not low < middle < high:
            # As `smallest_real` ends: all that is above 0 may be enough.
            return smallest_real(meets, low, high, relative=relative, limit=limit)
        while fails < middle < holds:
            width, narrow = holds - fails, max(relative, _ROUGH) * holds
            guesses = width > 2 * narrow and strikes < _MOST_STRIKES
            probe = _probe(known, target, fails, holds, narrow) if guesses else None
            at = middle if probe is None else probe
            fails, holds = (fails, at) if meets(at) else (at, holds)
            strikes += probe is not None and holds - fails > width / 2
        low, high = (low, middle) if middle >= holds else (middle, high)
    # A curve that rises somewhere may have been seen to hold below a middle, and fail there.
    return high if meets(high) else smallest_real(meets, *first, relative=relative, limit=limit)


def _probe(known: dict[float, float], target: float, fails: float, holds: float, narrow: float) -> float | None:
    """A point a little beyond where the target probably is, seen from the nearer end; None where nobody can guess."""
    finite = [(math.log(value / target), x) for x, value in known.items() if 0 < value < math.inf] if target > 0 else []
    points = sorted((abs(above), above, x) for above, x in finite)
    if len(points) < 2:
        return None
    (_, f0, x0), (_, f1, x1) = points[:2]
    if f0 == f1:
        return None
    guess = x0 - f0 * (x1 - x0) / (f1 - f0)
    doubt = _DOUBT * abs(guess - x0)
    if len(points) > 2:
        _, f2, x2 = points[2]
        if f2 not in (f0, f1):
            # The inverse as a parabola through three points: how far it is from the line says how good both are.
            bend = ((x2 - x1) / (f2 - f1) - (x1 - x0) / (f1 - f0)) / (f2 - f0)
            doubt = min(doubt, abs(bend * f0 * f1) / 2)
            guess += bend * f0 * f1
    doubt = max(doubt, narrow / 2)
    guess += doubt if guess - fails < holds - guess else -doubt
    return guess if fails < guess < holds else None


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
