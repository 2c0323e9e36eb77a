"""LinUCB with one shuffler and batches of B users: a vector sum each, whose noise adds up over the batches."""

from dataclasses import dataclass
from typing import ClassVar, Self

from shuffledp.learn.bandits.linear.counted import CountedPolicy
from shuffledp.learn.bandits.linear.setting import LinearSetting, check_batch, check_setting
from shuffledp.privacy import Privacy


@dataclass(frozen=True, kw_only=True)
class ShuffleVecLinUCB(CountedPolicy):
    """Shuffle private LinUCB with P_Vec: integer Skellam noise in place of the paper's binomial, exactly calibrated.

    Reference: [002] Algorithms 1 and 5-7, Theorem 3.5; returning users: Theorem 4.2.

    >>> policy = ShuffleVecLinUCB.planned(LinearSetting(users=2000, dimension=3), Privacy(1, 0.1), batch=20)
    >>> policy.slot_users, policy.releases, policy.guarantee().model
    (20, 100, 'shuffle')
    """

    name: ClassVar[str] = "shuffle-vec"
    kind: ClassVar[str] = "shuffle-vec"

    @classmethod
    def planned(cls, setting: LinearSetting, privacy: Privacy, *, batch: int = 20, visits: int = 1) -> Self:
        """Batches of exactly so many users; [002] Corollary 3.6 takes about users^(3/5)."""
        check_setting("setting", setting)
        batch = check_batch(batch, setting.users)
        budget = max(1, -(-(setting.users + 1) // batch) - 1)
        # The schedule lasts a little longer than the horizon, so that all slots have the asked size.
        users = (budget + 1) * batch - 1
        return cls.with_layout(setting, privacy, visits, users=users, shufflers=1, shufflers_used=1, budget=budget)
