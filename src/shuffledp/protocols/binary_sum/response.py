"""Binary sum by shuffled randomized response: one bit a user, flipped now and then."""

import math
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from shuffledp.accounting.curves import smallest_real
from shuffledp.accounting.responses import ShuffledResponsePair
from shuffledp.errors import InfeasibleError
from shuffledp.messages import Reports
from shuffledp.privacy import Privacy
from shuffledp.protocols.binary_sum.base import RandomAnswers, check_delta
from shuffledp.protocols.fields import forwarded, only_exact
from shuffledp.protocols.request import Request
from shuffledp.protocols.unary import probability_with
from shuffledp.randomness import RandomBits
from shuffledp.sampling.bernoulli import bernoulli
from shuffledp.sampling.coins import binomial

# Random answers beyond this leave nothing to read; and a probability that stands for 0.
_MOST_RANDOM, _TINY = 0.999, 1e-300


def smallest_random_probability(honest: int, privacy: Privacy, least: float = 0.0) -> float:
    """The smallest probability of a random answer that hides one bit among this many honest users'.

    Args:
        honest: how many users flip their bits.
        privacy: what must hold.
        least: a probability that is known to be too small, or just enough.
    """

    def holds(p: float) -> bool:
        return p >= 1 or ShuffledResponsePair(honest, p / 2).meets(privacy.epsilon, privacy.delta)

    if least and ShuffledResponsePair(honest, least / 2).takes_groups:
        return smallest_real(holds, least, least * 1.02, relative=1e-3)
    return smallest_real(holds, 0.0, min(1.0, 1.0 / honest), relative=1e-7)


@lru_cache(maxsize=64)
def too_small_probability(honest: int, privacy: Privacy) -> float:
    """A probability of a random answer that is too small or just enough: one input of the others shows it."""
    too_few = 0.0

    def may_do(p: float) -> bool:
        nonlocal too_few
        if p >= 1 or ShuffledResponsePair(honest, p / 2).delta_below(privacy.epsilon) <= privacy.delta:
            return True
        too_few = max(too_few, p)
        return False

    smallest_real(may_do, 0.0, min(1.0, 1.0 / honest), relative=1e-4)
    return too_few


@dataclass(frozen=True, slots=True, kw_only=True)
class Response(RandomAnswers):
    """Each user sends its bit, or with `random_probability` a fair coin in its place.

    The adversary sees how many of the bits are 1. The one method that still protects a user from the
    analyzer and the shuffler together: `local_epsilon`.

    Reference: [004] Theorem 10 (Cheu, Smith, Ullman, Zeber, Zhilyaev 2019).

    >>> plan = Response.plan(users=1000, privacy=Privacy(1, 1e-6))
    >>> round(1000 * plan.random_probability, 1), plan.messages_per_user_max
    (61.5, 1)
    """

    method: ClassVar[str] = "rr"
    theory_page: ClassVar[str] = "docs/theory/004-survey.md"
    law: ClassVar[str] = "randomized-response"
    messages_per_user_mean = 1.0
    messages_per_user_max = 1
    local_delta = 0.0
    influence = forwarded("message_influence")
    curve: ClassVar[str] = "the worst curve over all inputs of the other users"

    @classmethod
    def for_request(cls, request: Request) -> Self:
        """The fewest random answers that suffice, for the worst input of the other users."""
        only_exact(request.constants)
        check_delta(request.privacy)
        least = too_small_probability(request.honest, request.privacy)
        if least < _MOST_RANDOM and ShuffledResponsePair(request.honest, least / 2 or _TINY).is_wide:
            problem = "asks for more noise than an exact curve of randomized responses can be had for"
            raise InfeasibleError("epsilon", request.privacy.epsilon, problem, "take a larger one, or another method")
        p = least if least >= _MOST_RANDOM else smallest_random_probability(request.honest, request.privacy, least)
        if p >= _MOST_RANDOM:
            problem = "are too few to hide one user's answer among"
            raise InfeasibleError("users", request.users, problem, "take more users, or another method")
        return cls(**request.common, random_probability=p)

    @classmethod
    def least_error(cls, request: Request, **domain: Any) -> float:
        # The error grows with the probability of a random answer.
        p = min(too_small_probability(request.honest, request.privacy), _MOST_RANDOM)
        return math.sqrt(request.users * p / 2 * (1 - p / 2)) / (1 - p)

    @property
    def lie(self) -> float:
        """The probability of the wrong answer; halving a float is exact."""
        return self.random_probability / 2

    @property
    def _variance(self) -> float:
        return self.users * self.lie * (1 - self.lie)

    @property
    def _answers(self) -> tuple[float, ...]:
        return 0.5, 0.5

    @property
    def local_epsilon(self) -> float:
        return math.log((1 - self.lie) / self.lie)

    @property
    def lying_client(self) -> str:
        return f"moves the count by at most {self.influence:.3g}"

    def pair(self, honest: int) -> ShuffledResponsePair:
        return ShuffledResponsePair(honest, self.lie)

    @property
    def dominates_because(self) -> str:
        return (
            "One bit a user, so a permutation shows only how many are 1: the honest others' flips and the user's "
            "own coin; the curve is the largest over all bits that the others can have."
        )

    def randomize(self, values: ArrayLike, *, bits: RandomBits) -> Reports:
        true = self.check_values(values)
        flipped = bernoulli(self.lie, true.size, bits=bits).view(np.uint8)
        return Reports.of_equal_size((true ^ flipped).reshape(-1, 1))

    expected = forwarded("users")

    def _from_counts(self, ones: int, zeros: int) -> float:
        return (ones - self.users * self.lie) / (1 - self.random_probability)

    def quieter(self, part: float) -> dict[str, Any]:
        return {"random_probability": 2 * probability_with(part * self.lie * (1 - self.lie))}

    def _sample(self, total: int, bits: RandomBits) -> float:
        lost, gained = (int(binomial(n, self.lie, 1, bits=bits)[0]) for n in (total, self.users - total))
        ones = total - lost + gained
        return self._from_counts(ones, self.users - ones)

    @property
    def spread(self) -> float:
        # A randomized response is a bit of its own with another mean: no noise, but a wider range.
        return self.users / (1 - self.random_probability) ** 2

    def sample_sums(self, ones: NDArray[np.int64], batches: int, *, bits: RandomBits) -> NDArray[np.float64]:
        users = batches * self.users
        lost, gained = (_binomials(counts, self.lie, bits) for counts in (ones, users - ones))
        return np.asarray((ones + gained - lost - users * self.lie) / (1 - self.random_probability))


def _binomials(trials: NDArray[np.int64], p: float, bits: RandomBits) -> NDArray[np.int64]:
    """One draw of Bin(trials[i], p) for each i; those with equal trials at once."""
    drawn = np.empty(trials.shape, dtype=np.int64)
    for number in np.unique(trials):
        here = trials == number
        drawn[here] = binomial(int(number), p, int(np.count_nonzero(here)), bits=bits)
    return drawn
