"""What private arm elimination is compared with: nobody private, the local model, a trusted curator.

Their noise, and the rewards of policies that choose every round, come from numpy's generators, seeded by the bits that
are passed: they are for simulations and protect nobody.
"""

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from shuffledp.accounting.laws import DiscreteLaplace, IntegerLaw
from shuffledp.learn.bandits.arms.doubling_batches import growing, grown_stages
from shuffledp.learn.bandits.arms.elimination import MOST_ARMS, Elimination, EliminationStage
from shuffledp.learn.bandits.arms.widths import ArmError
from shuffledp.learn.spec import check_declared, check_privacy, check_whole, declared, number, whole
from shuffledp.privacy import Privacy
from shuffledp.protocols.request import LARGEST_USERS
from shuffledp.randomness import RandomBits
from shuffledp.references.bandits.generators import generator_from
from shuffledp.references.local import LocalRandomizedResponse

Floats = NDArray[np.float64]

# Where nothing asks for large batches, each is so much larger than the last.
GROWTH = 1.125
# Draws from posteriors at a time.
_DRAWN_TOGETHER = 1 << 20


@dataclass(frozen=True, slots=True, kw_only=True)
class ReferenceElimination(Elimination):
    """Arms are compared after batches that grow by the factor `growth`: 2 makes the twin of doubling batches."""

    growth: float = growing(GROWTH)

    @property
    def spread(self) -> float:
        """The squared range of one user's report."""
        return 1.0

    @property
    def stage_noise(self) -> IntegerLaw | None:
        """What is added to each arm's sum in each stage."""
        return None

    def plan_stages(self) -> tuple[EliminationStage, ...]:
        def with_batch(error: ArmError, users: int) -> ArmError:
            return error.plus(users * self.spread, self.stage_noise, 1)

        return grown_stages(self, self.growth, None, with_batch)


@dataclass(frozen=True, slots=True, kw_only=True)
class NonPrivateElimination(ReferenceElimination):
    """Arm elimination on the rewards themselves.

    >>> len(NonPrivateElimination(arms=2, horizon=10_000, growth=2).stages)
    8
    """

    policy: ClassVar[str] = "non-private"

    def sample_sums(self, stage: EliminationStage, ones: NDArray[np.int64], *, bits: RandomBits) -> Floats:
        return ones.astype(np.float64)


@dataclass(frozen=True, slots=True, kw_only=True)
class LocalElimination(ReferenceElimination):
    """Arm elimination on randomized responses: each user is private alone, with nobody to shuffle."""

    policy: ClassVar[str] = "local"

    privacy: Privacy = declared(check_privacy)

    @property
    def _lie(self) -> float:
        return LocalRandomizedResponse(users=1, privacy=self.privacy).lie_probability

    @property
    def spread(self) -> float:
        return 1 / (1 - 2 * self._lie) ** 2

    def sample_sums(self, stage: EliminationStage, ones: NDArray[np.int64], *, bits: RandomBits) -> Floats:
        generator = generator_from(bits)
        answers = generator.binomial(ones, 1 - self._lie) + generator.binomial(stage.users - ones, self._lie)
        return np.asarray((answers - stage.users * self._lie) / (1 - 2 * self._lie))


@dataclass(frozen=True, slots=True, kw_only=True)
class CuratorElimination(ReferenceElimination):
    """Arm elimination by a trusted curator, who sees all rewards and adds discrete Laplace noise once a stage.

    With growth 2 it has the law of doubling batches by shares: there the shuffle model costs messages, no regret.
    """

    policy: ClassVar[str] = "curator"

    privacy: Privacy = declared(check_privacy)
    growth: float = growing(2.0)

    @property
    def stage_noise(self) -> IntegerLaw:
        return DiscreteLaplace(math.exp(-self.privacy.epsilon))

    def sample_sums(self, stage: EliminationStage, ones: NDArray[np.int64], *, bits: RandomBits) -> Floats:
        generator, stop = generator_from(bits), -math.expm1(-self.privacy.epsilon)
        return np.asarray(ones + generator.geometric(stop, ones.shape) - generator.geometric(stop, ones.shape), float)


@dataclass(frozen=True, slots=True, kw_only=True)
class EveryRound(ABC):
    """Not private: a policy that may choose anew for every user; `refresh` saves steps, and 0 saves none."""

    policy: ClassVar[str]
    every_round: ClassVar[bool] = True

    arms: int = whole(2, MOST_ARMS, "one arm needs no bandit")
    horizon: int = whole(2, LARGEST_USERS, "count the users, at least one an arm")
    refresh: float = number(0, 1, "0.01 costs little", default=0.01)

    def __post_init__(self) -> None:
        check_declared(self)
        check_whole("horizon", self.horizon, self.arms, LARGEST_USERS, "count the users, at least one an arm")

    @abstractmethod
    def play(self, means: Floats, *, bits: RandomBits) -> NDArray[np.int64]:
        """How often each arm is played, in each row of means."""


@dataclass(frozen=True, slots=True, kw_only=True)
class UCB1(EveryRound):
    """Play the arm with the largest mean + sqrt(2 log t / n), not private (Auer, Cesa-Bianchi, Fischer 2002).

    An arm that is chosen is played until its users grew by the part `refresh`, so that a run takes thousands of steps
    and not one a user.
    """

    policy: ClassVar[str] = "ucb1"

    def play(self, means: Floats, *, bits: RandomBits) -> NDArray[np.int64]:
        generator = generator_from(bits)
        rows = np.arange(len(means))
        counts = np.ones(means.shape, dtype=np.int64)
        sums = generator.binomial(1, means).astype(np.float64)
        played = np.full(len(means), self.arms, dtype=np.int64)
        while (left := self.horizon - played).any():
            chosen = (sums / counts + np.sqrt(2 * np.log(played)[:, np.newaxis] / counts)).argmax(axis=1)
            times = np.minimum(np.maximum(1, (self.refresh * counts[rows, chosen]).astype(np.int64)), left)
            sums[rows, chosen] += generator.binomial(times, means[rows, chosen])
            counts[rows, chosen] += times
            played += times
        return counts


@dataclass(frozen=True, slots=True, kw_only=True)
class ThompsonSampling(EveryRound):
    """Every user plays the arm whose draw from its posterior is the largest, priors uniform: the strongest of these.

    Posteriors learn when the users grew by the part `refresh`. Every user has draws of its own even so: a policy that
    draws less often would stay with a wrong arm for far too long.

    Reference: Thompson 1933; Agrawal, Goyal 2012.
    """

    policy: ClassVar[str] = "thompson"

    def play(self, means: Floats, *, bits: RandomBits) -> NDArray[np.int64]:
        generator = generator_from(bits)
        counts, sums, played = np.zeros(means.shape, dtype=np.int64), np.zeros(means.shape), 0
        together = max(1, _DRAWN_TOGETHER // means.size)
        while played < self.horizon:
            users = min(1 + int(self.refresh * played), together, self.horizon - played)
            chosen = generator.beta(1 + sums, 1 + counts - sums, size=(users, *means.shape)).argmax(axis=2)
            times = np.stack([(chosen == arm).sum(axis=0) for arm in range(self.arms)], axis=1)
            sums += generator.binomial(times, means)
            counts += times
            played += users
        return counts
