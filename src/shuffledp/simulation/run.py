"""Run a plan on data, message by message or by the estimate's own law."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any, overload

import numpy as np
from numpy.typing import ArrayLike

from shuffledp.estimates import AnyEstimate, Estimate, VectorEstimate
from shuffledp.protocols.base import Plan
from shuffledp.protocols.binary_sum.base import BinarySumPlan
from shuffledp.protocols.bounded_sum.base import BoundedSumPlan
from shuffledp.protocols.histogram.base import HistogramPlan
from shuffledp.protocols.ranges.base import RangesPlan
from shuffledp.protocols.vector_sum.base import VectorSumPlan
from shuffledp.randomness import RandomBits
from shuffledp.shuffle.shuffler import BatchSpec, Shuffler

Progress = Callable[[int], None]
"""Called with the number of users who have reported so far."""

# Users randomized at a time: their messages stay in the cache.
_AT_A_TIME = 1 << 16
# Messages that a shuffler of a streamed simulation holds at a time.
_MESSAGES_AT_A_TIME = 1 << 20


@overload
def simulate(
    plan: BinarySumPlan | BoundedSumPlan,
    values: ArrayLike,
    *,
    bits: RandomBits,
    fast: bool = ...,
    clip: bool = ...,
    progress: Progress | None = ...,
) -> Estimate: ...
@overload
def simulate(
    plan: VectorSumPlan | HistogramPlan | RangesPlan,
    values: ArrayLike,
    *,
    bits: RandomBits,
    fast: bool = ...,
    clip: bool = ...,
    progress: Progress | None = ...,
) -> VectorEstimate: ...
@overload
def simulate(
    plan: Plan,
    values: ArrayLike,
    *,
    bits: RandomBits,
    fast: bool = ...,
    clip: bool = ...,
    progress: Progress | None = ...,
) -> AnyEstimate: ...
def simulate(
    plan: Plan,
    values: ArrayLike,
    *,
    bits: RandomBits,
    fast: bool = False,
    clip: bool = False,
    progress: Progress | None = None,
) -> AnyEstimate:
    """The estimate of one round over these values.

    Makes, permutes and reads every message; `fast` draws the estimate from the same law instead. `clip`
    brings values into the plan's domain and counts them, where they would be refused.

    >>> from shuffledp import BinarySum, Privacy
    >>> plan = BinarySum.plan(users=1000, privacy=Privacy(1, 1e-6))
    >>> estimate = simulate(plan, [1] * 300 + [0] * 700, bits=RandomBits.secure())
    >>> abs(estimate.value - 300) < 30
    True
    """
    array, clipped = plan.clip_values(values) if clip else (np.asarray(values), 0)
    estimate: AnyEstimate
    if fast:
        estimate = plan.sample_estimate(array, bits=bits)
    else:
        array = plan.check_values(array)
        plan.check_reports(len(array))
        if isinstance(plan, VectorSumPlan) and plan.users * plan.messages_per_user_max > _MESSAGES_AT_A_TIME:
            estimate = _by_coordinates(plan, array, bits, progress)
        else:
            estimate = _at_once(plan, array, bits, progress)
    return replace(estimate, simulated=not bits.is_secure, clipped=clipped)


def _at_once(plan: Plan, array: Any, bits: RandomBits, progress: Progress | None) -> AnyEstimate:
    """One shuffler takes all messages of all users."""
    clients, shuffling = bits.spawn(2)
    shuffler = Shuffler(bits=shuffling)
    shuffler.open(BatchSpec(plan.users, plan.messages_per_user_max))
    for start in range(0, plan.users, _AT_A_TIME):
        shuffler.accept(plan.randomize(array[start : start + _AT_A_TIME], bits=clients))
        if progress is not None:
            progress(min(start + _AT_A_TIME, plan.users))
    return plan.analyze(shuffler.close())


def _by_coordinates(plan: VectorSumPlan, array: Any, bits: RandomBits, progress: Progress | None) -> VectorEstimate:
    """A few coordinates at a time, so that little is held in memory.

    Labels are in the clear, so permuting the messages of each label apart has the law of permuting all.
    """
    clients, shuffling = bits.spawn(2)
    shuffler = Shuffler(bits=shuffling)
    prepared = plan.prepare(array)
    length = plan.messages_per_user_max // plan.coordinates
    width = max(1, min(plan.coordinates, _MESSAGES_AT_A_TIME // (plan.users * length)))
    rows = max(1, (1 << 18) // (width * length))
    totals, dropped = np.zeros(plan.coordinates, dtype=np.int64), 0
    for first in range(0, plan.coordinates, width):
        columns = np.ascontiguousarray(prepared[:, first : first + width])
        shuffler.open(BatchSpec(plan.users, columns.shape[1] * length))
        for start in range(0, plan.users, rows):
            shuffler.accept(plan.randomize_coordinates(columns[start : start + rows], first, bits=clients))
        steps, lost = plan.totals(shuffler.close(), first, columns.shape[1])
        totals[first : first + width] = steps
        dropped += lost
        if progress is not None:
            progress(plan.users * min(first + width, plan.coordinates) // plan.coordinates)
    return plan.estimate(totals, dropped=dropped)
