"""Arm elimination: every arm is played equally often until it is too far behind the best.

A policy is a sequence of stages. In each, every arm that is left gets the same number of batches; then those whose mean
is further behind the largest than the stage's `width` are dropped. One arm left, or too few users for another stage:
the best arm is played to the end, and nobody reports any more.
"""

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from functools import lru_cache
from itertools import accumulate
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from shuffledp.accounting.dropouts import check_honest_fraction
from shuffledp.errors import DataError, ParameterError
from shuffledp.estimates import Estimate
from shuffledp.learn.bandits.arms.batches import (
    MOST_VISITS,
    PAPER_METHODS,
    ArmsGuarantee,
    batch_plan,
    check_method,
    guarantee_of,
    privacy_of_one_visit,
)
from shuffledp.learn.spec import (
    check_constants,
    check_declared,
    check_privacy,
    declared,
    number,
    whole,
)
from shuffledp.privacy import Privacy
from shuffledp.protocols.binary_sum.base import BinarySumPlan
from shuffledp.protocols.fields import Constants
from shuffledp.protocols.learner import Cohort, DeviceStep, Round, Seating
from shuffledp.protocols.request import LARGEST_USERS
from shuffledp.protocols.rounds import RoundsLearner
from shuffledp.protocols.states import RESTORE, State, fingerprint_of, is_whole, numbers, whole_numbers
from shuffledp.protocols.states import whole as whole_kept
from shuffledp.randomness import RandomBits

MOST_ARMS = 100_000
LEAST_FAILURE = 1e-100
_LARGEST_SUM = LARGEST_USERS * LARGEST_USERS


@dataclass(frozen=True, slots=True)
class EliminationStage:
    """So many batches of so many users for each arm; then arms further behind than `width` are dropped."""

    batch_users: int
    batches: int
    width: float

    @property
    def users(self) -> int:
        """Users of each arm."""
        return self.batch_users * self.batches


@dataclass(frozen=True, slots=True, kw_only=True)
class Elimination(ABC):
    """What private and other eliminations have in common: stages, and noisy sums of rewards.

    Attributes:
        arms: how many arms there are.
        horizon: how many users come in all.
        failure: the probability with which the best arm may be dropped at some time, at most; 1 / horizon if left out.
    """

    policy: ClassVar[str]
    every_round: ClassVar[bool] = False
    """Whether the policy may choose anew for every user, and has no stages."""

    arms: int = whole(2, MOST_ARMS, "one arm needs no bandit")
    horizon: int = whole(2, LARGEST_USERS, "count the users who will come")
    failure: float | None = number(LEAST_FAILURE, 1, "1 / horizon is usual", default=None)

    def __post_init__(self) -> None:
        check_declared(self)
        if self.failure == 1:
            raise ParameterError("failure", 1, "must be below 1", "1 / horizon is usual")
        if self.arms > self.horizon:
            raise ParameterError("arms", self.arms, f"must be at most the {self.horizon} users", "drop some arms")

    @property
    def failure_probability(self) -> float:
        """The best arm is dropped with at most this probability."""
        return 1 / self.horizon if self.failure is None else self.failure

    @property
    def stages(self) -> tuple[EliminationStage, ...]:
        """As many as any run can come to."""
        return _stages(self)

    @abstractmethod
    def plan_stages(self) -> tuple[EliminationStage, ...]:
        """The stages, worked out."""

    @abstractmethod
    def sample_sums(self, stage: EliminationStage, ones: NDArray[np.int64], *, bits: RandomBits) -> NDArray[np.float64]:
        """What a stage's estimates for an arm add up to, where so many of its rewards are 1: drawn by their law."""


@dataclass(frozen=True, slots=True)
class ArmsCohort(Cohort):
    """The next users: all pull one arm, and report its reward as a bit; without a batch nobody reports."""

    @classmethod
    def pulling(cls, arm: int, users: int, plan: BinarySumPlan | None) -> Self:
        """So many users who pull this arm and report by this plan."""
        return cls(users, () if plan is None else plan.batches, DeviceStep("pull", {"arm": arm}))

    @property
    def arm(self) -> int:
        """The arm that all of them pull."""
        return int(self.step.parameters["arm"])

    @property
    def plan(self) -> BinarySumPlan | None:
        """What they report by; None where nobody reports."""
        return self.batches[0].mechanism.plan if self.batches else None  # type: ignore[attr-defined]


