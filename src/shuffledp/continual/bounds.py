"""How far off a running sum can be over the whole horizon: exact tails, one union over all prefixes.

With S_j the sum of j independent noises and w_j prefixes made of j batches,

    P[some prefix is off by more than a]  <=  sum_j w_j P[|S_j| > a].

The law of S_j comes from a Fourier transform, not from a Gaussian: ten per cent matters in these tails. Tails
of sums of symmetric log-concave noise grow with j, so a group of j is bounded by its largest one. Very wide
noise is taken to the nearest multiple of a width first, which moves a sum of j by at most j/2 widths: a tail of
the group's largest sum, so moved, is a bound on that sum's own tail, and so on those of the whole group.
"""

import math
from bisect import bisect_left
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray
from scipy import fft

from shuffledp.accounting.laws import IntegerLaw
from shuffledp.continual.block_tails import BlockTails
from shuffledp.errors import InfeasibleError

Floats = NDArray[np.float64]

# Every j up to here has its own group; beyond, groups grow by a factor, which may be rougher for a search.
_EXACT = 96
FINE, ROUGH = 1.02, 1.08
# Of each tail: what the window leaves out, and more. What transforms and powers round is added where it is larger.
_LEAST_ERROR = 1e-12
# What a transform adds to the error of each of its numbers, for every doubling of their count, as a part of what they
# can be at most: a product with a root of unity and a sum, each rounded.
_STAGE = 6 * 2.0**-53
# Relative errors of masses, for each of the noises behind a sum.
_RELATIVE = 1e-13
_LARGEST_TRANSFORM = 1 << 22
# Tails are kept for at most about this many a.
_MOST_ROWS = 1 << 15
# Below the logarithm of the least double, with something to spare.
_UNDERFLOW = -746.0
# Noise is taken to multiples of a width that moves no bound by more than about half a per cent.
_WIDTH = 0.04
# The window leaves out less than this of every sum.
_DEVIATIONS, _SINGLE = 12.0, 30.0


@dataclass(frozen=True, eq=False)
class SumTails:
    """P[|S_j - mean| > a + j width/2] at most, for some numbers j of summands and every multiple a of `stride`."""

    counts: NDArray[np.int64]
    tails: Floats  # (a, j)
    stride: int
    width: int = 1

    def bound(self, row: int, most: int) -> int:
        """What a row's a is for sums of at most so many, in steps of the noise."""
        return row * self.stride + (math.ceil(most * self.width / 2) if self.width > 1 else 0)

    def groups(self, most: int) -> int:
        """How many of the j, from the first on, bound all of 1..most."""
        return int(np.searchsorted(self.counts, most)) + 1


