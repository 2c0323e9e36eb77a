"""How far off a count of random answers can be, by its exact law, for the worst data.

Everybody's answer is random with probability p: a number of ones R with a law symmetric about half of the bits, else
middle + x. Less n middle + t, where t users have a 1, the ones are

    D_t = sum over users of B_i (R_i - middle - x_i),        E D_t = c_t = p (n - 2t) / 2,

and the estimate is off by (D_t - c_t) / (1 - p). One more user with a 1 makes D_t smaller by 0 or 1, whatever the
coins: D_t falls stochastically in t, and so does c_t. So for all t of a cell u <= t <= w

    P[|D_t - c_t| > a]  <=  P[D_u > a + c_w] + P[D_w < c_u - a],

an equality where u = w. Laws of D_t come from one transform each; few users have a cell for every t, many have cells
narrow beside the deviation. The largest sum over all cells bounds what any data can do (docs/theory/004-survey.md).
As R is symmetric, -D_t has the law of D_(n-t): half of the t are enough.
"""

import math
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import fft

from shuffledp.accounting.curves import smallest_meeting
from shuffledp.accounting.laws import Floats

# Numbers in all transforms together, at most, and the width of a cell in deviations where they suffice.
_MOST_NUMBERS = 1 << 20
_CELL = 0.01
# Of every law: what its window leaves out.
_OUTSIDE = 1e-16


def bennett_bound(variance: float, largest: float, failure: float) -> float:
    """A bound that fails with this probability for sums of independent centred terms of at most `largest`.

    Bennett's inequality: P[|X| > t] <= 2 exp(-v/m^2 h(m t/v)), h(u) = (1+u) log(1+u) - u.
    """

    def passed(t: float) -> float:
        u = largest * t / variance
        return 2 * math.exp(-variance / largest**2 * ((1 + u) * math.log1p(u) - u))

    return smallest_meeting(passed, failure, 0.0, math.sqrt(variance), relative=1e-6)


@lru_cache(maxsize=256)
def answers_bound(users: int, probability: float, masses: tuple[float, ...], failure: float) -> float:
    """No count of ones is further from its mean but for this probability, whatever the users' bits.

    Args:
        users: how many answer.
        probability: of a random answer.
        masses: the law of a random answer's ones, 0, 1, ..., an odd number at most.
        failure: the probability.

    >>> round(answers_bound(1000, 0.0615, (0.5, 0.5), 0.05), 2)
    11.0
    """
    bits = len(masses) - 1
    steps = np.arange(bits + 1.0) - (bits - 1) // 2
    random = float(np.array(masses) @ (steps - 0.5) ** 2)
    variance = users * (
        (1 - probability) * (probability / 2) ** 2 + probability * (random + (1 - probability) ** 2 / 4)
    )
    largest = bits / 2 + 1
    rough = bennett_bound(variance, largest, failure)
    reach = math.ceil(bennett_bound(variance, largest, _OUTSIDE)) + 2
    size = fft.next_fast_len(2 * reach + 2, real=True)
    # Up to half of the users, or up to all where a table has rounded one half of the law otherwise than the other.
    most = -(-users // 2) if masses == masses[::-1] else users
    cells = math.ceil(max(1.0, probability * most / (_CELL * math.sqrt(variance))))
    cells = min(most, cells, _MOST_NUMBERS // size)
    # What logarithms, powers and transforms round, of every tail.
    error = (probability * users + 100) * size * 2.0**-49 + 2 * _OUTSIDE
    if cells < 1 or error > failure / 100:
        return rough
    # Cells share their ends, or are single numbers of ones.
    ends = np.unique(np.rint(np.linspace(0, most, cells + 1)).astype(np.int64))
    first, last = (ends, ends) if ends.size == most + 1 else (ends[:-1], ends[1:])
    tails = _Tails(users, probability, np.array(masses), steps, ends, size)
    lower, upper = np.searchsorted(ends, first), np.searchsorted(ends, last)

    def passed(a: float) -> float:
        above = tails.above(lower, np.floor(a + tails.centres[upper]))
        below = 1 - tails.above(upper, np.ceil(tails.centres[lower] - a) - 1)
        return float((above + below).max() + 2 * error)

    return min(rough, smallest_meeting(passed, failure, 0.0, math.sqrt(variance), relative=1e-6))


class _Tails:
    """P[D_t > k] for some t, up to what the caller adds."""

    def __init__(self, users: int, p: float, masses: Floats, steps: Floats, ones: NDArray[np.int64], size: int) -> None:
        angles = 2 * np.pi / size * np.arange(size // 2 + 1)
        # Of a user with a 0 and with a 1: log(1 + p (E e^(-i angle (R - middle - x)) - 1)), to all digits.
        logs = [_log1p(p * (np.expm1(np.outer(angles, steps - x) * -1j) @ masses)) for x in (0, 1)]
        self.centres = p * (users - 2 * ones) / 2
        self._offsets = np.rint(self.centres).astype(np.int64) - size // 2
        exponents = np.outer(users - ones, logs[0]) + np.outer(ones, logs[1]) + 1j * np.outer(self._offsets, angles)
        law = np.maximum(fft.irfft(np.exp(exponents), size, axis=1), 0.0)
        self._above = np.cumsum(law[:, ::-1], axis=1)[:, ::-1]  # at k: P[D_t >= offset + k]

    def above(self, rows: NDArray[np.int64], k: Floats) -> Floats:
        """P[D > k] for the t of each row."""
        place = k.astype(np.int64) + 1 - self._offsets[rows]
        size = self._above.shape[1]
        found = self._above[rows, np.clip(place, 0, size - 1)]
        return np.where(place < 0, 1.0, np.where(place >= size, 0.0, found))


def _log1p(z: Any) -> Any:
    x, y = z.real, z.imag
    return np.asarray(0.5 * np.log1p(2 * x + x * x + y * y) + 1j * np.arctan2(y, 1 + x))
