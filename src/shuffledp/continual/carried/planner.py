"""Which windows, slots, filter and weights: the smallest proved bound over the whole horizon."""

import math
from dataclasses import replace
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from shuffledp.accounting.dropouts import honest_users
from shuffledp.accounting.filter_designs import MOST_WINDOWS, design_for
from shuffledp.accounting.gaussian import gaussian_standard_deviation
from shuffledp.accounting.unions import gaussian_union
from shuffledp.continual.carried.horizon import Horizon
from shuffledp.continual.carried.plan import CarriedPlan
from shuffledp.continual.noise import TRANSPORT_PART
from shuffledp.continual.request import ROUNDING_FAILURE, CountRequest
from shuffledp.errors import InfeasibleError, ParameterError
from shuffledp.privacy import Privacy
from shuffledp.protocols.vector_sum.base import ROUNDING_PART

Floats = NDArray[np.float64]

# Unions over so many slots are computed; beyond, they grow along a line in the logarithm.
_MOST_COMPUTED = 1 << 17
# Slots of sizes that differ by this factor are compared, then those between.
_FACTOR = 1.25
# More slots than this are not planned for: tables of all of them are made. Slots are larger instead.
_MOST_SLOTS = 1 << 22
# So large that other noise is better, and sums of a window would not fit into a word.
_LARGEST_SLOT = 1 << 9
# What a step weighs in the first slot: the larger, the less is lost to whole weights, and the longer are shares.
_WEIGHTS = (64, 32, 16, 8, 4)
# Rounding may add this part to the bound, and lengthen a user's shift by this part.
_ROUNDING_COST, _LENGTHENED, _FINEST = 0.01, 0.003, 1 << 14
# Where users return, whole weights may change what all visits show by this part.
_ROUNDED_WEIGHTS = 1e-3
# More windows than this would send too many messages.
_MOST_SHUFFLERS = 16


def plan_carried(**asked: Any) -> CarriedPlan:
    """The plan with the smallest proved bound, as `CountRequest` asks for it.

    >>> plan = plan_carried(users=100_000, shufflers=4, privacy=Privacy(1, 1e-6))
    >>> plan.shufflers_used, plan.error_bound < 77, plan.guarantee().holds
    (4, True, True)
    """
    return best_carried(CountRequest(**asked))


def best_carried(asked: CountRequest) -> CarriedPlan:
    """The carried plan with the smallest proved bound that keeps to the request.

    Raises:
        InfeasibleError: there are too few users, or too few shufflers.
        ParameterError: every such plan sends more messages than are allowed.
    """
    most = min(asked.shufflers - asked.silent_slots, MOST_WINDOWS)
    if most < 2:
        problem = f"must be {2 + asked.silent_slots} or more to carry noise from batch to batch"
        raise InfeasibleError("shufflers", asked.shufflers, problem, "allow more, or take another noise")
    sent: list[int] = []
    guesses = [
        (about, windows, size)
        for windows in range(2, most + 1)
        if (found := _best_size(asked, windows)) is not None
        for about, size in [found]
    ]
    for about, windows, size in sorted(guesses):
        if about >= asked.users * asked.domain.reach:
            break
        try:
            plan = plan_of(asked, windows, size)
        except (InfeasibleError, ParameterError):
            # Too few users to mix shares at this size, or sums that do not fit into a word.
            continue
        if asked.max_messages is None or plan.messages_per_user_max <= asked.max_messages:
            return plan
        sent.append(plan.messages_per_user_max)
    if sent:
        problem = f"must be at least {min(sent)}, what {CarriedPlan.method} sends to all shufflers"
        raise ParameterError("max_messages", asked.max_messages, problem, "allow more messages, or take another noise")
    raise InfeasibleError("users", asked.users, "are too few to carry noise from batch to batch", "take another noise")


def with_fine_grid(asked: CountRequest) -> CountRequest:
    """The request on the coarsest grid whose rounding hardly costs anything."""
    domain: Any = asked.domain
    guesses = [
        found[0]
        for windows in range(2, min(asked.shufflers, MOST_WINDOWS) + 1)
        if (found := _best_size(asked, windows))
    ]
    about = min(guesses, default=float(asked.users))
    failure, grid = ROUNDING_FAILURE * (1 - asked.confidence), 1
    while grid < _FINEST:
        fitted = replace(domain, grid=grid)
        length = fitted.difference(ROUNDING_PART * asked.privacy.delta).length * fitted.step
        little = fitted.rounding_bound(asked.users, failure) <= _ROUNDING_COST * about
        if little and length <= (1 + _LENGTHENED) * domain.diameter:
            break
        grid = math.ceil(grid * 1.15)
    return replace(asked, domain=replace(domain, grid=grid))


