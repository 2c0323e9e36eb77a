"""Which windows, slots, filter and weights: the smallest proved bound over the whole horizon."""

import math
from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from shuffledp.accounting.running_filters import RunningFilter
from shuffledp.continual.carried.design import Design, design_for
from shuffledp.continual.carried.weights import CarriedWeights, covariance_of

Floats = NDArray[np.float64]

# Knots are set wherever weights have grown by this part, and more and more densely towards both ends.
_GROWN = 0.03
# The first slots' noises beyond the first are raised by one of these, so that the first itself needs little.
_RAISED = (1.0, 3.0, 10.0, 30.0, 100.0)
# Beyond what is needed to begin with, as a part of the first slot's variance.
_CLEARLY = 1e-9


def weights_for(design: Design, slots: int, shift: float, least_weight: float) -> CarriedWeights:
    """Weights and noise of a design with which one step moves everything by at most `shift` deviations.

    Args:
        design: the filter and the shape of its variances.
        slots: how many there are.
        shift: the largest that is private.
        least_weight: about what a step weighs in the first slot: the larger, the less rounding costs.
    """
    shape = design.variances(slots)
    knots = _knots(slots, np.log(shape) / 2)
    zeros = tuple(g / (p + g) for p, g in design.gains)
    lengths = RunningFilter(zeros, design.poles).column_lengths(shape)
    tap = math.prod(p + g for p, g in design.gains)
    # In units of the first slot's deviation a step may weigh so much.
    allowed = shift / (tap * lengths)
    scale = least_weight / float(allowed.min())
    weights = _below(knots, allowed * scale)
    plain = CarriedWeights(
        slots=slots,
        gains=design.gains,
        poles=design.poles,
        knots=tuple(knots.tolist()),
        weights=tuple(weights.tolist()),
        variance=scale**2,
        growth=design.growth,
        offset=design.offset,
        is_begun=False,
    )
    # Weights are whole: what they leave of the shift, noise can spare.
    return _begun(replace(plain, variance=scale**2 * (plain.shift / shift) ** 2))


def _knots(slots: int, log_deviations: Floats) -> NDArray[np.int64]:
    """Slots at which weights are given."""
    grown = np.searchsorted(log_deviations, np.arange(0.0, log_deviations[-1], _GROWN))
    steps = np.geomspace(1, slots, 1 + math.ceil(math.log(slots + 1) / math.log(1.25))).astype(np.int64)
    every = np.concatenate((grown, steps - 1, slots - steps, np.linspace(0, slots - 1, 9).astype(np.int64)))
    return np.unique(np.clip(every, 0, slots - 1))


def _below(knots: NDArray[np.int64], allowed: Floats) -> NDArray[np.int64]:
    """Whole weights at the knots whose lines stay below what is allowed."""
    lines = np.interp(np.arange(allowed.size), knots, allowed[knots])
    room = np.minimum(1.0, allowed / lines)
    if len(knots) > 1:
        of_segments = np.minimum.reduceat(room, knots[:-1])
        at_knots = np.minimum(np.append(of_segments, 1.0), np.insert(of_segments, 0, 1.0))
    else:
        at_knots = np.ones(1)
    return np.maximum(1, np.floor(allowed[knots] * at_knots)).astype(np.int64)


def _begun(plain: CarriedWeights) -> CarriedWeights:
    """With what is needed in the first slots, so that it adds least to any estimate's variance."""
    missing = plain.missing_components
    size = missing.shape[1]
    if size == 0:
        return replace(plain, is_begun=True)
    responses = plain.first_responses()
    tried = []
    for factor in _RAISED:
        begins = np.zeros((size, size))
        for number in range(1, size):
            begins[number, : size - number] = factor * np.abs(missing[number, : size - number])
        lowest = float(np.linalg.eigvalsh(covariance_of(begins) - plain.missing_at_first).min())
        begins[0] = max(0.0, -lowest) + _CLEARLY * plain.variance
        surplus = covariance_of(begins) - plain.missing_at_first
        harm = float(np.einsum("at,ab,bt->t", responses, surplus, responses, optimize=True).max())
        tried.append((harm, begins))
    _, begins = min(tried, key=lambda each: each[0])
    return replace(plain, begins=tuple(tuple(row.tolist()) for row in begins), is_begun=True)
