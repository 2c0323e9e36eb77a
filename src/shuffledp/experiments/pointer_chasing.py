"""Pointer chasing: half the users hold one permutation, half another, and b[a[1]] is wanted.

Reference: [004] section 3.4, Theorem 18, with a universe of 2 l! elements: {1, 2} times all permutations.
"""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import stats

from shuffledp.errors import ParameterError
from shuffledp.privacy import Privacy
from shuffledp.protocols.error_bounds import CONFIDENCE
from shuffledp.protocols.histogram import Histogram
from shuffledp.protocols.histogram.base import HistogramPlan
from shuffledp.randomness import RandomBits

LONGEST = 9
"""2 * 9! is 725,760 categories."""


def universe_size(length: int) -> int:
    """The number of (part, permutation) that a user may hold."""
    if isinstance(length, bool) or not isinstance(length, int) or not 2 <= length <= LONGEST:
        raise ParameterError("length", length, f"must lie in 2..{LONGEST}", "the universe has 2 l! elements")
    return 2 * math.factorial(length)


def decode(code: int, length: int) -> tuple[int, list[int]]:
    """What a code stands for.

    >>> decode(11, 3)
    (2, [3, 2, 1])
    """
    if not 0 <= code < universe_size(length):
        raise ParameterError("code", code, f"must lie in 0..{universe_size(length) - 1}", "encode it again")
    part, rank = divmod(code, math.factorial(length))
    left = list(range(1, length + 1))
    permutation = []
    for place in range(length):
        which, rank = divmod(rank, math.factorial(length - 1 - place))
        permutation.append(left.pop(which))
    return part + 1, permutation


@dataclass(frozen=True, slots=True)
class Chased:
    """The answer b[a[1]], and the two permutations it comes from."""

    answer: int
    first: tuple[int, ...]
    second: tuple[int, ...]


def chased(first: int, second: int, length: int) -> Chased:
    """The answer of two codes, one of either part.

    >>> chased(0, 11, 3)
    Chased(answer=3, first=(1, 2, 3), second=(3, 2, 1))
    """
    a, b = (tuple(decode(code, length)[1]) for code in (first, second))
    return Chased(b[a[0] - 1], a, b)


def fullest(counts: NDArray[Any]) -> tuple[int, int]:
    """The codes that most users hold, as the counts have it, of the first and of the second part."""
    half = counts.size // 2
    return int(np.argmax(counts[:half])), half + int(np.argmax(counts[half:]))


@dataclass(frozen=True, slots=True, kw_only=True)
class PointerChasing:
    """One round of a private histogram over 2 l! categories; the fullest bin of each half is taken.

    The adversary sees the histogram's messages: its guarantee is this one's, and the answer is a post-processing.

    >>> plan = PointerChasing.plan(users=300, privacy=Privacy(1, 1e-6), length=4)
    >>> plan.sample_answer([7, 43] * 150, bits=RandomBits.seeded(1))
    Chased(answer=1, first=(2, 1, 4, 3), second=(4, 1, 3, 2))
    """

    histogram: HistogramPlan
    length: int

    def __post_init__(self) -> None:
        if self.histogram.bins != universe_size(self.length):
            raise ParameterError(
                "histogram", f"{self.histogram.bins} bins", f"must have {universe_size(self.length)}", "plan it again"
            )

    @classmethod
    def plan(
        cls, *, users: int, privacy: Privacy, length: int, method: str = "auto", **limits: Any
    ) -> "PointerChasing":
        """The histogram that is least off in its worst bin, or that of the named method."""
        size = universe_size(length)
        asked = {"users": users, "privacy": privacy, "categories": size, **limits}
        # A method that is named need not be compared.
        named = Histogram.methods.get(method)
        histogram = Histogram.plan(method=method, **asked) if named is None else named.plan(**asked)
        return cls(histogram=histogram, length=length)

    def sample_answer(self, values: ArrayLike, *, bits: RandomBits) -> Chased:
        """An answer drawn from its law, without messages."""
        return self.answer_from(self.histogram.sample_estimate(values, bits=bits).value)

    def answer_from(self, counts: NDArray[np.float64]) -> Chased:
        """The fullest bin of each half, followed."""
        return chased(*fullest(counts), self.length)

    @property
    def declared_success(self) -> float:
        """The probability of the right answer, at least, when each user holds either permutation with probability 1/2.

        No bin is off by more than the histogram's bound, with CONFIDENCE; then two bins with more than twice the bound
        are the fullest of their halves.
        """
        law = stats.binom(self.histogram.users, 0.5)
        least = math.floor(2 * self.histogram.error_bound) + 1
        enough = float(law.cdf(self.histogram.users - least) - law.cdf(least - 1))
        return max(0.0, enough - (1 - CONFIDENCE))
