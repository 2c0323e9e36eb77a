"""The Renyi way to account for vector noise: kept beside the normal scores, to show what it costs.

On the common support (P - e^eps Q)_+ <= c_a P^a Q^(1-a) at every point, and the sum factorises over
coordinates; so delta(eps) is at most the usual conversion of sum_i R_a(s_i) plus sum_i P[Z_i < |s_i|], and
sum_i R_a(s_i) <= |s|^2 max_t R_a(t) / t^2 over whole t up to |s|.

Reference: Agarwal, Kairouz, Liu 2021 for Skellam noise.
"""

import math

import numpy as np
from scipy import special

from shuffledp.accounting.laws import IntegerLaw

_ORDERS = np.concatenate((np.linspace(1.05, 10, 90), np.geomspace(10.5, 2000, 120)))


def renyi_delta(noise: IntegerLaw, length: float, dimension: int, epsilon: float) -> float:
    """An upper bound on delta for integer shifts of at most this length, by the best order.

    >>> from shuffledp.accounting.laws import Binomial
    >>> renyi_delta(Binomial(105, 0.5), 1.0, 1, 1.0) <= 1e-6 < renyi_delta(Binomial(103, 0.5), 1.0, 1, 1.0)
    True
    """
    largest = math.floor(length)
    start, end = noise.window(1e-40)
    k = np.arange(start, end + 1, dtype=np.float64)
    log_p = noise.log_pmf(k)
    # Divergences of parts of two laws may be negative: 0 is the least that a length may multiply.
    worst = np.zeros(_ORDERS.size)
    for shift in range(1, largest + 1):
        for p, q in ((log_p[shift:], log_p[:-shift]), (log_p[:-shift], log_p[shift:])):
            sums = np.array([special.logsumexp(order * p + (1 - order) * q) for order in _ORDERS])
            worst = np.maximum(worst, sums / (_ORDERS - 1) / shift**2)
    divergence = length**2 * worst
    conversion = (_ORDERS - 1) * (divergence - epsilon + np.log1p(-1 / _ORDERS)) - np.log(_ORDERS)
    low, high = noise.support
    ends = [noise.cdf(low + largest - 1)] if math.isfinite(low) else [0.0]
    ends += [noise.sf(high - largest)] if math.isfinite(high) else [0.0]
    cut_off = min(dimension, math.floor(length**2)) * max(ends)
    return min(1.0, float(np.exp(conversion.min())) + cut_off)
