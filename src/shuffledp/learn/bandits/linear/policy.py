"""LinUCB over released prefix sums: ask for the model and the next cohort, tell what was released.

A policy does no input or output and draws no noise: its state is a time, the last released sum, and, where batches
are shuffled, where their counter stands.
"""

import hashlib
import json
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from shuffledp.continual.counter import CounterState, is_whole
from shuffledp.errors import DataError, ParameterError
from shuffledp.learn.bandits.linear.confidence import ConfidenceRule, LinearModel, ReleaseNoise
from shuffledp.learn.bandits.linear.guarantee import BanditGuarantee
from shuffledp.learn.bandits.linear.setting import LinearSetting
from shuffledp.learn.bandits.spec import as_floats, is_real
from shuffledp.protocols.learner import OpenBatch

LARGEST_SUM = 1e100

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class LinearState:
    """Users so far, the last released sum of joint vectors, and the counter of batches if there is one."""

    fingerprint: str
    users: int
    released: tuple[float, ...]
    counter: CounterState | None = None

    def document(self) -> dict[str, Any]:
        """The state as JSON."""
        counter = None if self.counter is None else self.counter.document()
        released = list(self.released)
        return {
            "schema": 1,
            "fingerprint": self.fingerprint,
            "users": self.users,
            "released": released,
            "counter": counter,
        }

    @classmethod
    def from_document(cls, document: Any) -> Self:
        """The state that a JSON document describes."""
        way_out = "restore it from a copy"
        if not isinstance(document, Mapping) or document.get("schema") != 1:
            raise DataError("state", type(document).__name__, "must be an object with schema 1", way_out)
        try:
            counter = None if document["counter"] is None else CounterState.from_document(document["counter"])
            released, users, fingerprint = document["released"], document["users"], document["fingerprint"]
        except KeyError as missing:
            raise DataError("state", f"no {missing}", "must have all its fields", way_out) from None
        if not is_whole(users) or not isinstance(fingerprint, str):
            raise DataError("state", "others", "must have whole users and a fingerprint", way_out)
        if not isinstance(released, list) or not all(is_real(each) and abs(each) <= LARGEST_SUM for each in released):
            raise DataError("state", "others", f"must have a list of finite sums up to {LARGEST_SUM:g}", way_out)
        return cls(fingerprint, users, tuple(map(float, released)), counter)


@dataclass(frozen=True, slots=True)
class LinearCohort:
    """The next users: how many at most until something is released, their model, and the batches that they join."""

    users: int
    model: LinearModel
    batches: tuple[OpenBatch, ...] = ()


@dataclass(frozen=True, kw_only=True)
class LinearPolicy(ABC):
    """A policy is when sums are released and with which noise; the rest is one rule for all."""

    setting: LinearSetting

    @property
    @abstractmethod
    def name(self) -> str:
        """As in JSON and pictures."""

    @property
    @abstractmethod
    def slot_users(self) -> int:
        """Users between two releases."""

    @property
    @abstractmethod
    def release_noise(self) -> ReleaseNoise:
        """Of every release."""

    @abstractmethod
    def guarantee(self) -> BanditGuarantee:
        """Whom it protects."""

    @abstractmethod
    def _decides(self) -> dict[str, Any]:
        """What decides the policy, beside its name and setting."""

    @property
    def releases(self) -> int:
        """In the whole horizon."""
        return self.setting.users // self.slot_users

    @cached_property
    def rule(self) -> ConfidenceRule:
        """Regularizer and radius."""
        return ConfidenceRule(self.setting, self.release_noise, self.slot_users)

    @cached_property
    def fingerprint(self) -> str:
        """SHA-256 of what decides the policy."""
        decides = {"schema": 1, "policy": self.name, **self.setting.document(), **self._decides()}
        return hashlib.sha256(json.dumps(decides, sort_keys=True).encode()).hexdigest()

    # --- ask and tell ------------------------------------------------------------------------

    def start(self) -> LinearState:
        """Nobody has come yet."""
        return LinearState(self.fingerprint, 0, (0.0,) * self.setting.joint.length)

    def ask(self, state: LinearState) -> LinearCohort:
        """The model of the next users, and how many of them have it."""
        self._check_state(state)
        left = self.slot_users - state.users % self.slot_users
        return LinearCohort(min(left, self.setting.users - state.users), self.model(state))

    def tell(self, state: LinearState, users: int, told: Any = None) -> LinearState:
        """So many users of the cohort came; at the end of a slot, the sum over all users so far as it was released."""
        time = self._time_after(state, users)
        if time % self.slot_users:
            if told is not None:
                raise ParameterError("told", "a sum", "must be left out before a slot ends", "wait for the release")
            return LinearState(state.fingerprint, time, state.released)
        return LinearState(state.fingerprint, time, self._checked_sum(told))

    def model(self, state: LinearState) -> LinearModel:
        """What the next users are sent."""
        matrix, vector = self.setting.joint.unpack(np.array(state.released))
        return self.rule.model(matrix, vector, state.users // self.slot_users)

    def _time_after(self, state: LinearState, users: int) -> int:
        cohort = self.ask(state)
        if not is_whole(users) or not 1 <= users <= cohort.users:
            raise ParameterError("users", users, f"must lie in 1..{cohort.users}", "ask again after each cohort")
        return state.users + int(users)

    def _checked_sum(self, told: Any) -> tuple[float, ...]:
        numbers = np.zeros(0) if told is None else as_floats("told", told)
        if numbers.shape != (self.setting.joint.length,) or not (np.abs(numbers) <= LARGEST_SUM).all():
            wanted = f"must be {self.setting.joint.length} finite numbers where a slot ends"
            raise ParameterError("told", f"shape {numbers.shape}", wanted, "tell the released sum")
        return tuple(numbers.tolist())

    def _check_state(self, state: LinearState) -> None:
        if state.fingerprint != self.fingerprint:
            belongs = f"must belong to the policy {self.fingerprint[:12]}"
            raise ParameterError("state", state.fingerprint[:12], belongs, "use its own policy")
        if not is_whole(state.users) or not 0 <= state.users <= self.setting.users:
            limits = f"must lie in 0..{self.setting.users}"
            raise ParameterError("users", state.users, limits, "plan for more users")
        if len(state.released) != self.setting.joint.length:
            wanted = f"must hold {self.setting.joint.length} sums"
            raise ParameterError("state", f"{len(state.released)} sums", wanted, "restore a copy")
        if state.users < self.slot_users and any(state.released):
            raise ParameterError("state", "sums", "must hold none before the first slot ends", "restore a copy")
