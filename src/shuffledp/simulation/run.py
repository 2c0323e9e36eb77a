"""Run a plan on data, message by message or by the estimate's own law."""

from collections.abc import Callable
from dataclasses import replace

from numpy.typing import ArrayLike

from shuffledp.estimates import Estimate
from shuffledp.protocols.base import Plan
from shuffledp.randomness import RandomBits
from shuffledp.shuffle.shuffler import BatchSpec, Shuffler

Progress = Callable[[int], None]
"""Called with the number of users who have reported so far."""

# Users randomized at a time: their messages stay in the cache.
_AT_A_TIME = 1 << 16


def simulate(
    plan: Plan, values: ArrayLike, *, bits: RandomBits, fast: bool = False, progress: Progress | None = None
) -> Estimate:
    """The estimate of one round over these values.

    Makes, permutes and reads every message; `fast` draws the estimate from the same law instead.

    >>> from shuffledp import BinarySum, Privacy
    >>> plan = BinarySum.plan(users=1000, privacy=Privacy(1, 1e-6))
    >>> estimate = simulate(plan, [1] * 300 + [0] * 700, bits=RandomBits.secure())
    >>> abs(estimate.value - 300) < 30
    True
    """
    array = plan.check_values(values)
    plan.check_reports(len(array))
    if fast:
        return plan.sample_estimate(array, bits=bits)
    clients, shuffling = bits.spawn(2)
    shuffler = Shuffler(bits=shuffling)
    shuffler.open(BatchSpec(plan.users, plan.messages_per_user_max))
    for start in range(0, plan.users, _AT_A_TIME):
        shuffler.accept(plan.randomize(array[start : start + _AT_A_TIME], bits=clients))
        if progress is not None:
            progress(min(start + _AT_A_TIME, plan.users))
    return replace(plan.analyze(shuffler.close()), simulated=not bits.is_secure)
