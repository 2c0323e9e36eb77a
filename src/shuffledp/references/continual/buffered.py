"""A trusted curator whose noise is carried on in a few buffers: the best running count that is known.

The curator counts slots of several users and adds C^-1 w to the slots' sums, w Gaussian and C a rational filter with
few poles; variances grow along time. With one buffer less than our shufflers have windows this is what they compute,
but a curator needs neither whole weights nor rounding.

Reference: Dvijotham, McMahan, Pillutla, Steinke, Thakurta 2024.
"""

import math
from functools import lru_cache

from shuffledp.accounting.filter_designs import MOST_WINDOWS, design_for
from shuffledp.accounting.gaussian import gaussian_standard_deviation
from shuffledp.accounting.unions import gaussian_union
from shuffledp.privacy import Privacy
from shuffledp.references.continual.horizon import check_users, failure_of

# Beyond, a table of all slots takes too long.
_MOST_SLOTS = 1 << 21
# Slots of a few sizes near the best are compared.
_FEWEST_SLOTS, _SIZES = 16, 1.2


def buffered_curator_bound(
    users: int,
    privacy: Privacy,
    confidence: float,
    *,
    sensitivity: float = 1.0,
    coordinates: int = 1,
    reach: float = 0.5,
) -> float:
    """What no estimate of the horizon is off by more, but for 1 - confidence; inf where there are too many slots.

    Args:
        users: how many people come.
        privacy: what every user is promised.
        confidence: with which all estimates hold together.
        sensitivity: how far apart two users' values are at most.
        coordinates: of a value.
        reach: how far a user since the last slot is off in a coordinate at most.

    >>> round(buffered_curator_bound(1_000_000, Privacy(1, 1e-6), 0.95), 1)
    96.5
    """
    check_users(users)
    deviation = gaussian_standard_deviation(privacy, sensitivity)
    failure = failure_of(confidence) / coordinates

    def bound(size: int) -> float:
        slots = users // size
        if not _FEWEST_SLOTS <= slots <= _MOST_SLOTS:
            return math.inf
        return deviation * _least_union(slots, failure) + (size - 1) * reach

    # The bound falls and rises once along the sizes: walk down from a guess that makes noise and rest alike.
    size = max(1, round(4 * deviation / (2 * reach)))
    best = bound(size)
    for factor in (_SIZES, 1 / _SIZES):
        tried = size
        while True:
            tried = max(1, math.floor(tried * factor) if factor < 1 else math.ceil(tried * factor))
            found = bound(tried)
            if found >= best and math.isfinite(found):
                break
            best = min(best, found)
            if tried == 1 or users // tried < _FEWEST_SLOTS:
                break
    return best


@lru_cache(maxsize=256)
def _least_union(slots: int, failure: float) -> float:
    """The smallest bound over all numbers of buffers, for noise of deviation 1 and sensitivity 1."""
    return min(
        gaussian_union(design_for(windows, slots).deviations(slots), failure) for windows in range(2, MOST_WINDOWS + 1)
    )
