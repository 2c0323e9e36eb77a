"""Binary sum by coins: each user sends its bit and a few noise bits.

Reference: [003] Algorithm 3, with the smallest noise that the exact curve allows.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from shuffledp.accounting.curves import smallest_integer, smallest_real
from shuffledp.accounting.guarantee import DeltaTerm
from shuffledp.accounting.laws import Binomial
from shuffledp.accounting.pairs import ShiftPair
from shuffledp.errors import InfeasibleError, ParameterError
from shuffledp.estimates import Estimate
from shuffledp.messages import Reports
from shuffledp.privacy import Privacy
from shuffledp.protocols.binary_sum.base import AdditiveNoisePlan
from shuffledp.protocols.binary_sum.paper import paper_noise
from shuffledp.protocols.fields import real_number, whole_number
from shuffledp.protocols.request import Request
from shuffledp.protocols.tallies import Tally
from shuffledp.protocols.unary import probability_with
from shuffledp.randomness import RandomBits
from shuffledp.sampling.coins import binomial, coin_bits


def smallest_fair_coins(privacy: Privacy) -> int:
    """The fewest fair coins that hide one bit: more coins are a post-processing, so bisection is exact.

    >>> smallest_fair_coins(Privacy(1, 1e-6))
    80
    """
    return smallest_integer(lambda coins: ShiftPair(Binomial(coins, 0.5)).delta(privacy.epsilon) <= privacy.delta)


def smallest_probability(honest: int, privacy: Privacy) -> float:
    """The smallest probability at which one noise bit from each honest user hides one bit."""
    return smallest_real(
        lambda p: p >= 0.5 or ShiftPair(Binomial(honest, p)).delta(privacy.epsilon) <= privacy.delta,
        0.0,
        1 / honest,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Coins(AdditiveNoisePlan):
    """Each user sends its bit and `bits_per_user` noise bits that are 1 with `probability`.

    The adversary sees how many messages are 1, and nothing more: the count plus a binomial.

    Reference: [003] Algorithm 3, Theorem C.1.

    >>> plan = Coins.plan(users=10_000, privacy=Privacy(1, 1e-6))
    >>> round(plan.standard_error, 2), plan.messages_per_user_max
    (5.83, 2)
    """

    method: ClassVar[str] = "coins"
    theory_page: ClassVar[str] = "docs/theory/003-binary-sums.md"

    bits_per_user: int
    probability: float

    @classmethod
    def for_request(cls, request: Request) -> Self:
        """Few users toss ceil(N / honest users) fair coins each; many toss one rare coin each."""
        users, privacy = request.users, request.privacy
        if request.constants == "paper":
            if privacy.epsilon > 1 or request.honest_fraction != 1:
                raise InfeasibleError(
                    "constants",
                    "paper",
                    "are proved for epsilon <= 1 and honest_fraction 1 only",
                    "use exact constants",
                )
            bits_per_user, probability = paper_noise(users, privacy)
        else:
            honest = request.honest
            coins = smallest_fair_coins(privacy)
            bits_per_user = max(1, math.ceil(coins / honest))
            probability = 0.5 if honest <= coins else smallest_probability(honest, privacy)
        return cls(
            **request.common,
            bits_per_user=bits_per_user,
            probability=probability,
        )

    def _check_noise(self) -> None:
        if self.bits_per_user < 1:
            raise ParameterError("bits_per_user", self.bits_per_user, "must be >= 1", "make the plan again")
        if not 0 < self.probability <= 0.5:
            raise ParameterError("probability", self.probability, "must lie in (0, 1/2]", "make the plan again")

    @property
    def noise(self) -> dict[str, Any]:
        return {"law": "binomial", "bits_per_user": self.bits_per_user, "probability": self.probability}

    @classmethod
    def from_noise(cls, noise: Mapping[str, Any], **common: Any) -> Self:
        return cls(
            bits_per_user=whole_number(noise, "bits_per_user"),
            probability=real_number(noise, "probability"),
            **common,
        )

    @property
    def noise_law(self) -> Binomial:
        return Binomial(self.users * self.bits_per_user, self.probability)

    @property
    def messages_per_user_mean(self) -> float:
        return float(1 + self.bits_per_user)

    @property
    def messages_per_user_max(self) -> int:
        return 1 + self.bits_per_user

    def pair(self, honest: int) -> ShiftPair:
        return ShiftPair(Binomial(honest * self.bits_per_user, self.probability))

    def delta_terms(self, epsilon: float, honest: int) -> tuple[DeltaTerm, ...]:
        noise = self.pair(honest).delta(epsilon)
        return (
            DeltaTerm("noise", noise, "the hockey-stick curve of the pair, the larger direction, rounded up"),
            DeltaTerm("sampling", 0.0, "coins are drawn exactly"),
        )

    @property
    def dominates_because(self) -> str:
        return (
            "Every report has the same number of bits, so a uniform permutation shows only how many are 1; "
            "with all other users' values and all dishonest users' messages known, that is the user's bit "
            "plus the honest users' noise bits."
        )

    @property
    def influence(self) -> float:
        return float(self.messages_per_user_max)

    @property
    def lying_client(self) -> str:
        return f"moves the count by at most {self.messages_per_user_max}, the number of its messages"

    def randomize(self, values: ArrayLike, *, bits: RandomBits) -> Reports:
        true = self.check_values(values)
        messages = np.empty((true.size, self.messages_per_user_max), dtype=np.uint8)
        messages[:, 0] = true
        noise = coin_bits(self.probability, true.size * self.bits_per_user, bits=bits)
        messages[:, 1:] = noise.reshape(true.size, -1)
        return Reports.of_equal_size(messages)

    def estimate(self, tally: Tally, *, simulated: bool = False) -> Estimate:
        ones, _, dropped = self._read_bits(tally, self.users * self.messages_per_user_max)
        return self._estimate(ones - self.noise_law.mean, dropped=dropped, simulated=simulated)

    def quieter(self, part: float) -> dict[str, Any]:
        needed = smallest_fair_coins(self.privacy) / self.honest_users / self.bits_per_user / 4
        least = min(needed, 0.25) if self.probability == 0.5 else self.probability * (1 - self.probability)
        return {"probability": probability_with(part * least)}

    def sample_estimate(self, values: ArrayLike, *, bits: RandomBits) -> Estimate:
        total = int(self._all_values(values).sum(dtype=np.int64))
        drawn = binomial(self.noise_law.trials, self.probability, 1, bits=bits)
        return self._estimate(total + int(drawn[0]) - self.noise_law.mean, simulated=not bits.is_secure)

    def sample_sums(self, ones: NDArray[np.int64], batches: int, *, bits: RandomBits) -> NDArray[np.float64]:
        law = self.noise_law
        drawn = binomial(batches * law.trials, law.p, ones.size, bits=bits).reshape(ones.shape)
        return np.asarray(ones + drawn - batches * law.mean)
