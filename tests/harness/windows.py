"""A plan of sliding windows that protects nobody and is exact: whatever is routed wrongly shows in its answers.

A user of slot s with the bit x gives the window that closes j slots later, of those that there are,

    (j + 1) (s + 1) x + 2^32 r_j,     r_0 + r_1 + ... = 0 modulo 2^32,

so that the sums of the windows, modulo 2^32, tell every slot's count exactly as it closes, and all r together vanish
if each user drew once for all its windows. The r are uniform; what they leave is said as the answer's bound.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from random import Random
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from shuffledp.accounting.guarantee import DeltaTerm
from shuffledp.accounting.laws import Binomial
from shuffledp.accounting.pairs import ShiftPair
from shuffledp.estimates import Estimate
from shuffledp.messages import Batch, Reports
from shuffledp.privacy import Privacy
from shuffledp.protocols.domains.summed import BITS, SummedDomain
from shuffledp.protocols.family import DomainParameter, Family
from shuffledp.protocols.fields import domain
from shuffledp.protocols.learner import BatchMechanism, Cohort, OpenBatch, PlanLearner
from shuffledp.protocols.plan import Plan
from shuffledp.protocols.request import Request
from shuffledp.protocols.states import State, whole, whole_numbers
from shuffledp.protocols.tallies import Tally
from shuffledp.randomness import RandomBits
from shuffledp.schedules.batches import BatchSchedule
from shuffledp.schedules.joined import joined_batches
from shuffledp.schedules.layout import BatchLayout
from shuffledp.schedules.windows import window_ages, window_schedule
from shuffledp.service.crypto import PublicKey
from shuffledp.service.task import Task

HALF = 1 << 32
# What is drawn for windows that there are not: it must reach nobody.
NOBODYS = np.uint64(0xDEAD_BEEF_DEAD_BEEF)


@dataclass(frozen=True, slots=True, kw_only=True)
class WindowCount(Plan):
    """A running count by windows, exact after every slot."""

    protocol: ClassVar[str] = "windows"
    method: ClassVar[str] = "exact"
    theory_page: ClassVar[str] = "docs/theory/running-sums.md"

    slots: int = domain()
    shufflers: int = domain()

    @classmethod
    def for_request(cls, request: Request, *, slots: int, shufflers: int) -> Self:
        return cls(**request.common, slots=slots, shufflers=shufflers)

    @property
    def domain(self) -> SummedDomain:
        return BITS

    @property
    def schedule(self) -> BatchSchedule:
        return _schedule(self.slots, self.shufflers, self.users)

    @property
    def layout(self) -> BatchLayout:
        sizes = {size for sizes in self.schedule.sizes_with(every_slot=False) for size in sizes}
        messages = {size: self.mechanism(size).messages_max for size in sizes}
        return BatchLayout.sliding(self.users, self.slots, self.shufflers, messages)

    def mechanism(self, users: int) -> BatchMechanism:
        return Window(self, users)

    def learner(self) -> "WindowLearner":
        return WindowLearner(self)

    def prepare(
        self, values: ArrayLike, *, bits: RandomBits, positions: NDArray[np.int64] | None = None
    ) -> NDArray[np.uint64]:
        """For each user what its windows get, in the order in which they close."""
        assert positions is not None and positions.dtype == np.int64 and positions.shape == np.shape(values)
        slots, _ = self.schedule.place_of(positions)
        there = np.minimum(self.shufflers, self.slots - slots)[:, np.newaxis]
        ages = np.arange(self.shufflers)
        masks = bits.unsigned(positions.size * self.shufflers, 32).reshape(-1, self.shufflers).astype(np.uint64)
        last = ages == there - 1
        masks[last] = -np.where(ages < there - 1, masks, 0).sum(axis=1, dtype=np.uint64)
        ones = (ages + 1) * ((slots + 1) * self.check_values(values))[:, np.newaxis]
        return np.where(ages < there, ones.astype(np.uint64) + (masks << np.uint64(32)), NOBODYS)

    def true_value(self, values: ArrayLike) -> float:
        return float(self.check_values(values).sum(dtype=np.int64))

    def sample_estimate(self, values: ArrayLike, *, bits: RandomBits) -> Estimate:
        self.check_reports(np.size(values))
        return _exactly(int(self.true_value(values)), 0, simulated=not bits.is_secure)

    # --- what every plan says, and this one cannot ---------------------------------------------

    question = "count ones exactly, which protects nobody"
    dominates_because = "Nothing is claimed: a test's own."
    lying_client = "moves the count as far as it likes"
    influence = None
    standard_error = error_bound = 0.0
    bits_per_message = 64

    @property
    def messages_per_user_max(self) -> int:
        return 3 * self.shufflers

    def pair(self, honest: int) -> ShiftPair:
        return ShiftPair(Binomial(1, 0.5))

    def delta_terms(self, epsilon: float, honest: int) -> tuple[DeltaTerm, ...]:
        return (DeltaTerm("nothing", self.privacy.delta, "nothing is claimed: a test's own"),)

    def audited_effort(self, honest: int) -> int:
        raise NotImplementedError

    def views(self, side: int, trials: int, honest: int, *, bits: RandomBits) -> NDArray[np.int64]:
        raise NotImplementedError

    def quieter(self, part: float) -> dict[str, Any]:
        raise NotImplementedError


@lru_cache(64)
def _schedule(slots: int, shufflers: int, users: int) -> BatchSchedule:
    return window_schedule(slots, shufflers, users)


@dataclass(frozen=True, slots=True)
class Window(BatchMechanism):
    """A window of so many users: everybody's part of it, in a few shares that add up to it."""

    # What a count of messages must be corrected by.
    coins: ClassVar[int] = 0

    plan: WindowCount
    users: int

    @property
    def messages_max(self) -> int:
        """More in small windows, so that lengths of reports differ."""
        return 3 if self.users < self.plan.shufflers * (self.plan.schedule.slot_users - 1) else 2

    def randomize(self, prepared: NDArray[np.uint64], first_seat: int, *, bits: RandomBits) -> Reports:
        seats = slice(first_seat, first_seat + len(prepared))
        ages = window_ages(self.plan.schedule, self.plan.shufflers, self.users)[seats]
        shares = bits.unsigned(len(prepared) * self.messages_max, 64).reshape(-1, self.messages_max)
        shares[:, 0] = prepared[np.arange(len(prepared)), ages] - shares[:, 1:].sum(axis=1, dtype=np.uint64)
        return Reports.of_equal_size(shares)

    def tally(self, batch: Batch, malformed: int = 0) -> Tally:
        total = batch.payloads.sum(dtype=np.uint64, keepdims=True)
        return Tally(total, batch.reports, len(batch), malformed)

    def read(self, tally: Tally) -> tuple[int, int]:
        return int(tally.counts[0]), self.users * self.messages_max - tally.messages


