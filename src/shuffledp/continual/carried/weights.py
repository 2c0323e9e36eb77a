"""What each slot's users weigh and how much noise they add: the one source for clients, simulations and accounting.

Batches are windows over k slots. A user of slot s with value x adds to the window that closes with slot s + j

    sum_i (-1)^j C(i, j) (kappa_i weight_s x + n_i),        i = 0..k-1, n_0 = 0,        j = 0..k-1,

so that the running sum of all windows up to slot t is, with D the difference to the slot before,

    Y_t = kappa_0 sum_{s <= t} weight_s X_s + sum_{i >= 1} (D^(i-1) (kappa_i weight X + N_i))_t.

X_s and N_i are sums over the users of a slot. Proofs: docs/theory/carried-noise.md.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass, fields
from functools import cached_property
from typing import Any, Self

import numpy as np
import scipy
from numpy.typing import NDArray

from shuffledp.accounting.running_filters import RunningFilter, blocks_of
from shuffledp.continual.carried.components import ROUNDING_VARIANCE, NoiseComponents, covariance_of
from shuffledp.continual.carried.filtering import Floats
from shuffledp.errors import ParameterError

# Recursions over all slots are good to 1e-9 or better; lengths and variances are rounded up by more.
_ROUNDED_UP = 1 + 1e-7
# Weights times values and noise stay exact in a double, and leave room in 64 bits.
LARGEST_SUM = 1 << 52
LARGEST_VARIANCE = 1e35
MOST_SLOTS = 1 << 26
# In the first slots there is more noise than the filter's by at least this part of it: eigenvalues are good to 1e-14.
_CLEARLY = 3e-13


@dataclass(frozen=True)
class CarriedWeights(NoiseComponents):
    """Weights and noise of every slot, from a few numbers, checked: what they show of a user, and estimates' errors.

    >>> plain = CarriedWeights(
    ...     slots=3, gains=((1, 1),), poles=(), knots=(0, 2), weights=(4, 6), variance=900.0, growth=0.5, offset=1.0
    ... )
    >>> plain.kappa, plain.taps.tolist(), plain.slot_weights.tolist()
    ((1, 1), [2, -1], [4, 5, 6])
    """

    def __post_init__(self) -> None:
        again = "make the plan again"
        if type(self.slots) is not int or not 1 <= self.slots <= MOST_SLOTS:
            raise ParameterError("slots", self.slots, f"must lie in 1..{MOST_SLOTS}", again)
        if type(self.restarts) is not int or not 0 <= self.restarts <= 64:
            raise ParameterError("restarts", self.restarts, "must lie in 0..64", again)
        least = len(self.poles) + self.restarts
        if self.slots < least:
            # `begins` fills a square of as many slots as there are poles: all that may be missing lies in it.
            raise ParameterError("slots", self.slots, f"must be {least} or more with so many poles", again)
        whole = [*self.knots, *self.weights, *(each for gain in self.gains for each in gain)]
        if not all(type(each) is int for each in whole) or not all(p >= 1 and g >= 0 for p, g in self.gains):
            raise ParameterError("gains", self.gains, "must be whole numbers, as must knots and weights", again)
        if self.first_tap > LARGEST_SUM or not all(type(pole) is float and 0 < pole < 1 for pole in self.poles):
            problem = "must be small, and poles lie strictly between 0 and 1"
            raise ParameterError("gains", self.gains, problem, again)
        # Refused where there is not one pole less than zeros, or two are alike.
        RunningFilter(self.zeros, self.poles)
        if not len(self.knots) == len(self.weights) >= 1:
            raise ParameterError("knots", len(self.knots), "must have a weight each", again)
        if self.knots[0] != 0 or self.knots[-1] != self.slots - 1 or (np.diff(self.knots) <= 0).any():
            raise ParameterError("knots", self.knots[-1], "must grow from 0 to the last slot", again)
        if min(self.weights) < 1 or max(self.weights) > LARGEST_SUM // self.slots:
            raise ParameterError("weights", max(self.weights), "must be >= 1 and fit into 52 bits together", again)
        for name, most in (("variance", 1e32), ("growth", 100.0), ("offset", 1e12)):
            value = getattr(self, name)
            if type(value) is not float or not 0 < value <= most:
                raise ParameterError(name, value, f"must lie in (0, {most:g}]", again)
        grown = 2 * self.growth * math.log((self.slots + self.offset) / (1 + self.offset))
        if math.log(self.variance) + grown > math.log(LARGEST_VARIANCE):
            raise ParameterError("growth", self.growth, f"must not lead beyond {LARGEST_VARIANCE:g}", again)
        if min(self._least_components) <= 0:
            problem = "must not fall faster than the noise is carried on"
            raise ParameterError("growth", self.growth, problem, again)
        if not self.is_begun:
            return
        begun = [len(self.begins), *(len(row) for row in self.begins)]
        if begun != [self._corner] * (self._corner + 1) or not all(
            type(each) is float and 0 <= each < LARGEST_VARIANCE for row in self.begins for each in row
        ):
            raise ParameterError("begins", begun, f"must be {self._corner} times as many variances >= 0", again)
        if any(each for number, row in enumerate(self.begins) for each in row[self._corner - number :]):
            raise ParameterError("begins", begun, "must end with the first slots", again)
        more = covariance_of(np.array(self.begins).reshape(self._corner, self._corner))
        for first in range(self.restarts + 1 if self._corner else 0):
            if np.linalg.eigvalsh(more - self.missing_from(first)).min() < _CLEARLY * self.variance:
                raise ParameterError("begins", self.begins[0][0], "must be enough to begin with", again)

    def __reduce__(self) -> tuple[Any, ...]:
        # What is computed of every slot is computed again where it is needed, and sent to nobody.
        return type(self)._unchecked, tuple(getattr(self, each.name) for each in fields(self))

    @classmethod
    def _unchecked(cls, *values: Any) -> Self:
        """The weights that were pickled: they were checked when they were made."""
        found = object.__new__(cls)
        for each, value in zip(fields(cls), values, strict=True):
            object.__setattr__(found, each.name, value)
        return found

    @cached_property
    def shift(self) -> float:
        """How many deviations of the filter's noise a step of one user moves all that is ever released, at most."""
        longest = max(
            float((lengths * self.slot_weights_of(here.start, here.stop)).max())
            for here, lengths in self.filter.lengths_from_the_end(self.slot_variances_of, self.slots)
        )
        return longest * (self.first_tap * _ROUNDED_UP)

    def visits_shift(self, visits: int) -> float:
        """As `shift`, of a user who comes so often, never twice in one slot: one step in each visit, in any direction.

        Whatever is more than so many shifts is never needed.
        """
        if visits == 1:
            return self.shift
        weights = self.slot_weights.astype(np.float64)
        together = self.filter.visits_length(self.slot_variances, weights, visits)
        return min(visits * self.shift, together * self.first_tap * _ROUNDED_UP)

    @cached_property
    def prefix_variances(self) -> Floats:
        """The noise of the sum of the first 1, 2, ... slots, in steps squared, if everybody draws its part."""
        found = self.filter.prefix_variances_of(self.slot_variances_of, self._first_weights_of, self.slots)
        if self._corner:
            surplus = self.begin_surplus
            for first in range(self.restarts + 1):
                for here, responses in self._responses_in_blocks(first):
                    found[here] += np.einsum("at,ab,bt->t", responses, surplus, responses, optimize=True)
                surplus = covariance_of(np.array(self.begins))
        found *= 1 + self.rounding_part
        found *= _ROUNDED_UP
        return found

    def _first_weights_of(self, first: int, end: int) -> Floats:
        """What a step of the slots first..end-1 adds to the window that closes first."""
        return self.slot_weights_of(first, end).astype(np.float64) * self.first_tap

    @property
    def rounding_part(self) -> float:
        """Noise of variance 4 in every running sum would add at most this part to `prefix_variances`."""
        return ROUNDING_VARIANCE / self._least_components[0]

    def first_responses(self, first: int = 0, up_to: int = MOST_SLOTS) -> Floats:
        """Row t: what a unit of noise in running sum first + t adds to the estimates after 1, 2, ... slots."""
        return np.concatenate([each for _, each in self._responses_in_blocks(first, up_to)], axis=1)

    def _responses_in_blocks(self, first: int, up_to: int = MOST_SLOTS) -> Iterator[tuple[slice, Floats]]:
        """As `first_responses`, in stretches of slots one after the other: which slots, and their columns."""
        states = [np.zeros((1, self._corner)) for _ in self.gains]
        total = np.zeros(self._corner)
        for here in blocks_of(min(self.slots, up_to)):
            slots = np.zeros((here.stop - here.start, self._corner))
            for place in range(self._corner):
                for slot, unit in ((first + place, 1.0), (first + place + 1, -1.0)):
                    if here.start <= slot < here.stop:
                        slots[slot - here.start, place] = unit
            for place, (p, g) in enumerate(self.gains):
                slots, states[place] = scipy.signal.lfilter([1.0], [p + g, -g], slots, axis=0, zi=states[place])
            slots /= self.slot_weights_of(here.start, here.stop)[:, np.newaxis]
            slots[0] += total
            found = np.cumsum(slots, axis=0)
            total = found[-1]
            yield here, found.T

    def response(self, number: int, slot: int) -> Floats:
        """What a unit of N_number in this slot adds to the estimates after 1, 2, ... slots."""
        windows = np.zeros(self.slots)
        reached = min(number + 1, self.slots - slot)
        windows[slot : slot + reached] = self.patterns[number, :reached]
        return self.decoded(windows)

    def decoded(self, windows: NDArray[np.float64]) -> NDArray[np.float64]:
        """The estimated sums of the first 1, 2, ... slots, in steps, from the windows' sums along the first axis."""
        slots = np.asarray(windows, dtype=np.float64)
        for p, g in self.gains:
            slots = scipy.signal.lfilter([1.0], [p + g, -g], slots, axis=0)
        weights = self.slot_weights_of(0, len(slots)).reshape(-1, *(1,) * (slots.ndim - 1))
        return np.asarray(np.cumsum(slots / weights, axis=0))
