"""The running sum with carried noise as a learner: windows come in, one a slot, and a cascade of filters decodes them.

The state is one number a filter and the sum so far, whatever the number of slots. A void window breaks the chain: what
is weighed into later windows cannot be told from the noise any more, so that everybody after the last good one counts
by the rate before, and the bound says so.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from shuffledp.continual.carried.guarantee import PrivateCarried
from shuffledp.continual.estimates import RunningEstimates, estimate_of
from shuffledp.continual.slot_sums import slot_sums
from shuffledp.errors import ParameterError
from shuffledp.estimates import AnyEstimate
from shuffledp.protocols.learner import BatchMechanism, Cohort, OpenBatch, PlanLearner
from shuffledp.protocols.runner import Progress, ask_and_tell
from shuffledp.protocols.states import State, is_whole, kept, numbers, whole
from shuffledp.randomness import RandomBits
from shuffledp.schedules.joined import joined_batches

Floats = NDArray[np.float64]

VOID = "void"
"""What is told of a window that was spoiled."""


@dataclass(frozen=True, slots=True, eq=False)
class CarriedState(State):
    """Where a sum stands: users so far, each filter's last output, the sum in steps, and whether the chain broke."""

    users: int = whole("whole users")
    memory: tuple[tuple[float, ...], ...] = kept(
        "a row of numbers for each filter",
        lambda rows: tuple(tuple(_finite(each) for each in row) for row in rows),
        lambda rows: [list(row) for row in rows],
    )
    total: tuple[float, ...] = numbers("a sum in steps")
    broken: int | None = kept(
        "the users before the chain broke, or none",
        lambda users: None if users is None else _count(users),
        default=None,
    )


