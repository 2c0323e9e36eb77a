"""Binary sum with delta = 0: every user sends as many bits, a few users random ones."""

import math
from dataclasses import dataclass
from functools import cache, lru_cache
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike

from shuffledp.accounting.anonymous_sum import AnonymousSumPair
from shuffledp.accounting.curves import smallest_real
from shuffledp.accounting.dropouts import honest_users
from shuffledp.errors import InfeasibleError, ParameterError
from shuffledp.messages import Reports
from shuffledp.protocols.binary_sum.base import RandomAnswers
from shuffledp.protocols.fields import AGAIN, check_fields, forwarded, noise, only_exact
from shuffledp.protocols.request import Request
from shuffledp.randomness import RandomBits
from shuffledp.sampling.bernoulli import bernoulli
from shuffledp.sampling.coins import binomial
from shuffledp.sampling.laws import truncated_discrete_laplace

# Every input of the others is tried, so the calibration counts on at most this many honest users;
# more of them only help.
_MOST_CALIBRATED, _LONGEST_SUM = 128, 2048
_SMALLEST_EPSILON = 0.05
# Beyond, random numbers of ones would be too rare for a table: what is enough for less is enough.
_LARGEST_EPSILON = 20.0
# Answers drawn at a time.
_AT_A_TIME = 1 << 20


@lru_cache(maxsize=512)
def _random_masses(bits: int, decay: float) -> tuple[float, ...]:
    """The exact law that is sampled, table and all: pure privacy allows no distance."""
    return tuple(float(mass) for mass in truncated_discrete_laplace(bits, decay).masses())


@lru_cache(maxsize=64)
def _pair(honest: int, probability: float, bits: int, decay: float) -> AnonymousSumPair:
    return AnonymousSumPair(honest, probability, _random_masses(bits, decay))


def _one_variance(probability: float, bits: int, decay: float) -> float:
    """The variance of one user's number of ones, the same for both bits."""
    k = np.arange(bits + 1) - bits / 2
    random = float(np.array(_random_masses(bits, decay)) @ k**2)
    return (1 - probability) * (probability / 2) ** 2 + probability * (random + (1 - probability) ** 2 / 4)


