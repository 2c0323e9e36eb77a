"""What a linear bandit is about: how many users, which features and rewards, how sure its bounds are."""

import math
from dataclasses import dataclass
from typing import Any, Literal

from shuffledp.continual.shape import check_confidence
from shuffledp.errors import ParameterError
from shuffledp.learn.bandits.linear.observations import JointVectors
from shuffledp.protocols.base import check_users

Constants = Literal["exact", "paper"]


@dataclass(frozen=True, slots=True, kw_only=True)
class LinearSetting:
    """Rewards are <features, theta> on average, theta no longer than `theta_length`.

    All confidence intervals of the horizon hold together with probability `confidence`.

    >>> LinearSetting(users=1000, dimension=5).joint.length
    20
    """

    users: int
    dimension: int
    nonnegative: bool = False
    lowest_reward: float = 0.0
    theta_length: float = 1.0
    confidence: float = 0.95
    constants: Constants = "exact"

    def __post_init__(self) -> None:
        check_users(self.users)
        check_confidence(self.confidence)
        _ = self.joint
        if not 0 < self.theta_length < math.inf:
            raise ParameterError("theta_length", self.theta_length, "must be > 0 and finite", "1 suits most")
        if self.constants not in ("exact", "paper"):
            raise ParameterError("constants", self.constants, "must be exact or paper", "exact is smaller")

    @property
    def joint(self) -> JointVectors:
        """How a user's features and reward become one vector."""
        return JointVectors(self.dimension, self.nonnegative, self.lowest_reward)

    @property
    def reward_deviation(self) -> float:
        """Rewards are sub-Gaussian with this deviation: half their range."""
        return (1 - self.lowest_reward) / 2

    @property
    def failure(self) -> float:
        """The probability with which some interval may fail."""
        return 1 - self.confidence

    def document(self) -> dict[str, Any]:
        """The setting as JSON."""
        return {
            "users": self.users,
            "dimension": self.dimension,
            "nonnegative": self.nonnegative,
            "lowest_reward": self.lowest_reward,
            "theta_length": self.theta_length,
            "confidence": self.confidence,
            "constants": self.constants,
        }


def check_batch(batch: int, users: int) -> int:
    """Refuse a batch that no horizon can fill."""
    if isinstance(batch, bool) or not isinstance(batch, int) or not 1 <= batch <= users:
        raise ParameterError("batch", batch, f"must be a whole number in 1..{users}", "20 are a common choice")
    return batch