def _finite(value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not abs(value) < 1e300:
        raise ValueError(value)
    return float(value)


def _count(value: Any) -> int:
    if not is_whole(value) or value < 0:
        raise ValueError(value)
    return int(value)


@dataclass(frozen=True, slots=True)
class CarriedCounter(PlanLearner[CarriedState]):
    """A running sum by a plan with carried noise.

    >>> from shuffledp.continual.carried.planner import plan_carried
    >>> from shuffledp.privacy import Privacy
    >>> counter = plan_carried(users=20_000, shufflers=3, privacy=Privacy(1, 1e-6)).learner()
    >>> estimates = counter.run(np.arange(20_000) % 4 == 0, bits=RandomBits.seeded(1))
    >>> abs(estimates.at(20_000).value - 5000) <= counter.plan.error_bound
    True
    """

    states: ClassVar[type[State] | None] = CarriedState

    plan: PrivateCarried

    # --- step by step ------------------------------------------------------------------------

    def start(self) -> CarriedState:
        """Nobody has come yet."""
        nothing = (0.0,) * self.plan.domain.coordinates
        return CarriedState(self.plan.fingerprint, 0, (nothing,) * len(self.plan.weights.gains), nothing)

    def ask(self, state: CarriedState) -> Cohort | None:
        """The users until a window closes, at most, and the windows that they join; None when all have come."""
        self._check_state(state)
        plan, schedule = self.plan, self.plan.schedule
        if state.users == plan.users:
            return None
        slot, _ = schedule.place_of(state.users)
        batches = []
        for level, first, end in joined_batches(schedule, slot):
            mechanism = plan.mechanism(schedule.batch_users(first, end))
            batches.append(OpenBatch(level, first, mechanism, state.users - int(schedule.users_by(first))))
        return Cohort(int(schedule.users_by(slot + 1)) - state.users, tuple(batches))

    def tell(self, state: CarriedState, users: int, closed: Mapping[int, Any]) -> CarriedState:
        """So many users of the cohort came, and this level's window closed with this sum; VOID if it was spoiled."""
        cohort = self.ask(state)
        most = 0 if cohort is None else cohort.users
        if cohort is None or not is_whole(users) or not 1 <= users <= most:
            raise ParameterError("users", users, f"must lie in 1..{most}", "ask again after each cohort")
        due = cohort.closing(users)
        if set(closed) != set(due):
            raise ParameterError(
                "closed", sorted(closed), f"must be the levels {sorted(due)}", "tell every window that closed"
            )
        later = replace(state, users=state.users + int(users))
        for told in closed.values():
            later = self._after(later, state, told)
        return later

    def _after(self, later: CarriedState, before: CarriedState, told: Any) -> CarriedState:
        """The state after a window of this sum."""
        if later.broken is not None:
            return later
        slot, _ = self.plan.schedule.place_of(later.users)
        if isinstance(told, str) and told == VOID:
            return replace(later, broken=int(self.plan.schedule.users_by(slot - 1)))
        sums = np.atleast_1d(np.asarray(told))
        if sums.shape != (self.plan.domain.coordinates,) or sums.dtype.kind not in "iu":
            raise ParameterError("closed", told, "must be whole sums", "tell what the mechanism analyzed")
        values, memory = sums.astype(np.float64), []
        for (p, g), last in zip(self.plan.weights.gains, before.memory, strict=True):
            values = (values + g * np.array(last)) / (p + g)
            memory.append(tuple(values.tolist()))
        total = np.array(before.total) + values / float(self.plan.weights.slot_weights[slot - 1])
        return replace(later, memory=tuple(memory), total=tuple(total.tolist()))

    def estimate(self, state: CarriedState, *, simulated: bool = False) -> AnyEstimate:
        """The sum over the users so far: what the windows say, and the rate of these for the users since."""
        self._check_state(state)
        known = state.users if state.broken is None else state.broken
        slot, _ = self.plan.schedule.place_of(known)
        total = np.array(state.total)
        steps = float(total[0]) if self.plan.domain.coordinates == 1 else total
        since = state.users - int(self.plan.schedule.users_by(slot))
        return estimate_of(self.plan, slot, steps, since, simulated=simulated)

    def closed_sum(self, state: CarriedState) -> tuple[int, Floats]:
        """The slots that have told their sum, and that sum in steps, one for each coordinate."""
        slot, _ = self.plan.schedule.place_of(state.users if state.broken is None else state.broken)
        return slot, np.array(state.total)

    def told_document(self, told: Any) -> Any:
        return told if isinstance(told, str) else np.asarray(told).tolist()

    def told_from(self, document: Any) -> Any:
        if document == VOID or (is_whole(document) and not isinstance(document, list)):
            return document
        if not isinstance(document, list) or not all(map(is_whole, document)):
            raise ParameterError("told", document, "must be whole sums", "restore a copy")
        return np.array(document, dtype=np.int64)

    def stand_in(self, mechanism: BatchMechanism) -> Any:
        """Nothing can stand in for a window: the chain is said to be broken."""
        return VOID

    def _check_state(self, state: CarriedState) -> None:
        state.belongs_to(self.fingerprint, "plan")
        if not is_whole(state.users) or not 0 <= state.users <= self.plan.users:
            raise ParameterError("users", state.users, f"must lie in 0..{self.plan.users}", "plan for more users")
        rows, size = len(self.plan.weights.gains), self.plan.domain.coordinates
        shape = [len(state.total), len(state.memory), *(len(row) for row in state.memory)]
        broken = state.broken
        if shape != [size, rows, *[size] * rows] or (broken is not None and not 0 <= broken < state.users):
            raise ParameterError("state", shape, "must have a number for each filter and coordinate", "restore a copy")

    # --- whole streams -----------------------------------------------------------------------

    def check_values(self, values: ArrayLike) -> NDArray[Any]:
        """The values as the domain has them, at most as many as the plan has users."""
        array: NDArray[Any] = self.plan.check_values(values)
        self.plan.check_reports(len(array))
        return array

    def run(
        self, values: ArrayLike, *, bits: RandomBits, fast: bool = True, progress: Progress | None = None
    ) -> RunningEstimates:
        """Estimates after every user: by the noise's own law, or with every message made, shuffled and read."""
        array = self.check_values(values)
        prefixes = self._by_law(array, bits) if fast else self._by_messages(array, bits, progress)
        return RunningEstimates(self.plan, len(array), prefixes, simulated=not bits.is_secure)

    def _by_law(self, array: NDArray[Any], bits: RandomBits) -> Floats:
        """Prefixes in steps, as windows of whole noise would show them, a slot's users drawing theirs together."""
        closed, _ = self.plan.schedule.place_of(len(array))
        sums = slot_sums(self.plan, array, closed, bits)
        errors = self.plan.sample_errors(sums.shape[1:], bits=bits, slots=closed)
        prefixes = np.zeros((closed + 1, *sums.shape[1:]))
        prefixes[1:] = np.cumsum(sums, axis=0) + errors
        return prefixes

    def _by_messages(self, array: NDArray[Any], bits: RandomBits, progress: Progress | None) -> Floats:
        def prepared(cohort: Cohort, first: int, users: int, clients: RandomBits) -> NDArray[np.int64]:
            positions = np.arange(first, first + users)
            return self.plan.prepare(array[first : first + users], bits=clients, positions=positions)

        schedule = self.plan.schedule
        closed, _ = schedule.place_of(len(array))
        coordinates = self.plan.domain.coordinates
        prefixes = np.zeros((closed + 1, coordinates))
        for state in self._states(prepared, len(array), bits, progress):
            slot, since = schedule.place_of(state.users)
            if since == 0:
                prefixes[slot] = state.total
        return prefixes[:, 0] if coordinates == 1 else prefixes

    def _states(self, prepared: Any, users: int, bits: RandomBits, progress: Progress | None) -> Iterator[CarriedState]:
        return ask_and_tell(self, self.plan.shufflers_used, prepared, users, bits=bits, progress=progress)
