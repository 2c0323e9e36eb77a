"""Pointer chasing: half the users hold one permutation, half another, and b[a[1]] is wanted.

Reference: [004] section 3.4, Theorem 18, with a universe of 2 l! elements: {1, 2} times all permutations.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import stats

from shuffledp.errors import DataError, ParameterError
from shuffledp.messages import Batch, Reports
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


def encode(part: int, permutation: Sequence[int]) -> int:
    """The code of what a user holds: part 1 or 2, and a permutation of 1..l.

    >>> encode(1, [1, 2, 3]), encode(2, [3, 2, 1])
    (0, 11)
    """
    length = len(permutation)
    if part not in (1, 2):
        raise ParameterError("part", part, "must be 1 or 2", "the first permutation is part 1")
    if sorted(permutation) != list(range(1, length + 1)):
        raise ParameterError("permutation", list(permutation), f"must have 1..{length} once each", "reorder them")
    rank = 0
    for place, value in enumerate(permutation):
        smaller = sum(other < value for other in permutation[place + 1 :])
        rank += smaller * math.factorial(length - 1 - place)
    return (part - 1) * math.factorial(length) + rank


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


@dataclass(frozen=True, slots=True, kw_only=True)
class PointerChasing:
    """One round of a private histogram over 2 l! categories; the fullest bin of each half is taken.

    The adversary sees the histogram's messages: its guarantee is this one's, and the answer is a post-processing.

    >>> plan = PointerChasing.plan(users=300, privacy=Privacy(1, 1e-6), length=4)
    >>> values = plan.values([2, 1, 4, 3], [4, 1, 3, 2], np.arange(300) % 2)
    >>> plan.sample_answer(values, bits=RandomBits.seeded(1))
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

    def values(self, first: Sequence[int], second: Sequence[int], parts: ArrayLike) -> NDArray[np.int64]:
        """Codes of users who hold the first permutation where `parts` is 0 and the second where it is 1."""
        for permutation in (first, second):
            if len(permutation) != self.length:
                raise ParameterError(
                    "permutation", list(permutation), f"must have the plan's length {self.length}", "plan again"
                )
        which = np.asarray(parts)
        if which.dtype.kind not in "bui" or not np.isin(which, (0, 1)).all():
            raise DataError("parts", f"{which.dtype} of shape {which.shape}", "must be 0 or 1", "pass one a user")
        codes = np.array([encode(1, first), encode(2, second)], dtype=np.int64)
        return codes[which.astype(np.int64)]

    def randomize(self, values: ArrayLike, *, bits: RandomBits) -> Reports:
        """The clients' side."""
        return self.histogram.randomize(values, bits=bits)

    def analyze(self, batch: Batch) -> Chased:
        """The server's side."""
        return self.answer_from(self.histogram.analyze(batch).value)

    def sample_answer(self, values: ArrayLike, *, bits: RandomBits) -> Chased:
        """An answer drawn from its law, without messages."""
        return self.answer_from(self.histogram.sample_estimate(values, bits=bits).value)

    def answer_from(self, counts: NDArray[np.float64]) -> Chased:
        """The fullest bin of each half, followed."""
        half = counts.size // 2
        first = decode(int(np.argmax(counts[:half])), self.length)[1]
        second = decode(half + int(np.argmax(counts[half:])), self.length)[1]
        return Chased(second[first[0] - 1], tuple(first), tuple(second))

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
