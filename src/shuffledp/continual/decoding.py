"""Prefixes of a running sum from its batches' sums, as they come: what is kept does not grow with the slots.

A learner's `tell` does the same a cohort at a time; here many slots are told at once.
"""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any

import numpy as np
import scipy
from numpy.typing import NDArray

from shuffledp.continual.carried.weights import CarriedWeights
from shuffledp.continual.second_opinions import SecondOpinions, combine
from shuffledp.schedules.batches import BatchSchedule

Whole = NDArray[np.int64]
Closed = Mapping[int, tuple[Whole, NDArray[Any]]]
"""By level: the slots with which batches closed, in order, and what each batch says, a row a batch."""


class Decoding(ABC):
    """The estimates of the first 1, 2, ... slots, made of batches that close in the order of slots.

    Attributes:
        slots: how many have closed so far.
        last: the estimate of all these, in steps, one number for each coordinate.
    """

    def __init__(self, coordinates: int, kind: type[np.generic]) -> None:
        self.slots = 0
        self.last: NDArray[Any] = np.zeros(coordinates, dtype=kind)

    def take(self, slots: int, closed: Closed) -> NDArray[Any]:
        """The estimates of those slots that closed since the last time, up to so many in all, a row a slot.

        Args:
            slots: how many are over now.
            closed: all batches that closed since the last time.
        """
        rows = {level: (ends, sums.reshape(len(ends), -1)) for level, (ends, sums) in closed.items()}
        found = self._take(slots, rows) if slots > self.slots else self.last[np.newaxis][:0]
        self.slots = slots
        if len(found):
            self.last = found[-1].copy()
        return found

    @abstractmethod
    def _take(self, slots: int, closed: Closed) -> NDArray[Any]:
        """As `take`, where there is something to take."""


class CompletedDecoding(Decoding):
    """Every prefix is an earlier one and the batch that closes with it, perhaps with a second opinion.

    Batches are nested: whatever lies inside one that closed is never needed again.
    """

    def __init__(self, schedule: BatchSchedule, coordinates: int, opinions: SecondOpinions | None) -> None:
        super().__init__(coordinates, np.int64)
        self._schedule, self._opinions = schedule, opinions
        self._open: list[tuple[int, Any]] = [(0, 0 if coordinates == 1 else self.last)]

    def _take(self, slots: int, closed: Closed) -> NDArray[Any]:
        here = slice(self.slots + 1, slots + 1)
        levels, parents = self._schedule.levels[here], self._schedule.parents[here].tolist()
        count, size = slots - self.slots, len(self.last)
        own = np.zeros((count, size), dtype=np.int64)
        second, has_second = np.zeros_like(own), np.zeros(count, dtype=np.bool_)
        for level, (ends, sums) in closed.items():
            places = ends - self.slots - 1
            closes = levels[places] == level
            own[places[closes]] = sums[closes]
            second[places[~closes]], has_second[places[~closes]] = sums[~closes], True
        sums_of = own[:, 0].tolist() if size == 1 else own
        seconds = second[:, 0].tolist() if size == 1 else second
        found = np.empty_like(own)
        for place, (parent, opinion) in enumerate(zip(parents, has_second.tolist(), strict=True)):
            other = self._open[-1][1] + seconds[place] if opinion else None
            while self._open[-1][0] > parent:
                self._open.pop()
            new = self._open[-1][1] + sums_of[place]
            slot = self.slots + 1 + place
            if opinion and self._opinions is not None:
                new = combine(new, other, self._opinions.divisor_at(slot))
            self._open.append((slot, new))
            found[place] = new
        return found


class CarriedDecoding(Decoding):
    """A cascade of filters, each with one number of memory for each coordinate."""

    def __init__(self, weights: CarriedWeights, coordinates: int) -> None:
        super().__init__(coordinates, np.float64)
        self._weights = weights
        self._memory = [np.zeros((1, coordinates)) for _ in weights.gains]

    def _take(self, slots: int, closed: Closed) -> NDArray[Any]:
        values = np.zeros((slots - self.slots, len(self.last)))
        for ends, sums in closed.values():
            values[ends - self.slots - 1] = sums
        for place, (p, g) in enumerate(self._weights.gains):
            values, self._memory[place] = scipy.signal.lfilter(
                [1.0], [p + g, -g], values, axis=0, zi=self._memory[place]
            )
        values /= self._weights.slot_weights_of(self.slots, slots)[:, np.newaxis]
        # One sum after the other, whatever came at once before.
        values[0] += self.last
        return np.cumsum(values, axis=0)
