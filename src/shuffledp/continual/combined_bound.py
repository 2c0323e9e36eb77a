"""How far off combined estimates can be over the whole horizon: exact laws, one union over all prefixes.

With Z a batch's noise and q the divisor, a batch of level l with L left is off by

    Q(1, L) = Z,        Q(l, L) = Z + round((S - Z) / q),        S = Z' + Q(l-1, 1) + ... + Q(l-1, L),

all terms independent. Along the schedule's own recursion the laws of all prefixes add up to one measure:

    G(c, 0) = G(0, k) = the point 0,        G(c, k) = G(c, k-1) + Q(k, c) * G(c-1, k),

and P[some prefix is off by more than a] <= G(c, k){|x| > a}. Sums of positive masses are accurate relative to each of
them; whatever is off besides, tails that are cut and transforms' rounding, is counted in `doubt` as if it were beyond.
"""

import math
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import scipy
from numpy.lib.stride_tricks import sliding_window_view
from numpy.typing import NDArray

from shuffledp.accounting.laws import IntegerLaw
from shuffledp.continual.bounds import too_many_releases
from shuffledp.continual.second_opinions import combine, divisors
from shuffledp.errors import InfeasibleError
from shuffledp.schedules.combinatorial import slots

Floats = NDArray[np.float64]

# What may be cut off a law on both sides together, as a part of it.
_CUT = 1e-20
# Relative errors of masses and of sums of positive terms, for each of the noises behind a prefix.
_RELATIVE = 1e-13
# Of the two transforms each factor goes through, at most 2^20 numbers, in the Euclidean norm: Higham, Theorem 24.2.
_TRANSFORM_ERROR = 3e-14
# Sums with fewer products than this are added up one by one.
_DIRECT = 1 << 22
# Beyond, the laws would take seconds: a budget, (levels) (variance of a batch), and products in all.
_MOST_BUDGET, _MOST_VARIANCE, _MOST_PRODUCTS = 384, 20_000.0, 2.5e9
# With more slots than this, the rounding of transforms would be too much doubt.
_MOST_SLOTS_BY_TRANSFORM = 1 << 18


