"""Which windows and slots, where noise is carried from window to window: those with the smallest regret bound."""

import math
from functools import lru_cache

from shuffledp.accounting.filter_designs import MOST_WINDOWS, design_for
from shuffledp.accounting.gaussian import gaussian_standard_deviation
from shuffledp.continual.carried.plan import CarriedPlan
from shuffledp.continual.carried.planner import plan_of
from shuffledp.continual.request import CountRequest
from shuffledp.continual.visits import each_visit
from shuffledp.learn.bandits.linear.confidence import Floats
from shuffledp.learn.bandits.linear.counted import fitted_grid
from shuffledp.learn.bandits.linear.planning import planning_bound
from shuffledp.learn.bandits.linear.setting import LinearSetting
from shuffledp.privacy import Privacy

# Slots whose sizes differ by this factor are compared; once the bound has risen so often, no smaller ones are.
_FACTOR, _RISEN, _MOST_SLOTS = 1.08, 6, 1 << 17


@lru_cache(maxsize=64)
def carried_schedules(
    setting: LinearSetting, privacy: Privacy, shufflers: int, visits: int
) -> tuple[tuple[float, int, int], ...]:
    """For each number of windows the smallest regret bound and the users of a slot, the best first.

    As if noise were Gaussian.
    None where constants are the papers', who do not carry noise.
    """
    if setting.constants == "paper":
        return ()
    deviation = gaussian_standard_deviation(privacy, setting.joint.apart)
    found = []
    for windows in range(2, min(shufflers, MOST_WINDOWS) + 1):
        least, risen = math.inf, 0
        for size in _sizes(setting.users, windows, visits):
            slots = -(-setting.users // size)
            design = design_for(windows, slots)
            ends = design.visits_length(slots, visits) * extremes(design.deviations(slots))
            bound = planning_bound(setting, deviation * ends, size, setting.users // size)
            found.append((bound, windows, size))
            risen = 0 if bound < least else risen + 1
            least = min(bound, least)
            if risen == _RISEN:
                break
    best = {windows: min(each for each in found if each[1] == windows) for _, windows, _ in found}
    return tuple(sorted(best.values()))


def extremes(deviations: Floats) -> Floats:
    """All that a bound asks of them: the radius is largest with the most noise, and low is least with the least."""
    return deviations[[int(deviations.argmin()), int(deviations.argmax())]]


def _sizes(users: int, windows: int, visits: int) -> list[int]:
    """Sizes of slots, from large to small: enough slots for all visits of a user, of which no two are in one."""
    least, size = max(2 * windows + 1, -(-users // _MOST_SLOTS)), users // max(2 * windows, visits)
    found = []
    while size >= least:
        found.append(size)
        size = min(size - 1, round(size / _FACTOR))
    return found


def carried_plan(
    setting: LinearSetting, privacy: Privacy, shufflers: int, visits: int, windows: int, size: int
) -> CarriedPlan:
    """The plan of joint vectors with so many windows and slots of exactly this size.

    Raises:
        InfeasibleError: there are too few users to mix shares.
        ParameterError: sums do not fit into a word.
    """
    slots = -(-setting.users // size)
    design = design_for(windows, slots)
    least = gaussian_standard_deviation(privacy, setting.joint.apart) * design.visits_length(slots, visits)
    least *= float(design.deviations(slots).min())
    asked = CountRequest(
        # It lasts a little longer than the horizon, so that all slots have one size.
        users=slots * size,
        shufflers=shufflers,
        privacy=each_visit(privacy, visits),
        domain=fitted_grid(setting, lambda domain: least / domain.step),
        confidence=setting.confidence,
    )
    return plan_of(asked, windows, size, visits=visits)
