"""A running count without a known horizon: epochs that double, each with a schedule and one batch of its own.

Every user is in one epoch only, so each epoch may spend the whole privacy: nothing is lost to composition over
time. One shuffler holds the epoch's own batch and the others serve inside it, so that a past epoch costs every
later estimate a single noise. All noises have one law; an estimate in epoch e made of j inner batches is off by
the sum of e + j of them, and its bound is the same union with e more summands. Epoch e may fail with
probability failure * 6 / (pi (e + 1))^2; these add up to the failure allowed, for ever.
"""

import math
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import lru_cache
from typing import Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from shuffledp.accounting.guarantee import DeltaTerm, delta_of_distance
from shuffledp.continual.bounds import ROUGH, SumTails, horizon_bound, sum_tails
from shuffledp.continual.counter import Counter
from shuffledp.continual.noise import calibrate
from shuffledp.continual.plan import CounterPlan
from shuffledp.continual.planner import budgets_near, gaussian_guess
from shuffledp.continual.request import check_confidence, check_shufflers
from shuffledp.errors import InfeasibleError, ParameterError
from shuffledp.privacy import Privacy
from shuffledp.protocols.sums.batches import SumBatch
from shuffledp.protocols.sums.noise import BatchNoise
from shuffledp.randomness import RandomBits
from shuffledp.schedules.combinatorial import slots
from shuffledp.shuffle.shuffler import BatchSpec, Shuffler

# The epoch by whose bound the number of shufflers is chosen: a few hundred times the first.
_TYPICAL_EPOCH = 8
# More shufflers than this never helped.
_MOST_SHUFFLERS = 8


@dataclass(frozen=True, slots=True, kw_only=True)
class Epoch:
    """One doubling: the plan inside it, the batch over all of it, the users before, and its bound."""

    number: int
    inner: CounterPlan
    users_before: int
    error_bound: float

    @property
    def users(self) -> int:
        """The inner schedule's, and the one more with whom the epoch's own batch closes."""
        return self.inner.users + 1

    @property
    def mechanism(self) -> SumBatch:
        """The mechanism of the epoch's own batch."""
        return self.inner.mechanism(self.users)


