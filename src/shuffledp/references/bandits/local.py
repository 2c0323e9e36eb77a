"""LinUCB where every user adds Gaussian noise to its own vector: the local model, and its amplification by shuffling.

References for comparison. The noise is a deviation here; `shuffledp.references.bandits` draws it, in floating point.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, ClassVar

import numpy as np

from shuffledp.accounting.amplification import local_delta_distance, stronger_clones
from shuffledp.accounting.gaussian import gaussian_delta, gaussian_standard_deviation
from shuffledp.accounting.guarantee import DeltaTerm, delta_of_distance
from shuffledp.errors import ParameterError
from shuffledp.learn.bandits.linear.confidence import Floats, ReleaseNoise
from shuffledp.learn.bandits.linear.guarantee import LinearGuarantee
from shuffledp.privacy import Privacy
from shuffledp.randomness import RandomBits
from shuffledp.references.amplified_gaussian import weakest_local_privacy
from shuffledp.references.bandits.prefix_noise import walk_noise
from shuffledp.references.bandits.slots import GaussianPolicy


@dataclass(frozen=True, kw_only=True)
class LocalLinUCB(GaussianPolicy):
    """Everybody adds the noise itself and trusts nobody; the noise of all adds up. M visits compose to sqrt(M).

    Reference: Zheng et al. 2020, with the analytic Gaussian mechanism and the joint vector's exact sensitivity.
    """

    name: ClassVar[str] = "ldp"

    @cached_property
    def user_deviation(self) -> float:
        """The noise of one user in a coordinate."""
        if self.setting.constants == "paper":
            spread = 4 * math.sqrt(2 * math.log(2.5 / self.privacy.delta)) / self.privacy.epsilon
            return spread * math.sqrt(self.visits)
        return gaussian_standard_deviation(self.privacy, self.setting.joint.apart * math.sqrt(self.visits))

    @property
    def release_noise(self) -> ReleaseNoise:
        users = np.arange(1, self.releases + 1) * self.slot_users
        return ReleaseNoise.gaussian(self.user_deviation * np.sqrt(users))

    def sample_noise(self, shape: tuple[int, int], *, bits: RandomBits, generator: Any) -> Iterator[Floats]:
        each = self.user_deviation * math.sqrt(self.slot_users)
        return walk_noise(self.releases, each, shape, generator=generator)

    def guarantee(self) -> LinearGuarantee:
        shift = self.setting.joint.apart * math.sqrt(self.visits)
        words = f"the curve of Gaussian noise against a shift of {shift:.6g}"
        because = "Each message is private by itself."
        return self._gaussian("local", self.user_deviation, shift, words, "nobody", because)


@dataclass(frozen=True, kw_only=True)
class AmplifiedLinUCB(LocalLinUCB):
    """P_Amp: the local policy with less noise, whose messages hide among those of a batch.

    Reference: [002] section 3.2, with the noise that the accountant proves for this batch.
    """

    name: ClassVar[str] = "shuffle-amp"

    batch: int = 20

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.visits != 1:
            raise ParameterError("visits", self.visits, "must be 1 with shuffle-amp", "choose shuffle-vec or ldp")

    @cached_property
    def local_privacy(self) -> Privacy:
        """What a message satisfies alone."""
        return weakest_local_privacy(self.batch, self.privacy)

    @cached_property
    def user_deviation(self) -> float:
        if self.setting.constants == "paper":
            epsilon, delta = self.privacy.epsilon, self.privacy.delta
            if epsilon > math.sqrt(math.log(2 / delta) / self.batch):
                limits = f"must be at most {math.sqrt(math.log(2 / delta) / self.batch):.3g} in [002] Theorem B.1"
                raise ParameterError("epsilon", epsilon, limits, "choose constants exact")
            logs = math.log(2.5 * self.batch / delta) * math.log(2 / delta)
            return 4 * math.sqrt(2 * logs) / (epsilon * math.sqrt(self.batch))
        return gaussian_standard_deviation(self.local_privacy, self.setting.joint.apart)

    def guarantee(self) -> LinearGuarantee:
        local, epsilon = self.local_privacy, self.privacy.epsilon
        # What the noise gives indeed, the paper's included.
        left = gaussian_delta(local.epsilon, self.user_deviation * (1 + 1e-12), self.setting.joint.apart)
        proved = super().guarantee()
        terms = proved.terms
        if local != self.privacy:
            distance = local_delta_distance(local.epsilon, left, self.batch)
            terms = (
                DeltaTerm("clones", stronger_clones(local.epsilon, self.batch).delta(epsilon), "hiding among clones"),
                DeltaTerm("local", delta_of_distance(math.exp(epsilon), distance), "messages' own delta"),
            )
        return replace(
            proved,
            model="shuffle",
            terms=terms,
            trusted="a shuffler permutes and does not collude with the analyzer; reference: noise in floating point",
            because=f"Each message is ({local.epsilon:.4g}, {local.delta:.2g})-private by itself, and one of a batch.",
            local=Privacy(local.epsilon, max(local.delta, left)),
        )
