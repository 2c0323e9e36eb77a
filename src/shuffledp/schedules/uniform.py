"""The uniform tree: every batch holds as many batches of the level below as its degree says.

Reference: [000] Algorithm 2 (binary, k = log2 n - 1) and Algorithm 3 (degree d, k shufflers); in the paper the
degree is Theta(n^(2/(2k+1))), as its appendix says.
"""

import numpy as np

from shuffledp.errors import ParameterError
from shuffledp.schedules.prefixes import PrefixSchedule


def uniform_schedule(degree: int, shufflers: int, slot_users: int) -> PrefixSchedule:
    """degree^shufflers slots; an estimate is made of at most shufflers * (degree - 1) batches.

    The batch that closes a slot is the largest that does: its level is how often the degree divides the time.

    >>> uniform_schedule(degree=2, shufflers=2, slot_users=2).parents.tolist()
    [0, 0, 0, 2]
    """
    if degree < 2 or shufflers < 1 or slot_users < 1 or degree**shufflers > 1 << 31:
        raise ParameterError("degree", degree, "must be >= 2 and give at most 2^31 slots", "check all three")
    times = np.arange(degree**shufflers)
    levels = (times > 0).astype(np.int64)
    spans = np.ones_like(times)
    for level in range(2, shufflers + 1):
        ends = (times > 0) & (times % degree ** (level - 1) == 0)
        levels[ends] = level
        spans[ends] = degree ** (level - 1)
    return PrefixSchedule(np.maximum(times - spans, 0), levels, slot_users)
