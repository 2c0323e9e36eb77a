"""LinUCB over released prefix sums: ask for the model and the next cohort, tell what was released.

A policy does no input or output and draws no noise: its state is a time, the last released sum, and, where batches
are shuffled, where their counter stands.
"""

from abc import abstractmethod
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from functools import cached_property
from typing import Any, ClassVar, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from shuffledp.continual.carried.counter import CarriedState
from shuffledp.continual.counter import CounterState
from shuffledp.errors import ParameterError
from shuffledp.learn.bandits.linear.confidence import ConfidenceRule, ReleaseNoise
from shuffledp.learn.bandits.linear.guarantee import LinearGuarantee
from shuffledp.learn.bandits.linear.models import LinearModel, is_linear_model, linear_model_from
from shuffledp.learn.bandits.linear.posterior import PosteriorRule
from shuffledp.learn.bandits.linear.setting import LinearSetting, check_setting
from shuffledp.learn.spec import as_floats, check_declared, declared
from shuffledp.learn.spec import whole as whole_number
from shuffledp.protocols.learner import Cohort, DeviceStep, Learner, OpenBatch
from shuffledp.protocols.states import State, fingerprint_of, inner, is_whole, numbers, whole
from shuffledp.randomness import RandomBits

LARGEST_SUM = 1e100
MOST_AGE = 1000

Floats = NDArray[np.float64]
Numbers = NDArray[Any]

Choice = Literal["confidence", "posterior"]
"""How an arm is chosen: by the largest upper confidence bound, or as best for a theta that each user draws."""


def _check_choice(name: str, choice: Any) -> Any:
    if choice not in get_args(Choice):
        raise ParameterError(name, choice, f"must be one of {', '.join(get_args(Choice))}", "only the first is proved")
    return choice


def _counter_from(document: Any) -> CounterState | CarriedState:
    """Where a counter stands: one whose noise is carried on has a memory."""
    is_carried = isinstance(document, Mapping) and "memory" in document
    return CarriedState.from_document(document) if is_carried else CounterState.from_document(document)


@dataclass(frozen=True, slots=True, eq=False)
class LinearState(State):
    """Users so far, the last released sum of joint vectors, and the counter of batches if there is one."""

    users: int = whole("whole users")
    released: tuple[float, ...] = numbers(f"a list of finite sums up to {LARGEST_SUM:g}", most=LARGEST_SUM)
    counter: CounterState | CarriedState | None = inner("its counter, or none", _counter_from, default=None)


@dataclass(frozen=True, slots=True)
class LinearCohort(Cohort):
    """The next users until something is released, at most: each chooses by the model, and sends its joint vector."""

    @property
    def model(self) -> LinearModel:
        """What all of them choose by."""
        return linear_model_from(self.step.parameters["model"])


