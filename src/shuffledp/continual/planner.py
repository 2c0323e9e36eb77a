"""Which grid, schedule and noise: the smallest proved bound over shufflers, budget, slot and family."""

import math
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Literal

from scipy import special

from shuffledp.accounting.dropouts import honest_users
from shuffledp.accounting.gaussian import gaussian_standard_deviation
from shuffledp.accounting.laws import IntegerLaw
from shuffledp.continual.bounds import ROUGH, horizon_bound, sum_tails
from shuffledp.continual.combined_bound import combined_laws, is_quick
from shuffledp.continual.views import UserView
from shuffledp.errors import InfeasibleError
from shuffledp.privacy import Privacy
from shuffledp.protocols.domains.summed import BITS, Reals, SummedDomain, Vectors
from shuffledp.protocols.sums.noise import FAMILIES, BatchNoise
from shuffledp.schedules.combinatorial import slots

# More shufflers than this never helped: every one takes its part of epsilon.
_MOST_SHUFFLERS = 16
# Beyond, discrete Laplace noise, which composes badly, is never the best.
_LAPLACE_UP_TO = 8
# A guess, made as if noise were Gaussian, so far above the best guess is not looked at.
_HOPELESS, _TRIED, _FEW = 1.25, 5, 3
# Of the probability with which the bound may fail: for rounding.
ROUNDING_FAILURE = 0.01
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

Estimator = Literal["completed", "combined"]
"""How completed batches make an estimate: a sum of them, or with second opinions where two close together."""
ESTIMATORS: tuple[Estimator, ...] = ("completed", "combined")


@dataclass(frozen=True, slots=True)
class Layout:
    """A schedule's shape and its noise, with the bound that was proved for them, rounding aside."""

    shufflers: int
    budget: int
    slot_users: int
    noise: BatchNoise
    bound: float
    estimator: Estimator = "completed"


