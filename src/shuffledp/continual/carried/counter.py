"""The running sum with carried noise as a learner: windows come in, one a slot, and a cascade of filters decodes them.

The state is one number a filter and the sum so far, whatever the number of slots. A void window breaks the chain: what
is weighed into later windows cannot be told from the noise any more, so that everybody after the last good one counts
by the rate before, and the bound says so.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from shuffledp.continual.carried.guarantee import PrivateCarried
from shuffledp.continual.decoding import CarriedDecoding
from shuffledp.continual.estimates import estimate_of
from shuffledp.continual.learner import RunningLearner
from shuffledp.continual.slot_sums import slot_sums
from shuffledp.errors import ParameterError
from shuffledp.estimates import AnyEstimate
from shuffledp.protocols.learner import BatchMechanism, Cohort
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
class CarriedCounter(RunningLearner[CarriedState]):
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
        if state.users == self.plan.users:
            return None
        schedule = self.plan.schedule
        slot, _ = schedule.place_of(state.users)
        return self._cohort(state.users, slot, joined_batches(schedule, slot))

    def tell(self, state: CarriedState, users: int, closed: Mapping[int, Any]) -> CarriedState:
        """So many users of the cohort came, and this level's window closed with this sum; VOID if it was spoiled."""
        self._closing(self.ask(state), users, closed)
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
        total = np.array(before.total) + values / float(self.plan.weights.slot_weight(slot - 1))
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

    def told_from(self, document: Any, mechanism: BatchMechanism | None = None) -> Any:
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
        self._check_users(state.users)
        rows, size = len(self.plan.weights.gains), self.plan.domain.coordinates
        shape = [len(state.total), len(state.memory), *(len(row) for row in state.memory)]
        broken = state.broken
        if shape != [size, rows, *[size] * rows] or (broken is not None and not 0 <= broken < state.users):
            raise ParameterError("state", shape, "must have a number for each filter and coordinate", "restore a copy")

    # --- whole streams -----------------------------------------------------------------------

    def decoding(self) -> CarriedDecoding:
        return CarriedDecoding(self.plan.weights, self.plan.domain.coordinates)

    def _by_law(self, array: NDArray[Any], closed: int, bits: RandomBits) -> Floats:
        """As windows of whole noise would show them, a slot's users drawing theirs together."""
        sums = slot_sums(self.plan, array, closed, bits)
        errors = self.plan.sample_errors(sums.shape[1:], bits=bits, slots=closed)
        prefixes = np.zeros((closed + 1, *sums.shape[1:]))
        prefixes[1:] = np.cumsum(sums, axis=0) + errors
        return prefixes
