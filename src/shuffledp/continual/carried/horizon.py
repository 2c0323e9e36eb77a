"""Weights and noise of a filter over a whole horizon: as heavy as one user's mark allows, and begun with least harm."""

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import scipy
from numpy.typing import NDArray

from shuffledp.accounting.filter_designs import Design
from shuffledp.accounting.running_filters import blocks_of
from shuffledp.continual.carried.components import covariance_of
from shuffledp.continual.carried.filtering import Floats, along
from shuffledp.continual.carried.weights import CarriedWeights

# Knots are set wherever weights have grown by this part, and more and more densely towards both ends.
_GROWN = 0.03
# So many estimates are looked at to see what the first slots' noise does to them.
_LOOKED_AT, _LOOKED_UP_TO = 300, 1 << 17
# Beyond what is needed to begin with, as a part of the first slot's variance.
_CLEARLY = 1e-12


@dataclass(frozen=True, eq=False)
class Horizon:
    """A design over so many slots: where weights may bend, and how far a step in each slot moves everything.

    Attributes:
        design: the filter and the shape of its variances.
        slots: how many there are.
    """

    design: Design
    slots: int

    @cached_property
    def lengths(self) -> Floats:
        """How far a step of weight 1 in each slot moves everything: a table of all slots, as long as this is used."""
        found = np.empty(self.slots)
        for here, some in self.design.filter.lengths_from_the_end(self._variances_of, self.slots):
            found[here] = some
        return found

    @cached_property
    def knots(self) -> NDArray[np.int64]:
        """Slots at which weights are given."""
        last = float(self._log_deviations(self.slots - 1, self.slots)[0])
        heights = np.arange(0.0, last, _GROWN)
        grown = np.zeros(heights.size, dtype=np.int64)
        for here in blocks_of(self.slots):
            grown += np.searchsorted(self._log_deviations(here.start, here.stop), heights)
        steps = np.geomspace(1, self.slots, 1 + math.ceil(math.log(self.slots + 1) / math.log(1.25))).astype(np.int64)
        even = np.linspace(0, self.slots - 1, 9).astype(np.int64)
        every = np.concatenate((grown, steps - 1, self.slots - steps, even))
        return np.asarray(np.unique(np.clip(every, 0, self.slots - 1)))

    def weights(self, shift: float, least_weight: float, restarts: int = 0) -> CarriedWeights:
        """Weights and noise of a design with which one step moves everything by at most `shift` deviations.

        Args:
            shift: the largest that is private.
            least_weight: about what a step weighs in the first slot: the larger, the less rounding costs.
            restarts: how many of the first slots may be false.
        """
        design, slots, knots, lengths = self.design, self.slots, self.knots, self.lengths
        tap = math.prod(p + g for p, g in design.gains)
        # In units of the first slot's deviation a step may weigh so much; where lengths are longest, least.
        scale = least_weight / (shift / (tap * float(lengths.max())))
        weights = _below(knots, slots, lambda here: shift / (tap * lengths[here]) * scale)
        reached = max(
            float((lengths[here] * along(knots, weights, here.stop, here.start)).max()) for here in blocks_of(slots)
        )
        plain = CarriedWeights(
            slots=slots,
            gains=design.gains,
            poles=design.poles,
            knots=tuple(knots.tolist()),
            weights=tuple(weights.tolist()),
            # Weights are whole: what they leave of the shift, noise can spare.
            variance=(1 + 1e-6) * (reached * tap / shift) ** 2,
            growth=design.growth,
            offset=design.offset,
            restarts=restarts,
            is_begun=False,
        )
        return begun(plain)

    def _variances_of(self, first: int, end: int) -> Floats:
        return self.design.variances_of(self.slots, first, end)

    def _log_deviations(self, first: int, end: int) -> Floats:
        return np.asarray(np.log(self._variances_of(first, end)) / 2)


def _below(knots: NDArray[np.int64], slots: int, allowed: Callable[[Any], Floats]) -> NDArray[np.int64]:
    """Whole weights at the knots whose lines stay below what is allowed.

    Args:
        knots: slots at which weights are given.
        slots: how many there are.
        allowed: the largest weights of some slots.
    """
    heights = allowed(knots)
    of_segments = np.ones(len(knots) - 1)
    for here in blocks_of(slots) if len(knots) > 1 else ():
        room = allowed(here) / np.interp(np.arange(here.start, here.stop), knots, heights)
        # Where segments begin in this stretch; the one before goes on until then.
        inside = knots[(knots > here.start) & (knots < min(here.stop, knots[-1]))]
        edges = np.concatenate(([here.start], inside))
        segments = np.minimum(np.searchsorted(knots, edges, side="right") - 1, of_segments.size - 1)
        least = np.minimum.reduceat(room, edges - here.start)
        np.minimum.at(of_segments, segments, least)
    at_knots = np.minimum(np.append(of_segments, 1.0), np.insert(of_segments, 0, 1.0))
    return np.asarray(np.maximum(1, np.floor(heights * at_knots)), dtype=np.int64)


def begun(plain: CarriedWeights) -> CarriedWeights:
    """With what is needed in the first slots, found so that it adds least to any estimate's variance."""
    missing = plain.missing_components
    size = missing.shape[1]
    if size == 0:
        return replace(plain, is_begun=True)
    responses = plain.first_responses(up_to=_LOOKED_UP_TO)
    looked_at = np.unique(np.geomspace(1, responses.shape[1], _LOOKED_AT).astype(np.int64)) - 1
    responses = responses[:, looked_at] * math.sqrt(plain.variance)
    missing_each = [plain.missing_from(first) / plain.variance for first in range(plain.restarts + 1)]
    places = [(number, slot) for number in range(1, size) for slot in range(size - number)]

    def begins(logarithms: Floats) -> Floats:
        found = np.zeros((size, size))
        for (number, slot), logarithm in zip(places, logarithms, strict=True):
            found[number, slot] = math.exp(min(float(logarithm), 20.0))
        more = covariance_of(found)
        # Whatever is missing still, the first noise supplies.
        lowest = min(float(np.linalg.eigvalsh(more - each).min()) for each in missing_each)
        found[0] = max(0.0, -lowest) + _CLEARLY
        return found

    def harm(logarithms: Floats) -> float:
        surplus = covariance_of(begins(logarithms)) - missing_each[0]
        return float(np.einsum("at,ab,bt->t", responses, surplus, responses, optimize=True).max())

    start = np.array([math.log(abs(missing[number, slot]) / plain.variance + 1e-12) for number, slot in places])
    if places:
        start = scipy.optimize.minimize(harm, start, method="Nelder-Mead", options={"maxiter": 150 * len(places)}).x
    rows = begins(start) * plain.variance
    return replace(plain, begins=tuple(tuple(row.tolist()) for row in rows), is_begun=True)
