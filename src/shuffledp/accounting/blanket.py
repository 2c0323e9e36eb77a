"""The privacy blanket: amplification of one given finite randomizer.

Balle, Bell, Gascon, Nissim 2019. Whatever a user's value, symbol y comes with probability at least
B(y) = min_x R(x)(y). With X = (R(x0)(y) - e^eps R(x1)(y)) / B(y) with probability B(y), and 0 otherwise,
delta <= E[(X_1 + ... + X_n)_+] / n. Proved in docs/theory/amplification.md.
"""

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike
from scipy import fft

from shuffledp.accounting.laws import Floats
from shuffledp.accounting.pairs import RELATIVE_ERROR
from shuffledp.errors import ParameterError

# A step is this fraction of one X's deviation, as long as the transform stays small.
_STEPS_PER_DEVIATION = 40
_SMALLEST_TRANSFORM = 1 << 14
# Mass e^-50 may lie beyond either end of the transform's window; it is added.
_LOG_TAIL = -50.0
# A transform loses at most this fraction of the norm; raising to a power n multiplies it by n + 1.
_FFT_ERROR = 1e-14


@dataclass(frozen=True, eq=False)
class BlanketCurve:
    """The blanket's delta of n shuffled reports, for the worst two of the randomizer's inputs.

    `randomizer[x, y]` is the probability that input x sends symbol y. It is a curve, not a pair: rounds
    compose by adding up.

    >>> round(BlanketCurve([[0.75, 0.25], [0.25, 0.75]], users=20).delta(0.5), 3)
    0.011
    """

    randomizer: ArrayLike
    users: int
    largest_transform: int = 1 << 17

    def __post_init__(self) -> None:
        matrix = np.asarray(self.randomizer, dtype=np.float64)
        if matrix.ndim != 2 or min(matrix.shape) < 1 or not np.isfinite(matrix).all() or (matrix < 0).any():
            raise ParameterError("randomizer", matrix.shape, "must be a matrix of probabilities", "rows are inputs")
        if np.abs(matrix.sum(axis=1) - 1).max() > 1e-9:
            raise ParameterError("randomizer", matrix.sum(axis=1), "must have rows that sum to 1", "normalize them")
        if self.users < 1:
            raise ParameterError("users", self.users, "must be >= 1", "pass a count")

    @cached_property
    def _matrix(self) -> Floats:
        return np.asarray(self.randomizer, dtype=np.float64)

    @cached_property
    def _pairs(self) -> list[tuple[Floats, Floats, Floats]]:
        """Blanket and both rows of every ordered pair, up to the order of the symbols."""
        blanket = self._matrix.min(axis=0)
        different: dict[bytes, tuple[Floats, Floats, Floats]] = {}
        for i, first in enumerate(self._matrix):
            for j, second in enumerate(self._matrix):
                if i != j:
                    columns = np.stack((blanket, first, second))
                    columns = columns[:, np.lexsort(columns)]
                    different[columns.tobytes()] = (columns[0], columns[1], columns[2])
        return list(different.values())

    @property
    def blanket_mass(self) -> float:
        """The probability that a report says nothing of its sender: gamma."""
        return float(self._matrix.min(axis=0).sum())

    def delta(self, epsilon: float) -> float:
        """The delta, rounded up: the worst over both orders of all two inputs."""
        return min(1.0, max((self._of_pair(*pair, epsilon) for pair in self._pairs), default=0.0))

    def _of_pair(self, blanket: Floats, first: Floats, second: Floats, epsilon: float) -> float:
        excess = first - math.exp(epsilon) * second
        hidden = blanket > 0
        # A symbol that some input never sends hides nobody: the target is seen when it sends it.
        seen = float(np.maximum(excess[~hidden], 0.0).sum())
        values, where = np.unique(excess[hidden] / blanket[hidden], return_inverse=True)
        masses = np.asarray(np.bincount(where, blanket[hidden], values.size), dtype=np.float64)
        if values.size == 0 or values.max() <= 0:
            return seen
        values, masses = np.append(values, 0.0), np.append(masses, max(0.0, 1 - float(masses.sum())))
        positive = expected_positive_part(values[masses > 0], masses[masses > 0], self.users, self.largest_transform)
        return seen + positive / self.users