@dataclass(frozen=True, kw_only=True)
class LinearPolicy(Learner[LinearState]):
    """A policy is when sums are released and with which noise; the rest is one rule for all.

    Attributes:
        setting: users, features, rewards and confidence.
    """

    states = LinearState

    name: ClassVar[str]
    """The policy's name in JSON and pictures."""
    is_counted: ClassVar[bool] = False
    """Whether clients round their vectors to steps, and integer noise is added to those."""

    setting: LinearSetting = declared(check_setting)
    choice: Choice = declared(_check_choice, default="confidence")
    """Releases and their noise, and so the guarantee, are the same for both."""
    model_age: int = whole_number(0, MOST_AGE, "0 is the newest only", default=0)
    """How many slots older than the newest a model may be that a user answers by, live; the regret bound counts it."""

    def __post_init__(self) -> None:
        check_declared(self)

    @property
    def updates_every_round(self) -> bool:
        """Whether the model changes after every user, without noise."""
        return False

    @property
    def step(self) -> float:
        """The unit of the sums that are made: a step of the grid where clients round to one."""
        return 1.0

    def to_steps(self, vectors: Floats, *, bits: RandomBits) -> Numbers:
        """Joint vectors as clients send them: rounded to steps, or as they are."""
        return vectors

    @property
    def shufflers(self) -> int:
        """How many shufflers are used; none where nobody shuffles."""
        return 0

    @property
    @abstractmethod
    def slot_users(self) -> int:
        """Users between two releases."""

    @property
    @abstractmethod
    def release_noise(self) -> ReleaseNoise:
        """The noise of every release."""

    @abstractmethod
    def guarantee(self) -> LinearGuarantee:
        """Whom it protects."""

    @abstractmethod
    def sample_noise(self, shape: tuple[int, int], *, bits: RandomBits, generator: Any) -> Iterator[Numbers]:
        """The noise of each release in turn, for many instances at once: in steps where clients round to them.

        Args:
            shape: how many instances, and the numbers of a joint vector.
            bits: where noise comes from that would protect people.
            generator: where the noise of references comes from, which protects nobody.
        """

    @abstractmethod
    def _decides(self) -> dict[str, Any]:
        """What decides the policy, beside its name and setting."""

    @property
    def releases(self) -> int:
        """In the whole horizon."""
        return self.setting.users // self.slot_users

    @cached_property
    def rule(self) -> ConfidenceRule:
        """Regularizer and radius that are proved, whichever way arms are chosen."""
        return ConfidenceRule(self.setting, self.release_noise, self.slot_users, self.model_age)

    @cached_property
    def model_rule(self) -> ConfidenceRule | PosteriorRule:
        """How released sums become the model that users are sent: a function of nothing else."""
        drawn = PosteriorRule(self.setting, self.release_noise)
        rules: dict[Choice, ConfidenceRule | PosteriorRule] = {"confidence": self.rule, "posterior": drawn}
        return rules[self.choice]

    @cached_property
    def fingerprint(self) -> str:
        """SHA-256 of what decides the policy."""
        # Left out where bounds decide, so that states from before there was a choice have their fingerprints.
        chosen: dict[str, Any] = {} if self.choice == "confidence" else {"choice": self.choice}
        chosen |= {"model_age": self.model_age} if self.model_age else {}
        decides = {**self.setting.document(), **self._decides(), **chosen}
        return fingerprint_of({"schema": 1, "policy": self.name, **decides})

    def start(self) -> LinearState:
        """Nobody has come yet."""
        return LinearState(self.fingerprint, 0, (0.0,) * self.setting.joint.length)

    def ask(self, state: LinearState) -> LinearCohort | None:
        """The model of the next users, and how many of them have it; None when all have come."""
        self._check_state(state)
        users = min(self.slot_users - state.users % self.slot_users, self.setting.users - state.users)
        if users == 0:
            return None
        return LinearCohort(users, self._batches(state), self.last_step(state))

    def known(self, state: LinearState) -> Any:
        # The step has all of it; how sure it is, is for devices.
        return {"users": state.users, "theta": self.estimate(state).theta.tolist()}

    def last_step(self, state: LinearState) -> DeviceStep:
        """Users choose by the newest model, whether they report or not."""
        asked = {"model": self.estimate(state).document(), "joint": asdict(self.setting.joint)}
        return DeviceStep("choose", asked)

    def may_ask(self, step: DeviceStep, seating: int) -> bool:
        model = step.parameters.get("model")
        asked = {"model": model, "joint": asdict(self.setting.joint)}
        return step == DeviceStep("choose", asked) and is_linear_model(model, self.setting.dimension)

    def _batches(self, state: LinearState) -> tuple[OpenBatch, ...]:
        """The batches that the next users join, where sums are made from messages."""
        return ()

    def tell(self, state: LinearState, users: int, closed: Mapping[int, Any]) -> LinearState:
        """The state after so many users of the cohort.

        Args:
            state: where the policy stood when it asked.
            users: how many users of the cohort came.
            closed: where a slot ends, the sum over all users so far as it was released, at level 1.

        Raises:
            ParameterError: what was told does not fit what was asked.
        """
        time = self._time_after(state, users)
        if time % self.slot_users:
            if closed:
                raise ParameterError("closed", "a sum", "must be left out before a slot ends", "wait for the release")
            return LinearState(state.fingerprint, time, state.released)
        return LinearState(state.fingerprint, time, self._checked_sum(closed))

    def estimate(self, state: LinearState, *, simulated: bool = False) -> LinearModel:
        """What the next users are sent."""
        matrix, vector = self.setting.joint.unpack(np.array(state.released))
        return self.model_rule.model(matrix, vector, self._release_of(state))

    def _release_of(self, state: LinearState) -> int:
        """Which release the state's sums are."""
        return state.users // self.slot_users

    def _time_after(self, state: LinearState, users: int) -> int:
        cohort = self.ask(state)
        left = 0 if cohort is None else cohort.users
        if not is_whole(users) or not 1 <= users <= left:
            raise ParameterError("users", users, f"must lie in 1..{left}", "ask again after each cohort")
        return state.users + int(users)

    def _checked_sum(self, closed: Any) -> tuple[float, ...]:
        told = closed.get(1) if isinstance(closed, Mapping) else None
        numbers = np.zeros(0) if told is None else as_floats("closed", told)
        if numbers.shape != (self.setting.joint.length,) or not (np.abs(numbers) <= LARGEST_SUM).all():
            wanted = f"must be {self.setting.joint.length} finite numbers where a slot ends"
            raise ParameterError("closed", f"shape {numbers.shape}", wanted, "tell the released sum")
        return tuple(numbers.tolist())

    def _check_state(self, state: LinearState) -> None:
        state.belongs_to(self.fingerprint, "policy")
        if not is_whole(state.users) or not 0 <= state.users <= self.setting.users:
            limits = f"must lie in 0..{self.setting.users}"
            raise ParameterError("users", state.users, limits, "plan for more users")
        if len(state.released) != self.setting.joint.length:
            wanted = f"must hold {self.setting.joint.length} sums"
            raise ParameterError("state", f"{len(state.released)} sums", wanted, "restore a copy")
        if state.users < self.slot_users and any(state.released):
            raise ParameterError("state", "sums", "must hold none before the first slot ends", "restore a copy")
