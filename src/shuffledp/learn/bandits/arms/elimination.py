"""Arm elimination: every arm is played equally often until it is too far behind the best.

A policy is a sequence of stages. In each, every arm that is left gets the same number of batches; then those whose mean
is further behind the largest than the stage's `width` are dropped. One arm left, or too few users for another stage:
the best arm is played to the end, and nobody reports any more.
"""

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass, replace
from itertools import accumulate
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from shuffledp.accounting.dropouts import check_honest_fraction
from shuffledp.errors import DataError, ParameterError
from shuffledp.estimates import Estimate
from shuffledp.learn.bandits.arms.batches import (
    METHODS,
    MOST_VISITS,
    BanditGuarantee,
    batch_plan,
    guarantee_of,
    privacy_of_one_visit,
    sample_sums,
)
from shuffledp.learn.bandits.spec import (
    SCHEMA,
    check_constants,
    check_number,
    check_privacy,
    check_whole,
    fingerprint_of,
    is_real,
    refuse_other_spec,
    state_fields,
)
from shuffledp.privacy import Privacy
from shuffledp.protocols.binary_sum.base import BinarySumPlan
from shuffledp.protocols.fields import Constants
from shuffledp.protocols.request import LARGEST_USERS
from shuffledp.randomness import RandomBits

MOST_ARMS = 100_000
LEAST_FAILURE = 1e-100


@dataclass(frozen=True, slots=True)
class Stage:
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

    `failure` is the probability with which the best arm may be dropped at some time, at most; 1 / horizon if left out.
    """

    policy: ClassVar[str]

    arms: int
    horizon: int
    failure: float | None = None

    def __post_init__(self) -> None:
        arms = check_whole("arms", self.arms, 2, MOST_ARMS, "one arm needs no bandit")
        horizon = check_whole("horizon", self.horizon, 2, LARGEST_USERS, "count the users who will come")
        object.__setattr__(self, "arms", arms)
        object.__setattr__(self, "horizon", horizon)
        if self.failure is not None:
            failure = check_number("failure", self.failure, LEAST_FAILURE, 1, "1 / horizon is usual")
            object.__setattr__(self, "failure", failure)
            if failure == 1:
                raise ParameterError("failure", 1, "must be below 1", "1 / horizon is usual")
        if self.arms > self.horizon:
            raise ParameterError("arms", self.arms, f"must be at most the {self.horizon} users", "drop some arms")

    @property
    def failure_probability(self) -> float:
        """The best arm is dropped with at most this probability."""
        return 1 / self.horizon if self.failure is None else self.failure

    @property
    @abstractmethod
    def stages(self) -> tuple[Stage, ...]:
        """As many as any run can come to."""

    @abstractmethod
    def sample_sums(self, stage: Stage, ones: NDArray[np.int64], *, bits: RandomBits) -> NDArray[np.float64]:
        """What a stage's estimates for an arm add up to, where so many of its rewards are 1: drawn by their law."""


@dataclass(frozen=True, slots=True)
class Cohort:
    """The next users: all play this arm, and report by the plan; without a plan nobody reports."""

    arm: int
    users: int
    plan: BinarySumPlan | None


