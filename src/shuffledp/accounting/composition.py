"""Composition of pairs: privacy-loss distributions on a grid, convolved by FFT, rounded up throughout.

Connect-the-dots: an outcome with masses (p, q) is split into two whose log ratios are the grid
points around log p/q and whose masses add up to (p, q). Merging them again is a post-processing, so
the split pair dominates the original at every real epsilon, negative ones included.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy import fft

from shuffledp.accounting.curves import epsilon_at, smallest_real
from shuffledp.accounting.laws import Floats
from shuffledp.accounting.pairs import RELATIVE_ERROR, Atoms, DominatingPair, bounded_exp
from shuffledp.errors import ParameterError
from shuffledp.privacy import Privacy

# The grid divides the standard deviation of one privacy loss, as long as the FFT stays small.
_STEPS_PER_DEVIATION = 400
_LARGEST_FFT = 1 << 21
# A forward and a backward transform of 2^21 numbers lose at most this fraction of the norm.
_FFT_ERROR = 1e-14
_UNLIKELY = 1e-28


@dataclass(frozen=True, eq=False)
class PrivacyLoss:
    """log P/Q under P, on the points (first + i) * grid, plus a mass at infinity."""

    grid: float
    first: int
    masses: Floats
    infinite: float
    absolute_error: float = 0.0

    @classmethod
    def from_atoms(cls, atoms: Atoms, grid: float) -> "PrivacyLoss":
        """Connect the dots: see the module."""
        p = np.exp(atoms.log_p)
        both = (p > 0) & np.isfinite(atoms.log_q)
        infinite = float(p[(p > 0) & ~both].sum()) + atoms.p_outside
        if not both.any():
            return cls(grid, 0, np.zeros(1), 1.0)
        losses, p = atoms.log_p[both] - atoms.log_q[both], p[both]
        # Outcomes too unlikely to matter would only stretch the grid.
        cut = _smallest_kept(p)
        infinite += float(p[p < cut].sum())
        losses, p = losses[p >= cut], p[p >= cut]
        below = np.floor(losses / grid)
        # Shares a, b of an outcome with a + b = p and a e^-low + b e^-high = q.
        lower_share = np.clip(np.expm1((below + 1) * grid - losses) / math.expm1(grid), 0.0, 1.0)
        first = int(below.min())
        index = (below - first).astype(np.int64)
        size = int(index.max()) + 2
        masses = np.bincount(index, p * lower_share, size) + np.bincount(index + 1, p * (1 - lower_share), size)
        return cls(grid, first, np.asarray(masses, dtype=np.float64), infinite, atoms.absolute_error)

    @cached_property
    def losses(self) -> Floats:
        """The grid points."""
        return np.arange(self.first, self.first + self.masses.size, dtype=np.float64) * self.grid

    @cached_property
    def log_masses(self) -> Floats:
        """The logarithms of the masses; -inf where there is none."""
        return _logarithms(self.masses)

    def log_moment(self, tilt: float) -> float:
        """Log E[e^(tilt * loss)] over the finite losses."""
        return _log_moment(self.log_masses, self.losses, tilt)

    @cached_property
    def coarse(self) -> tuple[Floats, Floats]:
        """At most 500 masses, as logarithms, and their mean losses: enough to choose a tilt, which changes no bound."""
        starts = np.arange(0, self.masses.size, self.masses.size // 500 + 1)
        masses = np.add.reduceat(self.masses, starts)
        means = np.add.reduceat(self.masses * self.losses, starts)[masses > 0]
        return np.log(masses[masses > 0]), means / masses[masses > 0]


def _smallest_kept(masses: Floats) -> float:
    """The mass at which the sum of all masses from the smallest up reaches _UNLIKELY, or the largest if none does."""
    rare = np.sort(masses[masses < _UNLIKELY])
    place = int(np.searchsorted(np.cumsum(rare), _UNLIKELY))
    if place < rare.size:
        return float(rare[place])
    return float(rare[-1] if rare.size == masses.size else masses[masses >= _UNLIKELY].min())


def _logarithms(masses: Floats) -> Floats:
    with np.errstate(divide="ignore"):
        return np.log(masses)


def _log_moment(log_masses: Floats, losses: Floats, tilt: float) -> float:
    exponents = log_masses + tilt * losses
    top = float(exponents.max())
    return top + math.log(float(np.exp(exponents - top).sum()))


@dataclass(frozen=True, eq=False)
class _Direction:
    """The sum of independent privacy losses, in one direction."""

    losses: Sequence[tuple[PrivacyLoss, int]]

    @property
    def infinite(self) -> float:
        """The probability that some loss is infinite: 1 - prod (1 - infinite)^times."""
        if any(loss.infinite >= 1 for loss, _ in self.losses):
            return 1.0
        return -math.expm1(sum(times * math.log1p(-loss.infinite) for loss, times in self.losses))

    @property
    def absolute_error(self) -> float:
        return sum(times * loss.absolute_error for loss, times in self.losses)

    @property
    def relative_error(self) -> float:
        return RELATIVE_ERROR * sum(times for _, times in self.losses)

    def log_chernoff(self, tilt: float, epsilon: float) -> float:
        """About the logarithm of Chernoff's bound on P[sum > epsilon]."""
        return sum(times * _log_moment(*loss.coarse, tilt) for loss, times in self.losses) - tilt * epsilon

    def best_tilt(self, epsilon: float) -> float:
        """The tilt >= 0 that moves the mean of the sum to about epsilon."""
        low, high = 0.0, 1.0
        here, further = (self.log_chernoff(tilt, epsilon) for tilt in (high, 2 * high))
        # Where epsilon is the largest loss the bound falls for ever: stop when little is gained.
        while -200 < further < here - 0.01:
            low, high = high, 2 * high
            here, further = further, self.log_chernoff(2 * high, epsilon)
        high *= 2
        while high - low > 1e-3 * high and high > 1e-6:  # convex in the tilt
            third = (high - low) / 3
            if self.log_chernoff(low + third, epsilon) < self.log_chernoff(high - third, epsilon):
                high -= third
            else:
                low += third
        return (low + high) / 2

    def tilted(self, tilt: float) -> "_Tilted":
        """Convolve the masses times e^(tilt * loss): small tails become large, and keep their digits."""
        size = sum(times * (loss.masses.size - 1) for loss, times in self.losses) + 1
        padded = fft.next_fast_len(size, real=True)
        spectrum = np.ones(padded // 2 + 1, dtype=np.complex128)
        log_scale, error = 0.0, 0.0
        for loss, times in self.losses:
            log_moment = loss.log_moment(tilt)
            masses = np.exp(loss.log_masses + tilt * loss.losses - log_moment)
            spectrum *= fft.rfft(masses, padded) ** times
            log_scale += times * log_moment
            error += (times + 1) * _FFT_ERROR * float(np.linalg.norm(masses))
        masses = np.maximum(fft.irfft(spectrum, padded)[:size], 0.0)
        grid = self.losses[0][0].grid
        first = sum(times * loss.first for loss, times in self.losses)
        return _Tilted(tilt, log_scale, np.arange(first, first + size, dtype=np.float64) * grid, masses, error, self)


@dataclass(frozen=True, eq=False)
class _Tilted:
    tilt: float
    log_scale: float
    losses: Floats
    masses: Floats
    error: float  # of all masses together, in Euclidean norm
    direction: _Direction

    def delta(self, epsilon: float) -> float:
        slack = self.direction.relative_error
        epsilon -= 3 * slack
        start = int(np.searchsorted(self.losses, epsilon, side="right"))
        losses, masses = self.losses[start:], self.masses[start:]
        # Far below the tilt's own epsilon the weights explode; delta is 1 there anyway.
        weights = np.exp(np.minimum(self.log_scale - self.tilt * losses, 300.0)) * -np.expm1(epsilon - losses)
        # Cauchy-Schwarz: the transform's errors can add at most this much.
        rounding = self.error * float(np.linalg.norm(weights))
        total = (1 + slack) * (float(masses @ weights) + rounding + self.direction.infinite)
        return min(1.0, total + (1 + bounded_exp(epsilon)) * self.direction.absolute_error)


@dataclass(frozen=True, eq=False)
class Composition:
    """The joint curve of independent pairs, each direction composed by itself.

    Right where all shifts have one sign, as in sums; adaptive choices included.

    Attributes:
        pairs: each pair with how many times it is composed.
        grid: the step to which losses are rounded up; chosen by the pairs if it is None.

    >>> from shuffledp.accounting.laws import Binomial
    >>> from shuffledp.accounting.pairs import ShiftPair
    >>> round(Composition([(ShiftPair(Binomial(4000, 0.5)), 20)]).epsilon(1e-6), 4)
    0.5751
    """

    pairs: Sequence[tuple[DominatingPair, int]]
    grid: float | None = None

    def __post_init__(self) -> None:
        if not self.pairs or any(times < 1 for _, times in self.pairs):
            raise ParameterError(
                "pairs",
                len(self.pairs),
                "must be at least one, each composed at least once",
                "leave out the others",
            )

    @cached_property
    def _directions(self) -> tuple[_Direction, _Direction]:
        atoms = [(pair.atoms(), times) for pair, times in self.pairs]
        grid = self.grid or _suitable_grid(atoms)
        forward = [(PrivacyLoss.from_atoms(a, grid), times) for a, times in atoms]
        reverse = [(PrivacyLoss.from_atoms(a.reversed(), grid), times) for a, times in atoms]
        return _Direction(forward), _Direction(reverse)

    def delta(self, epsilon: float) -> float:
        """The smallest delta at this epsilon, rounded up."""
        if any(direction.infinite >= 1 for direction in self._directions):
            return 1.0
        return max(d.tilted(d.best_tilt(epsilon)).delta(epsilon) for d in self._directions)

    def epsilon(self, delta: float) -> float:
        """The smallest epsilon >= 0 at this delta, rounded up."""
        return max(self._epsilon(direction, delta) for direction in self._directions)

    def _epsilon(self, direction: _Direction, delta: float) -> float:
        if direction.infinite >= delta:
            return math.inf
        # One transform, tilted to where Chernoff's bound puts this delta, serves the whole search.
        guess = smallest_real(
            lambda e: direction.log_chernoff(direction.best_tilt(e), e) <= math.log(delta),
            0.0,
            1e-3,
            relative=1e-2,
        )
        return epsilon_at(direction.tilted(direction.best_tilt(guess)), delta)


def _suitable_grid(atoms: Sequence[tuple[Atoms, int]]) -> float:
    """Fine against each loss's deviation, coarse enough for the FFT, and hitting a largest finite loss."""
    deviations, span, largest = [], 0.0, 0.0
    for side, times in [(side, times) for pair, times in atoms for side in (pair, pair.reversed())]:
        p = np.exp(side.log_p)
        likely = (p > _UNLIKELY / max(1, p.size)) & np.isfinite(side.log_q)
        if not likely.any():
            continue
        losses, p = side.log_p[likely] - side.log_q[likely], p[likely] / p[likely].sum()
        mean = float(p @ losses)
        deviations.append(math.sqrt(float(p @ (losses - mean) ** 2)))
        span += times * float(losses.max() - losses.min())
        largest = max(largest, float(np.abs(losses).max()))
    grid = max(min(deviations, default=1.0) / _STEPS_PER_DEVIATION, span / 2 / _LARGEST_FFT, 1e-9)
    # A pure epsilon composes exactly if it is a grid point.
    return largest / math.ceil(largest / grid) if largest > 0 else grid


def simple_composition(privacy: Privacy, times: int) -> tuple[float, float]:
    """Epsilon and delta add up: for comparison only.

    >>> simple_composition(Privacy(0.5, 1e-6), 4)
    (2.0, 4e-06)
    """
    return times * privacy.epsilon, times * privacy.delta


def advanced_composition(privacy: Privacy, times: int, slack: float) -> tuple[float, float]:
    """Dwork, Rothblum, Vadhan 2010: k eps (e^eps - 1) + eps sqrt(2 k ln(1/slack)); for comparison only.

    Reference: [000] footnote 2, where an epsilon is missing.
    """
    epsilon = privacy.epsilon
    total = times * epsilon * math.expm1(epsilon) + epsilon * math.sqrt(2 * times * math.log(1 / slack))
    return total, times * privacy.delta + slack