@dataclass(frozen=True, slots=True, eq=False)
class WindowState(State):
    """Users so far, the counts of the slots that open windows hold, newest first, all counts, and what masks leave."""

    users: int = whole("whole users")
    recent: tuple[int, ...] = whole_numbers("counts of slots")
    total: int = whole("a whole count")
    masks: int = whole("a whole sum of masks")


@dataclass(frozen=True, slots=True)
class WindowLearner(PlanLearner[WindowState]):
    """Every slot's count from its window and the counts of the slots before."""

    states: ClassVar[type[State] | None] = WindowState

    plan: WindowCount

    def start(self) -> WindowState:
        return WindowState(self.plan.fingerprint, 0, (), 0, 0)

    def ask(self, state: WindowState) -> Cohort | None:
        plan, schedule = self.plan, self.plan.schedule
        if state.users == plan.users:
            return None
        slot, _ = schedule.place_of(state.users)
        batches = [
            OpenBatch(level, first, plan.mechanism(schedule.batch_users(first, end)), int(state.users - before))
            for level, first, end in joined_batches(schedule, slot)
            for before in [schedule.users_by(first)]
        ]
        return Cohort(int(schedule.users_by(slot + 1)) - state.users, tuple(batches))

    def tell(self, state: WindowState, users: int, closed: Mapping[int, int]) -> WindowState:
        cohort = self.ask(state)
        assert cohort is not None and set(closed) == set(cohort.closing(users)), (users, closed)
        if not closed:
            return WindowState(state.fingerprint, state.users + users, state.recent, state.total, state.masks)
        ((_, told),) = closed.items()
        slot, _ = self.plan.schedule.place_of(state.users)
        masks, ones = divmod(told, HALF)
        before = sum((age + 1) * (slot - age + 1) * count for age, count in enumerate(state.recent, 1))
        here, rest = divmod(ones - before, slot + 1)
        # What was sent elsewhere, twice or not at all is no count of a slot.
        count = here if rest == 0 and 0 <= here <= cohort.users + state.users else -(10**9)
        recent = (count, *state.recent)[: self.plan.shufflers - 1]
        return WindowState(
            state.fingerprint, state.users + users, recent, state.total + count, (state.masks + masks) % HALF
        )

    def estimate(self, state: WindowState, *, simulated: bool = False) -> Estimate:
        return _exactly(state.total, state.masks, simulated=simulated)


def _exactly(total: int, masks: int, *, simulated: bool) -> Estimate:
    return Estimate(
        value=float(total), standard_error=0.0, bound=float(masks), confidence=0.95, dropped=0, simulated=simulated
    )


def window_task(key: PublicKey, choice: Random | None = None, *, users: int = 26, slots: int = 7) -> Task:
    """A task of windows of three slots, the first two of which have three users and the others four."""
    plan = WINDOWS.plan(users=users, privacy=Privacy(8, 0.1), slots=slots, shufflers=3)
    return Task.create(plan, key, bits=RandomBits.secure(), allow_unbounded=True)


WINDOWS: Family[WindowCount] = Family.of(
    "windows",
    "How many ones, exactly: of a test.",
    WindowCount,
    domain=(DomainParameter("slots", way_out="say how many"), DomainParameter("shufflers", way_out="say how many")),
)