@dataclass(frozen=True, slots=True, kw_only=True)
class ArmsState:
    """Where a policy stands: who came, which arms are left, and each arm's noisy sum and number of rewards."""

    fingerprint: str
    users: int
    stage: int
    told: int
    active: tuple[int, ...]
    sums: tuple[float, ...]
    counts: tuple[int, ...]

    @property
    def means(self) -> tuple[float | None, ...]:
        """Each arm's estimated reward; None before its first batch."""
        return tuple(total / count if count else None for total, count in zip(self.sums, self.counts, strict=True))

    def document(self) -> dict[str, Any]:
        """The state as JSON."""
        lists = {"active": list(self.active), "sums": list(self.sums), "counts": list(self.counts)}
        numbers = {"users": self.users, "stage": self.stage, "told": self.told}
        return {"schema": SCHEMA, "fingerprint": self.fingerprint, **numbers, **lists}

    @classmethod
    def from_document(cls, document: Any) -> Self:
        """The state that a JSON document describes."""
        names = ("fingerprint", "users", "stage", "told", "active", "sums", "counts")
        fingerprint, users, stage, told, active, sums, counts = state_fields(document, names)
        lists = (active, sums, counts)
        if not all(isinstance(each, list) and all(map(is_real, each)) for each in lists):
            raise DataError("state", "a list that is none", "must have lists of numbers", "restore it from a copy")
        whole = (users, stage, told, *active, *counts)
        if not all(isinstance(each, int) and is_real(each) for each in whole) or not isinstance(fingerprint, str):
            wrong = "a number or a fingerprint that is none"
            raise DataError("state", wrong, "must have whole numbers and a fingerprint", "restore it from a copy")
        if not all(abs(each) <= LARGEST_USERS * LARGEST_USERS for each in (*sums, *whole)):
            raise DataError("state", "a huge number", "must have numbers of users", "restore it from a copy")
        return cls(
            fingerprint=fingerprint,
            users=users,
            stage=stage,
            told=told,
            active=tuple(active),
            sums=tuple(map(float, sums)),
            counts=tuple(counts),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class PrivateElimination(Elimination):
    """Arm elimination in the shuffle model: ask which arm the next users play, tell what their batch showed.

    `visits` is how often one user may come, never twice in one batch; the privacy is that of all the user's batches
    together. Whoever lets people in answers for both: in one batch M rewards would count M times, not like M batches.
    """

    privacy: Privacy
    method: str = "shares"
    honest_fraction: float = 1.0
    visits: int = 1
    constants: Constants = "exact"

    def __post_init__(self) -> None:
        # Not super(): a class with slots is made a second time, and the first one is not its base.
        Elimination.__post_init__(self)
        check_privacy(self.privacy)
        visits = check_whole("visits", self.visits, 1, MOST_VISITS, "1 means that nobody comes twice")
        object.__setattr__(self, "visits", visits)
        object.__setattr__(self, "honest_fraction", check_honest_fraction(self.honest_fraction))
        check_constants(self.constants)
        if not isinstance(self.method, str) or self.method not in METHODS:
            raise ParameterError("method", self.method, f"must be {', '.join(METHODS)}", "shares has the least noise")
        if self.constants == "paper" and (self.method != "coins" or self.visits > 1):
            raise ParameterError("constants", "paper", "are for the method coins and one visit", "use exact constants")

    # --- what is promised --------------------------------------------------------------------

    def batch_plan(self, users: int) -> BinarySumPlan:
        """What a batch of this size runs."""
        claim = privacy_of_one_visit(self.privacy, self.method, self.visits)
        return batch_plan(users, claim, self.method, self.honest_fraction, self.constants)

    def guarantee(self) -> BanditGuarantee:
        """What users are promised, from the plans of all batches that there can be."""
        sizes = sorted({stage.batch_users for stage in self.stages})
        return guarantee_of([self.batch_plan(size) for size in sizes], self.privacy, self.visits)

    @property
    @abstractmethod
    def spec(self) -> dict[str, Any]:
        """What decides the policy."""

    def _common_spec(self) -> dict[str, Any]:
        return {
            "policy": self.policy,
            "arms": self.arms,
            "horizon": self.horizon,
            "failure": self.failure_probability,
            "epsilon": self.privacy.epsilon,
            "delta": self.privacy.delta,
            "method": self.method,
            "honest_fraction": self.honest_fraction,
            "visits": self.visits,
            "constants": self.constants,
        }

    @property
    def fingerprint(self) -> str:
        """Of what decides the policy: a state of another one is refused."""
        return fingerprint_of(self.spec)

    def sample_sums(self, stage: Stage, ones: NDArray[np.int64], *, bits: RandomBits) -> NDArray[np.float64]:
        return sample_sums(self.batch_plan(stage.batch_users), stage.batches, ones, bits=bits)

    # --- step by step ------------------------------------------------------------------------

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

    def ask(self, state: ArmsState) -> Cohort | None:
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
                return Cohort(arm, stage.batch_users, self.batch_plan(stage.batch_users))
        return Cohort(self.best(state), left, None)

    def tell(self, state: ArmsState, estimate: Estimate | None) -> ArmsState:
        """What the cohort's batch showed: its estimated sum, or None where nobody reported or the batch was void.

        A void batch is asked for again, of other users.
        """
        cohort = self.ask(state)
        if cohort is None:
            raise ParameterError("state", state.users, "must have users to come", "the horizon is over")
        users = state.users + cohort.users
        if estimate is None:
            return replace(state, users=users)
        if cohort.plan is None:
            raise ParameterError("estimate", estimate, "must be None where nobody reports", "ask again")
        if not isinstance(estimate, Estimate) or not math.isfinite(estimate.value):
            raise ParameterError("estimate", estimate, "must be a finite Estimate", "tell what the plan analyzed")
        sums, counts = list(state.sums), list(state.counts)
        sums[cohort.arm] += estimate.value
        counts[cohort.arm] += cohort.users
        new = replace(state, users=users, told=state.told + 1, sums=tuple(sums), counts=tuple(counts))
        stage = self.stages[state.stage]
        if new.told < len(new.active) * stage.batches:
            return new
        most = max(_mean(new, arm) for arm in new.active)
        kept = tuple(arm for arm in new.active if _mean(new, arm) >= most - stage.width)
        return replace(new, stage=new.stage + 1, told=0, active=kept)

    def best(self, state: ArmsState) -> int:
        """The arm with the largest mean among those that are left."""
        return max(state.active, key=lambda arm: (_mean(state, arm), -arm))

    def _check_state(self, state: ArmsState) -> None:
        refuse_other_spec(state.fingerprint, self.fingerprint)
        stages = self.stages
        in_range = (
            0 <= state.users <= self.horizon
            and 0 <= state.stage <= len(stages)
            and len(state.sums) == len(state.counts) == self.arms
            and len(state.active) >= 1
            and list(state.active) == sorted(set(state.active))
            and all(0 <= arm < self.arms for arm in state.active)
            and all(count >= 0 for count in state.counts)
            and sum(state.counts) <= state.users
        )
        batches = stages[state.stage].batches if in_range and state.stage < len(stages) else 1
        if not in_range or not 0 <= state.told < len(state.active) * batches or not self._counts_fit(state):
            raise DataError("state", state.users, "must be one that this policy can come to", "restore it from a copy")

    def _counts_fit(self, state: ArmsState) -> bool:
        """Arms that are left have every stage's rewards so far, dropped ones those up to some stage's end."""
        ends = list(accumulate(stage.users for stage in self.stages[: state.stage]))
        rounds, turn = divmod(state.told, len(state.active))
        if state.told and state.stage == len(self.stages):
            return False
        each = self.stages[state.stage].batch_users if state.told else 0
        before = ends[-1] if ends else 0
        expected = {arm: before + each * (rounds + (place < turn)) for place, arm in enumerate(state.active)}
        dropped = [count for arm, count in enumerate(state.counts) if arm not in expected]
        return (
            all(state.counts[arm] == count for arm, count in expected.items())
            and set(dropped) <= set(ends)
            and not any(total for total, count in zip(state.sums, state.counts, strict=True) if count == 0)
        )


def _mean(state: ArmsState, arm: int) -> float:
    count = state.counts[arm]
    return state.sums[arm] / count if count else 0.5
