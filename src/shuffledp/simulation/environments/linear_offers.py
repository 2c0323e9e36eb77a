"""Any world with two methods as one for linear bandits: what users are offered, and what arms pay on average."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, ClassVar, Protocol

import numpy as np

from shuffledp.errors import DataError, ParameterError
from shuffledp.learn.bandits.linear.models import LinearModel
from shuffledp.learn.bandits.linear.observations import Floats, JointVectors
from shuffledp.learn.spec import as_floats, check_whole

# Features at a time.
_AT_A_TIME = 1 << 20
MOST_INSTANCES = 10_000


class OfferedWorld(Protocol):
    """A world of one's own: two methods, and `run_linear_bandit` takes it. Rewards are 0 or 1 (or -1 and 1).

    >>> from shuffledp.learn.bandits.linear.setting import LinearSetting
    >>> from shuffledp.references.bandits.linucb import LinUCB
    >>> from shuffledp.simulation.environments.linear_runs import run_linear_bandit
    >>> class Clicks:
    ...     def offer(self, users, generator):
    ...         return generator.uniform(0, 0.7, (users, 4, 2))
    ...     def means(self, features):
    ...         return 1 / (1 + np.exp(2 - 3 * features @ [1.0, 0.5]))
    >>> policy = LinUCB(setting=LinearSetting(users=300, dimension=2, nonnegative=True))
    >>> run_linear_bandit(policy, Clicks(), seed=1, instances=5).final.shape
    (5,)
    """

    def offer(self, users: int, generator: np.random.Generator) -> Any:
        """Features of the arms that so many users are offered, (users, arms, dimension), none longer than 1."""

    def means(self, features: Floats) -> Any:
        """The mean reward of every arm that was offered, (users, arms), in the setting's range of rewards."""


@dataclass(frozen=True, eq=False)
class OfferedInstances:
    """Some instances of a world, which differ in what their users are offered and in their rewards."""

    is_fixed: ClassVar[bool] = False

    world: OfferedWorld
    instances: int
    dimension: int

    @classmethod
    def of(cls, world: Any, instances: int, dimension: int) -> "OfferedInstances":
        """The world so many times side by side.

        Raises:
            ParameterError: it lacks one of the two methods.
        """
        lacks = [name for name in ("offer", "means") if not callable(getattr(world, name, None))]
        if lacks:
            wanted = "must have the methods offer(users, generator) and means(features)"
            raise ParameterError("world", type(world).__name__, wanted, f"add {' and '.join(lacks)}")
        return cls(world, check_whole("instances", instances, 1, MOST_INSTANCES, "1 is one run"), dimension)

    def slot(
        self, model: LinearModel, count: int, joint: JointVectors, generator: np.random.Generator, *, singly: bool
    ) -> Iterator[tuple[Floats, Floats]]:
        """Let so many users of every instance choose by its model, as `LinearWorld.slot` does."""
        together, begin = 1, 0
        while begin < count:
            users = min(together, count - begin)
            features, means = self._offered(users, joint, generator)
            # The first user showed how many arms there are.
            together = max(1, _AT_A_TIME // max(1, features.size // users))
            normals = generator.standard_normal((self.instances, users, model.draws))
            chosen = model.choose_each(features, normals)[..., np.newaxis]
            taken = np.take_along_axis(means, chosen, axis=-1)[..., 0]
            phi = np.take_along_axis(features, chosen[..., np.newaxis], axis=-2)[..., 0, :]
            low = joint.lowest_reward
            rewards = np.where(generator.random(taken.shape) * (1 - low) < taken - low, 1.0, low)
            checked, _ = joint.check(phi.reshape(-1, self.dimension), rewards.reshape(-1))
            yield joint.pack(checked.reshape(phi.shape), rewards), (means.max(axis=-1) - taken).sum(axis=1)
            begin += users

    def _offered(self, users: int, joint: JointVectors, generator: np.random.Generator) -> tuple[Floats, Floats]:
        """Features and means of the next users of all instances, checked."""
        everybody = self.instances * users
        features = as_floats("offer", self.world.offer(everybody, generator))
        shape = features.shape
        if len(shape) != 3 or shape[0] != everybody or shape[1] < 1 or shape[2] != self.dimension:
            wanted = f"must be of shape ({everybody}, arms, {self.dimension})"
            raise DataError("offer", f"shape {shape}", wanted, "offer features of every arm to every user")
        means = as_floats("means", self.world.means(features))
        if means.shape != shape[:2]:
            raise DataError("means", f"shape {means.shape}", f"must be of shape {shape[:2]}", "give one an arm")
        outside = ~((means >= joint.lowest_reward) & (means <= 1))
        if outside.any():
            limits = f"must lie in [{joint.lowest_reward:g}, 1]"
            raise DataError("means", f"{means[outside][0]:g}", limits, "scale rewards into it")
        arms = shape[1]
        return features.reshape(self.instances, users, arms, -1), means.reshape(self.instances, users, arms)
