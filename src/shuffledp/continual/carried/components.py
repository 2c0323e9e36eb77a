"""What users draw so that all running sums together have the filter's noise, which is carried from slot to slot.

The filter's noise is a sum of N_1, D N_2, D^2 N_3, ..., each of them independent between slots. Before the first slot
there is nothing that could be carried on: what is missing is drawn there, and more.

Proofs: docs/theory/carried-noise.md.
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from shuffledp.accounting.running_filters import blocks_of
from shuffledp.continual.carried.filtering import KEPT_WHOLE, Floats, SlotNumbers, Whole

ROUNDING_VARIANCE = 4.0
"""The variance that rounding a running sum at random to whole numbers takes: two steps' deviation."""


@dataclass(frozen=True)
class NoiseComponents(SlotNumbers):
    """The variances of N_1, N_2, ... in every slot."""

    @property
    def component_variances(self) -> Floats:
        """Row i - 1: the variance of N_i in each slot with which all of them together have the filter's covariance.

        prod((1 - pole) + pole D) w has the covariance of sum_i D^(i-1) N_i exactly: for one more pole, with V the
        diagonal matrix of variances, ((1 - pole) + pole D) V (...)^T = (1 - pole)(V_t - pole V_(t-1)) + pole D V D^T.
        Here as if the noise had been growing like that for ever.
        """
        return self._component_variances_of(0, self.slots)

    @cached_property
    def _least_components(self) -> tuple[float, ...]:
        """The least variance of each of N_1, N_2, ... over all slots, as in `component_variances`."""
        least = [self._component_variances_of(each.start, each.stop).min(axis=1) for each in blocks_of(self.slots)]
        return tuple(np.min(least, axis=0).tolist())

    def _component_variances_of(self, first: int, end: int) -> Floats:
        before = len(self.poles)
        return self._components(self.slot_variances_of(first - before, end))[:, before:]

    def _components(self, variances: Floats) -> Floats:
        """The variances of N_1, N_2, ... of a filter that begins with these and has nothing before."""
        rows = [variances]
        none = np.zeros_like(variances)
        for pole in self.poles:
            before = [np.concatenate(([0.0], row[:-1])) for row in rows]
            kept = [(1 - pole) * (row - pole * last) for row, last in zip(rows, before, strict=True)]
            rows = [low + pole * high for low, high in zip([*kept, none], [none, *rows], strict=True)]
        return np.array(rows)

    @property
    def _corner(self) -> int:
        """The first slots, in which noise is missing that would have been carried on from before."""
        return len(self.poles)

    @cached_property
    def missing_at_first(self) -> Floats:
        """The filter's covariance less that of `component_variances`: it is 0 but in the first few running sums."""
        return self.missing_from(0)

    @cached_property
    def missing_components(self) -> Floats:
        """The variances of N_1, N_2, ... that are missing in the first slots; some are negative."""
        return self._missing_components(0)

    def missing_from(self, first: int) -> Floats:
        """As `missing_at_first`, where all slots before this one add nothing."""
        return covariance_of(self._missing_components(first))

    def _missing_components(self, first: int) -> Floats:
        end = min(self.slots, first + self._corner)
        return self._components(self.slot_variances_of(first, end)) - self._component_variances_of(first, end)

    @cached_property
    def begin_surplus(self) -> Floats:
        """How much more covariance the first running sums' noise has than the filter's: a positive definite matrix."""
        return covariance_of(np.array(self.begins)) - self.missing_at_first

    @property
    def noise_variances(self) -> Floats:
        """The variances with which the users of a slot draw N_1, N_2, ...: together at least the filter's noise.

        What comes on top only helps to hide people. N_1 has what the rounding of running sums takes, too.
        """
        return self._kept_variances if self.slots <= KEPT_WHOLE else self.noise_variances_of(0, self.slots)

    @cached_property
    def _kept_variances(self) -> Floats:
        return self.noise_variances_of(0, self.slots)

    def noise_variances_of(self, first: int, end: int) -> Floats:
        """As `noise_variances`, of the slots first..end-1: nothing is computed of any other."""
        return self._with_begins(self._component_variances_of(first, end), first)

    @cached_property
    def noise_limits(self) -> tuple[Floats, Floats]:
        """The least and the largest of `noise_variances` over all slots, for each of N_1, N_2, ..."""
        ends = []
        for each in blocks_of(self.slots):
            some = self.noise_variances_of(each.start, each.stop)
            ends.append((some.min(axis=1), some.max(axis=1)))
        least, most = zip(*ends, strict=True)
        return np.min(least, axis=0), np.max(most, axis=0)

    def noise_variances_at(self, slots: Whole) -> Floats:
        """As `noise_variances`, of these slots, which should be near each other."""
        if self.slots <= KEPT_WHOLE or not slots.size:
            return np.asarray(self.noise_variances[:, slots])
        first = int(slots.min())
        return np.asarray(self.noise_variances_of(first, int(slots.max()) + 1)[:, slots - first])

    def _with_begins(self, drawn: Floats, first: int) -> Floats:
        """The variances of the slots from `first` on, and what is drawn beside the filter's noise."""
        size = self._corner
        begins = np.array(self.begins).reshape(size, size)
        for begun in range(self.restarts + 1):
            for place, slot in enumerate(range(begun - first, begun - first + size)):
                if 0 <= slot < drawn.shape[1]:
                    drawn[:size, slot] += begins[:, place]
        drawn[0] += ROUNDING_VARIANCE
        return drawn


def covariance_of(rows: Floats) -> Floats:
    """The covariance of sum_i D^(i-1) N_i over the first running sums; N_i has the variances of row i - 1."""
    size = rows.shape[1]
    difference = np.eye(size) - np.eye(size, k=-1)
    found, pattern = np.zeros((size, size)), np.eye(size)
    for row in rows[:size]:
        found += pattern * row @ pattern.T
        pattern = pattern @ difference
    return found