@dataclass(frozen=True, slots=True, eq=False)
class _Measure:
    """Masses on -r..r, symmetric; the true ones differ by at most `doubt` in all."""

    masses: Floats
    doubt: float

    @property
    def reach(self) -> int:
        return int(self.masses.size // 2)

    @property
    def total(self) -> float:
        return float(self.masses.sum())

    @property
    def variance(self) -> float:
        """For a law."""
        return float(self.masses @ np.arange(-self.reach, self.reach + 1.0) ** 2)


@dataclass(frozen=True, slots=True, eq=False)
class CombinedLaws:
    """What combined estimates with up to so many batches of budget can be off by."""

    shufflers: int
    variances: Floats  # (level, left), from 1 on
    unions: tuple[_Measure, ...]  # by budget, from 0 on
    batch: _Measure
    tops: tuple[_Measure, ...]  # of the top level's batches by what is left, from 1 on

    def bound(self, budget: int, failure: float) -> int:
        """The least a that no prefix passes but for this probability."""
        union = self.unions[budget]
        middle = union.reach
        # No prefix is made of more noises than there are slots and last slots.
        relative = 1 + 2 * slots(budget, self.shufflers) * _RELATIVE
        outside = np.append(np.cumsum(2 * union.masses[:middle])[::-1] * relative, 0.0) + union.doubt
        # outside[a] is what lies beyond a.
        enough = np.flatnonzero(outside <= failure)
        if enough.size == 0:
            raise too_many_releases(float(outside[-1]), failure)
        return int(enough[0])

    def prefix_quantile(self, budget: int, before: int, failure: float) -> int:
        """The least a that one prefix, of the top level's first batches and one more, passes with this probability."""
        law = _prefix(self, budget, before)
        outside = np.append(np.cumsum(2 * law.masses[: law.reach])[::-1], 0.0) * (1 - _RELATIVE * law.reach) - law.doubt
        return int(np.argmax(outside <= failure))

    def largest_variance(self, budget: int) -> float:
        """The variance of the prefix that varies most."""
        worst = np.zeros(budget + 1)
        for row in self.variances:
            for left in range(1, budget + 1):
                worst[left] = max(worst[left], row[left - 1] + worst[left - 1])
        return float(worst[budget])


@lru_cache(maxsize=16)
def _prefix(laws: CombinedLaws, budget: int, before: int) -> _Measure:
    """The law of a prefix that is made of the top level's first batches and one of level 1."""
    law = laws.batch
    for left in range(budget, budget - before, -1):
        law = _sum(law, laws.tops[left - 1])
    return law


def is_quick(noise: IntegerLaw, budget: int, shufflers: int) -> bool:
    """Whether the laws are computed well in about a second: noise is not too wide and batches are not too many."""
    if budget > _MOST_BUDGET or (shufflers - 1) * noise.variance > _MOST_VARIANCE:
        return False
    products = 2 * noise.deviation_quantile(_CUT) * 20 * noise.standard_deviation * math.sqrt(budget)
    if products > _DIRECT and slots(budget, shufflers) > _MOST_SLOTS_BY_TRANSFORM:
        return False
    return 2 * shufflers * budget * min(products, _DIRECT) <= _MOST_PRODUCTS


def combined_laws(noise: IntegerLaw, budget: int, shufflers: int) -> CombinedLaws:
    """The laws for this budget and all smaller ones.

    >>> from shuffledp.accounting.laws import DiscreteLaplace
    >>> laws = combined_laws(DiscreteLaplace(math.exp(-1 / 4)), 24, 4)
    >>> laws.bound(24, 0.05) + (49 - 1) / 2
    154.0
    """
    if shufflers < 2 or not is_quick(noise, budget, shufflers):
        raise InfeasibleError(
            "estimator", "combined", "needs two shufflers, few batches and narrow noise", "choose completed"
        )
    # Plans with nearby budgets share the work.
    return _combined_laws(noise, min(-(-budget // 8) * 8, _MOST_BUDGET), shufflers)


@lru_cache(maxsize=16)
def _combined_laws(noise: IntegerLaw, most: int, shufflers: int) -> CombinedLaws:
    table = divisors(most, shufflers)
    batch = _batch_noise(noise)
    rows = [[batch] * most]
    for level in range(2, shufflers + 1):
        second, row = batch, []
        for left in range(1, most + 1):
            second = _sum(second, rows[-1][left - 1])
            row.append(_combined(batch, second, table[level - 2][left - 1]))
        rows.append(row)
    point = _Measure(np.ones(1), 0.0)
    unions = [point] * (most + 1)
    for row in rows:
        here = [point]
        for spent in range(1, most + 1):
            here.append(_union(unions[spent], _sum(row[spent - 1], here[-1])))
        unions = here
    # Nine digits, which every machine agrees on: plans are compared by the numbers in their files.
    combined = [[float(f"{law.variance:.9g}") for law in row] for row in rows[1:]]
    variances = np.array([[noise.variance] * most, *combined])
    return CombinedLaws(shufflers, variances, tuple(unions), batch, tuple(rows[-1]))


def _batch_noise(noise: IntegerLaw) -> _Measure:
    reach = noise.deviation_quantile(_CUT)
    masses = np.exp(noise.log_pmf(np.arange(-reach, reach + 1.0) + noise.mean))
    return _Measure((masses + masses[::-1]) / 2, _CUT + noise.numerical_error)


def _combined(batch: _Measure, second: _Measure, divisor: int) -> _Measure:
    """The law of Z + round((S - Z)/q): at i the sum over all t of P[Z = i - t] P[S is within q/2 of i + (q-1) t]."""
    near = np.convolve(second.masses, np.ones(divisor))
    edge = near.size // 2
    # A larger t would need a larger S.
    most = int(combine(0, second.reach + batch.reach, divisor))
    reach = batch.reach + most
    size = 2 * reach + 1
    # Rows t = 0, 1, ..., and columns i: windows that go one step back, and q - 1 forward, from row to row.
    alone = sliding_window_view(np.pad(batch.masses, (2 * most, most)), size)[::-1]
    last = min(reach + (divisor - 1) * most, edge)
    first = min(reach, edge)
    within = np.zeros(size + (divisor - 1) * most)
    within[reach - first : reach + last + 1] = near[edge - first : edge + last + 1]
    beside = sliding_window_view(within, size)[:: divisor - 1]
    half = 0.5 * alone[0] * beside[0] + np.einsum("ti,ti->i", alone[1:], beside[1:])
    return _trimmed(half + half[::-1], batch.doubt + second.doubt)


def _sum(first: _Measure, second: _Measure) -> _Measure:
    """The sum of two independent terms, as one."""
    doubt = first.doubt * (second.total + second.doubt) + first.total * second.doubt
    if first.masses.size * second.masses.size <= _DIRECT:
        return _trimmed(np.convolve(first.masses, second.masses), doubt)
    masses = scipy.signal.fftconvolve(first.masses, second.masses)
    masses = np.maximum((masses + masses[::-1]) / 2, 0.0)
    norms = float(np.linalg.norm(first.masses)) * second.total + float(np.linalg.norm(second.masses)) * first.total
    rounding = _TRANSFORM_ERROR * math.sqrt(2 * masses.size) * norms
    # Below a part of that, the outermost masses are mere rounding.
    return _trimmed(masses, doubt + rounding, 0.02 * rounding)


def _union(first: _Measure, second: _Measure) -> _Measure:
    small, large = sorted((first, second), key=lambda measure: measure.reach)
    masses = large.masses.copy()
    margin = large.reach - small.reach
    masses[margin : masses.size - margin] += small.masses
    return _Measure(masses, first.doubt + second.doubt)


def _trimmed(masses: Floats, doubt: float, little: float = 0.0) -> _Measure:
    """Without the outermost masses, as far as they are little together."""
    half = np.cumsum(2 * masses[: masses.size // 2])
    cut = int(np.searchsorted(half, max(little, _CUT * float(masses.sum())), side="right"))
    lost = float(half[cut - 1]) if cut else 0.0
    return _Measure(masses[cut : masses.size - cut], doubt + lost)
