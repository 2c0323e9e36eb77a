"""Integer noise as good as Gaussian noise, in any number of dimensions: the steepest normal score.

Let Z be log-concave integer noise with distribution function F, and h(j) = Phi^-1(F(j)) its normal
score. For log-concave noise the best test of Z against Z + t is a threshold, whose two errors are
1 - Phi(h(j)) and Phi(h(j - t)). If h never climbs by more than L in one step, then
h(j) - h(j - t) <= t L for every t at once, and no threshold does better than the same test of N(0, 1)
against N(t L, 1). So Z against Z + t is dominated by that Gaussian pair, and D independent coordinates
shifted by an integer vector s by N(0, I) against N(s L, I), which is N(0, 1) against N(|s| L, 1).

Far out, where binomial noise ends, h climbs without limit; a window leaves that out. With T the largest
shift of one coordinate and P[Z <= low], P[Z > high] <= outside, only the scores within T of low..high
matter: every other threshold has P - e^eps Q <= outside, for eps >= 0 and in both directions. So

    delta(eps)  <=  gaussian_delta(eps, |s| L)  +  D outside.

Proof: docs/theory/vector-sums.md. Nothing is lost to a Renyi conversion, and L tends to 1/sd.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from scipy import special

from shuffledp.accounting.laws import Floats, IntegerLaw
from shuffledp.accounting.pairs import RELATIVE_ERROR
from shuffledp.errors import ParameterError

# What Phi^-1 in doubles may be wrong, and the sums of up to 2^24 masses.
_SCORE_ERROR = 1e-13
# Wider windows are looked at in so many blocks on either side: a hundredth of a deviation each.
_LONGEST_WINDOW = 1 << 20
_BLOCKS = 1000


@dataclass(frozen=True, slots=True)
class NormalScores:
    """The steepest step of the normal score of a noise, and the probability left out of the window."""

    steepest: float
    outside: float


@lru_cache(maxsize=256)
def normal_scores(noise: IntegerLaw, largest_shift: int, outside: float, longest: int | None = None) -> NormalScores:
    """The steepest step for shifts of one coordinate up to `largest_shift`, rounded up; inf if there is none.

    A window of more than `longest` values is looked at in blocks: sooner done, and a little steeper.

    Args:
        noise: the law of one coordinate's noise; log-concave.
        largest_shift: how far a user can move one coordinate, in steps of the grid.
        outside: the probability that may be left out at either end.
        longest: how many values are looked at one by one; a number that suits most if left out.

    Returns:
        The steepest step of the scores, and what was left out.

    Raises:
        ParameterError: a shift below 1, a probability outside (0, 1/2), or noise that is not log-concave.

    >>> from shuffledp.accounting.laws import Binomial
    >>> scores = normal_scores(Binomial(40_000, 0.5), largest_shift=24, outside=1e-12)
    >>> 1 < scores.steepest * Binomial(40_000, 0.5).standard_deviation < 1.002
    True
    """
    if largest_shift < 1 or not 0 < outside < 0.5:
        raise ParameterError("largest_shift", largest_shift, "must be >= 1, and outside in (0, 1/2)", "check both")
    if not noise.is_log_concave:
        raise ParameterError("noise", str(noise), "must be log-concave", "use another noise for vectors")
    low, high = _quantiles(noise, outside)
    start, end = low + 1 - largest_shift, high - 1 + largest_shift
    smallest, largest = noise.support
    if start < smallest or end >= largest:
        return NormalScores(float("inf"), outside)  # a shift leaves the support too likely
    if noise.cdf(start) == 0 or noise.sf(end) == 0:
        return NormalScores(float("inf"), outside)  # a shift leaves what a table, or a double, holds of the tails
    if end - start > (_LONGEST_WINDOW if longest is None else longest):
        return NormalScores(_steepest_by_blocks(noise, start, end), outside)
    masses = np.exp(noise.log_pmf(np.arange(start, end + 2, dtype=np.float64)))
    below = noise.cdf(start - 1) + np.cumsum(masses[:-1])  # F(start), ..., F(end)
    above = noise.sf(end + 1) + np.cumsum(masses[:0:-1])[::-1]  # 1 - F(start), ..., 1 - F(end)
    steps = _score(below, above, 1 + RELATIVE_ERROR)[1:] - _score(below, above, 1 - RELATIVE_ERROR)[:-1]
    return NormalScores(float(steps.max()) + 2 * _SCORE_ERROR, outside)


def _steepest_by_blocks(noise: IntegerLaw, start: int, end: int) -> float:
    """A bound for noise too wide to look at every value: block by block on both sides of the median, and at it.

    A step is a mass over the normal density at a score between its two; the density falls outwards.
    """
    # The largest j with P[Z <= j] <= 1/2. The score at j is minus that at 2 mean - 1 - j where noise is symmetric.
    if noise.is_symmetric:
        median = math.ceil(noise.mean) - 1
        start = min(start, round(2 * noise.mean) - 1 - end)
    else:
        median = _last(lambda j: noise.cdf(j) <= 0.5, start, end)
    log_mass = float(noise.log_pmf(np.array([median + 1.0]))[0])
    # P[Z <= median] and P[Z > median + 1] are at most 1/2, and less than that by at most the mass between them.
    nearest = 0.5 - math.exp(log_mass) * (1 + 1e-9)
    across = log_mass + float(special.ndtri(max(0.0, nearest))) ** 2 / 2
    below = _highest_log_step(noise, start, median, noise.cdf, nearest, up=True)
    above = below if noise.is_symmetric else _highest_log_step(noise, median + 1, end, noise.sf, nearest, up=False)
    return math.exp(max(below, across, above) + 0.5 * math.log(2 * math.pi)) * (1 + 1e-6)


def _highest_log_step(
    noise: IntegerLaw, start: int, end: int, tail: Callable[[float], float], nearest: float, *, up: bool
) -> float:
    """The most that log mass + score^2 / 2 is for steps from `start` to `end`, on one side of the median.

    At the end beside the median the tail, which takes long to compute there, is at least `nearest`.

    From a block's outer end a to its inner end b, the tail beside which they lie is log-concave, as the masses are,
    and score^2 / 2 is convex and falling in the tail's logarithm: the score's half square is at most its chord from a
    to b. The log mass is at most its tangents at a and at b. So the sum is at most a roof of two lines, which is
    highest at an end or at its ridge.
    """
    if end <= start:
        return -math.inf
    ends = np.unique(np.linspace(start, end, _BLOCKS).astype(np.int64))
    if not up:
        ends = ends[::-1]
    tails = np.array([*(tail(int(k)) for k in ends[:-1]), max(0.0, nearest)])
    half = special.ndtri(tails * (1 - 1e-9)) ** 2 / 2
    # The step from i to its neighbour towards the median, i + 1: its mass is that of the upper one of the two.
    upper = ends + 1 if up else ends
    masses = noise.log_pmf(upper.astype(np.float64))
    slopes = np.array([noise.log_ratio(int(k) + 1) for k in upper]) * (1 if up else -1)
    widths = np.abs(np.diff(ends)).astype(np.float64)
    chord = np.diff(half) / widths
    # Heights at the outer end, at the inner end and at the ridge, each under both tangents.
    from_outer, from_inner = masses[:-1] + half[:-1], masses[1:] + half[1:]
    bend = slopes[:-1] - slopes[1:]
    gap = masses[1:] - masses[:-1] - slopes[1:] * widths
    ridge = np.clip(np.divide(gap, bend, out=np.zeros_like(gap), where=bend > 0), 0.0, widths)
    heights = [
        np.minimum(from_outer + t * (slopes[:-1] + chord), from_inner - (widths - t) * (slopes[1:] + chord))
        for t in (np.zeros_like(widths), ridge, widths)
    ]
    return float(np.max(heights))


def _score(below: Floats, above: Floats, factor: float) -> Floats:
    """Phi^-1 of `below`, from the smaller of the two tails, which may be off by the factor."""
    lower = special.ndtri(np.minimum(below * factor, 0.75))
    upper = -special.ndtri(np.minimum(above / factor, 0.75))
    return np.asarray(np.where(below <= above, lower, upper), dtype=np.float64)


def _quantiles(noise: IntegerLaw, outside: float) -> tuple[int, int]:
    """The largest j with P[Z <= j] <= outside, and the smallest with P[Z > j] <= outside."""
    centre = round(noise.mean)
    width = 1 + int(noise.standard_deviation)
    low, step = centre, width
    while noise.cdf(low) > outside:
        low, step = low - step, 2 * step
    high, step = centre, width
    while noise.sf(high) > outside:
        high, step = high + step, 2 * step
    return (
        _last(lambda j: noise.cdf(j) <= outside, low, centre),
        _last(lambda j: noise.sf(j) > outside, centre - 1, high) + 1,
    )


def _last(holds: Callable[[int], bool], start: int, end: int) -> int:
    """The last whole number from `start`, where it holds, before `end`, where it does not."""
    while end - start > 1:
        middle = (start + end) // 2
        start, end = (middle, end) if holds(middle) else (start, middle)
    return start