def _smallest_probability(honest: int, bits: int, decay: float, epsilon: float) -> float:
    """The rarest random answers that pass for the inputs that are worst in practice; verified later."""
    trial = sorted({0, (honest - 1) // 2})

    def holds(p: float) -> bool:
        pair = AnonymousSumPair(honest, min(p, 0.999), _random_masses(bits, decay))
        return p >= 1 or all(pair.pure_epsilon_for(ones) <= epsilon for ones in trial)

    return smallest_real(holds, 0.0, 2.0 / honest, relative=1e-3)


@lru_cache(maxsize=64)
def _calibrate(honest: int, epsilon: float) -> tuple[float, int, float] | None:
    """Random probability, bits and decay with about the smallest error, found by descent."""

    @cache
    def error(bits: int, slope: int) -> tuple[float, float]:
        decay = math.exp(-slope / 20 * epsilon)
        p = _smallest_probability(min(honest, max(1, _LONGEST_SUM // bits)), bits, decay, epsilon)
        return (math.sqrt(_one_variance(p, bits, decay)) / (1 - p) if p < 1 else math.inf), p

    bits, slope = max(3, 2 * round((5 if epsilon >= 0.1 else 2.25) / epsilon) + 1), 14
    best = error(bits, slope)
    improved = True
    while improved:
        improved = False
        for next_bits, next_slope in ((bits + 2, slope), (bits - 2, slope), (bits, slope + 2), (bits, slope - 2)):
            if next_bits >= 3 and 2 <= next_slope <= 40 and (trial := error(next_bits, next_slope)) < best:
                best, bits, slope, improved = trial, next_bits, next_slope, True
                break
    return (best[1], bits, math.exp(-slope / 20 * epsilon)) if best[1] < 1 else None


@dataclass(frozen=True, slots=True, kw_only=True)
class Pure(RandomAnswers):
    """Each user sends `bits_per_user` bits of which middle + x are ones, or now and then a random number of ones.

    The adversary sees how many of all bits are 1. No outcome is more than e^epsilon times likelier
    under any input of the other users: delta is 0.

    Reference: Ghazi, Golowich, Kumar, Manurangsi, Pagh, Velingker 2020; [004] Table 2, third row.

    >>> from shuffledp import Privacy
    >>> plan = Pure.plan(users=40, privacy=Privacy(1, 1e-6))
    >>> plan.standard_error <= 2.9, plan.guarantee().delta
    (True, 0.0)
    """

    method: ClassVar[str] = "pure"
    theory_page: ClassVar[str] = "docs/theory/004-survey.md"
    law: ClassVar[str] = "random-bits"
    curve: ClassVar[str] = "no outcome's ratio passes e^epsilon, for any input"
    drawn: ClassVar[str] = "the table's own masses are what was calibrated"
    is_pure: ClassVar[bool] = True

    bits_per_user: int = noise("[3, inf)")
    decay: float = noise("(0, 1)")

    @classmethod
    def for_request(cls, request: Request) -> Self:
        """Found by descent on a few inputs of the others, then verified on all of them."""
        only_exact(request.constants)
        epsilon, honest = request.privacy.epsilon, min(request.honest, _MOST_CALIBRATED)
        if epsilon < _SMALLEST_EPSILON:
            problem = f"must be >= {_SMALLEST_EPSILON} for pure sums"
            raise InfeasibleError("epsilon", epsilon, problem, "take another method")
        found = _calibrate(honest, min(epsilon, _LARGEST_EPSILON))
        if found is None:
            problem = "are too few for a pure sum"
            raise InfeasibleError("users", request.users, problem, "take more users, or another method")
        probability, bits, decay = found
        while _pair(_calibrated(honest, bits), probability, bits, decay).pure_epsilon > epsilon:
            probability *= 1.01
        return cls(**request.common, random_probability=probability, bits_per_user=bits, decay=decay)

    @classmethod
    def least_error(cls, request: Request, **domain: Any) -> float:
        honest = min(request.honest, _MOST_CALIBRATED)
        ratio = math.exp(request.privacy.epsilon)

        def may_do(p: float) -> bool:
            """Whether it may be private that all follow their bits, which are 0: see docs/theory/004-survey.md."""
            none = (1 - p) ** honest
            one = honest * p * (1 - p) ** (honest - 1)
            # A random number is one of the two in the middle by a half at most, and the one beside them by a quarter.
            other = one * (1 / honest / 2 + (1 - 1 / honest) / 4) + max(0.0, 1 - none - one) / 2
            return none <= ratio * other

        low, high = 0.0, 1.0
        for _ in range(60):
            middle = (low + high) / 2
            low, high = (low, middle) if may_do(middle) else (middle, high)
        # Ones are a half off their mean at least: a user's variance is p (2 - p) / 4 or more.
        return math.sqrt(request.users * low * (2 - low)) / 2 / (1 - low)

    def _check_noise(self) -> None:
        check_fields(self)
        if self.bits_per_user % 2 == 0:
            raise ParameterError("bits_per_user", self.bits_per_user, "must be odd", AGAIN)
        largest = self.pair(self.honest_users).pure_epsilon
        if not largest <= self.privacy.epsilon:
            raise InfeasibleError(
                "noise",
                f"a log ratio of {largest:.6g}",
                f"must reach delta 0 at epsilon {self.privacy.epsilon:g}",
                "add noise, or choose a larger epsilon",
            )

    @property
    def _variance(self) -> float:
        return self.users * _one_variance(self.random_probability, self.bits_per_user, self.decay)

    @property
    def _answers(self) -> tuple[float, ...]:
        return _random_masses(self.bits_per_user, self.decay)

    @property
    def messages_per_user_mean(self) -> float:
        return float(self.bits_per_user)

    messages_per_user_max = forwarded("bits_per_user")

    @property
    def expected(self) -> int:
        return self.users * self.bits_per_user

    @property
    def influence(self) -> float:
        return self.bits_per_user / (1 - self.random_probability)

    @property
    def lying_client(self) -> str:
        return f"moves the count by at most {self.influence:.3g}, all its bits being 1 instead of 0"

    def pair(self, honest: int) -> AnonymousSumPair:
        counted = _calibrated(min(honest, _MOST_CALIBRATED), self.bits_per_user)
        return _pair(counted, self.random_probability, self.bits_per_user, self.decay)

    def epsilon_with(self, honest_fraction: float) -> float:
        """The pure epsilon that is left: delta stays 0."""
        return self.pair(honest_users(self.users, honest_fraction)).pure_epsilon

    @property
    def dominates_because(self) -> str:
        return (
            "Every report has the same number of bits, so a permutation shows only how many are 1; ratios are the "
            "largest over all bits of the other honest users, of whom at most 128 are counted on."
        )

    def randomize(self, values: ArrayLike, *, bits: RandomBits) -> Reports:
        true = self.check_values(values)
        is_random = bernoulli(self.random_probability, true.size, bits=bits)
        drawn = truncated_discrete_laplace(self.bits_per_user, self.decay).sample(true.size, bits=bits)
        ones = np.where(is_random, drawn, (self.bits_per_user - 1) // 2 + true.astype(np.int64))
        return Reports.of_equal_size((np.arange(self.bits_per_user) < ones[:, None]).astype(np.uint8))

    def quieter(self, part: float) -> dict[str, Any]:
        return {"random_probability": part * self.random_probability}

    def _from_counts(self, ones: int, zeros: int) -> float:
        return (ones - self.users * self.bits_per_user / 2) / (1 - self.random_probability) + self.users / 2

    def _sample(self, total: int, bits: RandomBits) -> float:
        random_ones, random_zeros = (
            int(binomial(n, self.random_probability, 1, bits=bits)[0]) for n in (total, self.users - total)
        )
        law = truncated_discrete_laplace(self.bits_per_user, self.decay)
        left, drawn = random_ones + random_zeros, 0
        while left:
            drawn += int(law.sample(min(left, _AT_A_TIME), bits=bits).sum())
            left -= min(left, _AT_A_TIME)
        middle = (self.bits_per_user - 1) // 2
        honest_ones, honest_zeros = total - random_ones, self.users - total - random_zeros
        ones = drawn + middle * (honest_ones + honest_zeros) + honest_ones
        return self._from_counts(ones, self.expected - ones)


def _calibrated(honest: int, bits: int) -> int:
    """Honest users counted on: few enough that every input of theirs can be tried."""
    return max(1, min(honest, _LONGEST_SUM // bits))
