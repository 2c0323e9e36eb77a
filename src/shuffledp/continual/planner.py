"""Which grid, schedule and noise: the smallest proved bound over shufflers, budget, slot and family."""

import math
from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

from scipy import special

from shuffledp.accounting.dropouts import honest_users
from shuffledp.accounting.gaussian import gaussian_standard_deviation
from shuffledp.accounting.laws import IntegerLaw
from shuffledp.continual.bounds import ROUGH, SumTails, horizon_bound, sum_tails
from shuffledp.continual.combined_bound import combined_laws, is_quick
from shuffledp.continual.request import ROUNDING_FAILURE, CountRequest, Estimator
from shuffledp.continual.views import UserView
from shuffledp.errors import InfeasibleError
from shuffledp.protocols.sums.noise import FAMILIES, BatchNoise
from shuffledp.schedules.combinatorial import slots

# More shufflers than this never helped: every one takes its part of epsilon.
_MOST_SHUFFLERS = 16
# Beyond, discrete Laplace noise, which composes badly, is never the best.
_LAPLACE_UP_TO = 8
# A guess, made as if noise were Gaussian, so far above the best guess is not looked at.
_HOPELESS, _TRIED, _FEW = 1.25, 5, 3
# Rounding may add this part to the bound, and lengthen a user's shift by this part.
_ROUNDING_COST, _LENGTHENED = 0.015, 0.005
# Noise of a larger deviation, in steps, takes long to tabulate; sums beyond this leave no margin in 64 bits.
_WIDEST_NOISE, _LARGEST_SUM = 2e4, 1 << 54
# Every step of a grid is a message where noise is coins.
_FINEST_UNARY = 8
# Second opinions gain at most about a tenth, with many shufflers; so many layouts are tried with them.
_MOST_GAIN, _COMBINED_TRIED = 1.1, 3
# Budgets grow by this factor where each has noise of its own.
_GROWTH = 1.05


@dataclass(frozen=True, slots=True)
class Layout:
    """A schedule's shape and its noise, with the bound that was proved for them, rounding aside."""

    shufflers: int
    budget: int
    noise: BatchNoise
    bound: float
    estimator: Estimator = "completed"


