"""LinUCB with several shufflers at work at once: little noise adds up, or it is carried from window to window."""

import math
from dataclasses import dataclass
from functools import lru_cache
from typing import ClassVar, Literal, Self, get_args

import numpy as np

from shuffledp.accounting.gaussian import gaussian_standard_deviation
from shuffledp.continual.planner import slot_users_for
from shuffledp.continual.request import check_shufflers
from shuffledp.continual.visits import Visits
from shuffledp.errors import InfeasibleError, ParameterError
from shuffledp.learn.bandits.linear.carried import carried_plan, carried_schedules
from shuffledp.learn.bandits.linear.counted import CountedPolicy
from shuffledp.learn.bandits.linear.planning import planning_bound
from shuffledp.learn.bandits.linear.setting import LinearSetting
from shuffledp.privacy import Privacy
from shuffledp.schedules.combinatorial import slots

_MOST_SLOTS, _MOST_SHUFFLERS = 1 << 20, 16

Noise = Literal["auto", "carried", "independent"]
"""Carried from window to window, every batch's own, or whichever has the smaller regret bound."""


@dataclass(frozen=True, kw_only=True)
class ConcurrentLinUCB(CountedPolicy):
    """Concurrent shuffle private LinUCB, with the noise and the schedule whose regret bound is the smallest.

    Reference: [000] Algorithm 4, on better schedules and with exact noise; carried noise is our own.

    >>> policy = ConcurrentLinUCB.planned(LinearSetting(users=20_000, dimension=5), Privacy(1, 0.1), shufflers=4)
    >>> policy.name, policy.plan.shufflers_used, policy.guarantee().holds
    ('concurrent-4', 4, True)
    """

    kind: ClassVar[str] = "concurrent"

    @property
    def name(self) -> str:  # type: ignore[override]
        return f"concurrent-{self.plan.shufflers}"

    @classmethod
    def planned(
        cls,
        setting: LinearSetting,
        privacy: Privacy,
        *,
        shufflers: int = 4,
        visits: int = 1,
        noise: Noise = "auto",
    ) -> Self:
        """At most so many shufflers, as many of them used as is best.

        Args:
            setting: users, features, rewards and confidence.
            privacy: what every user is promised in all visits together.
            shufflers: how many there are.
            visits: how often one user may come.
            noise: carried, independent, or auto for the smaller regret bound.

        Raises:
            InfeasibleError: there are too few users to learn anything from, or to carry noise if that was asked for.
        """
        check_shufflers(shufflers)
        if noise not in get_args(Noise):
            raise ParameterError("noise", noise, f"must be {', '.join(get_args(Noise))}", "auto picks the best")
        policy = cls._planned(setting, privacy, shufflers, visits, noise)
        least = float(policy.rule.matrix_noise[1:].min(initial=math.inf))
        if setting.constants == "exact" and setting.users <= least < math.inf:
            # No sum of so many features is longer than their number.
            problem = f"are too few to learn anything from: noise outweighs up to {least:,.0f} users"
            raise InfeasibleError("users", setting.users, problem, "allow fewer visits or more epsilon, or wait")
        return policy

    @classmethod
    def _planned(cls, setting: LinearSetting, privacy: Privacy, shufflers: int, visits: int, noise: Noise) -> Self:
        bound, used, budget = best_schedule(setting, privacy, shufflers, visits)
        if noise != "independent":
            for carried, windows, size in carried_schedules(setting, privacy, shufflers, visits):
                if carried >= bound and noise == "auto":
                    break
                try:
                    plan = carried_plan(setting, privacy, shufflers, visits, windows, size)
                except (InfeasibleError, ParameterError):
                    # Too few users to mix shares in such slots, or sums that do not fit into a word.
                    continue
                return cls(setting=setting, privacy=privacy, plan=plan, visits=visits)
            if noise == "carried":
                problem = "and shufflers are too few to carry noise from batch to batch"
                raise InfeasibleError("users", setting.users, problem, "take independent noise")
        layout = {"users": setting.users, "shufflers": shufflers, "shufflers_used": used, "budget": budget}
        return cls.with_layout(setting, privacy, visits, **layout)


@lru_cache(maxsize=64)
def best_schedule(setting: LinearSetting, privacy: Privacy, shufflers: int, visits: int) -> tuple[float, int, int]:
    """With independent noise: the smallest regret bound, its shufflers used and budget, as if noise were Gaussian."""
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
    return min(found)