def slot_users_for(users: int, budget: int, shufflers: int) -> int:
    """The smallest slot with which the schedule lasts for all users, the last slot never being full."""
    return -(-(users + 1) // slots(budget, shufflers))


def batch_sizes(slot_users: int, budget: int, shufflers: int) -> dict[int, tuple[int, ...]]:
    """The sizes that batches of each level have, largest first."""
    above = {
        level: tuple(slots(left, level - 1) * slot_users for left in range(budget, 0, -1))
        for level in range(2, shufflers + 1)
    }
    return {1: (slot_users,), **above}


def largest_surplus(noise: BatchNoise, sizes: Iterable[int], honest_fraction: float) -> float:
    """How much more noise than is counted on a batch of one of these sizes has, at most."""
    if honest_fraction == 1:
        return 1.0
    return float(max(noise.surplus(size, honest_users(size, honest_fraction)) for size in sizes))


def _layout_law(users: int, budget: int, shufflers: int, noise: BatchNoise, honest_fraction: float) -> IntegerLaw:
    """The noise of a batch when everybody adds to it, at most; where coins are dealt out its size decides."""
    if not noise.is_exact or honest_fraction == 1:
        return noise.law(min(1 / honest_fraction, float(users)))
    sizes = batch_sizes(slot_users_for(users, budget, shufflers), budget, shufflers)
    return noise.law(largest_surplus(noise, {size for level in sizes.values() for size in level}, honest_fraction))


def noise_failure(domain: SummedDomain, confidence: float) -> float:
    """The probability with which the noise of one coordinate may pass its bound."""
    return (1 - confidence) * (1 - ROUNDING_FAILURE if domain.rounds else 1.0) / domain.coordinates


def layout_bound(
    users: int,
    budget: int,
    shufflers: int,
    noise: BatchNoise,
    confidence: float,
    honest_fraction: float = 1.0,
    domain: SummedDomain = BITS,
) -> float:
    """The bound over the whole horizon: no prefix's noise is larger, and half a slot for the users since.

    >>> from shuffledp.continual.noise import calibrate
    >>> layout_bound(1_000_000, 24, 4, calibrate("laplace", 4, Privacy(1, 1e-6)), 0.95)
    158.0
    """
    rest = (slot_users_for(users, budget, shufflers) - 1) * domain.reach
    if budget == 0:
        return rest
    tails = sum_tails(_layout_law(users, budget, shufflers, noise, honest_fraction), budget)
    failure = noise_failure(domain, confidence)
    return horizon_bound(tails, budget, lambda j: slots(j, shufflers), failure) * domain.step + rest


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


def best_layout(
    users: int,
    shufflers: int,
    privacy: Privacy,
    *,
    family: str = "auto",
    confidence: float = 0.95,
    honest_fraction: float = 1.0,
    domain: SummedDomain = BITS,
    estimator: Estimator | Literal["auto"] = "completed",
) -> Layout:
    """The layout with the smallest bound that uses at most so many shufflers."""
    candidates = _guesses(users, shufflers, privacy, family, confidence, honest_fraction, domain)
    if estimator == "combined":
        candidates = [candidate for candidate in candidates if candidate[1] > 1]
    found: list[Layout] = []
    hopeful = [candidate for candidate in candidates if candidate[0] <= _HOPELESS * candidates[0][0]]
    # The guess is a poor one for few batches and little noise: few shufflers are always looked at.
    for _, used, name in [*hopeful[:_TRIED], *(late for late in hopeful[_TRIED:] if late[1] <= _FEW)]:
        noise = UserView.of(domain, used, privacy).calibrate(name, privacy)
        found.append(best_budget(users, used, noise, confidence, honest_fraction, domain))
    if estimator != "completed":
        least = min((layout.bound for layout in found), default=0.0)
        near = sorted((layout for layout in found if layout.bound <= _MOST_GAIN * least), key=lambda near: near.bound)
        # Batches of different sizes have different noise where not everybody is counted on.
        tried = near[:_COMBINED_TRIED] if honest_fraction == 1 else []
        combined = [_with_second_opinions(users, layout, confidence, domain) for layout in tried]
        found = [*(found if estimator == "auto" else []), *(layout for layout in combined if layout is not None)]
    best = min(found, key=lambda layout: layout.bound, default=None)
    if best is None:
        raise InfeasibleError(
            "estimator", estimator, "needs two shufflers, all users honest, and noise that is not too wide", "use auto"
        )
    # So few users that no batch is worth its noise: the midpoint alone is as good.
    if best.bound >= users * domain.reach:
        raise InfeasibleError(
            "users",
            users,
            f"must be more: {domain.middle:g} for everybody, off by at most {users * domain.reach:g}, is nearer "
            "than any private estimate",
            "count more people, or choose a larger epsilon",
        )
    return best


def _guesses(
    users: int,
    shufflers: int,
    privacy: Privacy,
    family: str,
    confidence: float,
    honest_fraction: float,
    domain: SummedDomain,
) -> list[tuple[float, int, str]]:
    """About what bound, with how many shufflers and which noise; the best guess first."""
    failure, surplus = noise_failure(domain, confidence), min(1 / honest_fraction, float(users))
    deviation = gaussian_standard_deviation(privacy) * math.sqrt(surplus) * domain.diameter
    found = []
    for used in range(1, min(shufflers, _MOST_SHUFFLERS) + 1):
        for name in _families(family, used, domain):
            moved = (domain.moved or 0) * domain.largest_shift * domain.step
            laplace = math.sqrt(2 * surplus) * used / privacy.epsilon * moved
            spread = laplace if name == "laplace" else deviation * math.sqrt(used)
            found.append((gaussian_guess(users, used, spread, failure, domain.reach)[1], used, name))
    return sorted(found)


def with_grid(
    domain: SummedDomain,
    users: int,
    shufflers: int,
    privacy: Privacy,
    *,
    family: str = "auto",
    confidence: float = 0.95,
    honest_fraction: float = 1.0,
) -> SummedDomain:
    """The domain on the coarsest grid whose rounding hardly costs anything, or the finest that is affordable."""
    if not isinstance(domain, Reals | Vectors):
        return domain
    about, used, name = _guesses(users, shufflers, privacy, family, confidence, honest_fraction, domain)[0]
    spread = gaussian_standard_deviation(privacy) * math.sqrt(used * min(1 / honest_fraction, float(users)))
    failure = ROUNDING_FAILURE * (1 - confidence)
    grid = 1
    while True:
        fitted = replace(domain, grid=grid)
        length = fitted.difference(privacy.delta / 100).length
        rounds_little = fitted.rounding_bound(users, failure) <= _ROUNDING_COST * about
        if rounds_little and length * fitted.step <= (1 + _LENGTHENED) * domain.diameter:
            return fitted
        finer = math.ceil(grid * 1.1)
        too_wide = spread * domain.diameter / fitted.step * 1.1 > _WIDEST_NOISE
        if too_wide or 2 * users * finer > _LARGEST_SUM or (FAMILIES[name].is_exact and finer > _FINEST_UNARY):
            return fitted
        grid = finer


def best_budget(
    users: int, used: int, noise: BatchNoise, confidence: float, honest_fraction: float, domain: SummedDomain = BITS
) -> Layout:
    """The layout with exactly so many shufflers and this noise."""
    failure = noise_failure(domain, confidence)

    def law(budget: int) -> IntegerLaw:
        return _layout_law(users, budget, used, noise, honest_fraction)

    if noise.is_exact and honest_fraction < 1:
        # Every budget has noise of its own: they are compared as if it were Gaussian.
        budgets = [1]
        while slots(budgets[-1], used) <= users + 1:
            budgets.append(math.ceil(budgets[-1] * _GROWTH))

        def roughly(budget: int) -> float:
            deviation = law(budget).standard_deviation * domain.step
            return _gaussian_bound(users, used, budget, deviation, failure, domain.reach)
    else:
        around, _ = gaussian_guess(users, used, law(1).standard_deviation * domain.step, failure, domain.reach)
        budgets = [budget for budget in budgets_near(around) if slots(budget, used) <= 2 * (users + 1)] or [1]
        rough = sum_tails(law(1), budgets[-1], ROUGH)

        def roughly(budget: int) -> float:
            rest = (slot_users_for(users, budget, used) - 1) * domain.reach
            return horizon_bound(rough, budget, lambda j: slots(j, used), failure) * domain.step + rest

    # The rough bounds are upper bounds, too; the fine ones of the few best decide.
    finalists = sorted(budgets, key=roughly)[:2]
    bounds = {
        budget: layout_bound(users, budget, used, noise, confidence, honest_fraction, domain) for budget in finalists
    }
    budget = min(finalists, key=lambda budget: bounds[budget])
    return Layout(used, budget, slot_users_for(users, budget, used), noise, bounds[budget])


def _with_second_opinions(users: int, layout: Layout, confidence: float, domain: SummedDomain) -> Layout | None:
    """The best combined layout with this one's noise and about its budget, if it can be computed."""
    law, used = layout.noise.law(), layout.shufflers
    most = layout.budget + layout.budget // 16 + 1
    if used < 2 or not is_quick(law, most, used):
        return None
    laws = combined_laws(law, most, used)
    bounds = {}
    for budget in range(max(1, layout.budget - layout.budget // 16 - 1), most + 1):
        rest = (slot_users_for(users, budget, used) - 1) * domain.reach
        try:
            bounds[budget] = laws.bound(budget, noise_failure(domain, confidence)) * domain.step + rest
        except InfeasibleError:
            continue
    if not bounds:
        return None
    budget = min(bounds, key=lambda budget: bounds[budget])
    return Layout(used, budget, slot_users_for(users, budget, used), layout.noise, bounds[budget], "combined")


def _families(family: str, shufflers: int, domain: SummedDomain) -> list[str]:
    if family != "auto":
        return [family]
    return [
        *(["laplace"] if domain.moved and shufflers * domain.moved <= _LAPLACE_UP_TO else []),
        "skellam",
    ]
