"""What a linear bandit is about: how many users, which features and rewards, how sure its bounds are."""

from dataclasses import asdict, dataclass
from typing import Any

from shuffledp.continual.request import check_confidence
from shuffledp.errors import ParameterError
from shuffledp.learn.bandits.linear.observations import JointVectors
from shuffledp.learn.spec import check_constants, check_declared, check_kind, check_whole, declared, number, whole
from shuffledp.protocols.fields import Constants
from shuffledp.protocols.request import LARGEST_USERS

LONGEST_THETA = 1e6
MOST_VISITS = 10_000


def _confidence(name: str, confidence: Any) -> float:
    check_confidence(confidence)
    return float(confidence)


@dataclass(frozen=True, slots=True, kw_only=True)
class LinearSetting:
    """Rewards are <features, theta> on average, theta no longer than `theta_length`.

    All confidence intervals of the horizon hold together with probability `confidence`.

    Attributes:
        users: how many come in all.
        dimension: how many features an arm has.
        nonnegative: promises that no two users' features have a negative inner product.
        lowest_reward: 0, or -1 where rewards may be negative.
        theta_length: how long the unknown vector can be.
        confidence: the probability with which all intervals hold.
        constants: exact noise and widths, or the paper's for comparison.

    >>> LinearSetting(users=1000, dimension=5).joint.length
    20
    """

    users: int = whole(1, LARGEST_USERS, "count the people")
    dimension: int
    nonnegative: bool = False
    lowest_reward: float = 0.0
    theta_length: float = number(0, LONGEST_THETA, "1 suits most", default=1.0)
    confidence: float = declared(_confidence, default=0.95)
    constants: Constants = declared(check_constants, default="exact")

    def __post_init__(self) -> None:
        # As plain numbers, so that equal settings have equal fingerprints.
        check_declared(self)
        if self.theta_length == 0:
            raise ParameterError("theta_length", self.theta_length, "must be > 0", "1 suits most")
        for name, value in asdict(JointVectors(self.dimension, self.nonnegative, self.lowest_reward)).items():
            object.__setattr__(self, name, value)

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
        return asdict(self)


def check_setting(name: str, setting: Any) -> Any:
    """A LinearSetting, and nothing else."""
    return check_kind(name, setting, LinearSetting, "make one")


def check_batch(batch: Any, users: int) -> int:
    """A batch that the horizon can fill."""
    return check_whole("batch", batch, 1, users, "20 are a common choice")


def check_visits(name: str, visits: Any) -> int:
    """How often a user may come."""
    return check_whole(name, visits, 1, MOST_VISITS, "1 if nobody returns")
