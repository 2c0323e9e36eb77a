"""Local-model histograms: nobody shuffles, and every report must be private by itself."""

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy
from numpy.typing import NDArray

from shuffledp.privacy import Privacy
from shuffledp.sampling.walsh import walsh_hadamard

CONFIDENCE = 0.95
Counts = NDArray[np.int64]
# Bits of unary reports held at a time.
_BLOCK = 1 << 24


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
        law = scipy.stats.binom(self.users, other)
        mean = self.users * other
        return float(max(law.isf(each) - mean, mean - law.ppf(each))) / (own - other)

    def sample_estimate(self, counts: Counts, *, generator: np.random.Generator) -> NDArray[np.float64]:
        """Each bin from its own law; bins are independent in unary encodings only."""
        own, other = self.support
        seen = generator.binomial(counts, own) + generator.binomial(self.users - counts, other)
        return self._centred(seen)

    def _centred(self, seen: Counts) -> NDArray[np.float64]:
        own, other = self.support
        return np.asarray((seen - self.users * other) / (own - other))

    @abstractmethod
    def sample_reports(self, codes: Counts, *, generator: np.random.Generator) -> NDArray[Any]:
        """What each user sends: a number, or a row of bits."""

    @abstractmethod
    def supporters(self, reports: NDArray[Any]) -> Counts:
        """How many reports support each category."""

    @property
    def _at_a_time(self) -> int:
        return self.users

    def simulate(self, codes: Counts, *, generator: np.random.Generator) -> NDArray[np.float64]:
        """The estimates of all bins from everybody's report."""
        seen = np.zeros(self.bins, dtype=np.int64)
        for start in range(0, self.users, self._at_a_time):
            here = codes[start : start + self._at_a_time]
            seen += self.supporters(self.sample_reports(here, generator=generator))
        return self._centred(seen)


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

    def sample_reports(self, codes: Counts, *, generator: np.random.Generator) -> NDArray[Any]:
        others = (codes + generator.integers(1, self.bins, codes.size)) % self.bins
        return np.where(generator.random(codes.size) < self.support[0], codes, others)

    def supporters(self, reports: NDArray[Any]) -> Counts:
        return np.bincount(reports, minlength=self.bins)


@dataclass(frozen=True, slots=True, kw_only=True)
class UnaryHistogram(LocalHistogram):
    """A report is a row of independent bits: the own category's is 1 with one probability, the others' with another."""

    @property
    def _at_a_time(self) -> int:
        return max(1, _BLOCK // self.bins)

    def sample_reports(self, codes: Counts, *, generator: np.random.Generator) -> NDArray[Any]:
        own, other = self.support
        rows = generator.random((codes.size, self.bins), dtype=np.float32) < other
        rows[np.arange(codes.size), codes] = generator.random(codes.size) < own
        return rows

    def supporters(self, reports: NDArray[Any]) -> Counts:
        return np.asarray(reports.sum(axis=0, dtype=np.int64))


@dataclass(frozen=True, slots=True, kw_only=True)
class Rappor(UnaryHistogram):
    """Symmetric unary encoding, as in basic RAPPOR: every bit of the one-hot row is flipped with one probability."""

    @property
    def support(self) -> tuple[float, float]:
        flip = 1 / (1 + math.exp(self.privacy.epsilon / 2))
        return 1 - flip, flip


@dataclass(frozen=True, slots=True, kw_only=True)
class OptimizedUnary(UnaryHistogram):
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

    @property
    def columns(self) -> int:
        """Of the matrix: the next power of two above the number of categories, as no category has the constant row."""
        return 1 << self.bins.bit_length()

    def sample_reports(self, codes: Counts, *, generator: np.random.Generator) -> NDArray[Any]:
        rows = codes + 1
        columns = generator.integers(0, self.columns, codes.size)
        wanted = generator.random(codes.size) >= self.support[0]
        # A column with the other sign becomes one with the wanted sign, one for one, by a bit that the row has.
        wrong = (np.bitwise_count(columns & rows) & 1).astype(np.bool_) != wanted
        return np.where(wrong, columns ^ (rows & -rows), columns)

    def supporters(self, reports: NDArray[Any]) -> Counts:
        signs = walsh_hadamard(np.bincount(reports, minlength=self.columns))
        return np.asarray((reports.size + signs[1 : self.bins + 1]) // 2)


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
