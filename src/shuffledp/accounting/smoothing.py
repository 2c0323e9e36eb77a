"""How far a sum of Gaussian weights over the whole numbers is from its integral: the smoothing error.

For a width r > 0, a positive definite T x T matrix Q <= I / r^2 and any centre c,

    the sum of e^(-(n - c)^T Q (n - c) / 2) over n in Z^T  is  (2 pi)^(T/2) det(Q)^(-1/2) (1 +- e_T(r)),

    e_T(r) = (1 + e(r))^T - 1,    e(r) = 2 (e^(-2 pi^2 r^2) + e^(-2 pi^2 r^2 4) + e^(-2 pi^2 r^2 9) + ...).

Proof: docs/theory/smoothing.md.
"""

import math

from shuffledp.errors import ParameterError

# Every term's relative error is below 745 times 8 roundings, as smaller terms are 0; sums and products have a few more.
_TERMS_UP = 1 + 2.0**-38
_STEP_UP = 1 + 2.0**-50
# Here the sum and its dual have the same terms; on its own side each needs few.
_SELF_DUAL = 1 / math.sqrt(2 * math.pi)


def _one_dimension(width: float) -> float:
    """e(width), rounded up."""
    if width >= _SELF_DUAL:
        return _tail(2 * math.pi * math.pi * width * width) * _TERMS_UP
    # The sum over all whole numbers, 1 + e, by Poisson summation on the other side.
    return (1 + _tail(0.5 / width / width)) / width * _SELF_DUAL * _TERMS_UP - 1


def _tail(rate: float) -> float:
    """2 (e^-rate + e^-4rate + ...) for a rate of at least pi: terms after the eighth are below its last digit."""
    return 2 * math.fsum(math.exp(-rate * j * j) for j in range(1, 9))


def smoothing_error(width: float, dimensions: int = 1) -> float:
    """The largest relative error of an integral in place of a sum of Gaussian weights over the whole numbers.

    Args:
        width: r > 0: the weights' standard deviation; in several dimensions, the smallest one in any direction, so that
            no eigenvalue of the precision matrix is above 1 / r^2.
        dimensions: T >= 1.

    Returns:
        e_T(r), rounded up: for any centre the sum is between 1 - e_T(r) and 1 + e_T(r) times the integral. It is never
        0, and infinite where no double holds it.

    Raises:
        ParameterError: If the width is not a positive number, or `dimensions` not a whole one.

    >>> f"{smoothing_error(2.0):.3g}", f"{smoothing_error(2.0, 1000):.3g}"
    ('1.02e-34', '1.02e-31')
    """
    if not 0 < width < math.inf:
        raise ParameterError("width", width, "must be a positive number", "pass a standard deviation")
    if isinstance(dimensions, bool) or not isinstance(dimensions, int) or dimensions < 1:
        raise ParameterError("dimensions", dimensions, "must be a whole number >= 1", "pass for instance 1")
    one = _one_dimension(width)
    # The smallest double stands for whatever was rounded to 0.
    one = math.nextafter(one * _STEP_UP, math.inf)
    if dimensions == 1:
        return one
    logarithm = dimensions * math.log1p(one) * _STEP_UP
    if logarithm > 709:
        return math.inf
    return math.nextafter(math.expm1(logarithm) * _STEP_UP, math.inf)
