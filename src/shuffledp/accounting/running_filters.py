"""Running sums through a rational filter: how long a user's mark on the noise is, and what the noise adds to a sum.

A slot's noise w_t has variance v_t; what is released at time t is

    r = C x + w,        C = prod(1 - zero_i q) / ((1 - q) prod(1 - pole_i q)),        q: one slot later,

with one zero more than there are poles beside the 1. One unit in slot t moves r along column t of C, whose length, in
deviations of the noise, is

    length_t^2 = sum_{s >= t} c_(s-t)^2 / v_s,

and the sum of the first t slots, each divided by its weight, is known up to the sum of (C^-1 w)_s / weight_s, s <= t.
Both are sums of first-order recursions, one for each pair of poles or zeros, so that they cost O(slots k^2) and nothing
is approximated: C's own coefficients are sums of powers of the poles.

Reference: Dvijotham, McMahan, Pillutla, Steinke, Thakurta 2024 (buffered linear Toeplitz matrices) for a curator.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import combinations_with_replacement

import numpy as np
import scipy
from numpy.typing import NDArray

from shuffledp.errors import ParameterError

Floats = NDArray[np.float64]
OfSlots = Callable[[int, int], Floats]
"""A number for each slot from one on and before another, computed when they are asked for."""

# Terms that cancel may be so many times as large as their sum: three digits are lost, and lengths stay good to 1e-9.
# Poles that lie by turns with the zeros cancel nothing; two that are nearly alike would leave no digit at all.
_CANCELLED = 1000.0


@dataclass(frozen=True, slots=True)
class RunningFilter:
    """The filter with these zeros and poles, all in [0, 1) and distinct; the pole 1 is not named.

    >>> RunningFilter((0.5,), ()).coefficients(4).tolist()
    [1.0, 0.5, 0.5, 0.5]
    >>> RunningFilter((0.5,), ()).column_lengths(np.ones(3)).round(4).tolist()
    [1.2247, 1.118, 1.0]
    """

    zeros: tuple[float, ...]
    poles: tuple[float, ...]

    def __post_init__(self) -> None:
        every = (*self.zeros, *self.poles)
        if len(self.zeros) != len(self.poles) + 1 or not all(0 <= each < 1 for each in every):
            problem = "must lie in [0, 1), one zero more than poles"
            raise ParameterError("zeros", self.zeros, problem, "make the plan again")
        if len(set(self.zeros)) < len(self.zeros) or len(set(self.poles)) < len(self.poles):
            raise ParameterError("zeros", self.zeros, "must be distinct, as must poles", "make the plan again")

    def coefficients(self, count: int) -> Floats:
        """The first entries of C's first column."""
        impulse = np.zeros(count)
        impulse[0] = 1.0
        for zero, pole in zip(self.zeros, (*self.poles, 1.0), strict=True):
            impulse = _filtered(impulse, pole, zero)
        return impulse

    def column_lengths(self, variances: Floats) -> Floats:
        """How far one unit in each slot moves all that is released, in deviations of the noise.

        Args:
            variances: of each slot's noise.

        Raises:
            ParameterError: two poles are so near to each other that rounding would decide.
        """
        lengths = np.empty_like(variances)
        for here, some in self.lengths_from_the_end(lambda first, end: variances[first:end], variances.size):
            lengths[here] = some
        return lengths

    def lengths_from_the_end(self, variances: OfSlots, slots: int) -> Iterator[tuple[slice, Floats]]:
        """As `column_lengths`, in stretches of slots, the last ones first, as what comes later counts.

        Args:
            variances: of each slot's noise.
            slots: how many there are.

        Raises:
            ParameterError: two poles are so near to each other that rounding would decide.
        """
        poles = np.array([*self.poles, 1.0])
        residues = _residues(poles, np.array(self.zeros))
        decays = [
            (residues[first] * residues[second] * (1 if first == second else 2), Decay(poles[first] * poles[second]))
            for first, second in combinations_with_replacement(range(poles.size), 2)
        ]
        for here in reversed(list(blocks_of(slots))):
            later = 1 / variances(here.start, here.stop)[::-1]
            squares, sizes = later.copy(), later.copy()
            for times, decay in decays:
                term = times * decay(later)
                squares += term
                sizes += np.abs(term)
            if not (sizes <= _CANCELLED * squares).all():
                raise ParameterError("poles", self.poles, "must lie further apart", "make the plan again")
            yield here, np.sqrt(squares)[::-1]

    def visits_length(self, variances: Floats, weights: Floats, visits: int) -> float:
        """How far so many units, in as many different slots, move all that is released, at most.

        Units may be vectors of length 1 in any directions. Of slots s < t = s + lag the columns' inner product is

            weight_s weight_t sum_i R_i pole_i^(lag-1) B_i(t),    B_i(t) = sum_{u >= t} pole_i^(u-t) c_(u-t) / v_u,

        and its terms' absolute values, but for weight_s, do not grow with the lag. Of M slots in order the i-th and the
        j-th are at least j - i apart: so M - lag pairs are at least `lag` apart, for each lag below M.

        Args:
            variances: of each slot's noise.
            weights: how often a unit of each slot is counted.
            visits: how many units.

        >>> round(RunningFilter((0.5,), ()).visits_length(np.ones(3), np.ones(3), 2), 4)
        2.1213
        """
        longest = float((self.column_lengths(variances) * weights).max()) ** 2
        visits = min(visits, variances.size)
        # Pole by pole: |R_i B_i(t)| weight_t; and the largest weight before.
        memories, before = self._memories(variances) * weights, np.maximum.accumulate(weights)
        poles = np.array([*self.poles, 1.0])
        squares, lag = visits * longest, 1
        while lag < visits:
            # Lags in steps of an eighth: those between are counted as the nearest below.
            following = min(visits, lag + max(1, lag // 8))
            pairs = sum(range(visits - following + 1, visits - lag + 1))
            products = (poles ** (lag - 1) @ memories[:, lag:]) * before[: before.size - lag]
            squares += 2 * pairs * min(longest, float(products.max()))
            lag = following
        return float(np.sqrt(squares))

    def _memories(self, variances: Floats) -> Floats:
        """|R_i B_i(t)|, a row a pole."""
        poles = np.array([*self.poles, 1.0])
        residues = _residues(poles, np.array(self.zeros))
        later, found = 1 / variances, []
        for one, residue in zip(poles, residues, strict=True):
            taken = later.copy()
            for other, its in zip(poles, residues, strict=True):
                taken += its * one * _decayed(later[::-1], one * other)[::-1]
            found.append(np.abs(residue * taken))
        return np.array(found)

    def prefix_variances(self, variances: Floats, weights: Floats) -> Floats:
        """The variance of the sum of the first 1, 2, ... slots' noise, each slot's divided by its weight.

        Args:
            variances: of each slot's noise.
            weights: how often a unit of each slot was counted.
        """
        return self.prefix_variances_of(
            lambda first, end: variances[first:end], lambda first, end: weights[first:end], variances.size
        )

    def prefix_variances_of(self, variances: OfSlots, weights: OfSlots, slots: int) -> Floats:
        """As `prefix_variances`, where variances and weights are computed a stretch of slots at a time.

        Args:
            variances: of each slot's noise.
            weights: how often a unit of each slot was counted.
            slots: how many there are.
        """
        zeros = np.array(self.zeros)
        residues = _residues(zeros, np.array([*self.poles, 1.0]))
        # The noise of slot s is w_s plus residues times memories; memory i decays by zero i and takes w_s in.
        decays = {
            (first, second): Decay(zeros[first] * zeros[second])
            for first, second in combinations_with_replacement(range(zeros.size), 2)
        }
        sums = [Decay(zero) for zero in zeros]
        found, total = np.empty(slots), 0.0
        for here in blocks_of(slots):
            some, each = variances(here.start, here.stop), weights(here.start, here.stop)
            memories = {pair: decay(some) for pair, decay in decays.items()}
            own = some.copy()
            for (first, second), shared in memories.items():
                own += residues[first] * residues[second] * (1 if first == second else 2) * shared
            with_sum = np.zeros_like(some)
            for one in range(zeros.size):
                # The covariance of a slot's noise with the memory just after it, then that of the sum with the memory.
                taken = some.copy()
                for other in range(zeros.size):
                    taken += zeros[one] * residues[other] * memories[min(one, other), max(one, other)]
                with_sum += residues[one] * sums[one](taken / each)
            terms = (2 * with_sum + own / each) / each
            terms[0] += total
            found[here] = np.cumsum(terms)
            total = float(found[here][-1])
        return found


def blocks_of(size: int) -> Iterator[slice]:
    """So many slots in stretches: a horizon of millions has tables of a few stretches at a time."""
    for first in range(0, size, _BLOCK):
        yield slice(first, min(size, first + _BLOCK))


class Decay:
    """Everything before, an entry j places earlier times factor^(j-1); what was before the next stretch is kept."""

    def __init__(self, factor: float) -> None:
        self._factor, self._state = factor, np.zeros(1)

    def __call__(self, values: Floats) -> Floats:
        found, self._state = scipy.signal.lfilter([0.0, 1.0], [1.0, -self._factor], values, zi=self._state)
        return np.asarray(found)


# Slots of which tables are computed at once.
_BLOCK = 1 << 16


def _residues(poles: Floats, zeros: Floats) -> Floats:
    """R with prod(1 - zero q) / prod(1 - pole q) = 1 + sum R_i q / (1 - pole_i q)."""
    found = []
    for place, pole in enumerate(poles):
        others = np.delete(poles, place)
        found.append(np.prod(pole - zeros) / np.prod(pole - others))
    return np.array(found)


def _decayed(values: Floats, factor: float) -> Floats:
    """Everything before, an entry j places earlier times factor^(j-1)."""
    return np.asarray(scipy.signal.lfilter([0.0, 1.0], [1.0, -factor], values))


def _filtered(values: Floats, pole: float, zero: float) -> Floats:
    return np.asarray(scipy.signal.lfilter([1.0, -zero], [1.0, -pole], values))
