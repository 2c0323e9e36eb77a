"""The few numbers that decide what each slot's users weigh, and how much noise the filter has in each slot.

Tables of all slots are kept where these are few. Of a horizon of millions whoever needs some slots' numbers computes
them, a stretch at a time: so a plan's memory does not grow with people.
"""

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike, NDArray

from shuffledp.accounting.running_filters import RunningFilter

Floats = NDArray[np.float64]
Whole = NDArray[np.int64]

KEPT_WHOLE = 1 << 16
"""So many slots' numbers are kept by whoever needs some of them; of more, those that are needed are computed."""


@dataclass(frozen=True)
class SlotNumbers:
    """A filter, and the weights and the shape of the noise of every slot.

    Attributes:
        slots: how many there are.
        gains: for each zero of the filter two whole numbers (p, g): kappa(D) is the product of p + g D.
        poles: of the filter, beside 1: how fast noise that is carried on is taken back.
        knots: slots at which weights are given; between two they lie on a line, rounded down.
        weights: what a step of a user weighs at each knot, whole numbers.
        variance: of the filter's noise in the first slot, in the unit of the windows' sums.
        growth: of the noise's deviation, ((slots + offset) / (slots - t + offset))^growth in slot t.
        offset: as above, in slots.
        begins: beside the filter's noise, row i - 1: the variance of more N_i in the first slots, before which there is
            nothing that could be carried on.
        restarts: how many of the first slots may be false, so that noise is first carried on from the one after them.
    """

    slots: int
    gains: tuple[tuple[int, int], ...]
    poles: tuple[float, ...]
    knots: tuple[int, ...]
    weights: tuple[int, ...]
    variance: float
    growth: float
    offset: float
    begins: tuple[tuple[float, ...], ...] = ()
    restarts: int = 0
    is_begun: bool = True
    """False while a planner has not yet found what to begin with."""

    # --- the filter --------------------------------------------------------------------------

    @property
    def windows(self) -> int:
        """The windows that a user is in."""
        return len(self.gains) + 1

    @property
    def zeros(self) -> tuple[float, ...]:
        """The zeros of the filter: p + g D is (p + g) (1 - g/(p + g) q)."""
        return tuple(g / (p + g) for p, g in self.gains)

    @property
    def filter(self) -> RunningFilter:
        """What the noise makes of a user's value, up to the weight and the first tap."""
        return RunningFilter(self.zeros, self.poles)

    @property
    def kappa(self) -> tuple[int, ...]:
        """The coefficients of the product of p + g D, lowest first."""
        product = [1]
        for p, g in self.gains:
            product = [p * low + g * high for low, high in zip([*product, 0], [0, *product], strict=True)]
        return tuple(product)

    @property
    def first_tap(self) -> int:
        """What a weighed step adds to the window that closes first: the product of p + g."""
        return math.prod(p + g for p, g in self.gains)

    @property
    def taps(self) -> Whole:
        """What a weighed step adds to each of a user's windows."""
        return np.asarray(np.array(self.kappa, dtype=np.int64) @ self.patterns)

    @property
    def patterns(self) -> Whole:
        """What a unit of n_i adds to each window: row i has the coefficients of (1 - q)^i."""
        size = self.windows
        rows = [[(-1) ** j * math.comb(i, j) for j in range(size)] for i in range(size)]
        return np.array(rows, dtype=np.int64)

    # --- every slot --------------------------------------------------------------------------

    @property
    def slot_weights(self) -> Whole:
        """What a step of each slot's users weighs, in whole numbers along lines between the knots."""
        return self._kept_weights if self.slots <= KEPT_WHOLE else self.slot_weights_of(0, self.slots)

    @cached_property
    def _kept_weights(self) -> Whole:
        return self.slot_weights_of(0, self.slots)

    def slot_weights_of(self, first: int, end: int) -> Whole:
        """As `slot_weights`, of the slots first..end-1."""
        return along(self.knots, np.array(self.weights, dtype=np.int64), end, first)

    def slot_weights_at(self, slots: Whole) -> Whole:
        """As `slot_weights`, of these slots, which should be near each other."""
        if self.slots <= KEPT_WHOLE or not slots.size:
            return np.asarray(self.slot_weights[slots])
        first = int(slots.min())
        return np.asarray(self.slot_weights_of(first, int(slots.max()) + 1)[slots - first])

    def slot_weight(self, slot: int) -> int:
        """What a step of this slot's users weighs."""
        return int(self.slot_weights_at(np.array([slot]))[0])

    @property
    def heaviest(self) -> int:
        """The largest of `slot_weights`: lines are highest at a knot."""
        return max(self.weights)

    @property
    def slot_variances(self) -> Floats:
        """The variance of the filter's noise w in each slot."""
        return self._kept_shape if self.slots <= KEPT_WHOLE else self.slot_variances_of(0, self.slots)

    @cached_property
    def _kept_shape(self) -> Floats:
        return self.slot_variances_of(0, self.slots)

    def slot_variances_of(self, first: int, end: int) -> Floats:
        """As `slot_variances`, of the slots first..end-1, of which some may lie before the first one."""
        left = self.slots - np.arange(first, end) + self.offset
        return np.asarray(self.variance * ((self.slots + self.offset) / left) ** (2 * self.growth), dtype=np.float64)


def along(knots: ArrayLike, heights: Whole, count: int, first: int = 0) -> Whole:
    """Whole numbers at the places first..count-1 on lines between the knots, rounded down: alike everywhere."""
    places = np.arange(first, count)
    ends = np.array(knots)
    if ends.size == 1:
        return np.full(places.size, heights[0])
    left = np.minimum(np.searchsorted(ends, places, side="right") - 1, ends.size - 2)
    spans, rises = np.diff(ends), np.diff(heights)
    return np.asarray(heights[left] + rises[left] * (places - ends[left]) // spans[left])
