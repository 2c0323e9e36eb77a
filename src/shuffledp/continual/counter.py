"""The private running count: ask which batches the next users join, tell what closed, read the estimate.

A counter does no input or output and keeps no messages: its state is a time and a few prefix sums, so that it
can be saved and restored in the middle of a batch.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from shuffledp.continual.batches import BatchMechanism
from shuffledp.continual.estimates import RunningEstimates
from shuffledp.continual.plan import CounterPlan
from shuffledp.continual.second_opinions import combine
from shuffledp.continual.shape import exact_surplus
from shuffledp.errors import DataError, ParameterError
from shuffledp.estimates import Estimate
from shuffledp.privacy import Privacy
from shuffledp.randomness import RandomBits
from shuffledp.shuffle.pool import ShufflerPool
from shuffledp.shuffle.shuffler import BatchSpec

Progress = Callable[[int], None]
"""Called with the number of users who have come so far."""


def is_whole(value: Any) -> bool:
    """Whether this is a whole number, and no truth value."""
    return isinstance(value, int | np.integer) and not isinstance(value, bool)


@dataclass(frozen=True, slots=True)
class OpenBatch:
    """A batch that the next users join: its shuffler, its mechanism, and the seat of the first of them."""

    level: int
    first_slot: int
    mechanism: BatchMechanism
    first_seat: int

    @property
    def opens(self) -> bool:
        """Whether the batch begins with the next user."""
        return self.first_seat == 0


@dataclass(frozen=True, slots=True)
class Cohort:
    """The next users: how many are alike, and the batches that all of them join."""

    users: int
    batches: tuple[OpenBatch, ...]


@dataclass(frozen=True, slots=True)
class CounterState:
    """Where a count stands: users so far, and the estimates of those prefixes that are still needed."""

    fingerprint: str
    users: int
    prefixes: Mapping[int, int]

    def document(self) -> dict[str, Any]:
        """The state as JSON."""
        kept = {str(slot): total for slot, total in self.prefixes.items()}
        return {"schema": 1, "fingerprint": self.fingerprint, "users": self.users, "prefixes": kept}

    @classmethod
    def from_document(cls, document: Any) -> Self:
        """The state that a JSON document describes."""
        way_out = "restore it from a copy"
        if not isinstance(document, Mapping) or document.get("schema") != 1:
            raise DataError("state", type(document).__name__, "must be an object with schema 1", way_out)
        try:
            prefixes = {int(slot): total for slot, total in document["prefixes"].items()}
            state = cls(str(document["fingerprint"]), document["users"], prefixes)
        except (KeyError, TypeError, ValueError, AttributeError) as broken:
            raise DataError("state", str(broken), "must have all its fields", way_out) from None
        if not all(map(is_whole, (state.users, *prefixes.values()))):
            raise DataError("state", "a number that is not whole", "must have whole numbers", way_out)
        return state


@dataclass(frozen=True, slots=True)
class Counter:
    """A running count by a plan.

    >>> counter = Counter.of(users=10_000, shufflers=2, privacy=Privacy(1, 1e-6))
    >>> estimates = counter.run(np.arange(10_000) % 4 == 0, bits=RandomBits.seeded(1))
    >>> abs(estimates.at(10_000).value - 2500) <= counter.plan.error_bound
    True
    """

    plan: CounterPlan

    @classmethod
    def of(cls, *, users: int, shufflers: int, privacy: Privacy, **asked: Any) -> Self:
        """A counter by the best plan."""
        return cls(CounterPlan.plan(users=users, shufflers=shufflers, privacy=privacy, **asked))

    # --- step by step ------------------------------------------------------------------------

    def start(self) -> CounterState:
        """Nobody has come yet."""
        return CounterState(self.plan.fingerprint, 0, {0: 0})

    def ask(self, state: CounterState) -> Cohort:
        """The users until something closes, at most, and the batches that they join."""
        self._check_state(state)
        plan = self.plan
        slot, seat = divmod(state.users, plan.slot_users)
        users = min(plan.slot_users - seat, plan.users - state.users)
        batches = []
        for level, first, end in self._joined(slot):
            size = (end - first) * plan.slot_users
            batches.append(OpenBatch(level, first, plan.mechanism(size), (slot - first) * plan.slot_users + seat))
        return Cohort(users, tuple(batches))

    def tell(self, state: CounterState, users: int, closed: Mapping[int, int]) -> CounterState:
        """So many users of the cohort came, and these levels' batches closed with these noisy counts."""
        cohort = self.ask(state)
        if not is_whole(users) or not 1 <= users <= cohort.users:
            raise ParameterError("users", users, f"must lie in 1..{cohort.users}", "ask again after each cohort")
        time = state.users + users
        due = {batch.level: batch for batch in cohort.batches if batch.first_seat + users == batch.mechanism.users}
        if set(closed) != set(due):
            raise ParameterError(
                "closed", sorted(closed), f"must be the levels {sorted(due)}", "tell every batch that closed"
            )
        if not all(map(is_whole, closed.values())):
            raise ParameterError("closed", dict(closed), "must be whole counts", "tell what the mechanism analyzed")
        prefixes = dict(state.prefixes)
        slot = time // self.plan.slot_users
        # Where two close, the lower one is the second opinion on the other.
        for level in sorted(closed):
            new = prefixes[due[level].first_slot] + closed[level]
            if slot in prefixes:
                new = combine(new, prefixes[slot], self.plan.second_opinions.divisor_at(slot))
            prefixes[slot] = new
        needed = self._needed(slot)
        return CounterState(
            state.fingerprint, time, {kept: total for kept, total in prefixes.items() if kept in needed}
        )

    def estimate(self, state: CounterState, *, simulated: bool = False) -> Estimate:
        """The count of the users so far: completed batches, and half of the users since."""
        self._check_state(state)
        slot, since = divmod(state.users, self.plan.slot_users)
        return Estimate(
            value=state.prefixes[slot] + since / 2,
            standard_error=self.plan.standard_error_of(slot),
            bound=self.plan.error_bound,
            confidence=self.plan.confidence,
            simulated=simulated,
        )

    def _covering(self, slot: int) -> list[tuple[int, int]]:
        """Level and end of every batch that this slot is in."""
        schedule = self.plan.schedule
        found = []
        for level, ends in enumerate(schedule.ends_by_level, 1):
            place = int(np.searchsorted(ends, slot, side="right"))
            if place < ends.size and schedule.parents[ends[place]] <= slot:
                found.append((level, int(ends[place])))
        return found

    def _joined(self, slot: int) -> list[tuple[int, int, int]]:
        """Level, first slot and end of every batch that this slot's users join, second opinions included."""
        schedule = self.plan.schedule
        found = [(level, int(schedule.parents[end]), end) for level, end in self._covering(slot)]
        alone = not found or found[0][0] > 1
        if self.plan.estimator == "combined" and alone and slot + 1 < schedule.slots:
            found.insert(0, (1, slot, slot + 1))
        return found

    def _check_state(self, state: CounterState) -> None:
        if state.fingerprint != self.plan.fingerprint:
            raise ParameterError(
                "state",
                state.fingerprint[:12],
                f"must belong to the plan {self.plan.fingerprint[:12]}",
                "use its own plan",
            )
        if not is_whole(state.users) or not 0 <= state.users <= self.plan.users:
            raise ParameterError("users", state.users, f"must lie in 0..{self.plan.users}", "plan for more users")
        needed = self._needed(state.users // self.plan.slot_users)
        if (
            set(state.prefixes) != needed
            or state.prefixes.get(0, 0) != 0
            or not all(map(is_whole, state.prefixes.values()))
        ):
            raise ParameterError(
                "state",
                sorted(state.prefixes),
                f"must have the prefixes {sorted(needed)}, the empty one 0",
                "restore a copy",
            )

    def _needed(self, slot: int) -> set[int]:
        """Prefixes that estimates still need: the last, and those on which open batches will stand."""
        return {slot} | {int(self.plan.schedule.parents[end]) for _, end in self._covering(slot)}

    # --- whole streams -----------------------------------------------------------------------

    def check_values(self, values: ArrayLike) -> NDArray[np.uint8]:
        """The values as 0s and 1s in bytes, at most as many as the plan has users."""
        array = np.asarray(values)
        if array.ndim != 1 or array.size == 0:
            raise DataError(
                "values", f"shape {array.shape}", "must be a column of at least one value", "pass one a user"
            )
        if array.size > self.plan.users:
            raise ParameterError("values", array.size, f"must be at most {self.plan.users}", "plan for more users")
        if array.dtype == np.bool_:
            return array.view(np.uint8)
        if array.dtype.kind not in "buif":
            raise DataError("values", f"dtype {array.dtype}", "must be numbers", "convert them, e.g. x.astype(int)")
        if array.dtype != np.uint8 or int(array.max()) > 1:
            bad = np.flatnonzero(~((array == 0) | (array == 1)))
            if bad.size:
                row = int(bad[0])
                raise DataError("values", f"{array[row]} in row {row + 1}", "must be 0 or 1", "a count counts ones")
        return array.astype(np.uint8, copy=False)

    def run(
        self, values: ArrayLike, *, bits: RandomBits, fast: bool = True, progress: Progress | None = None
    ) -> RunningEstimates:
        """Estimates after every user: by the noise's own law, or with every message made, shuffled and read."""
        array = self.check_values(values)
        plan = self.plan
        closed = array.size // plan.slot_users
        if fast:
            truth = _slot_sums(array, plan.slot_users, closed)
            prefixes = self._noisy_prefixes(truth, bits)
        else:
            prefixes = self._by_messages(array, bits, progress)
        return RunningEstimates(plan, array.size, prefixes[: closed + 1], simulated=not bits.is_secure)

    def _noisy_prefixes(self, slot_sums: NDArray[np.int64], bits: RandomBits) -> NDArray[np.int64]:
        """True prefix sums plus the noise of the batches that make them."""
        schedule = self.plan.schedule
        noise = np.zeros(schedule.batches, dtype=np.int64)
        closed = min(slot_sums.size, schedule.batches)
        for surplus, members in exact_surplus(self.plan, closed):
            noise[members] = self.plan.noise.sample(surplus, members.size, bits=bits)
        if self.plan.estimator == "combined":
            opinions = self.plan.second_opinions
            last_slots = np.zeros(opinions.count, dtype=np.int64)
            needed = int(np.searchsorted(opinions.places, closed, side="right"))
            last_slots[:needed] = self.plan.noise.sample(Fraction(1), needed, bits=bits)
            noise = opinions.combined(noise, last_slots)
        prefixes: NDArray[np.int64] = schedule.prefix_sums(noise)[: closed + 1]
        prefixes[1:] += np.cumsum(slot_sums[:closed])
        return prefixes

    def _by_messages(self, array: NDArray[np.uint8], bits: RandomBits, progress: Progress | None) -> NDArray[np.int64]:
        clients, shuffling = bits.spawn(2)
        pool = ShufflerPool(self.plan.shufflers_used, bits=shuffling)
        state = self.start()
        prefixes = np.zeros(array.size // self.plan.slot_users + 1, dtype=np.int64)
        while state.users < array.size:
            cohort = self.ask(state)
            users = min(cohort.users, array.size - state.users)
            values = array[state.users : state.users + users]
            closed = {}
            for batch in cohort.batches:
                mechanism = batch.mechanism
                if batch.opens:
                    pool.open(batch.level - 1, BatchSpec(mechanism.users, mechanism.messages_max))
                released = pool.accept(batch.level - 1, mechanism.randomize(values, batch.first_seat, bits=clients))
                if released is not None:
                    closed[batch.level] = mechanism.analyze(released)
            state = self.tell(state, users, closed)
            slot, since = divmod(state.users, self.plan.slot_users)
            if since == 0:
                prefixes[slot] = state.prefixes[slot]
            if progress is not None:
                progress(state.users)
        return prefixes


def _slot_sums(array: NDArray[np.uint8], slot_users: int, closed: int) -> NDArray[np.int64]:
    """How many ones each full slot has."""
    whole = array[: closed * slot_users].reshape(closed, slot_users)
    if slot_users < 256:
        return np.asarray(np.add.reduce(whole, axis=1, dtype=np.uint8), dtype=np.int64)
    return np.asarray(np.add.reduce(whole, axis=1, dtype=np.int64))
