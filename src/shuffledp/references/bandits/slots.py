"""What reference policies of linear bandits share: slots of some users, and Gaussian noise in floating point."""

from dataclasses import dataclass
from typing import Any

from shuffledp.accounting.gaussian import gaussian_delta
from shuffledp.accounting.guarantee import DeltaTerm
from shuffledp.learn.bandits.linear.guarantee import LinearGuarantee, Model
from shuffledp.learn.bandits.linear.policy import LinearPolicy
from shuffledp.learn.bandits.linear.setting import check_batch, check_visits
from shuffledp.learn.spec import check_declared, check_privacy, declared
from shuffledp.privacy import Privacy


@dataclass(frozen=True, kw_only=True)
class SlotPolicy(LinearPolicy):
    """A policy whose sums are released after every `batch` users."""

    batch: int = 1

    def __post_init__(self) -> None:
        check_declared(self)
        object.__setattr__(self, "batch", check_batch(self.batch, self.setting.users))

    @property
    def slot_users(self) -> int:
        return self.batch

    def _decides(self) -> dict[str, Any]:
        return {"batch": self.batch}


@dataclass(frozen=True, kw_only=True)
class GaussianPolicy(SlotPolicy):
    """A policy whose releases have Gaussian noise, for users who visit up to `visits` times."""

    privacy: Privacy = declared(check_privacy)
    visits: int = declared(check_visits, default=1)

    def _gaussian(
        self, model: Model, deviation: float, shift: float, why: str, trusted: str, because: str
    ) -> LinearGuarantee:
        """The guarantee of Gaussian noise of this deviation against a shift."""
        # The deviation was found by bisection: the last digit is left for rounding.
        delta = gaussian_delta(self.privacy.epsilon, deviation * (1 + 1e-12), shift)
        return LinearGuarantee(
            model=model,
            privacy=self.privacy,
            visits=self.visits,
            terms=(DeltaTerm("noise", delta, why),),
            trusted=f"{trusted}; reference: noise in floating point",
            because=because,
            local=self.privacy if model == "local" else None,
        )

    def _decides(self) -> dict[str, Any]:
        numbers = {"epsilon": self.privacy.epsilon, "delta": self.privacy.delta}
        return {**numbers, "batch": self.batch, "visits": self.visits}
