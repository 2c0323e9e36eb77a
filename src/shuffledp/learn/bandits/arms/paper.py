"""The radii of Tenenbaum, Kaplan, Mansour, Stemmer 2021, as its appendix has them."""

import math

from shuffledp.privacy import Privacy
from shuffledp.protocols.binary_sum.paper import paper_coins


def paper_sigma(privacy: Privacy) -> float:
    """The sub-Gaussian parameter of the noise that Theorem C.1 claims: exp(-t^2 / (3 tau)) is one of sqrt(3 tau / 2).

    The claim is false for batches much larger than tau; kept for comparison only.

    >>> round(paper_sigma(Privacy(1, 1e-6)), 1)
    45.7
    """
    return math.sqrt(1.5 * paper_coins(privacy))


def paper_width(privacy: Privacy, horizon: int, phase: int, users: int) -> float:
    """Twice I = (2 sqrt(t) sigma / N + 1 / sqrt(N)) sqrt(2 log T): intervals of that radius must overlap.

    Reference: [003] the proofs of Theorems 3.1 and 3.3.
    """
    noise = 2 * math.sqrt(phase) * paper_sigma(privacy) / users
    return 2 * (noise + 1 / math.sqrt(users)) * math.sqrt(2 * math.log(horizon))
