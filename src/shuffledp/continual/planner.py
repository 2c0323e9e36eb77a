"""Which schedule and which noise: the smallest proved bound over shufflers, budget, slot and family."""

import math
from dataclasses import dataclass
from typing import Literal

from scipy import special

from shuffledp.accounting.gaussian import gaussian_standard_deviation
from shuffledp.continual.bounds import ROUGH, horizon_bound, sum_tails
from shuffledp.continual.combined_bound import combined_laws, is_quick
from shuffledp.continual.noise import BatchNoise, calibrate
from shuffledp.errors import InfeasibleError
from shuffledp.privacy import Privacy
from shuffledp.schedules.combinatorial import slots

# More shufflers than this never helped: every one takes its part of epsilon.
_MOST_SHUFFLERS = 16
# Beyond, discrete Laplace noise, which composes badly, is never the best.
_LAPLACE_UP_TO = 8
# A guess, made as if noise were Gaussian, so far above the best guess is not looked at.
_HOPELESS, _TRIED = 1.25, 5
# Second opinions gain at most about a tenth, with many shufflers; so many layouts are tried with them.
_MOST_GAIN, _COMBINED_TRIED = 1.1, 3

Estimator = Literal["completed", "combined"]
"""How completed batches make an estimate: a sum of them, or with second opinions where two close together."""
ESTIMATORS: tuple[Estimator, ...] = ("completed", "combined")


@dataclass(frozen=True, slots=True)
class Layout:
    """A schedule's shape and its noise, with the bound that was proved for them, in users."""

    shufflers: int
    budget: int
    slot_users: int
    noise: BatchNoise
    bound: float
    estimator: Estimator = "completed"


def slot_users_for(users: int, budget: int, shufflers: int) -> int:
    """The smallest slot with which the schedule lasts for all users, the last slot never being full."""
    return -(-(users + 1) // slots(budget, shufflers))


def layout_bound(
    users: int, budget: int, shufflers: int, noise: BatchNoise, confidence: float, surplus: float = 1.0
) -> float:
    """The bound over the whole horizon: no prefix's noise is larger, and half a slot for the users since.

    >>> layout_bound(1_000_000, 24, 4, calibrate("laplace", 4, Privacy(1, 1e-6)), 0.95)
    158.0
    """
    rest = (slot_users_for(users, budget, shufflers) - 1) / 2
    if budget == 0:
        return rest
    tails = sum_tails(noise.law(surplus), budget)
    return horizon_bound(tails, budget, lambda j: slots(j, shufflers), 1 - confidence) + rest


def gaussian_guess(users: int, shufflers: int, deviation: float, failure: float) -> tuple[int, float]:
    """The budget that would be best if noise were Gaussian, and about what bound it would have."""

    def about(budget: int) -> float:
        prefixes = min(users + 1, slots(budget, shufflers))
        z = -float(special.ndtri(failure / 2 / prefixes))
        return deviation * math.sqrt(budget) * z + slot_users_for(users, budget, shufflers) / 2

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
    surplus: float = 1.0,
    estimator: Estimator | Literal["auto"] = "completed",
) -> Layout:
    """The layout with the smallest bound that uses at most so many shufflers."""
    failure = 1 - confidence
    deviation = gaussian_standard_deviation(privacy) * math.sqrt(surplus)
    candidates = []
    for used in range(2 if estimator == "combined" else 1, min(shufflers, _MOST_SHUFFLERS) + 1):
        for name in _families(family, used):
            laplace = math.sqrt(2 * surplus) * used / privacy.epsilon
            spread = laplace if name == "laplace" else deviation * math.sqrt(used)
            candidates.append((gaussian_guess(users, used, spread, failure)[1], used, name))
    found: list[Layout] = []
    for about, used, name in sorted(candidates)[:_TRIED]:
        if about > _HOPELESS * min(candidates)[0]:
            break
        noise = calibrate(name, used, privacy)
        found.append(_best_budget(users, used, noise, confidence, surplus))
    if estimator != "completed":
        least = min((layout.bound for layout in found), default=0.0)
        near = sorted((layout for layout in found if layout.bound <= _MOST_GAIN * least), key=lambda near: near.bound)
        # Batches of different sizes have different noise where not everybody is counted on.
        tried = near[:_COMBINED_TRIED] if surplus == 1 else []
        combined = [_with_second_opinions(users, layout, confidence) for layout in tried]
        found = [*(found if estimator == "auto" else []), *(layout for layout in combined if layout is not None)]
    best = min(found, key=lambda layout: layout.bound, default=None)
    if best is None:
        raise InfeasibleError(
            "estimator", estimator, "needs two shufflers, all users honest, and noise that is not too wide", "use auto"
        )
    # So few users that no batch is worth its noise: the midpoint alone is as good.
    if best.bound >= users / 2:
        raise InfeasibleError(
            "users",
            users,
            f"must be more: half of them, {users / 2:g}, is nearer than any private count",
            "count more people, or choose a larger epsilon",
        )
    return best


def _best_budget(users: int, used: int, noise: BatchNoise, confidence: float, surplus: float) -> Layout:
    law = noise.law(surplus)
    around, _ = gaussian_guess(users, used, law.standard_deviation, 1 - confidence)
    budgets = [budget for budget in budgets_near(around) if slots(budget, used) <= 2 * (users + 1)] or [1]
    rough = sum_tails(law, budgets[-1], ROUGH)

    def roughly(budget: int) -> float:
        rest = (slot_users_for(users, budget, used) - 1) / 2
        return horizon_bound(rough, budget, lambda j: slots(j, used), 1 - confidence) + rest

    # The rough bounds are upper bounds, too; the fine ones of the few best decide.
    finalists = sorted(budgets, key=roughly)[:2]
    bounds = {budget: layout_bound(users, budget, used, noise, confidence, surplus) for budget in finalists}
    budget = min(finalists, key=lambda budget: bounds[budget])
    return Layout(used, budget, slot_users_for(users, budget, used), noise, bounds[budget])


def _with_second_opinions(users: int, layout: Layout, confidence: float) -> Layout | None:
    """The best combined layout with this one's noise and about its budget, if it can be computed."""
    law, used = layout.noise.law(), layout.shufflers
    most = layout.budget + layout.budget // 16 + 1
    if used < 2 or not is_quick(law, most, used):
        return None
    laws = combined_laws(law, most, used)
    bounds = {}
    for budget in range(max(1, layout.budget - layout.budget // 16 - 1), most + 1):
        rest = (slot_users_for(users, budget, used) - 1) / 2
        try:
            bounds[budget] = laws.bound(budget, 1 - confidence) + rest
        except InfeasibleError:
            continue
    if not bounds:
        return None
    budget = min(bounds, key=lambda budget: bounds[budget])
    return Layout(used, budget, slot_users_for(users, budget, used), layout.noise, bounds[budget], "combined")


def _families(family: str, shufflers: int) -> list[str]:
    if family != "auto":
        return [family]
    return [
        *(["laplace"] if shufflers <= _LAPLACE_UP_TO else []),
        "skellam",
    ]
