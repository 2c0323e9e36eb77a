"""Discrete Gaussians of any width, exactly and without tables, each draw with a variance of its own.

P[x] is proportional to e^(-x^2 / 2v) on the whole numbers. A proposal is (c B + r) with a random sign: B a power of two
near the standard deviation, c with P[c] = 2^-(c+1), r uniform below B. It is accepted with probability

    p = 2^(c-1) e^(o - x^2 / 2v) <= 1,    o = min(B^2 / 2v, 11/16),

and minus zero never: then P[x] is as it should be. Floating point decides only where it cannot be wrong, integers
decide the rest. Proof: docs/theory/sampling.md.
"""

from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from shuffledp.errors import ParameterError
from shuffledp.randomness import RandomBits
from shuffledp.sampling.exponential import uniform_is_below

LARGEST_VARIANCE = 2.0**100

# A random word holds r in its lowest 50 bits, the sign in the next one, and in 13 bits the zeros that are c.
_SIGN_AT, _ZEROS_AT = 50, 51
_ZEROS = 64 - _ZEROS_AT
# The first digits of the uniform number that decides, before more are needed.
_DIGITS = 32
_WHOLE = float(1 << _DIGITS)
# How far p in floating point may be from p: proved to be less than 2^-40.
_MARGIN = 2.0**-32
# e^o must be at most 2: ln 2 = 0.693.
_LARGEST_OFFSET = 11 / 16
# Proposals at a time: enough to be fast, few enough to stay in the cache.
_BLOCK = 1 << 15


def _tables() -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """The c that each 13 bits stand for, and 2^(c-1) 2^32.

    Where they are all 0, c goes on in further words; p is below 2^-47 then, and 0 is near enough to it.
    """
    bits = np.arange(1 << _ZEROS)
    lowest = bits & -bits
    return np.bitwise_count(np.maximum(lowest, 1) - 1).astype(np.int64), lowest.astype(np.float64) * (_WHOLE / 2)


_COUNTS, _SCALES = _tables()


def sample_discrete_gaussian(
    variances: NDArray[np.float64] | float, shape: int | tuple[int, ...] | None = None, *, bits: RandomBits
) -> NDArray[np.int64]:
    """Independent draws x with P[x] proportional to e^(-x^2 / (2 variance)) on the whole numbers, exactly.

    A value that 64 bits cannot hold would raise OverflowError; its probability is below 2^-(2^25).

    Args:
        variances: One number for all draws, or an array with one entry a draw; between 1 and 2^100, and each the
            double that it is. It is the law's parameter; the variance itself is less by 2e-7 at 1, and by
            3e-15 at 2.
        shape: The shape of what is returned; by default, and if `variances` is an array, the shape of `variances`.
        bits: Where randomness comes from.

    Returns:
        The draws.

    Raises:
        ParameterError: If a variance is out of its range, or there is not one for each draw.

    >>> sample_discrete_gaussian(1e12, 100_000, bits=RandomBits.seeded(0)).std().round(-4)
    np.float64(1000000.0)
    >>> sample_discrete_gaussian(np.array([[1.0, 1e24]]), bits=RandomBits.seeded(0)).shape
    (1, 2)
    """
    given = np.asarray(variances, dtype=np.float64)
    inside = (given >= 1) & (given <= LARGEST_VARIANCE)
    if not inside.all():
        wrong = float(given[~inside].flat[0])
        raise ParameterError("variances", wrong, "must lie in 1..2^100", "choose another unit for what is noised")
    try:
        drawn = np.empty(given.shape if shape is None else shape, dtype=np.int64)
    except (ValueError, TypeError) as error:
        raise ParameterError("shape", shape, "must be whole numbers >= 0", "pass for instance 1000") from error
    if given.ndim and given.shape != drawn.shape:
        raise ParameterError(
            "shape", drawn.shape, f"must be that of variances, {given.shape}", "leave it out, or pass one variance"
        )
    _fill(drawn.reshape(-1), given.reshape(-1) if given.ndim else given, margin=_MARGIN, block=_BLOCK, bits=bits)
    return drawn


