"""Plain LinUCB, updated every round or every so many: what privacy is compared with."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from shuffledp.learn.bandits.linear.confidence import Floats, ReleaseNoise
from shuffledp.learn.bandits.linear.guarantee import LinearGuarantee
from shuffledp.randomness import RandomBits
from shuffledp.references.bandits.slots import SlotPolicy


@dataclass(frozen=True, kw_only=True)
class LinUCB(SlotPolicy):
    """The server sees everything and protects nobody.

    Reference: Abbasi-Yadkori, Pal, Szepesvari 2011.

    >>> from shuffledp.learn.bandits.linear.setting import LinearSetting
    >>> policy = LinUCB(setting=LinearSetting(users=100, dimension=2))
    >>> state = policy.tell(policy.start(), 1, {1: policy.setting.joint.pack([0.6, 0.8], 1.0)})
    >>> policy.ask(state).model.theta.round(3).tolist()
    [0.3, 0.4]
    """

    name: ClassVar[str] = "linucb"

    @property
    def updates_every_round(self) -> bool:
        return self.batch == 1 and self.setting.constants == "exact"

    @property
    def release_noise(self) -> ReleaseNoise:
        return ReleaseNoise.gaussian(np.zeros(self.releases))

    def sample_noise(self, shape: tuple[int, int], *, bits: RandomBits, generator: Any) -> Iterator[Floats]:
        return iter(np.zeros((self.releases, 1, 1)))

    def guarantee(self) -> LinearGuarantee:
        return LinearGuarantee(
            model="none", privacy=None, visits=1, terms=(), trusted="everybody", because="No noise is added."
        )
