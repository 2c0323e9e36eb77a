"""What is left of the noise when whole slots are false: their users add none, and know their own values.

Noise is carried from slot to slot, so a run of false slots is felt by everybody who came before. With V the variances
of what is drawn, 0 in false slots, the running sums' noise has the covariance S = sum_i D^(i-1) V_i D^(i-1)^T, a band;
a user of slot t moves them by a_t = weight_t kappa(D) / (1 - q), and the mechanism shows it like a Gaussian one with a
shift of sqrt(a_t^T S^-1 a_t). As many false slots in a row as there are noises leave a running sum bare.
"""

import math
from functools import lru_cache

import numpy as np
import scipy
from numpy.typing import NDArray

from shuffledp.continual.carried.weights import CarriedWeights

# A band of so many running sums is solved in a second or two.
MOST_SLOTS = 1 << 21
# Users so many slots before and after the false ones are looked at.
_NEAR = (-2000, -500, -100, -30, -10, -5, -3, -2, -1, 0, 1, 5, 50)


@lru_cache(maxsize=64)
def shift_with_silent(weights: CarriedWeights, silent: int, spread: int = 1, planned: int = 0) -> float:
    """By how many deviations a step of one user moves all that is released when so many slots in a row add no noise.

    The worst of a few places of the false slots, the last ones included, and of a few users near them; inf where
    nothing hides a running sum. Trying all places finds at most 1% more.

    Args:
        weights: of all slots.
        silent: how many slots in a row are false.
        spread: by how many slots' users each noise is supplied.
        planned: so many of these slots are not counted on.
    """
    if silent <= planned:
        return weights.shift
    if silent >= weights.windows - 1 + spread - 1:
        return math.inf
    slots = weights.slots
    worst = weights.shift
    for place in _places(slots, silent):
        band = _band(weights, _supplied(weights, place, silent, spread, planned))
        users = [place + offset if offset < 0 else place + silent + offset for offset in _NEAR]
        moved = np.stack([_moved(weights, user) for user in users if 0 <= user < slots], axis=1)
        squares = (moved * scipy.linalg.solveh_banded(band, moved, lower=True)).sum(axis=0)
        worst = max(worst, math.sqrt(max(0.0, float(squares.max()))))
    return worst


def _places(slots: int, silent: int) -> list[int]:
    """Where false slots begin: not before there is noise to be carried on, and more densely towards the end."""
    last = slots - silent
    between = (slots // 4, slots // 2, *(slots - slots // part for part in (4, 8, 16, 32)))
    every = (1, 2, *between, last - 3, last - 1, last)
    return sorted({place for place in every if 1 <= place <= last})


def _supplied(weights: CarriedWeights, place: int, silent: int, spread: int, planned: int) -> NDArray[np.float64]:
    """What is left of every noise: of its suppliers, the slots up to its own, those that are not false."""
    slots = weights.slots
    honest = np.ones(slots)
    honest[place : place + silent] = 0.0
    reached = np.cumsum(np.concatenate(([0.0], honest)))
    ends = np.arange(slots) + 1
    firsts = np.maximum(0, ends - spread)
    part = (reached[ends] - reached[firsts]) / np.maximum(1, ends - firsts - planned)
    return np.asarray(weights.noise_variances * part)


def _band(weights: CarriedWeights, variances: NDArray[np.float64]) -> NDArray[np.float64]:
    """The covariance of all running sums, its diagonals from the main one on downwards."""
    slots, size = weights.slots, weights.windows - 1
    band = np.zeros((size, slots))
    for number in range(1, size + 1):
        pattern = weights.patterns[number - 1, :number].astype(np.float64)
        for first in range(number):
            for second in range(first, number):
                # A noise of slot t meets in running sums t + first and t + second.
                reached = slots - second
                times = pattern[first] * pattern[second]
                band[second - first, first : first + reached] += times * variances[number - 1, :reached]
    return band


def _moved(weights: CarriedWeights, slot: int) -> NDArray[np.float64]:
    """What a step of a user of this slot adds to every running sum."""
    moved = np.zeros(weights.slots)
    taps = weights.taps.astype(np.float64)[: weights.slots - slot]
    moved[slot : slot + taps.size] = taps
    return np.asarray(np.cumsum(moved) * float(weights.slot_weight(slot)))
