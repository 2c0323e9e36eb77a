"""A running sum with carried noise and no known horizon: epochs that double, each a chain of its own.

Every user is in one epoch only, so each epoch may spend the whole privacy. Past epochs ended with their last user, so
that a past epoch costs every later estimate the noise of its last estimate, once. Epoch e may fail with probability
failure * 6 / (pi (e + 1))^2; these add up to the failure allowed, for ever.
"""

import math
from dataclasses import dataclass
from functools import lru_cache
from typing import Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from shuffledp.continual.carried.bound import noise_bound_after
from shuffledp.continual.carried.plan import CarriedPlan
from shuffledp.continual.carried.planner import best_carried
from shuffledp.continual.request import CountRequest, check_confidence, check_shufflers
from shuffledp.errors import ParameterError
from shuffledp.privacy import Privacy
from shuffledp.protocols.domains.summed import BITS, SummedDomain
from shuffledp.protocols.states import is_whole
from shuffledp.randomness import RandomBits


@dataclass(frozen=True, slots=True, kw_only=True)
class CarriedEpoch:
    """One doubling: its plan, the users before it, and the bound of its estimates."""

    number: int
    plan: CarriedPlan
    users_before: int
    variance_before: float
    """The variance of what past epochs' last estimates are off by together, in steps squared."""
    error_bound: float


@dataclass(frozen=True, slots=True, kw_only=True)
class UnboundedCarried:
    """Counts for as long as one likes: every epoch has twice the users of the one before.

    >>> counter = UnboundedCarried(first_users=5000, shufflers=4, privacy=Privacy(1, 1e-6))
    >>> counter.epoch_at(5001).number, counter.error_bound_at(100_000) < 160
    (1, True)
    """

    first_users: int
    shufflers: int
    privacy: Privacy
    confidence: float = 0.95
    domain: SummedDomain = BITS

    def __post_init__(self) -> None:
        check_shufflers(self.shufflers)
        check_confidence(self.confidence)
        if self.shufflers < 2:
            raise ParameterError("shufflers", self.shufflers, "must be >= 2 to carry noise on", "allow another")
        if not is_whole(self.first_users) or not 2 <= self.first_users < 1 << 40:
            problem = "must be a whole number in 2..2^40"
            raise ParameterError("first_users", self.first_users, problem, "some thousands are a good start")

    @classmethod
    def plan(cls, *, first_users: int, shufflers: int, privacy: Privacy, confidence: float = 0.95) -> Self:
        """A count without an end; its first epoch is planned at once, so that what is infeasible is refused here.

        Args:
            first_users: how many come in the first epoch.
            shufflers: how many there are.
            privacy: what holds for everybody, whenever they come.
            confidence: with which all epochs' bounds hold together.
        """
        counter = cls(first_users=first_users, shufflers=shufflers, privacy=privacy, confidence=confidence)
        counter.epoch(0)
        return counter

    def epoch(self, number: int) -> CarriedEpoch:
        """The plan of one epoch."""
        if number < 0:
            raise ParameterError("epoch", number, "must be >= 0", "epochs count from 0")
        return _epoch(self, number)

    def epoch_at(self, time: int) -> CarriedEpoch:
        """The epoch of the time-th user."""
        if time < 1:
            raise ParameterError("time", time, "must be >= 1", "times count the users so far")
        return self.epoch(((time - 1) // self.first_users + 1).bit_length() - 1)

    def error_bound_at(self, time: int) -> float:
        """Estimates of this user's epoch are off by at most this; all epochs' bounds hold at once."""
        return self.epoch_at(time).error_bound

    def run(self, values: ArrayLike, *, bits: RandomBits, fast: bool = True) -> NDArray[np.float64]:
        """The estimates after 1, 2, ... users, however many come.

        Args:
            values: of everybody, in the order in which they come.
            bits: where all randomness comes from.
            fast: draw from the noise's law instead of making every message.
        """
        array = np.asarray(values)
        parts, base, start, number = [], 0.0, 0, 0
        while start < len(array):
            plan = self.epoch(number).plan
            found = plan.learner().run(array[start : start + plan.users], bits=bits, fast=fast).every()
            parts.append(base + found)
            base = float(parts[-1][-1])
            start += plan.users
            number += 1
        return np.concatenate(parts) if parts else np.zeros(0)


@lru_cache(maxsize=256)
def _epoch(counter: UnboundedCarried, number: int) -> CarriedEpoch:
    before = None if number == 0 else _epoch(counter, number - 1)
    users_before = 0 if before is None else before.users_before + before.plan.users
    variance = 0.0 if before is None else before.variance_before + float(before.plan.error_variances[-1])
    failure = (1 - counter.confidence) * 6 / (math.pi * (number + 1)) ** 2
    plan = best_carried(
        CountRequest(
            users=counter.first_users << number,
            shufflers=counter.shufflers,
            privacy=counter.privacy,
            # The search for the best slots looks at this epoch's own part of the failure.
            confidence=max(0.5, 1 - failure),
            domain=counter.domain,
        )
    )
    noise = noise_bound_after(plan.weights, plan.error_variances, variance, failure / counter.domain.coordinates)
    bound = counter.domain.step * noise + (plan.slot_users - 1) * counter.domain.reach
    return CarriedEpoch(
        number=number, plan=plan, users_before=users_before, variance_before=variance, error_bound=bound
    )
