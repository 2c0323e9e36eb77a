"""Local-model histograms: nobody shuffles, and every report must be private by itself."""

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from shuffledp.privacy import Privacy

CONFIDENCE = 0.95
Counts = NDArray[np.int64]


@dataclass(frozen=True, slots=True, kw_only=True)
class LocalHistogram(ABC):
    """A pure local protocol: a report supports a user's own category with one probability, others with a smaller.

    The sums of supports, centred and scaled, estimate the counts without bias.
    """

    users: int
    privacy: Privacy
    bins: int

    @property
    @abstractmethod
    def support(self) -> tuple[float, float]:
        """The probabilities that a report supports its user's own category, and a given other one."""

    @property
    def standard_error(self) -> float:
        """Of a bin that nobody is in, as most are where there are many; a full one's is smaller or as large."""
        own, other = self.support
        return math.sqrt(self.users * other * (1 - other)) / (own - other)

    @property
    def l_inf_error(self) -> float:
        """All bins are within this with probability 95%, when nobody is in them: independent, near enough."""
        own, other = self.support
        each = -math.expm1(math.log(CONFIDENCE) / self.bins) / 2
        law = stats.binom(self.users, other)
        mean = self.users * other
        return float(max(law.isf(each) - mean, mean - law.ppf(each))) / (own - other)

    def sample_estimate(self, counts: Counts, *, generator: np.random.Generator) -> NDArray[np.float64]:
        """Each bin from its own law; bins are independent in unary encodings only."""
        own, other = self.support
        seen = generator.binomial(counts, own) + generator.binomial(self.users - counts, other)
        return np.asarray((seen - self.users * other) / (own - other))


@dataclass(frozen=True, slots=True, kw_only=True)
class RandomizedResponse(LocalHistogram):
    """k-ary randomized response: the own category, or any other with equal probability.

    >>> RandomizedResponse(users=100_000, privacy=Privacy(1, 1e-6), bins=2).standard_error > 200
    True
    """

    @property
    def support(self) -> tuple[float, float]:
        ratio = math.exp(self.privacy.epsilon)
        return ratio / (ratio + self.bins - 1), 1 / (ratio + self.bins - 1)


@dataclass(frozen=True, slots=True, kw_only=True)
class Rappor(LocalHistogram):
    """Symmetric unary encoding, as in basic RAPPOR: every bit of the one-hot row is flipped with one probability."""

    @property
    def support(self) -> tuple[float, float]:
        flip = 1 / (1 + math.exp(self.privacy.epsilon / 2))
        return 1 - flip, flip


@dataclass(frozen=True, slots=True, kw_only=True)
class OptimizedUnary(LocalHistogram):
    """Optimized unary encoding (Wang et al. 2017): the own bit is a fair coin, the others are rarely 1."""

    @property
    def support(self) -> tuple[float, float]:
        return 0.5, 1 / (1 + math.exp(self.privacy.epsilon))


@dataclass(frozen=True, slots=True, kw_only=True)
class HadamardResponse(LocalHistogram):
    """Hadamard response: a column in which the own row has +1, or with smaller probability one with -1."""

    @property
    def support(self) -> tuple[float, float]:
        ratio = math.exp(self.privacy.epsilon)
        return ratio / (1 + ratio), 0.5


LOCAL_METHODS: dict[str, type[LocalHistogram]] = {
    "k-rr": RandomizedResponse,
    "rappor": Rappor,
    "optimized-unary": OptimizedUnary,
    "hadamard-response": HadamardResponse,
}


def best_local_histogram(*, users: int, privacy: Privacy, bins: int) -> LocalHistogram:
    """The one whose worst bin is least off.

    >>> type(best_local_histogram(users=100_000, privacy=Privacy(1, 1e-6), bins=1000)).__name__
    'OptimizedUnary'
    """
    every = [kind(users=users, privacy=privacy, bins=bins) for kind in LOCAL_METHODS.values()]
    return min(every, key=lambda each: each.l_inf_error)