@dataclass(frozen=True, slots=True, kw_only=True)
class UnboundedCounter:
    """Counts for as long as one likes: every epoch has about twice the users of the one before.

    >>> counter = UnboundedCounter.plan(first_users=5000, shufflers=4, privacy=Privacy(1, 1e-6))
    >>> known = CounterPlan.plan(users=1_000_000, shufflers=4, privacy=Privacy(1, 1e-6))
    >>> counter.error_bound_at(1_000_000) < 1.6 * known.error_bound
    True
    """

    first_users: int
    shufflers: int
    shufflers_used: int
    privacy: Privacy
    confidence: float = 0.95

    def __post_init__(self) -> None:
        check_shufflers(self.shufflers)
        check_confidence(self.confidence)
        if not 2 <= self.shufflers_used <= self.shufflers:
            raise ParameterError(
                "shufflers", self.shufflers, "must be >= 2 where the horizon is unknown", "one holds the epoch's batch"
            )
        if self.first_users < 2 or self.first_users >> 40:
            raise ParameterError(
                "first_users", self.first_users, "must lie in 2..2^40", "some thousands are a good start"
            )
        proved = sum(term.value for term in self.delta_terms(self.privacy.epsilon))
        if proved > self.privacy.delta:
            raise InfeasibleError("delta", self.privacy.delta, f"must be at least {proved:.3g}", "choose a larger one")

    @classmethod
    def plan(cls, *, first_users: int, shufflers: int, privacy: Privacy, confidence: float = 0.95) -> Self:
        """As many of the shufflers as make a late epoch's bound the smallest.

        Args:
            first_users: about how many come in the first epoch.
            shufflers: how many there are.
            privacy: what holds for everybody, whenever they come.
            confidence: with which each epoch's bound holds.
        """
        check_shufflers(shufflers)
        used = range(2, max(2, min(shufflers, _MOST_SHUFFLERS)) + 1)
        least = cls(
            first_users=first_users, shufflers=shufflers, shufflers_used=2, privacy=privacy, confidence=confidence
        )
        made = [replace(least, shufflers_used=count) for count in used]
        return min(made, key=lambda counter: counter.epoch(_TYPICAL_EPOCH).error_bound)

    def delta_terms(self, epsilon: float) -> tuple[DeltaTerm, ...]:
        """Every summand of delta: a user is in the epoch's batch and in one of each level inside."""
        noise = _noise(self)
        inner = self.epoch(0).inner
        shown = self.shufflers_used * inner.distance_per_batch
        return (
            DeltaTerm(
                "noise", noise.delta(epsilon, self.shufflers_used), f"{self.shufflers_used} batches' noises, composed"
            ),
            DeltaTerm("transport", delta_of_distance(math.exp(epsilon), shown), "the shares of all a user's batches"),
            *(term for term in inner.delta_terms(epsilon, inner.honest_users) if term.name == "sampling"),
        )

    def epoch(self, number: int) -> Epoch:
        """The schedule of one epoch."""
        if number < 0:
            raise ParameterError("epoch", number, "must be >= 0", "epochs count from 0")
        return _epoch(self, number)

    def epoch_at(self, time: int) -> Epoch:
        """The epoch of the time-th user."""
        if time < 1:
            raise ParameterError("time", time, "must be >= 1", "times count the users so far")
        epoch = self.epoch(0)
        while epoch.users_before + epoch.users < time:
            epoch = self.epoch(epoch.number + 1)
        return epoch

    def error_bound_at(self, time: int) -> float:
        """Estimates of this user's epoch are off by at most this; all epochs' bounds hold at once."""
        return self.epoch_at(time).error_bound

    def run(self, values: ArrayLike, *, bits: RandomBits, fast: bool = True) -> NDArray[np.float64]:
        """The estimates after 1, 2, ... users, however many come."""
        array = np.asarray(values)
        parts, base, start, number = [], 0, 0, 0
        while start < len(array):
            epoch = self.epoch(number)
            counter = Counter(epoch.inner)
            here = counter.check_values(array[start : start + epoch.inner.users])
            parts.append(base + counter.run(here, bits=bits, fast=fast).every())
            last = array[start + epoch.inner.users : start + epoch.users]
            if len(last):
                whole = np.concatenate((here, counter.check_values(last)))
                base += self._epoch_total(epoch, whole, bits, fast)
                parts.append(np.array([float(base)]))
            start += epoch.users
            number += 1
        return np.concatenate(parts) if parts else np.zeros(0)

    def _epoch_total(self, epoch: Epoch, values: NDArray[np.uint8], bits: RandomBits, fast: bool) -> int:
        """The noisy count of a whole epoch."""
        if fast:
            return int(values.sum(dtype=np.int64)) + int(epoch.inner.batch_noise.sample(Fraction(1), 1, bits=bits)[0])
        clients, shuffling = bits.spawn(2)
        shuffler = Shuffler(bits=shuffling)
        shuffler.open(BatchSpec(epoch.users, epoch.mechanism.messages_max))
        shuffler.accept(epoch.mechanism.randomize(values, 0, bits=clients))
        return int(epoch.mechanism.analyze(shuffler.close()))


def _noise(counter: UnboundedCounter) -> BatchNoise:
    """The noise of every batch: with eight tenths of delta at most, as shares of two batches may show a tenth each."""
    within = Privacy(counter.privacy.epsilon, counter.privacy.delta * 8 / 9)
    return calibrate("laplace", counter.shufflers_used, within)


@lru_cache(maxsize=512)
def _epoch(counter: UnboundedCounter, number: int) -> Epoch:
    before = None if number == 0 else _epoch(counter, number - 1)
    users_before = 0 if before is None else before.users_before + before.users
    levels = counter.shufflers_used - 1
    noise = _noise(counter)
    failure = (1 - counter.confidence) * 6 / (math.pi * (number + 1)) ** 2
    wanted = counter.first_users << number

    def bound(budget: int, tails: SumTails) -> float:
        def up_to(summands: int) -> int:
            if summands < number:
                return 0
            # The epoch's own batch closes with its last user: one noise after those of the epochs before.
            return slots(min(summands - number, budget), levels) + (summands > number)

        slot_users = math.ceil(wanted / slots(budget, levels))
        return horizon_bound(tails, number + budget, up_to, failure) + (slot_users - 1) / 2

    around, _ = gaussian_guess(wanted, levels, noise.law().standard_deviation, failure)
    budgets = [budget for budget in budgets_near(around) if slots(budget, levels) <= wanted] or [1]
    rough = sum_tails(noise.law(), number + budgets[-1], ROUGH)
    budget = min(budgets, key=lambda budget: bound(budget, rough))
    slot_users = math.ceil(wanted / slots(budget, levels))
    inner = CounterPlan(
        users=slots(budget, levels) * slot_users - 1,
        shufflers=counter.shufflers,
        privacy=counter.privacy,
        batch_noise=noise,
        shufflers_used=levels,
        budget=budget,
        confidence=counter.confidence,
        estimator="completed",
    )
    proved = bound(budget, sum_tails(noise.law(), number + budget))
    return Epoch(number=number, inner=inner, users_before=users_before, error_bound=proved)
