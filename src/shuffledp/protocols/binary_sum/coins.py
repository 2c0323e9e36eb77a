"""Binary sum by coins: each user sends its bit and a few noise bits.

Reference: [003] Algorithm 3, with the smallest noise that the exact curve allows.
"""

import math
from dataclasses import dataclass
from functools import lru_cache
from typing import ClassVar, Self

from shuffledp.accounting.curves import smallest_integer, smallest_meeting
from shuffledp.accounting.laws import Binomial
from shuffledp.accounting.pairs import ShiftPair
from shuffledp.errors import InfeasibleError
from shuffledp.privacy import Privacy
from shuffledp.protocols.binary_sum.base import BinarySumPlan
from shuffledp.protocols.binary_sum.paper import paper_noise
from shuffledp.protocols.domains.summed import BITS
from shuffledp.protocols.fields import forwarded, noise
from shuffledp.protocols.request import Request
from shuffledp.protocols.sums.plan import BitsSum


@lru_cache(maxsize=256)
def smallest_fair_coins(privacy: Privacy) -> int:
    """The fewest fair coins that hide one bit: more coins are a post-processing, so bisection is exact.

    >>> smallest_fair_coins(Privacy(1, 1e-6))
    80
    """
    return smallest_integer(lambda coins: ShiftPair(Binomial(coins, 0.5)).delta(privacy.epsilon) <= privacy.delta)


@lru_cache(maxsize=256)
def smallest_probability(honest: int, privacy: Privacy) -> float:
    """The smallest probability at which one noise bit from each honest user hides one bit."""
    return smallest_meeting(
        lambda p: 0.0 if p >= 0.5 else ShiftPair(Binomial(honest, p)).delta(privacy.epsilon),
        privacy.delta,
        0.0,
        1 / honest,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Coins(BitsSum, BinarySumPlan):
    """Each user sends its bit and `bits_per_user` noise bits that are 1 with `probability`.

    The adversary sees how many messages are 1, and nothing more: the count plus a binomial.

    Reference: [003] Algorithm 3, Theorem C.1.

    >>> plan = Coins.plan(users=10_000, privacy=Privacy(1, 1e-6))
    >>> round(plan.standard_error, 2), plan.messages_per_user_max
    (5.83, 2)
    """

    method: ClassVar[str] = "coins"
    theory_page: ClassVar[str] = "docs/theory/003-binary-sums.md"
    domain = BITS

    bits_per_user: int = noise("[1, inf)")
    probability: float = noise("(0, 1/2]")

    @classmethod
    def for_request(cls, request: Request) -> Self:
        """Few users toss ceil(N / honest users) fair coins each; many toss one rare coin each."""
        privacy, honest = request.privacy, request.honest
        if request.constants == "paper":
            if privacy.epsilon > 1 or request.honest_fraction != 1:
                problem = "are proved for epsilon <= 1 and honest_fraction 1 only"
                raise InfeasibleError("constants", "paper", problem, "use exact constants")
            bits_per_user, probability = paper_noise(request.users, privacy)
        else:
            coins = smallest_fair_coins(privacy)
            bits_per_user = max(1, math.ceil(coins / honest))
            # The curve of more coins is lower, but for what it is rounded up by.
            while (
                honest <= coins
                and ShiftPair(Binomial(bits_per_user * honest, 0.5)).delta(privacy.epsilon) > privacy.delta
            ):
                bits_per_user += 1 + bits_per_user // 1_000_000
            probability = 0.5 if honest <= coins else smallest_probability(honest, privacy)
        return cls(**request.common, bits_per_user=bits_per_user, probability=probability)

    coins_each = forwarded("bits_per_user")

    @property
    def dominates_because(self) -> str:
        return (
            "Every report has the same number of bits, so a uniform permutation shows only how many are 1; "
            "with all other users' values and all dishonest users' messages known, that is the user's bit "
            "plus the honest users' noise bits."
        )

    @property
    def lying_client(self) -> str:
        return f"moves the count by at most {self.messages_per_user_max}, the number of its messages"