def _fill(
    drawn: NDArray[np.int64], variances: NDArray[np.float64], *, margin: float, block: int, bits: RandomBits
) -> None:
    """Fill an array: every draw takes the first of its proposals that is accepted, at most `block` at a time."""
    # Whose proposals were refused so far: blocks of them are proposed again as soon as one is full.
    pending, begun = np.empty(0, dtype=np.int64), 0
    while begun < drawn.size or pending.size:
        if pending.size < block and begun < drawn.size:
            ended = min(begun + block, drawn.size)
            of_each = variances[begun:ended] if variances.ndim else variances
            drawn[begun:ended], accepted = _propose(of_each, ended - begun, margin=margin, bits=bits)
            again = np.flatnonzero(~accepted)
            again += begun
            begun = ended
        else:
            tried, pending = pending[:block], pending[block:]
            of_each = variances[tried] if variances.ndim else variances
            drawn[tried], accepted = _propose(of_each, tried.size, margin=margin, bits=bits)
            again = tried[~accepted]
        pending = np.concatenate((pending, again))


def _propose(
    variances: NDArray[np.float64], count: int, *, margin: float, bits: RandomBits
) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
    """One proposal for each of `count` draws, and whether it is accepted: what stands for a refused one is no draw."""
    words = bits.words(count)
    digits = bits.unsigned(count, _DIGITS)
    shift = _log2_width(variances)
    zeros = (words >> np.uint64(_ZEROS_AT)).view(np.int64)
    words = words.view(np.int64)
    values = _COUNTS.take(zeros)
    values <<= shift
    values |= words & (np.int64(1) << shift) - 1
    gap = _scaled_acceptance(_SCALES.take(zeros), values, shift, variances)
    gap -= digits
    # U has these digits and more: it is below p for certain, or at least p for certain, or neither.
    accepted = gap >= 1 + margin * _WHOLE
    undecided = np.flatnonzero(~(accepted | (gap <= -margin * _WHOLE)))
    # All bits set where the sign is minus.
    negative = -(words >> _SIGN_AT & 1)
    accepted &= (values | ~negative) != 0
    values ^= negative
    values -= negative
    of_each = np.broadcast_to(variances, count)
    for place in undecided:
        value = _decide(int(words[place]), int(digits[place]), float(of_each[place]), bits=bits)
        accepted[place] = value is not None
        values[place] = value or 0
    return values, accepted


def _log2_width(variances: NDArray[np.float64] | float) -> NDArray[np.int64]:
    """The j of B = 2^j, the smallest power of two with 2 B^2 > variance."""
    return np.asarray(np.frexp(variances)[1] >> 1, dtype=np.int64)


def _scaled_acceptance(
    scales: NDArray[np.float64], sizes: NDArray[np.int64], shift: NDArray[np.int64], variances: NDArray[np.float64]
) -> NDArray[np.float64]:
    """2^32 times the probabilities with which proposals are accepted, in floating point: of c's scale, x, j and v."""
    rate = 0.5 / variances
    exponents = sizes.astype(np.float64)
    exponents *= exponents
    exponents *= -rate
    exponents += np.minimum(np.ldexp(rate, 2 * shift), _LARGEST_OFFSET)
    scaled = np.exp(exponents, out=exponents)
    scaled *= scales
    return scaled


def _decide(word: int, digits: int, variance: float, *, bits: RandomBits) -> int | None:
    """The value that a word proposes, or None if it is refused; in whole and rational numbers only."""
    width = 1 << int(_log2_width(variance))
    word &= (1 << 64) - 1
    count, zeros, length = 0, word >> _ZEROS_AT, _ZEROS
    if not zeros and digits:
        # U is at least 2^-32, and p below 2^-47: the run need not be followed to its end.
        return None
    while not zeros:
        count += length
        zeros, length = int(bits.words(1)[0]), 64
    count += (zeros & -zeros).bit_length() - 1
    size = count * width + word % width
    negative = word >> _SIGN_AT & 1
    if negative and not size:
        return None
    power, exponent = _acceptance(count, size, width, variance)
    if not uniform_is_below(power, exponent, digits, _DIGITS, bits=bits):
        return None
    return -size if negative else size


def _acceptance(count: int, size: int, width: int, variance: float) -> tuple[int, Fraction]:
    """The numbers k and z of the probability 2^k e^-z with which a proposal is accepted."""
    rate = 1 / (2 * Fraction(variance))
    return count - 1, size * size * rate - min(width * width * rate, Fraction(_LARGEST_OFFSET))