@lru_cache(maxsize=8)
def sum_tails(noise: IntegerLaw, most: int, growth: float = FINE) -> SumTails:
    """The tails for all groups of j up to `most`."""
    counts = _counts(most, growth)
    deviation = noise.standard_deviation
    # Beyond a few deviations a single discrete Laplace noise falls like e^(-sqrt(2) |x| / deviation).
    width = max(1, int(_WIDTH * deviation / math.sqrt(most)))
    reach = math.ceil((_DEVIATIONS * deviation * math.sqrt(most) + _SINGLE * deviation) / width) + 2
    stride = -(-reach // _MOST_ROWS)
    size = stride * fft.next_fast_len(-(-(2 * reach + 1) // stride), real=True)
    if size > _LARGEST_TRANSFORM:
        raise InfeasibleError("users", most, "make sums of too many noises to bound", "use more shufflers")
    masses = _masses(noise, size, width)
    # Real, as the noise is symmetric about its mean.
    spectrum = fft.rfft(masses / masses.sum()).real
    in_blocks = BlockTails.of(spectrum, size, stride, _rounding(size)) if stride > 1 else None
    if in_blocks is not None and most >= in_blocks.least_count:
        # The few prefixes of fewer batches are bounded with those: it moves no bound that can be seen.
        counts = counts[counts >= in_blocks.least_count]
    else:
        in_blocks = None
    tails, errors = np.zeros((reach // stride + 2, counts.size)), np.empty(counts.size)
    for column, count in enumerate(map(int, counts)):
        if in_blocks is not None:
            beyond, error = in_blocks.tails(count, reach)
        else:
            beyond, error = _value_tails(masses, spectrum, count, reach, stride), _error(spectrum, count, size)
        tails[: beyond.size, column] = beyond
        errors[column] = error + count * noise.numerical_error
    tails = tails * (1 + 2 * _RELATIVE * counts) + np.maximum(errors, _LEAST_ERROR)
    return SumTails(counts, tails, stride * width, width)


def _masses(noise: IntegerLaw, size: int, width: int) -> Floats:
    """The masses of the noise less its mean, at the multiples 0, 1, ... and then ..., -1 of the width."""
    if width == 1:
        return np.asarray(np.exp(noise.log_pmf(fft.fftfreq(size, 1 / size) + noise.mean)))
    half = min(size // 2 - 1, math.ceil(_SINGLE * noise.standard_deviation / width)) * width
    offsets = np.arange(-half, half + 1, dtype=np.int64)
    masses = np.exp(noise.log_pmf(offsets.astype(np.float64) + noise.mean))
    # Halves go both ways: all one way, every other multiple would get more, and the spectrum would be wide.
    ways = (-((width - 2 * offsets) // (2 * width)), (2 * offsets + width) // (2 * width))
    found = sum(np.bincount(way % size, masses, minlength=size) for way in ways)
    return np.asarray(found / 2, dtype=np.float64)


def _value_tails(masses: Floats, spectrum: Floats, count: int, reach: int, stride: int) -> Floats:
    """P[|S| > a] of the sum of so many noises, for the multiples a of the stride, from the law of each value."""
    size = masses.size
    # A single noise needs no transform.
    power = _power(spectrum, count)
    law = masses / masses.sum() if count == 1 else np.maximum(fft.irfft(power, size), 0.0)
    two_sided = law[1 : reach + 1] + law[-1 : -reach - 1 : -1]
    return np.asarray(np.append(np.cumsum(two_sided[::-1])[::-1], 0.0)[::stride])


def _power(spectrum: Floats, count: int) -> Floats:
    signs = np.where(spectrum < 0, -1.0, 1.0) if count % 2 else 1.0
    return np.asarray(signs * _raised(np.abs(spectrum), count))


def _raised(numbers: Floats, count: int) -> Floats:
    """Numbers from 0 on to the power of `count`: those that no double is small enough for, most, are not computed.

    A power that underflows takes a hundred times as long as one that does not.
    """
    return np.power(numbers, count, out=np.zeros_like(numbers), where=numbers > math.exp(_UNDERFLOW / count))


def _rounding(size: int) -> float:
    """What each number of a transform of so many may be off by, as a part of what they add up to."""
    return _STAGE * (math.log2(size) + 2)


def _error(spectrum: Floats, count: int, size: int) -> float:
    """What a tail of the sum of so many noises may be off by rounding, in all (docs/theory/running-sums.md)."""
    if count == 1:
        return 0.0
    each = _rounding(size)
    others = math.sqrt(2 * float(np.sum(_raised(np.abs(spectrum) + each, 2 * (count - 1)))))
    return (count + 2) * each * others


def _counts(most: int, growth: float) -> NDArray[np.int64]:
    counts = list(range(1, min(most, _EXACT) + 1))
    while counts[-1] < most:
        counts.append(min(most, max(counts[-1] + 1, int(counts[-1] * growth))))
    return np.array(counts, dtype=np.int64)


def too_many_releases(doubt: float, failure: float) -> InfeasibleError:
    """The refusal of a bound over so many releases that what arithmetic rounds of their tails is more than is left.

    Args:
        doubt: what the roundings of all releases' tails add up to.
        failure: the probability that the bound may fail with.

    >>> print(too_many_releases(0.5, 0.05))
    confidence cannot be proved for so many releases at once: what floats round of all their tails adds up to 0.5,
    and only 0.05 is left, got 0.95: count a tenth of the people with one counter, and the others with further ones.
    """
    parts = 10 ** max(1, math.ceil(math.log10(doubt / failure)))
    share = {10: "a tenth", 100: "a hundredth", 1000: "a thousandth"}.get(parts, f"one part in {parts:,}")
    problem = (
        f"cannot be proved for so many releases at once: what floats round of all their tails adds up to {doubt:.2g}, "
        f"and only {failure:.3g} is left"
    )
    way_out = f"count {share} of the people with one counter, and the others with further ones"
    return InfeasibleError("confidence", 1 - failure, problem, way_out)


def horizon_bound(tails: SumTails, most: int, up_to: Callable[[int], int], failure: float) -> int:
    """An a, rounded up to the tails' stride, that no prefix passes but for this probability.

    up_to(j) prefixes have at most j batches.

    >>> from shuffledp.accounting.laws import DiscreteLaplace
    >>> horizon_bound(sum_tails(DiscreteLaplace(0.3679), 1), 1, lambda j: 1 + j, 0.05)
    3
    """
    groups = tails.groups(most)
    ends = np.minimum(tails.counts[:groups], most)
    cumulative = [float(up_to(int(end))) for end in ends]
    weights = np.diff(np.array([float(up_to(0)), *cumulative]))
    columns = tails.tails[:, :groups]
    last = len(columns) - 1
    if float(columns[last] @ weights) > failure:
        raise too_many_releases(float(columns[last] @ weights), failure)
    row = bisect_left(range(last), True, key=lambda row: bool(columns[row] @ weights <= failure))
    return tails.bound(row, most)