@dataclass(frozen=True, slots=True)
class ArmMeans:
    """What is known of the arms: estimated rewards, those that are left, and how far apart two means are by chance."""

    means: tuple[float | None, ...]
    """Each arm's estimated reward; None before its first batch."""
    active: tuple[int, ...]
    width: float | None
    """No two means' difference is further off, but for the policy's failure; None before the first stage."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ArmsState(State):
    """Where a policy stands: who came, which arms are left, and each arm's noisy sum and number of rewards.

    Attributes:
        users: how many have come.
        stage: which batch of every arm is being filled.
        told: how many batches of the stage were told.
        active: the arms that are left.
        sums: each arm's noisy sum of rewards.
        counts: how many rewards each arm's sum has.
    """

    users: int = whole_kept("whole users", most=_LARGEST_SUM)
    stage: int = whole_kept("a whole stage", most=_LARGEST_SUM)
    told: int = whole_kept("whole batches told", most=_LARGEST_SUM)
    active: tuple[int, ...] = whole_numbers("a list of arms", most=_LARGEST_SUM)
    sums: tuple[float, ...] = numbers("a list of sums of rewards", most=_LARGEST_SUM)
    counts: tuple[int, ...] = whole_numbers("a list of users of each arm", most=_LARGEST_SUM)

    @property
    def means(self) -> tuple[float | None, ...]:
        """Each arm's estimated reward; None before its first batch."""
        return tuple(total / count if count else None for total, count in zip(self.sums, self.counts, strict=True))