def expected_positive_part(values: Floats, masses: Floats, times: int, largest_transform: int = 1 << 17) -> float:
    """An upper bound on E[(X_1 + ... + X_times)_+] of independent X with the given masses.

    Every value is split between the grid points around it, with the same mean. That raises the
    expectation of every convex function, also of a sum, so the bound is from above and off by the second
    order of the step only. Masses are tilted towards sums near 0 before the transform, as in `composition`.

    >>> round(expected_positive_part(np.array([-1.0, 1.0]), np.array([0.5, 0.5]), 2), 6)
    0.5
    """
    deviation = _deviation(values, masses)
    if deviation == 0 or values.max() <= 0:
        return max(0.0, float(values.max())) * times
    tilt = _tilt_towards_zero(values, masses, 1 / (deviation * math.sqrt(times)))
    tilted = np.exp(np.log(masses) + tilt * values - _log_moment(values, masses, tilt))
    deviation = max(_deviation(values, tilted), 1e-9 * deviation)
    low, likely_high = _window(values, masses, tilt, times)
    high = min(likely_high, times * float(values.max()))
    steps = min(largest_transform, max(_SMALLEST_TRANSFORM, (high - low) / deviation * _STEPS_PER_DEVIATION))
    step = (high - low) / steps

    below = np.floor(values / step)
    upper_share = np.clip(values / step - below, 0.0, 1.0)
    points = np.concatenate((below, below + 1))
    split = np.concatenate((masses * (1 - upper_share), masses * upper_share))
    points, split = points[split > 0], split[split > 0]
    log_moment = _log_moment(points * step, split, tilt)
    tilted = np.exp(np.log(split) + tilt * step * points - log_moment)

    first, last = math.floor(low / step), min(math.ceil(likely_high / step), times * int(points.max()))
    size = int(fft.next_fast_len(last - first + 2, real=True))
    circle = np.bincount(np.mod(points, size).astype(np.int64), tilted, size)
    spectrum = fft.rfft(circle)
    # What is below e^-80 after the power is far below the transform's error, and powers are slow.
    large = np.abs(spectrum) > math.exp(-80 / times)
    summed = np.maximum(fft.irfft(np.power(spectrum, times, where=large, out=np.zeros_like(spectrum)), size), 0.0)
    # Sums beyond the window come back on the other side, which only adds; those above it are added again.
    index = np.arange(max(first, 1), first + size)
    sums = index * step
    weights = sums * np.exp(-tilt * sums)
    rounding = (times + 1) * _FFT_ERROR * math.sqrt(float(np.sum(circle**2)) * float(np.sum(weights**2)))
    beyond = _tail_bound(points * step, split, tilt, times, (first + size) * step) / (math.e * tilt)
    total = float(np.sum(summed[np.mod(index, size)] * weights)) + rounding + beyond
    # Grid points, exponents and moments are off by a few units in the last place, times the number of terms.
    slack = times * 1e-15 * float(np.abs(values).max())
    # The sum of the positive parts is never less; values that are almost all negative have no digits to tilt.
    crude = times * float(masses @ np.maximum(values, 0.0)) * (1 + RELATIVE_ERROR)
    if not total > 0 or times * log_moment + math.log(total) > math.log(crude):
        return crude
    return min(crude, math.exp(times * log_moment) * total * (1 + RELATIVE_ERROR + times * _FFT_ERROR) + slack)


def _log_moment(values: Floats, masses: Floats, tilt: float) -> float:
    return float(_log_moments(values, masses, np.array([tilt]))[0])


def _log_moments(values: Floats, masses: Floats, tilts: Floats) -> Floats:
    exponents = np.log(masses) + tilts[:, None] * values
    top = exponents.max(axis=1)
    return np.asarray(top + np.log(np.exp(exponents - top[:, None]).sum(axis=1)))


def _deviation(values: Floats, masses: Floats) -> float:
    mean = float(masses @ values)
    return math.sqrt(float(masses @ (values - mean) ** 2))


def _tilt_towards_zero(values: Floats, masses: Floats, smallest: float) -> float:
    """The tilt under which the mean is about 0, where Chernoff's bound on {sum > 0} is best."""

    def mean(tilt: float) -> float:
        return float(np.exp(np.log(masses) + tilt * values - _log_moment(values, masses, tilt)) @ values)

    low, high = smallest, 2 * smallest
    if mean(smallest) >= 0:
        return smallest
    while mean(high) < 0:
        low, high = high, 2 * high
    while high - low > 1e-6 * high:
        middle = (low + high) / 2
        low, high = (middle, high) if mean(middle) < 0 else (low, middle)
    return high


def _log_chernoff(values: Floats, masses: Floats, tilt: float, times: int) -> tuple[Floats, Floats, Floats]:
    """Changes c of the tilt, and up, down with log P[sum >= s] <= up - c s and log P[sum <= -s] <= down - c s."""
    tilted = np.exp(np.log(masses) + tilt * values - _log_moment(values, masses, tilt))
    scale = 1 / (math.sqrt(times) * max(_deviation(values, tilted), 1e-9 * float(np.abs(values).max())))
    changes = np.geomspace(scale, max(100 * scale, 60 / float(np.abs(values).max())), 80)
    moments = _log_moments(values, masses, tilt + np.concatenate(([0.0], changes, -changes)))
    rises = times * (moments[1:] - moments[0])
    return changes, rises[: changes.size], rises[changes.size :]


def _window(values: Floats, masses: Floats, tilt: float, times: int) -> tuple[float, float]:
    """Where the tilted sum lies but for about e^_LOG_TAIL at each end; all sums between 0 and there."""
    changes, up, down = _log_chernoff(values, masses, tilt, times)
    low, high = -float(((down - _LOG_TAIL) / changes).min()), float(((up - _LOG_TAIL) / changes).min())
    return min(0.0, max(low, times * float(values.min()))), high


def _tail_bound(values: Floats, masses: Floats, tilt: float, times: int, above: float) -> float:
    """A bound on the tilted probability of a sum >= above."""
    if above > times * float(values.max()) * (1 + 1e-12):
        return 0.0
    changes, up, _ = _log_chernoff(values, masses, tilt, times)
    return math.exp(min(0.0, float((up - changes * above).min())))