def _largest_shift(asked: CountRequest, visits: int = 1) -> float:
    """By how many deviations a step in each of so many visits may move all that is released.

    Each visit has its part of delta: their roundings fail apart, all shares are counted once.
    """
    difference = asked.domain.difference(ROUNDING_PART * asked.privacy.delta)
    delta = (visits - TRANSPORT_PART) * asked.privacy.delta - visits * difference.failure
    within = Privacy(asked.privacy.epsilon, delta * (1 - 1e-6))
    return (1 - 1e-9) / gaussian_standard_deviation(within, difference.length)


def _shufflers_used(asked: CountRequest, windows: int) -> int:
    """As many as the filter has windows; all of them where each noise needs several slots to supply it."""
    return min(asked.shufflers, _MOST_SHUFFLERS) if asked.silent_slots else windows


def _best_size(asked: CountRequest, windows: int) -> tuple[float, int] | None:
    """About the smallest bound with so many windows, and the users of a slot; None where people are too few."""
    domain = asked.domain
    deviation = gaussian_standard_deviation(asked.privacy, domain.diameter)

    def about(size: int) -> float:
        slots = -(-asked.users // size)
        used = _shufflers_used(asked, windows)
        spread = used - windows + 1
        surplus = size / honest_users(size, asked.honest_fraction) * spread / (spread - asked.silent_slots)
        return deviation * math.sqrt(surplus) * union_about(windows, slots, asked.failure) + (size - 1) * domain.reach

    used = _shufflers_used(asked, windows)
    least, most = max(2 * used + 1, -(-asked.users // _MOST_SLOTS)), asked.users // (2 * used)
    if most < least or least > _LARGEST_SLOT:
        return None
    sizes = [least]
    while sizes[-1] * _FACTOR < most:
        sizes.append(max(sizes[-1] + 1, round(sizes[-1] * _FACTOR)))
    # The bound falls and rises once: stop where it has risen twice.
    found: list[tuple[float, int]] = []
    for size in sizes:
        found.append((about(size), size))
        if len(found) > 2 and found[-1][0] > found[-2][0] > found[-3][0]:
            break
    _, near = min(found)
    between = {max(least, min(most, round(near * _FACTOR**power))) for power in (-0.67, -0.33, 0.0, 0.33, 0.67)}
    return min((about(size), size) for size in between)


def union_about(windows: int, slots: int, failure: float) -> float:
    """About the bound of all estimates, where noise has deviation 1 and one user moves everything by 1."""
    if slots <= _MOST_COMPUTED:
        return _union_of(windows, slots, round(math.log(failure), 6))
    ends = [_union_of(windows, each, round(math.log(failure), 6)) for each in (_MOST_COMPUTED // 4, _MOST_COMPUTED)]
    # Along a line in the logarithms of both.
    power = math.log(slots / _MOST_COMPUTED) / math.log(4)
    return float(ends[1] * (ends[1] / ends[0]) ** power)


@lru_cache(maxsize=1024)
def _union_of(windows: int, slots: int, log_failure: float) -> float:
    return gaussian_union(design_for(windows, slots).deviations(slots), math.exp(log_failure))


def plan_of(asked: CountRequest, windows: int, size: int, *, visits: int = 1) -> CarriedPlan:
    """The plan with so many windows and slots of about this size.

    Args:
        asked: for whom it is; where users return, `asked.privacy` is each visit's part, as `each_visit` says.
        windows: that a user is in.
        size: users of a slot.
        visits: how often one user may come.

    Raises:
        InfeasibleError: people are too few to mix shares.
        ParameterError: sums do not fit into a word, or noise is too little to be shared.
    """
    slots = -(-asked.users // size)
    horizon, shift = Horizon(design_for(windows, slots), slots), _largest_shift(asked)
    if visits > 1:
        # What one visit may move if all together move what they may; whole weights may change that a little.
        together = _largest_shift(asked, visits) / horizon.design.visits_length(slots, visits)
        made = horizon.weights(together, _WEIGHTS[0])
        together *= min(1.0, _largest_shift(asked, visits) / made.visits_shift(visits)) * (1 - _ROUNDED_WEIGHTS)
        shift = min(shift, together)
    failed: Exception | None = None
    for weight in _WEIGHTS:
        try:
            plan = CarriedPlan(
                **asked.common,
                shufflers=asked.shufflers,
                shufflers_used=_shufflers_used(asked, windows),
                silent_slots=asked.silent_slots,
                confidence=asked.confidence,
                domain=asked.domain,
                weights=horizon.weights(shift, weight, asked.silent_slots),
            )
            # Refused where sums do not fit into a word, or people are too few to mix shares.
            _ = plan.messages_per_user_max
            return plan
        except (InfeasibleError, ParameterError) as problem:
            failed = problem
    raise failed or InfeasibleError("users", asked.users, "are too few", "take another noise")
