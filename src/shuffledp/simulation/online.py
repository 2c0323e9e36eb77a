"""A plan as an online algorithm whose memory may be seized once."""

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from shuffledp.errors import ParameterError, TooFewReportsError
from shuffledp.estimates import Estimate
from shuffledp.messages import Batch, Payloads
from shuffledp.protocols.rounds import RoundPlan
from shuffledp.randomness import RandomBits
from shuffledp.sampling.uniform import uniform_below


class InternallyPrivate:
    """Reads one value at a time; an intruder who sees its memory once learns no more than epsilon allows.

    That is internal privacy: of the memory alone, not of the memory and the later output together.

    The memory begins with the shuffled messages of half the plan's users, all with value 0, and every
    value read is randomized at once and its messages put at random places. So at any time it is what
    a shuffler would release with at least half the users honest: `internal_epsilon` is the plan's
    epsilon at that fraction. Nothing else is kept: no value, no order of arrival, no array larger
    than its messages, and no key that was used before (each step's bits are derived from the last
    step's by a one-way function, and forgotten).

    Reference: [004] Lemma 27 (Balcer, Cheu, Joseph, Mao 2020; Cheu 2021), with U the value 0.

    >>> from shuffledp import BinarySum, Privacy
    >>> plan = BinarySum.plan(users=200, privacy=Privacy(1, 1e-6), method="coins", honest_fraction=0.5)
    >>> online = InternallyPrivate(plan, bits=RandomBits.seeded(1))
    >>> for value in [1] * 60 + [0] * 40:
    ...     online.read(value)
    >>> online.internal_epsilon <= 1, abs(online.estimate().value - 60) < 60
    (True, True)
    """

    def __init__(self, plan: RoundPlan, *, bits: RandomBits) -> None:
        if plan.users < 2 or plan.users % 2:
            raise ParameterError("users", plan.users, "must be even", "half of them begin the memory, half are read")
        self._plan, self._bits = plan, bits
        self._memory: Payloads = np.empty(0, dtype=np.uint64)
        self._missing = plan.users // 2
        self._insert(plan.randomize(np.zeros(plan.users // 2, dtype=np.uint8), bits=bits).payloads)

    @property
    def internal_epsilon(self) -> float:
        """What the memory satisfies at every moment, at the plan's delta."""
        return self._plan.epsilon_with(0.5)

    @property
    def missing(self) -> int:
        """Values still to be read."""
        return self._missing

    def read(self, value: int | bool) -> None:
        """Randomize one value and forget it."""
        if self._missing == 0:
            raise ParameterError(
                "values", self._plan.users // 2 + 1, f"must be {self._plan.users // 2}", "plan for twice as many users"
            )
        self._insert(self._plan.randomize(np.array([value]), bits=self._bits).payloads)
        self._missing -= 1

    def _insert(self, payloads: NDArray[np.generic]) -> None:
        """Put each message at a uniformly random place: the newcomer swaps with one of those before it."""
        held = self._memory.size
        self._memory = np.concatenate((self._memory, payloads.astype(np.uint64)))
        for last in range(held, self._memory.size):
            place = int(uniform_below(last + 1, 1, bits=self._bits)[0])
            self._memory[[last, place]] = self._memory[[place, last]]
        (self._bits,) = self._bits.spawn(1)

    def seize(self) -> Payloads:
        """All that an intruder finds: the messages, in a uniformly random order."""
        return self._memory.copy()

    def estimate(self) -> Estimate:
        """The plan's estimate once all values were read; the zeros at the beginning add nothing."""
        if self._missing:
            raise TooFewReportsError(self._plan.users, self._plan.users - self._missing)
        estimate: Estimate = self._plan.analyze(Batch(self.seize(), self._plan.users))
        return replace(estimate, simulated=not self._bits.is_secure)
