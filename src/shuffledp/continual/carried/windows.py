"""Slots and windows of a running sum with carried noise, and which slots' users supply its noise."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from shuffledp.accounting.dropouts import honest_users
from shuffledp.accounting.running_filters import blocks_of
from shuffledp.continual.carried.weights import CarriedWeights
from shuffledp.continual.running import RunningPlan
from shuffledp.schedules.batches import BatchSchedule
from shuffledp.schedules.courses import WindowCourse
from shuffledp.schedules.windows import window_schedule


@lru_cache(maxsize=8)
def _schedule(slots: int, shufflers: int, users: int) -> BatchSchedule:
    return window_schedule(slots, shufflers, users)


@dataclass(frozen=True, slots=True, kw_only=True)
class CarriedWindows(RunningPlan):
    """A window closes with every slot and holds the last `shufflers_used` of them; its noise is its users'."""

    method: ClassVar[str] = "carried"
    estimator: ClassVar[str] = "carried"
    is_independent: ClassVar[bool] = False

    weights: CarriedWeights
    silent_slots: int = 0
    """So many slots of as many in a row as supply a noise may be false."""

    # --- slots and windows -------------------------------------------------------------------

    @property
    def slot_users(self) -> int:
        return -(-self.users // self.weights.slots)

    @property
    def _short(self) -> int:
        """The first so many slots have a user less."""
        return self.weights.slots * self.slot_users - self.users

    @property
    def _slot_sizes(self) -> tuple[int, ...]:
        """The sizes that slots have."""
        return (self.slot_users - 1, self.slot_users) if self._short else (self.slot_users,)

    @property
    def schedule(self) -> BatchSchedule:
        return _schedule(self.weights.slots, self.shufflers_used, self.users)

    @property
    def course(self) -> WindowCourse:
        return WindowCourse(self.weights.slots, self.shufflers_used, self.slot_users, self._short)

    def batches_by(self, slots: int) -> int:
        return slots

    @property
    def _windows(self) -> dict[tuple[int, int], int]:
        """How many windows have so many slots, so many of them with a user less."""
        return _window_kinds(self.weights.slots, self.shufflers_used, self._short)

    def _kind_of(self, end: int) -> tuple[int, int]:
        """The slots of the window that closes after so many, and how many of them have a user less."""
        slots = min(self.shufflers_used, end)
        return slots, min(max(0, self._short - (end - slots)), slots)

    def _slots_of(self, kind: tuple[int, int]) -> tuple[int, ...]:
        """The users of a window's slots, the earliest first."""
        slots, short = kind
        return (self.slot_users - 1,) * short + (self.slot_users,) * (slots - short)

    def _honest_of(self, kind: tuple[int, int], fraction: float) -> int:
        """Honest users of a window, when this fraction of every slot is."""
        return sum(honest_users(size, fraction) for size in self._slots_of(kind))

    def _honest_windows(self, fraction: float) -> dict[int, int]:
        """By honest users, how many windows."""
        found: dict[int, int] = {}
        for kind, many in self._windows.items():
            honest = self._honest_of(kind, fraction)
            found[honest] = found.get(honest, 0) + many
        return found

    # --- who supplies the noise --------------------------------------------------------------

    @property
    def _suppliers(self) -> int:
        """By how many slots' users each noise is supplied: more than one where there are more windows than needed."""
        return self.shufflers_used - self.weights.windows + 1

    def _counted_on(self, times: NDArray[np.int64]) -> NDArray[np.int64]:
        """How many slots, of those that supply the noise of these running sums, are counted on."""
        return np.asarray(np.maximum(1, np.minimum(self._suppliers, times + 1) - self.silent_slots))

    @property
    def surplus(self) -> float:
        """How much more noise there is when everybody follows the protocol, at most, but for the first few slots."""
        supplied = self._suppliers / (self._suppliers - self.silent_slots)
        return supplied * max(size / honest_users(size, self.honest_fraction) for size in self._slot_sizes)

    @property
    def surplus_by_slot(self) -> NDArray[np.float64]:
        """How much more noise than is counted on the users of each slot draw."""
        return np.concatenate(list(self._surpluses(self.weights.slots)))

    @property
    def _largest_surplus(self) -> float:
        """The largest of `surplus_by_slot`."""
        return max(float(each.max()) for each in self._surpluses(self.weights.slots))

    def _surpluses(self, slots: int) -> Iterator[NDArray[np.float64]]:
        """As `surplus_by_slot`, of the first so many slots, in stretches one after the other."""
        each = [size / honest_users(size, self.honest_fraction) for size in self._slot_sizes]
        # Sums over the slots before those of a stretch, as far back as they are needed, and over all before.
        reached = np.zeros(1)
        for here in blocks_of(slots):
            if self.honest_fraction == 1 and not self.silent_slots:
                yield np.ones(here.stop - here.start)
                continue
            of_slots = np.where(np.arange(here.start, here.stop) < self._short, each[0], each[-1])
            of_slots[0] += reached[-1]
            first = here.start + 1 - reached.size
            reached = np.concatenate((reached, np.cumsum(of_slots)))
            # Each running sum's noise comes in equal parts from the slots up to its own.
            ends = np.arange(here.start + 1, here.stop + 1)
            firsts = np.maximum(0, ends - self._suppliers)
            yield np.asarray((reached[ends - first] - reached[firsts - first]) / self._counted_on(ends - 1))
            reached = reached[-self._suppliers - 1 :]


@lru_cache(maxsize=32)
def _window_kinds(slots: int, windows: int, short: int) -> dict[tuple[int, int], int]:
    """How many windows there are of each kind: by how many slots one has, and how many of those are short.

    Args:
        slots: of the horizon.
        windows: how many slots the longest one has.
        short: how many slots, the first ones, have a user less.
    """
    found: dict[tuple[int, int], int] = {}

    def count(first: int, end: int, many: int = 1) -> None:
        if many > 0:
            kind = (end - first, min(max(0, short - first), end - first))
            found[kind] = found.get(kind, 0) + many

    for end in range(1, min(windows, slots + 1)):
        count(0, end)
    # Full windows: over short slots only, over some, over none.
    last = slots - windows
    mixed = range(max(0, short - windows + 1), min(last, short - 1) + 1)
    count(0, windows, min(last, short - windows) + 1)
    for first in mixed:
        count(first, first + windows)
    count(max(0, short), max(0, short) + windows, last - short + 1)
    return found
