"""LinUCB with several shufflers at work at once: few batches make every sum, so little noise adds up."""

import math
from dataclasses import dataclass
from functools import lru_cache
from typing import Self

import numpy as np

from shuffledp.accounting.gaussian import gaussian_standard_deviation
from shuffledp.continual.planner import slot_users_for
from shuffledp.continual.request import check_shufflers
from shuffledp.errors import InfeasibleError
from shuffledp.learn.bandits.linear.counted import CountedPolicy
from shuffledp.learn.bandits.linear.planning import planning_bound
from shuffledp.learn.bandits.linear.setting import LinearSetting
from shuffledp.learn.bandits.linear.visits import Visits
from shuffledp.privacy import Privacy
from shuffledp.schedules.combinatorial import slots

_MOST_SLOTS, _MOST_SHUFFLERS = 1 << 20, 16


@dataclass(frozen=True, kw_only=True)
class ConcurrentLinUCB(CountedPolicy):
    """Concurrent shuffle private LinUCB, with the schedule whose regret bound is the smallest.

    Reference: [000] Algorithm 4, on a better schedule and with exact noise.

    >>> policy = ConcurrentLinUCB.planned(LinearSetting(users=20_000, dimension=5), Privacy(1, 0.1), shufflers=4)
    >>> policy.name, policy.plan.shufflers_used, policy.guarantee().holds
    ('concurrent-4', 4, True)
    """

    @property
    def name(self) -> str:  # type: ignore[override]
        return f"concurrent-{self.plan.shufflers}"

    @classmethod
    def planned(cls, setting: LinearSetting, privacy: Privacy, *, shufflers: int = 4, visits: int = 1) -> Self:
        """At most so many shufflers, as many of them used as is best."""
        check_shufflers(shufflers)
        used, budget = best_schedule(setting, privacy, shufflers, visits)
        layout = {"users": setting.users, "shufflers": shufflers, "shufflers_used": used, "budget": budget}
        policy = cls.with_layout(setting, privacy, visits, **layout)
        least = float(policy.rule.matrix_noise[1:].min(initial=math.inf))
        if setting.constants == "exact" and setting.users <= least < math.inf:
            # No sum of so many features is longer than their number.
            problem = f"are too few to learn anything from: noise outweighs up to {least:,.0f} users"
            raise InfeasibleError("users", setting.users, problem, "allow fewer visits or more epsilon, or wait")
        return policy


@lru_cache(maxsize=64)
def best_schedule(setting: LinearSetting, privacy: Privacy, shufflers: int, visits: int) -> tuple[int, int]:
    """Shufflers used and budget with the smallest regret bound, as if noise were Gaussian."""
    deviation = gaussian_standard_deviation(privacy, setting.joint.apart)
    found = []
    for used in range(1, min(shufflers, _MOST_SHUFFLERS) + 1):
        each = deviation * math.sqrt(Visits(visits, used).squares)
        least, worse, budget = math.inf, 0, 1
        while worse < 8 and slots(budget, used) <= min(_MOST_SLOTS, 2 * (setting.users + 1)):
            slot_users = slot_users_for(setting.users, budget, used)
            # The radius is largest with the most noise, and the least eigenvalue is least with the least.
            deviations = each * np.sqrt([1.0, budget])
            bound = planning_bound(setting, deviations, slot_users, slots(budget, used))
            found.append((bound, used, budget))
            worse = 0 if bound < least else worse + 1
            least = min(bound, least)
            budget += max(1, budget // 16)
    if not found:
        raise InfeasibleError("users", setting.users, "are too few for a batch", "wait for more")
    _, used, budget = min(found)
    return used, budget
