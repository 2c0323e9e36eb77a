"""Which windows, slots, filter and weights: the smallest proved bound over the whole horizon."""

import math
from dataclasses import replace
from functools import lru_cache
from typing import Any

import numpy as np
import scipy
from numpy.typing import NDArray

from shuffledp.accounting.dropouts import honest_users
from shuffledp.accounting.filter_designs import MOST_WINDOWS, Design, design_for
from shuffledp.accounting.gaussian import gaussian_standard_deviation
from shuffledp.accounting.running_filters import gaussian_union
from shuffledp.continual.carried.plan import CarriedPlan
from shuffledp.continual.carried.weights import CarriedWeights, along, covariance_of
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
# Knots are set wherever weights have grown by this part, and more and more densely towards both ends.
_GROWN = 0.03
# Where users return, whole weights may change what all visits show by this part.
_ROUNDED_WEIGHTS = 1e-3
# So many estimates are looked at to see what the first slots' noise does to them.
_LOOKED_AT, _LOOKED_UP_TO = 300, 1 << 17
# More windows than this would send too many messages.
_MOST_SHUFFLERS = 16
# Beyond what is needed to begin with, as a part of the first slot's variance.
_CLEARLY = 1e-12


@lru_cache(maxsize=1)
def _knots_and_lengths(design: Design, slots: int) -> tuple[NDArray[np.int64], Floats]:
    """Where weights may bend, and how far a step of weight 1 in each slot moves everything."""
    shape = design.variances(slots)
    return _knots(slots, np.log(shape) / 2), design.filter.column_lengths(shape)


def weights_for(design: Design, slots: int, shift: float, least_weight: float, restarts: int = 0) -> CarriedWeights:
    """Weights and noise of a design with which one step moves everything by at most `shift` deviations.

    Args:
        design: the filter and the shape of its variances.
        slots: how many there are.
        shift: the largest that is private.
        least_weight: about what a step weighs in the first slot: the larger, the less rounding costs.
        restarts: how many of the first slots may be false.
    """
    knots, lengths = _knots_and_lengths(design, slots)
    tap = math.prod(p + g for p, g in design.gains)
    # In units of the first slot's deviation a step may weigh so much.
    allowed = shift / (tap * lengths)
    scale = least_weight / float(allowed.min())
    weights = _below(knots, allowed * scale)
    reached = float((lengths * along(knots, weights, slots)).max())
    plain = CarriedWeights(
        slots=slots,
        gains=design.gains,
        poles=design.poles,
        knots=tuple(knots.tolist()),
        weights=tuple(weights.tolist()),
        # Weights are whole: what they leave of the shift, noise can spare.
        variance=(1 + 1e-6) * (reached * tap / shift) ** 2,
        growth=design.growth,
        offset=design.offset,
        restarts=restarts,
        is_begun=False,
    )
    return _begun(plain)


def _knots(slots: int, log_deviations: Floats) -> NDArray[np.int64]:
    """Slots at which weights are given."""
    grown = np.searchsorted(log_deviations, np.arange(0.0, log_deviations[-1], _GROWN))
    steps = np.geomspace(1, slots, 1 + math.ceil(math.log(slots + 1) / math.log(1.25))).astype(np.int64)
    every = np.concatenate((grown, steps - 1, slots - steps, np.linspace(0, slots - 1, 9).astype(np.int64)))
    return np.asarray(np.unique(np.clip(every, 0, slots - 1)))


def _below(knots: NDArray[np.int64], allowed: Floats) -> NDArray[np.int64]:
    """Whole weights at the knots whose lines stay below what is allowed."""
    lines = np.interp(np.arange(allowed.size), knots, allowed[knots])
    room = np.minimum(1.0, allowed / lines)
    if len(knots) > 1:
        of_segments = np.minimum.reduceat(room, knots[:-1])
        at_knots = np.minimum(np.append(of_segments, 1.0), np.insert(of_segments, 0, 1.0))
    else:
        at_knots = np.ones(1)
    return np.asarray(np.maximum(1, np.floor(allowed[knots] * at_knots)), dtype=np.int64)


def _begun(plain: CarriedWeights) -> CarriedWeights:
    """With what is needed in the first slots, found so that it adds least to any estimate's variance."""
    missing = plain.missing_components
    size = missing.shape[1]
    if size == 0:
        return replace(plain, is_begun=True)
    responses = plain.first_responses(up_to=_LOOKED_UP_TO)
    looked_at = np.unique(np.geomspace(1, responses.shape[1], _LOOKED_AT).astype(np.int64)) - 1
    responses = responses[:, looked_at] * math.sqrt(plain.variance)
    missing_each = [plain.missing_from(first) / plain.variance for first in range(plain.restarts + 1)]
    places = [(number, slot) for number in range(1, size) for slot in range(size - number)]

    def begins(logarithms: Floats) -> Floats:
        found = np.zeros((size, size))
        for (number, slot), logarithm in zip(places, logarithms, strict=True):
            found[number, slot] = math.exp(min(float(logarithm), 20.0))
        more = covariance_of(found)
        # Whatever is missing still, the first noise supplies.
        lowest = min(float(np.linalg.eigvalsh(more - each).min()) for each in missing_each)
        found[0] = max(0.0, -lowest) + _CLEARLY
        return found

    def harm(logarithms: Floats) -> float:
        surplus = covariance_of(begins(logarithms)) - missing_each[0]
        return float(np.einsum("at,ab,bt->t", responses, surplus, responses, optimize=True).max())

    start = np.array([math.log(abs(missing[number, slot]) / plain.variance + 1e-12) for number, slot in places])
    if places:
        start = scipy.optimize.minimize(harm, start, method="Nelder-Mead", options={"maxiter": 150 * len(places)}).x
    rows = begins(start) * plain.variance
    return replace(plain, begins=tuple(tuple(row.tolist()) for row in rows), is_begun=True)


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
    design, shift = design_for(windows, slots), _largest_shift(asked)
    if visits > 1:
        # What one visit may move if all together move what they may; whole weights may change that a little.
        together = _largest_shift(asked, visits) / design.visits_length(slots, visits)
        made = weights_for(design, slots, together, _WEIGHTS[0])
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
                weights=weights_for(design, slots, shift, weight, asked.silent_slots),
            )
            # Refused where sums do not fit into a word, or people are too few to mix shares.
            _ = plan.messages_per_user_max
            return plan
        except (InfeasibleError, ParameterError) as problem:
            failed = problem
    raise failed or InfeasibleError("users", asked.users, "are too few", "take another noise")