def slot_users_for(users: int, budget: int, shufflers: int) -> int:
    """The smallest slot with which the schedule lasts for all users, the last slot never being full."""
    return -(-(users + 1) // slots(budget, shufflers))


@lru_cache(maxsize=16)
def batch_sizes(slot_users: int, budget: int, shufflers: int, short: int = 0) -> dict[int, tuple[int, ...]]:
    """The sizes that batches of each level have, largest first.

    Args:
        slot_users: users of a slot.
        budget: batches that an estimate is made of at most.
        shufflers: levels.
        short: so many slots, the first ones, have a user less.
    """
    found = {}
    for level in range(1, shufflers + 1):
        lefts = range(budget, 0, -1) if level > 1 else [budget]
        spans = [slots(left, level - 1) for left in lefts]
        sizes = {span * slot_users for span in spans}
        if short:
            # Of whole slots, of short ones, and of some of each, where they meet.
            sizes |= {span * (slot_users - 1) for span in spans if span <= short}
            sizes |= _sizes_where_slots_meet(slot_users, budget, shufflers, short, level)
        found[level] = tuple(sorted(sizes, reverse=True))
    return found


def _sizes_where_slots_meet(slot_users: int, budget: int, shufflers: int, short: int, level: int) -> set[int]:
    """The size of the level's batch that holds both short and whole slots, if there is one."""
    first, left = 0, budget
    for top in range(shufflers, level - 1, -1):
        # The batch of this level in which the slots meet, inside that of the level above.
        while left > 0 and (span := slots(left, top - 1)) <= short - first:
            first, left = first + span, left - 1
        if left == 0 or first == short:
            return set()
    return {span * slot_users - (short - first)}


def largest_surplus(noise: BatchNoise, sizes: Iterable[int], honest_fraction: float) -> float:
    """How much more noise than is counted on a batch of one of these sizes has, at most."""
    if honest_fraction == 1:
        return 1.0
    return float(max(noise.surplus(size, honest_users(size, honest_fraction)) for size in sizes))


def _layout_law(asked: CountRequest, budget: int, used: int, noise: BatchNoise) -> IntegerLaw:
    """The noise of a batch when everybody adds to it, at most; where coins are dealt out its size decides."""
    if not noise.is_exact or asked.honest_fraction == 1:
        return noise.law(asked.surplus)
    sizes = batch_sizes(slot_users_for(asked.users, budget, used), budget, used)
    every = {size for level in sizes.values() for size in level}
    return noise.law(largest_surplus(noise, every, asked.honest_fraction))


def _with_rest(asked: CountRequest, budget: int, used: int, noise_bound: int) -> float:
    """A bound on the noise, in steps, as one on the sum: the users of a slot that is not full count as the middle."""
    rest = (slot_users_for(asked.users, budget, used) - 1) * asked.domain.reach
    return noise_bound * asked.domain.step + rest


def _completed_bound(asked: CountRequest, budget: int, used: int, tails: SumTails) -> float:
    noise_bound = horizon_bound(tails, budget, lambda j: slots(j, used), asked.failure)
    return _with_rest(asked, budget, used, noise_bound)


def layout_bound(asked: CountRequest, budget: int, used: int, noise: BatchNoise) -> float:
    """The bound over the whole horizon: no prefix's noise is larger, and half a slot for the users since.

    >>> from shuffledp import Privacy
    >>> from shuffledp.continual.noise import calibrate
    >>> asked = CountRequest(users=1_000_000, shufflers=4, privacy=Privacy(1, 1e-6))
    >>> layout_bound(asked, 24, 4, calibrate("laplace", 4, asked.privacy))
    158.0
    """
    return _completed_bound(asked, budget, used, sum_tails(_layout_law(asked, budget, used, noise), budget))


def _gaussian_bound(users: int, shufflers: int, budget: int, deviation: float, failure: float, reach: float) -> float:
    """About what bound a budget would have if noise were Gaussian."""
    prefixes = min(users + 1, slots(budget, shufflers))
    z = -float(special.ndtri(failure / 2 / prefixes))
    return deviation * math.sqrt(budget) * z + slot_users_for(users, budget, shufflers) * reach


def gaussian_guess(
    users: int, shufflers: int, deviation: float, failure: float, reach: float = 0.5
) -> tuple[int, float]:
    """The budget that would be best if noise were Gaussian, and about what bound it would have."""

    def about(budget: int) -> float:
        return _gaussian_bound(users, shufflers, budget, deviation, failure, reach)

    budget = 1
    while slots(budget, shufflers) <= users and about(math.ceil(budget * 1.02) + 1) < about(budget):
        budget = math.ceil(budget * 1.02) + 1
    return budget, about(budget)


def budgets_near(around: int) -> list[int]:
    """Budgets to try: all of them if they are few, else a few dozen near the guess."""
    low, high = max(1, around // 2), 2 * around + 4
    if high - low > 64:
        low, high = int(0.8 * around), math.ceil(1.25 * around)
    return list(range(low, high + 1, max(1, (high - low) // 48)))


def best_layout(asked: CountRequest) -> Layout:
    """The layout with the smallest bound that keeps to what is asked."""
    candidates, estimator, domain = _guesses(asked), asked.estimator, asked.domain
    if estimator == "combined":
        candidates = [candidate for candidate in candidates if candidate[1] > 1]
    found: list[Layout] = []
    hopeful = [candidate for candidate in candidates if candidate[0] <= _HOPELESS * candidates[0][0]]
    # The guess is a poor one for few batches and little noise: few shufflers are always looked at.
    for _, used, name in [*hopeful[:_TRIED], *(late for late in hopeful[_TRIED:] if late[1] <= _FEW)]:
        noise = UserView.of(domain, used, asked.privacy).calibrate(name, asked.privacy)
        found.append(best_budget(asked, used, noise))
    if estimator != "completed":
        least = min((layout.bound for layout in found), default=0.0)
        near = sorted((layout for layout in found if layout.bound <= _MOST_GAIN * least), key=lambda near: near.bound)
        # Batches of different sizes have different noise where not everybody is counted on.
        tried = near[:_COMBINED_TRIED] if asked.honest_fraction == 1 else []
        combined = [_with_second_opinions(asked, layout) for layout in tried]
        found = [*(found if estimator == "auto" else []), *(layout for layout in combined if layout is not None)]
    best = min(found, key=lambda layout: layout.bound, default=None)
    if best is None:
        raise InfeasibleError(
            "estimator", estimator, "needs two shufflers, all users honest, and noise that is not too wide", "use auto"
        )
    # So few users that no batch is worth its noise: the midpoint alone is as good.
    if best.bound >= asked.users * domain.reach:
        raise InfeasibleError(
            "users",
            asked.users,
            f"must be more: {domain.middle:g} for everybody, off by at most {asked.users * domain.reach:g}, is nearer "
            "than any private estimate",
            "count more people, or choose a larger epsilon",
        )
    return best


def _guesses(asked: CountRequest) -> list[tuple[float, int, str]]:
    """About what bound, with how many shufflers and which noise; the best guess first."""
    domain, epsilon = asked.domain, asked.privacy.epsilon
    deviation = gaussian_standard_deviation(asked.privacy) * math.sqrt(asked.surplus) * domain.diameter
    found = []
    for used in range(1, min(asked.shufflers, _MOST_SHUFFLERS) + 1):
        for name in _families(asked, used):
            moved = (domain.moved or 0) * domain.largest_shift * domain.step
            laplace = math.sqrt(2 * asked.surplus) * used / epsilon * moved
            spread = laplace if name == "laplace" else deviation * math.sqrt(used)
            found.append((gaussian_guess(asked.users, used, spread, asked.failure, domain.reach)[1], used, name))
    return sorted(found)


def with_grid(asked: CountRequest) -> CountRequest:
    """The request on the coarsest grid whose rounding hardly costs anything, or the finest that is affordable."""
    domain: Any = asked.domain
    about, used, name = _guesses(asked)[0]
    spread = gaussian_standard_deviation(asked.privacy) * math.sqrt(used * asked.surplus)
    failure = ROUNDING_FAILURE * (1 - asked.confidence)
    grid = 1
    while True:
        fitted = replace(domain, grid=grid)
        length = fitted.difference(asked.privacy.delta / 100).length
        rounds_little = fitted.rounding_bound(asked.users, failure) <= _ROUNDING_COST * about
        fits = rounds_little and length * fitted.step <= (1 + _LENGTHENED) * domain.diameter
        finer = math.ceil(grid * 1.1)
        too_wide = spread * domain.diameter / fitted.step * 1.1 > _WIDEST_NOISE
        too_fine = 2 * asked.users * finer > _LARGEST_SUM or (FAMILIES[name].is_exact and finer > _FINEST_UNARY)
        if fits or too_wide or too_fine:
            return replace(asked, domain=fitted)
        grid = finer


def best_budget(asked: CountRequest, used: int, noise: BatchNoise) -> Layout:
    """The layout with exactly so many shufflers and this noise."""
    users, domain = asked.users, asked.domain

    def deviation(budget: int) -> float:
        return _layout_law(asked, budget, used, noise).standard_deviation * domain.step

    if noise.is_exact and asked.honest_fraction < 1:
        # Every budget has noise of its own: they are compared as if it were Gaussian.
        budgets = [1]
        while slots(budgets[-1], used) <= users + 1:
            budgets.append(math.ceil(budgets[-1] * _GROWTH))

        def roughly(budget: int) -> float:
            return _gaussian_bound(users, used, budget, deviation(budget), asked.failure, domain.reach)
    else:
        around, _ = gaussian_guess(users, used, deviation(1), asked.failure, domain.reach)
        budgets = [budget for budget in budgets_near(around) if slots(budget, used) <= 2 * (users + 1)] or [1]
        rough = sum_tails(_layout_law(asked, 1, used, noise), budgets[-1], ROUGH)

        def roughly(budget: int) -> float:
            return _completed_bound(asked, budget, used, rough)

    # The rough bounds are upper bounds, too; the fine ones of the few best decide.
    finalists = sorted(budgets, key=roughly)[:2]
    bounds = {budget: layout_bound(asked, budget, used, noise) for budget in finalists}
    budget = min(finalists, key=lambda budget: bounds[budget])
    return Layout(used, budget, noise, bounds[budget])


def _with_second_opinions(asked: CountRequest, layout: Layout) -> Layout | None:
    """The best combined layout with this one's noise and about its budget, if it can be computed."""
    law, used = layout.noise.law(), layout.shufflers
    most = layout.budget + layout.budget // 16 + 1
    if used < 2 or not is_quick(law, most, used):
        return None
    laws = combined_laws(law, most, used)
    bounds = {}
    for budget in range(max(1, layout.budget - layout.budget // 16 - 1), most + 1):
        try:
            bounds[budget] = _with_rest(asked, budget, used, laws.bound(budget, asked.failure))
        except InfeasibleError:
            continue
    if not bounds:
        return None
    budget = min(bounds, key=lambda budget: bounds[budget])
    return Layout(used, budget, layout.noise, bounds[budget], "combined")


def _families(asked: CountRequest, used: int) -> list[str]:
    if asked.noise != "auto":
        return [asked.noise]
    moved = asked.domain.moved
    return [*(["laplace"] if moved and used * moved <= _LAPLACE_UP_TO else []), "skellam"]
