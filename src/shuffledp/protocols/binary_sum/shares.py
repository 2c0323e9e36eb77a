"""Binary sum by shares: split-and-mix of the bit plus a Polya share of discrete Laplace noise.

Reference: [004] Appendix A (Ishai, Kushilevitz, Ostrovsky, Sahai) for the mixing; Polya shares as in
Ghazi, Kumar, Manurangsi, Pagh 2020; the number of shares from our own exact bound.
"""

import math
from dataclasses import dataclass
from typing import ClassVar, Self

from shuffledp.accounting.mixing import smallest_messages
from shuffledp.errors import InfeasibleError
from shuffledp.protocols.binary_sum.base import BinarySumPlan
from shuffledp.protocols.domains.summed import BITS
from shuffledp.protocols.polya import pure_ratio
from shuffledp.protocols.request import Request
from shuffledp.protocols.sums.plan import LaplaceShares


@dataclass(frozen=True, slots=True, kw_only=True)
class Shares(LaplaceShares, BinarySumPlan):
    """Each user adds its part of discrete Laplace noise to its bit and sends the sum in random shares.

    The adversary sees shares that are, up to a stated distance, uniform given their sum modulo
    2^modulus_bits: the count plus discrete Laplace noise, a trusted curator's answer.

    >>> from shuffledp.privacy import Privacy
    >>> plan = Shares.plan(users=10_000, privacy=Privacy(1, 1e-6))
    >>> round(plan.standard_error, 3), plan.messages_per_user_max, plan.bits_per_message
    (1.357, 9, 54)
    """

    method: ClassVar[str] = "shares"
    has_one_pair: ClassVar[bool] = True
    theory_page: ClassVar[str] = "docs/theory/split-and-mix.md"
    moved: ClassVar[str] = "the count"
    domain = BITS

    @classmethod
    def for_request(cls, request: Request) -> Self:
        """The honest users' noise alone is discrete Laplace; the shares mix them to within delta."""
        if request.constants == "paper":
            ratio = pure_ratio(request.privacy.epsilon)
            return cls(**request.common, **cls.calibrated(request, ratio, 1, _closed_form_shares, "coins"))
        return cls(**request.common, **cls.least(request, 1, 1, smallest_messages, "coins"))

    @property
    def dominates_because(self) -> str:
        return (
            "Up to the transport term, permuted shares can be simulated from their sum modulo q; with all other "
            "users' values known that is a function of the user's bit plus the honest users' Polya shares, "
            "which add up to discrete Laplace noise."
        )


def _closed_form_shares(honest: int, modulus: int, distance: float) -> int:
    """Balle, Bell, Gascon, Nissim 2020: worst-case smoothness with sigma = -log2(distance), n >= 19."""
    if honest < 19:
        raise InfeasibleError("users", honest, "must be >= 19 for the closed form", "use exact constants")
    sigma = -math.log2(distance)
    return max(3, math.ceil((2 * sigma + math.log2(modulus)) / (math.log2(honest) - math.log2(math.e)) + 2))
