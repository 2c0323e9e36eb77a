"""What a linear bandit is about: how many users, which features and rewards, how sure its bounds are."""

from dataclasses import dataclass
from typing import Any, Literal

from shuffledp.continual.shape import check_confidence
from shuffledp.errors import ParameterError
from shuffledp.learn.bandits.linear.observations import JointVectors
from shuffledp.learn.bandits.spec import check_constants, check_number, check_whole
from shuffledp.protocols.request import LARGEST_USERS

Constants = Literal["exact", "paper"]
LONGEST_THETA = 1e6
MOST_VISITS = 10_000


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
        # As plain numbers, so that equal settings have equal fingerprints.
        object.__setattr__(self, "users", check_whole("users", self.users, 1, LARGEST_USERS, "count the people"))
        check_confidence(self.confidence)
        object.__setattr__(self, "confidence", float(self.confidence))
        length = check_number("theta_length", self.theta_length, 0, LONGEST_THETA, "1 suits most")
        if length == 0:
            raise ParameterError("theta_length", length, "must be > 0", "1 suits most")
        object.__setattr__(self, "theta_length", length)
        joint = JointVectors(self.dimension, self.nonnegative, self.lowest_reward)
        for name in ("dimension", "nonnegative", "lowest_reward"):
            object.__setattr__(self, name, getattr(joint, name))
        check_constants(self.constants)

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


def check_setting(setting: Any) -> None:
    """Refuse what is no setting."""
    if not isinstance(setting, LinearSetting):
        raise ParameterError("setting", repr(setting), "must be a LinearSetting", "make one")


def check_batch(batch: int, users: int) -> int:
    """A batch that the horizon can fill."""
    return check_whole("batch", batch, 1, users, "20 are a common choice")


def check_visits(visits: int) -> int:
    """How often a user may come."""
    return check_whole("visits", visits, 1, MOST_VISITS, "1 if nobody returns")
