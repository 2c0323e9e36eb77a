"""The local model for sums of bounded numbers: each user answers for itself and nobody shuffles."""

import math

from shuffledp.privacy import Privacy
from shuffledp.references.local import LocalRandomizedResponse


def piecewise_deviation(epsilon: float) -> float:
    """The largest deviation of the piecewise mechanism's unbiased answer to a number in [-1, 1]: that at -1 and 1.

    The answer is uniform on an interval of width 2/(e^(epsilon/2) - 1) near the number, or on the rest of
    [-1 - width, 1 + width], e^epsilon times as dense in the former. The deviation is 1/(sqrt(3) sinh(epsilon/4)).

    Reference: Wang et al. 2019, Algorithm 2.

    >>> round(piecewise_deviation(2.0), 3)
    1.108
    """
    gain = math.expm1(epsilon / 2)
    return math.sqrt(1 / gain + (gain + 4) / (3 * gain**2))


def local_bounded_standard_error(users: int, privacy: Privacy, low: float, high: float) -> float:
    """The smaller worst error of one bit and of the piecewise mechanism, for a sum of numbers between low and high.

    One bit: the number is rounded at random to an end of the range and sent by randomized response, which uses
    delta; its error is largest in the middle of the range. Laplace noise never wins: its variance on [-1, 1],
    8/epsilon^2, is above the piecewise mechanism's 1/(3 sinh^2(epsilon/4)) <= 16/(3 epsilon^2).

    Reference: Duchi, Jordan, Wainwright 2018; Wang et al. 2019.

    >>> round(local_bounded_standard_error(10_000, Privacy(1, 1e-6), low=0, high=1), 1)
    108.2
    """
    half = (high - low) / 2
    one_bit = half / (1 - 2 * LocalRandomizedResponse(users=users, privacy=privacy).lie_probability)
    return min(one_bit, half * piecewise_deviation(privacy.epsilon)) * math.sqrt(users)
