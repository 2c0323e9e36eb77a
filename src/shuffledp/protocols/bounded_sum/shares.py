"""Bounded sum by shares: split-and-mix of the rounded value plus a Polya share of discrete Laplace noise.

Reference: [004] Appendix B.1 and Balle, Bell, Gascon, Nissim 2020; the number of shares from our own bound.
"""

import math
from dataclasses import dataclass
from typing import ClassVar, Self

from shuffledp.accounting.mixing import robust_messages
from shuffledp.protocols.bounded_sum.base import BoundedSumPlan
from shuffledp.protocols.domains.summed import check_range
from shuffledp.protocols.fields import only_exact
from shuffledp.protocols.request import Request
from shuffledp.protocols.sums.plan import LaplaceShares

# Rounding may add this part to the noise's variance.
_ROUNDING_PART = 0.02
# Tables of noise have at most about this many entries: about a second to make.
_LONGEST_TABLE = 1 << 20
# A table ends where its tail is below e^-95.
_TABLE_DEPTH = 95.0


def laplace_grid(users: int, epsilon: float) -> int:
    """Rounding users' values adds users/4 steps^2 to about 2 (grid/epsilon)^2."""
    wanted = math.ceil(epsilon * math.sqrt(users / (8 * _ROUNDING_PART)))
    longest = max(1, math.floor(epsilon * _LONGEST_TABLE / _TABLE_DEPTH))
    # At least as fine as the noise, so that whole steps cost nothing.
    return max(1, min(max(wanted, math.ceil(2 * epsilon)), longest))


@dataclass(frozen=True, slots=True, kw_only=True)
class BoundedShares(LaplaceShares, BoundedSumPlan):
    """Each user adds its part of discrete Laplace noise to its rounded value and sends that in random shares.

    The adversary sees shares that are, up to a stated distance, uniform given their sum modulo
    2^modulus_bits: the rounded sum plus discrete Laplace noise, a trusted curator's answer.

    Reference: [004] Appendix B.1.

    >>> from shuffledp.privacy import Privacy
    >>> plan = BoundedShares.plan(users=10_000, privacy=Privacy(1, 1e-6), low=0, high=1)
    >>> round(plan.standard_error, 2), plan.messages_per_user_max, plan.bits_per_message
    (1.43, 11, 62)
    """

    method: ClassVar[str] = "shares"

    @classmethod
    def for_request(cls, request: Request, *, low: float, high: float) -> Self:
        """The honest users' noise alone is discrete Laplace; the shares mix them to within delta."""
        only_exact(request.constants)
        check_range(low, high)
        grid = laplace_grid(request.users, request.privacy.epsilon)
        found = cls.least(request, grid, grid, robust_messages, "bits")
        return cls(**request.common, low=low, high=high, grid=grid, **found)

    @property
    def dominates_because(self) -> str:
        return (
            "Up to the transport term, permuted shares can be simulated from their sum modulo q; with all others known "
            "that is the user's rounded value plus the honest users' Polya shares. Two values rounded with the same "
            "secret differ by at most the grid."
        )
