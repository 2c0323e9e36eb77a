"""The sum of every slot's values, in steps."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from shuffledp.continual.running import RunningPlan
from shuffledp.protocols.domains.summed import Bits
from shuffledp.randomness import RandomBits

# Numbers of steps at a time.
_AT_A_TIME = 1 << 20


def slot_sums(plan: RunningPlan, array: NDArray[Any], closed: int, bits: RandomBits) -> NDArray[np.int64]:
    """Each full slot's sum in steps, some slots at a time; first come those that have a user less.

    Args:
        plan: a running sum's.
        array: users' checked values in their order.
        closed: how many slots are full.
        bits: where rounding comes from.
    """
    domain, schedule, size = plan.domain, plan.schedule, plan.slot_users
    short = min(closed, schedule.short)
    shape = () if domain.coordinates == 1 else (domain.coordinates,)
    parts = [np.zeros((0, *shape), dtype=np.int64)]
    is_count = isinstance(domain, Bits)
    for begin, end, users in ((0, short, size - 1), (short, closed, size)):
        together = max(1, end - begin if is_count else _AT_A_TIME // (size * domain.coordinates))
        for first in range(begin, end, together):
            start = int(schedule.users_by(first))
            block = array[start : start + min(together, end - first) * users]
            if is_count:
                parts.append(_count_slots(block, users))
                continue
            steps = domain.to_steps(block, bits=bits)
            parts.append(steps.reshape(-1, users, *steps.shape[1:]).sum(axis=1))
    return np.concatenate(parts)


def _count_slots(array: NDArray[np.uint8], slot_users: int) -> NDArray[np.int64]:
    """How many ones each slot of so many users has."""
    rows = array.reshape(-1, slot_users)
    if slot_users < 256:
        return np.asarray(np.add.reduce(rows, axis=1, dtype=np.uint8), dtype=np.int64)
    return np.asarray(np.add.reduce(rows, axis=1, dtype=np.int64))
