"""The papers' own noise, for comparison: what their theorems prescribe for a batch."""

import math

from shuffledp.privacy import Privacy


def paper_batch_deviation(dimension: int, privacy: Privacy, levels: int = 1) -> float:
    """An entry's deviation in a batch's sums with [002] Theorem C.1's binomial noise, on the corrected range [0, 2].

    b = 24e4 g^2 ln^2(4 (d^2 + 1)/delta) / (epsilon^2 B) coins with p = 1/4 a user, in steps of 2/g. In several batches
    of a user, as in [000] section 5, each has its part of epsilon and delta.

    >>> round(paper_batch_deviation(5, Privacy(1, 0.1)))
    2947
    """
    epsilon, delta = privacy.epsilon / levels, privacy.delta / levels
    coins_in_all = 24e4 * math.log(4 * (dimension**2 + 1) / delta) ** 2 / epsilon**2
    return 2 * math.sqrt(coins_in_all * 3 / 16)
