"""Plain LinUCB, updated every round or every so many: what privacy is compared with."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from shuffledp.learn.bandits.linear.confidence import ReleaseNoise
from shuffledp.learn.bandits.linear.guarantee import BanditGuarantee
from shuffledp.learn.bandits.linear.policy import LinearPolicy
from shuffledp.learn.bandits.linear.setting import check_batch, check_setting


@dataclass(frozen=True, kw_only=True)
class LinUCB(LinearPolicy):
    """The server sees everything and protects nobody.

    Reference: Abbasi-Yadkori, Pal, Szepesvari 2011.

    >>> from shuffledp.learn.bandits.linear.setting import LinearSetting
    >>> policy = LinUCB(setting=LinearSetting(users=100, dimension=2))
    >>> state = policy.tell(policy.start(), 1, policy.setting.joint.pack([0.6, 0.8], 1.0))
    >>> policy.ask(state).model.theta.round(3).tolist()
    [0.3, 0.4]
    """

    batch: int = 1

    def __post_init__(self) -> None:
        check_setting(self.setting)
        object.__setattr__(self, "batch", check_batch(self.batch, self.setting.users))

    @property
    def name(self) -> str:
        return "linucb"

    @property
    def slot_users(self) -> int:
        return self.batch

    @property
    def release_noise(self) -> ReleaseNoise:
        return ReleaseNoise.gaussian(np.zeros(self.releases))

    def guarantee(self) -> BanditGuarantee:
        return BanditGuarantee(
            model="none", privacy=None, visits=1, terms=(), trusted="everybody", because="No noise is added."
        )

    def _decides(self) -> dict[str, Any]:
        return {"batch": self.batch}