@dataclass(frozen=True, slots=True, kw_only=True)
class PrivateElimination(Elimination, RoundsLearner[ArmsState]):
    """Arm elimination in the shuffle model: ask which arm the next users play, tell what their batch showed.

    Attributes:
        privacy: of all of a user's batches together.
        method: the binary sum of a batch's rewards.
        honest_fraction: the users of every batch who follow the protocol.
        visits: how often one user may come, never twice in one batch. Whoever lets people in answers for that: in one
            batch M rewards would count M times, not like M batches.
        constants: exact noise and widths, or the paper's for comparison.
    """

    states: ClassVar[type[State] | None] = ArmsState

    privacy: Privacy = declared(check_privacy)
    method: str = declared(check_method, default="shares")
    honest_fraction: float = declared(lambda name, value: check_honest_fraction(value), default=1.0)
    visits: int = whole(1, MOST_VISITS, "1 means that nobody comes twice", default=1)
    constants: Constants = declared(check_constants, default="exact")

    def __post_init__(self) -> None:
        # Not super(): a class with slots is made a second time, and the first one is not its base.
        Elimination.__post_init__(self)
        if self.constants == "paper" and (self.method not in PAPER_METHODS or self.visits > 1):
            raise ParameterError("constants", "paper", "are for the method coins and one visit", "use exact constants")

    def batch_plan(self, users: int) -> BinarySumPlan:
        """What a batch of this size runs."""
        claim = privacy_of_one_visit(self.privacy, self.method, self.visits)
        return batch_plan(users, claim, self.method, self.honest_fraction, self.constants)

    def guarantee(self) -> ArmsGuarantee:
        """What users are promised, from the plans of all batches that there can be."""
        return guarantee_of([self.batch_plan(size) for size in self.batch_sizes], self.privacy, self.visits)

    @property
    def batch_sizes(self) -> tuple[int, ...]:
        """The different sizes of batches that there can be."""
        return tuple(sorted({stage.batch_users for stage in self.stages}))

    @property
    def seatings(self) -> tuple[Seating, ...]:
        return tuple(Seating(self.batch_plan(size), self.visits, in_all=self.visits) for size in self.batch_sizes)

    @property
    def most_rounds(self) -> int:
        return self.horizon

    def last_step(self, state: ArmsState) -> DeviceStep:
        return DeviceStep("pull", {"arm": self.best(state)})

    def round_of(self, state: ArmsState, cohort: Cohort) -> Round | None:
        # By the users who came before: a void batch is asked for again, as a round of its own.
        return Round(state.users, self.batch_sizes.index(cohort.users), 0) if cohort.batches else None

    def may_ask(self, step: DeviceStep, seating: int) -> bool:
        arm: Any = step.parameters.get("arm")
        return is_whole(arm) and 0 <= arm < self.arms and step == DeviceStep("pull", {"arm": arm})

    @abstractmethod
    def _sizes(self) -> dict[str, int]:
        """The sizes of batches that may be left out, as they were chosen."""

    @property
    def spec(self) -> dict[str, Any]:
        """What decides the policy."""
        given = {field.name: getattr(self, field.name) for field in fields(self) if field.name != "privacy"}
        privacy = {"epsilon": self.privacy.epsilon, "delta": self.privacy.delta}
        chosen = {"policy": self.policy, "failure": self.failure_probability, **self._sizes()}
        return {**given, **privacy, **chosen}

    @property
    def fingerprint(self) -> str:
        """SHA-256 of what decides the policy: a state of another one is refused."""
        return fingerprint_of([1, self.spec])

    def sample_sums(self, stage: EliminationStage, ones: NDArray[np.int64], *, bits: RandomBits) -> NDArray[np.float64]:
        return self.batch_plan(stage.batch_users).sample_sums(ones, stage.batches, bits=bits)

    def start(self) -> ArmsState:
        """Nobody has come yet."""
        return ArmsState(
            fingerprint=self.fingerprint,
            users=0,
            stage=0,
            told=0,
            active=tuple(range(self.arms)),
            sums=(0.0,) * self.arms,
            counts=(0,) * self.arms,
        )

    def ask(self, state: ArmsState) -> ArmsCohort | None:
        """The next users' arm and plan; None when all users have come."""
        self._check_state(state)
        left = self.horizon - state.users
        if left == 0:
            return None
        if len(state.active) > 1 and state.stage < len(self.stages):
            stage = self.stages[state.stage]
            missing = len(state.active) * stage.batches - state.told
            if missing * stage.batch_users <= left:
                arm = state.active[state.told % len(state.active)]
                return ArmsCohort.pulling(arm, stage.batch_users, self.batch_plan(stage.batch_users))
        return ArmsCohort.pulling(self.best(state), left, None)

    def tell(self, state: ArmsState, users: int, closed: Mapping[int, Estimate | None]) -> ArmsState:
        """The state after the cohort, whose batch closed with this estimated sum of rewards.

        Args:
            state: where the policy stood when it asked.
            users: how many users came: the whole cohort where it reports.
            closed: the estimate of batch 1, None where it was void; empty where nobody reports. A void batch is asked
                for again, of other users.

        Raises:
            ParameterError: what was told does not fit what was asked.
        """
        cohort = self.ask(state)
        if cohort is None:
            raise ParameterError("state", state.users, "must have users to come", "the horizon is over")
        if cohort.plan is None and closed:
            raise ParameterError("closed", dict(closed), "must be empty where nobody reports", "ask again")
        if not is_whole(users) or not (1 if cohort.plan is None else cohort.users) <= users <= cohort.users:
            raise ParameterError("users", users, f"must be the {cohort.users} of the cohort", "tell it once, full")
        came = replace(state, users=state.users + int(users))
        if cohort.plan is None:
            return came
        if set(closed) != {1}:
            raise ParameterError("closed", sorted(closed), "must be the level 1", "tell the batch that closed")
        estimate = closed[1]
        if estimate is None:
            return came
        if not isinstance(estimate, Estimate) or not math.isfinite(estimate.value):
            raise ParameterError("estimate", estimate, "must be a finite Estimate", "tell what the plan analyzed")
        sums, counts = list(state.sums), list(state.counts)
        sums[cohort.arm] += estimate.value
        counts[cohort.arm] += cohort.users
        new = replace(came, told=state.told + 1, sums=tuple(sums), counts=tuple(counts))
        stage = self.stages[state.stage]
        if new.told < len(new.active) * stage.batches:
            return new
        most = max(_mean(new, arm) for arm in new.active)
        kept = tuple(arm for arm in new.active if _mean(new, arm) >= most - stage.width)
        return replace(new, stage=new.stage + 1, told=0, active=kept)

    def estimate(self, state: ArmsState, *, simulated: bool = False) -> ArmMeans:
        """What is known of the arms by now."""
        self._check_state(state)
        return ArmMeans(state.means, state.active, self.stages[state.stage - 1].width if state.stage else None)

    def best(self, state: ArmsState) -> int:
        """The arm with the largest mean among those that are left."""
        return max(state.active, key=lambda arm: (_mean(state, arm), -arm))

    def _check_state(self, state: ArmsState) -> None:
        state.belongs_to(self.fingerprint, "policy")
        if not self._can_come_to(state):
            raise DataError("state", state.users, "must be one that this policy can come to", RESTORE)

    def _can_come_to(self, state: ArmsState) -> bool:
        """Arms that are left have every stage's rewards so far, dropped ones those up to some stage's end."""
        active, counts = state.active, state.counts
        in_range = (
            0 <= state.users <= self.horizon
            and 0 <= state.stage <= len(self.stages)
            and len(state.sums) == len(counts) == self.arms
            and len(active) >= 1
            and list(active) == sorted(set(active))
            and 0 <= active[0] <= active[-1] < self.arms
            and sum(counts) <= state.users
        )
        if not in_range:
            return False
        over = state.stage == len(self.stages)
        now = EliminationStage(0, 0, 0.0) if over else self.stages[state.stage]
        if not 0 <= state.told < max(1, len(active) * now.batches):
            return False
        ends = list(accumulate(stage.users for stage in self.stages[: state.stage]))
        rounds, turn = divmod(state.told, len(active))
        before = ends[-1] if ends else 0
        expected = {arm: before + now.batch_users * (rounds + (at < turn)) for at, arm in enumerate(active)}
        dropped = {count for arm, count in enumerate(counts) if arm not in expected}
        return (
            all(counts[arm] == count for arm, count in expected.items())
            and dropped <= set(ends)
            and not any(total for total, count in zip(state.sums, counts, strict=True) if count == 0)
        )


@lru_cache(maxsize=256)
def _stages(policy: Elimination) -> tuple[EliminationStage, ...]:
    return policy.plan_stages()


def _mean(state: ArmsState, arm: int) -> float:
    count = state.counts[arm]
    return state.sums[arm] / count if count else 0.5
