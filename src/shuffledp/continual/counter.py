"""The private running sum: ask which batches the next users join, tell what closed, read the estimate.

A counter does no input or output and keeps no messages: its state is a time and a few prefix sums, so that it
can be saved and restored in the middle of a batch.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from shuffledp.continual.decoding import CompletedDecoding
from shuffledp.continual.estimates import estimate_of
from shuffledp.continual.guarantee import PrivateCount
from shuffledp.continual.learner import RunningLearner
from shuffledp.continual.second_opinions import combine
from shuffledp.continual.shape import batch_noises
from shuffledp.continual.slot_sums import slot_sums
from shuffledp.errors import ParameterError
from shuffledp.estimates import AnyEstimate
from shuffledp.privacy import Privacy
from shuffledp.protocols.catalogue import PROTOCOLS
from shuffledp.protocols.learner import BatchMechanism, Cohort
from shuffledp.protocols.states import State, is_whole, kept, whole
from shuffledp.protocols.sums.batches import Total
from shuffledp.randomness import RandomBits
from shuffledp.schedules.joined import Joined, joined_batches


def _total_from(written: Any) -> Total:
    """A sum as it was before it was written: a whole number, or a vector of them."""
    if isinstance(written, list) and all(map(is_whole, written)):
        return np.array(written, dtype=np.int64)
    if not is_whole(written):
        raise ValueError(written)
    return int(written)


@dataclass(frozen=True, slots=True, eq=False)
class CounterState(State):
    """Where a sum stands: users so far, and the estimates, in steps, of those prefixes that are still needed.

    Attributes:
        users: how many have come.
        prefixes: the estimates, in steps, of slots from which later ones are made.
    """

    users: int = whole("whole users")
    prefixes: Mapping[int, Total] = kept(
        "whole sums of its prefixes",
        lambda document: {int(slot): _total_from(total) for slot, total in document.items()},
        lambda prefixes: {str(slot): np.asarray(total).tolist() for slot, total in prefixes.items()},
    )


@dataclass(frozen=True, slots=True)
class Counter(RunningLearner[CounterState]):
    """A running sum by a plan: of bits unless the plan has another domain.

    Attributes:
        plan: schedule, noise and guarantee.

    >>> counter = Counter.of(users=10_000, shufflers=2, privacy=Privacy(1, 1e-6))
    >>> estimates = counter.run(np.arange(10_000) % 4 == 0, bits=RandomBits.seeded(1))
    >>> abs(estimates.at(10_000).value - 2500) <= counter.plan.error_bound
    True
    """

    states: ClassVar[type[State] | None] = CounterState

    plan: PrivateCount

    @classmethod
    def of(cls, *, users: int, shufflers: int, privacy: Privacy, **asked: Any) -> Self:
        """A counter by the best plan."""
        return cls(
            PROTOCOLS["counter"].methods["laplace"].plan(users=users, shufflers=shufflers, privacy=privacy, **asked)
        )

    # --- step by step ------------------------------------------------------------------------

    def start(self) -> CounterState:
        """Nobody has come yet."""
        return CounterState(self.plan.fingerprint, 0, {0: self._nothing})

    @property
    def _nothing(self) -> Total:
        """The sum of nobody."""
        coordinates = self.plan.domain.coordinates
        return 0 if coordinates == 1 else np.zeros(coordinates, dtype=np.int64)

    def _fits(self, total: Total) -> bool:
        """Whether this is a whole number, or an array of one for each coordinate."""
        coordinates = self.plan.domain.coordinates
        if coordinates == 1:
            return is_whole(total)
        return isinstance(total, np.ndarray) and total.shape == (coordinates,) and total.dtype.kind in "iu"

    def ask(self, state: CounterState) -> Cohort:
        """The users until something closes, at most, and the batches that they join."""
        slot, joined = self._checked(state)
        return self._cohort(state.users, slot, joined)

    def tell(self, state: CounterState, users: int, closed: Mapping[int, Total]) -> CounterState:
        """So many users of the cohort came, and these levels' batches closed with these noisy sums in steps."""
        due = self._closing(self.ask(state), users, closed)
        time = state.users + users
        if not all(map(self._fits, closed.values())):
            raise ParameterError("closed", dict(closed), "must be whole sums", "tell what the mechanism analyzed")
        prefixes = dict(state.prefixes)
        slot, _ = self.plan.schedule.place_of(time)
        # Where two close, the lower one is the second opinion on the other.
        for level in sorted(closed):
            new = prefixes[due[level].first_slot] + closed[level]
            if slot in prefixes:
                new = combine(new, prefixes[slot], self.plan.second_opinions.divisor_at(slot))
            prefixes[slot] = new
        needed = _needed(slot, self._joined(slot))
        return CounterState(
            state.fingerprint, time, {kept: total for kept, total in prefixes.items() if kept in needed}
        )

    def estimate(self, state: CounterState, *, simulated: bool = False) -> AnyEstimate:
        """The sum over the users so far: completed batches, and the rate of these for the users since."""
        self._checked(state)
        slot, since = self.plan.schedule.place_of(state.users)
        return estimate_of(self.plan, slot, state.prefixes[slot], since, simulated=simulated)

    def closed_sum(self, state: CounterState) -> tuple[int, NDArray[Any]]:
        """The slots that have told their sum, and that sum in steps, one for each coordinate."""
        slot, _ = self.plan.schedule.place_of(state.users)
        return slot, np.atleast_1d(np.asarray(state.prefixes[slot]))

    def told_document(self, told: Total) -> Any:
        return np.asarray(told).tolist()

    def told_from(self, document: Any, mechanism: BatchMechanism | None = None) -> Total:
        return _total_from(document)

    def stand_in(self, mechanism: BatchMechanism) -> Total:
        """The sum if everybody of the batch had the domain's middle."""
        domain = self.plan.domain
        middle = round(mechanism.users * (domain.middle - domain.origin) / domain.step)
        return middle if domain.coordinates == 1 else np.full(domain.coordinates, middle, dtype=np.int64)

    def widening(self, mechanism: BatchMechanism, dropped: int, void: bool) -> float:
        """A missing message moves a sum by a step; a void batch counts as its middle, rounded."""
        domain = self.plan.domain
        spoiled = mechanism.users * domain.reach + domain.step / 2 if void else 0.0
        return domain.step * dropped + spoiled

    def _joined(self, slot: int) -> Joined:
        """Level, first slot and end of every batch that this slot's users join."""
        return joined_batches(self.plan.schedule, slot, every_slot=self.plan.estimator == "combined")

    def _checked(self, state: CounterState) -> tuple[int, Joined]:
        """The slot in which a state stands and what its users join; refuses what this counter cannot come to."""
        state.belongs_to(self.fingerprint, "plan")
        self._check_users(state.users)
        slot, _ = self.plan.schedule.place_of(state.users)
        joined = self._joined(slot)
        needed = _needed(slot, joined)
        if (
            state.prefixes.keys() != needed
            or not all(map(self._fits, state.prefixes.values()))
            or (0 in needed and np.count_nonzero(state.prefixes[0]))
        ):
            raise ParameterError(
                "state",
                sorted(state.prefixes),
                f"must have the prefixes {sorted(needed)}, the empty one 0",
                "restore a copy",
            )
        return slot, joined

    # --- whole streams -----------------------------------------------------------------------

    def decoding(self) -> CompletedDecoding:
        plan = self.plan
        opinions = plan.second_opinions if plan.estimator == "combined" else None
        return CompletedDecoding(plan.schedule, plan.domain.coordinates, opinions)

    def _by_law(self, array: NDArray[Any], closed: int, bits: RandomBits) -> NDArray[np.int64]:
        """True prefix sums plus the noise of the batches that make them."""
        schedule, sums = self.plan.schedule, slot_sums(self.plan, array, closed, bits)
        noise = batch_noises(self.plan, closed, sums.shape[1:], bits=bits)
        prefixes: NDArray[np.int64] = schedule.prefix_sums(noise)[: closed + 1]
        prefixes[1:] += np.cumsum(sums, axis=0)
        return prefixes


def _needed(slot: int, joined: Joined) -> set[int]:
    """Prefixes that estimates still need: the last, and those on which open batches will stand."""
    return {slot, *(first for _, first, _ in joined)}
