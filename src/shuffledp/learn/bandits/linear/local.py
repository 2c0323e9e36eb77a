"""LinUCB where every user adds Gaussian noise to its own vector: the local model, and its amplification by shuffling.

References for comparison. The noise is a deviation here; `shuffledp.references.bandits` draws it, in floating point.
"""

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from shuffledp.accounting.amplification import local_delta_distance, stronger_clones
from shuffledp.accounting.gaussian import gaussian_delta, gaussian_standard_deviation
from shuffledp.accounting.guarantee import DeltaTerm, delta_of_distance
from shuffledp.errors import ParameterError
from shuffledp.learn.bandits.linear.confidence import ReleaseNoise
from shuffledp.learn.bandits.linear.guarantee import BanditGuarantee
from shuffledp.learn.bandits.linear.policy import LinearPolicy
from shuffledp.learn.bandits.linear.setting import check_batch, check_setting, check_visits
from shuffledp.learn.bandits.spec import check_privacy
from shuffledp.privacy import Privacy
from shuffledp.references.amplified_gaussian import weakest_local_privacy


@dataclass(frozen=True, kw_only=True)
class LocalLinUCB(LinearPolicy):
    """Everybody adds the noise itself and trusts nobody; the noise of all adds up. M visits compose to sqrt(M).

    Reference: Zheng et al. 2020, with the analytic Gaussian mechanism and the joint vector's exact sensitivity.
    """

    privacy: Privacy
    batch: int = 1
    visits: int = 1

    def __post_init__(self) -> None:
        check_setting(self.setting)
        check_privacy(self.privacy)
        object.__setattr__(self, "batch", check_batch(self.batch, self.setting.users))
        object.__setattr__(self, "visits", check_visits(self.visits))

    @property
    def name(self) -> str:
        return "ldp"

    @property
    def slot_users(self) -> int:
        return self.batch

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

    def guarantee(self) -> BanditGuarantee:
        shift = self.setting.joint.apart * math.sqrt(self.visits)
        delta = gaussian_delta(self.privacy.epsilon, self.user_deviation * (1 + 1e-12), shift)
        return BanditGuarantee(
            model="local",
            privacy=self.privacy,
            visits=self.visits,
            terms=(DeltaTerm("noise", delta, f"the curve of Gaussian noise against a shift of {shift:.6g}"),),
            trusted="nobody; reference: noise in floating point",
            because="Each message is private by itself.",
            local=self.privacy,
        )

    def _decides(self) -> dict[str, Any]:
        return {
            "epsilon": self.privacy.epsilon,
            "delta": self.privacy.delta,
            "batch": self.batch,
            "visits": self.visits,
        }


@dataclass(frozen=True, kw_only=True)
class AmplifiedLinUCB(LocalLinUCB):
    """P_Amp: the local policy with less noise, whose messages hide among those of a batch.

    Reference: [002] section 3.2, with the noise that the accountant proves for this batch.
    """

    batch: int = 20

    def __post_init__(self) -> None:
        LocalLinUCB.__post_init__(self)
        if self.visits != 1:
            raise ParameterError("visits", self.visits, "must be 1 with shuffle-amp", "choose shuffle-vec or ldp")

    @property
    def name(self) -> str:
        return "shuffle-amp"

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

    def guarantee(self) -> BanditGuarantee:
        local, epsilon = self.local_privacy, self.privacy.epsilon
        # What the noise gives indeed, the paper's included.
        left = gaussian_delta(local.epsilon, self.user_deviation * (1 + 1e-12), self.setting.joint.apart)
        if local == self.privacy:
            terms = LocalLinUCB.guarantee(self).terms
        else:
            distance = local_delta_distance(local.epsilon, left, self.batch)
            terms = (
                DeltaTerm("clones", stronger_clones(local.epsilon, self.batch).delta(epsilon), "hiding among clones"),
                DeltaTerm("local", delta_of_distance(math.exp(epsilon), distance), "messages' own delta"),
            )
        return BanditGuarantee(
            model="shuffle",
            privacy=self.privacy,
            visits=1,
            terms=terms,
            trusted="a shuffler permutes and does not collude with the analyzer; reference: noise in floating point",
            because=f"Each message is ({local.epsilon:.4g}, {local.delta:.2g})-private by itself, and one of a batch.",
            local=Privacy(local.epsilon, max(local.delta, left)),
        )
