"""The ratio of discrete Laplace noise for a pure epsilon."""

import math


def pure_ratio(epsilon: float, shift: int = 1) -> float:
    """The smallest usable p >= e^(-epsilon/shift): noise with masses p^|k| is then pure for this shift.

    Rounded up until the logarithm, itself off by less than an ulp, shows it.
    """
    p = math.exp(-epsilon / shift)
    while -math.log(p) * shift * (1 + 2e-14) > epsilon:
        p = math.nextafter(p, 1.0)
    return p
