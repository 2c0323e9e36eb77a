"""Local-model histograms: nobody shuffles, and every report must be private by itself."""

import math
from bisect import bisect_left
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from shuffledp.accounting.laws import Binomial
from shuffledp.privacy import Privacy

CONFIDENCE = 0.95
Counts = NDArray[np.int64]


def _randomized_response(epsilon: float, bins: int) -> tuple[float, float]:
    """A report is the own category, or any other with equal probability."""
    ratio = math.exp(epsilon)
    return ratio / (ratio + bins - 1), 1 / (ratio + bins - 1)


def _rappor(epsilon: float, bins: int) -> tuple[float, float]:
    """Symmetric unary encoding, as in basic RAPPOR: every bit of the one-hot row is flipped with one probability."""
    flip = 1 / (1 + math.exp(epsilon / 2))
    return 1 - flip, flip


def _optimized_unary(epsilon: float, bins: int) -> tuple[float, float]:
    """A row of bits (Wang et al. 2017): the own bit is a fair coin, the others are rarely 1."""
    return 0.5, 1 / (1 + math.exp(epsilon))


def _hadamard_response(epsilon: float, bins: int) -> tuple[float, float]:
    """A column in which the own row has +1, or with smaller probability one with -1."""
    ratio = math.exp(epsilon)
    return ratio / (1 + ratio), 0.5


ENCODINGS: dict[str, Callable[[float, int], tuple[float, float]]] = {
    "k-rr": _randomized_response,
    "rappor": _rappor,
    "optimized-unary": _optimized_unary,
    "hadamard-response": _hadamard_response,
}
"""How a category becomes a report: the probabilities that it supports its user's own category, and a given other one,
at an epsilon and a number of categories."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LocalHistogram:
    """A pure local protocol: a report supports a user's own category with one probability, others with a smaller.

    The sums of supports, centred and scaled, estimate the counts without bias.

    >>> LocalHistogram(encoding="k-rr", users=100_000, privacy=Privacy(1, 1e-6), bins=2).standard_error > 200
    True
    """

    encoding: str
    users: int
    privacy: Privacy
    bins: int

    @property
    def support(self) -> tuple[float, float]:
        """The probabilities that a report supports its user's own category, and a given other one."""
        return ENCODINGS[self.encoding](self.privacy.epsilon, self.bins)

    @property
    def standard_error(self) -> float:
        """The standard error of an empty bin's count, as most are where there are many; a full one's is no larger."""
        own, other = self.support
        return math.sqrt(self.users * other * (1 - other)) / (own - other)

    @property
    def l_inf_error(self) -> float:
        """All bins are within this with probability 95%, when nobody is in them: independent, near enough."""
        own, other = self.support
        each = -math.expm1(math.log(CONFIDENCE) / self.bins) / 2
        # Whoever loads a histogram's plan, a device among them, comes here: scipy.stats would take half a second.
        law, mean = Binomial(self.users, other), self.users * other
        highest = bisect_left(range(self.users), True, key=lambda count: law.sf(count) <= each)
        lowest = bisect_left(range(self.users), True, key=lambda count: law.cdf(count) >= each)
        return float(max(highest - mean, mean - lowest)) / (own - other)

    def sample_estimate(self, counts: Counts, *, generator: np.random.Generator) -> NDArray[np.float64]:
        """Each bin from its own law; bins are independent in unary encodings only."""
        own, other = self.support
        seen = generator.binomial(counts, own) + generator.binomial(self.users - counts, other)
        return np.asarray((seen - self.users * other) / (own - other))


def best_local_histogram(*, users: int, privacy: Privacy, bins: int) -> LocalHistogram:
    """The one whose worst bin is least off.

    >>> best_local_histogram(users=100_000, privacy=Privacy(1, 1e-6), bins=1000).encoding
    'optimized-unary'
    """
    every = [LocalHistogram(encoding=name, users=users, privacy=privacy, bins=bins) for name in ENCODINGS]
    return min(every, key=lambda each: each.l_inf_error)
