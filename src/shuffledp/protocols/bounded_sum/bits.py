"""Bounded sum by bits: the rounded value in unary and a few noise bits.

Reference: [001] Algorithm 1 (P_1D), with the smallest noise that the exact curve allows.
"""

import math
from dataclasses import dataclass
from typing import ClassVar, Self

from shuffledp.accounting.curves import smallest_integer
from shuffledp.accounting.gaussian import gaussian_standard_deviation
from shuffledp.accounting.laws import Binomial
from shuffledp.accounting.pairs import ShiftPair
from shuffledp.errors import InfeasibleError
from shuffledp.privacy import Privacy
from shuffledp.protocols.bounded_sum.base import BoundedSumPlan
from shuffledp.protocols.bounded_sum.paper import paper_bits, paper_grid, robust_epsilon
from shuffledp.protocols.domains.summed import check_range
from shuffledp.protocols.fields import noise
from shuffledp.protocols.grids import check_coins, choose_grid, coarsest_grid
from shuffledp.protocols.request import Request
from shuffledp.protocols.sums.plan import BitsSum


def coins_for(shift: int, honest: int, privacy: Privacy) -> int:
    """Fair coins a user with which so many users hide a shift: more are a post-processing.

    Searched upwards from Gaussian noise, which needs fewer, so that few curves are computed.

    >>> coins_for(1, 1, Privacy(1, 1e-6))
    80
    """
    gaussian = (2 * shift * gaussian_standard_deviation(privacy)) ** 2
    check_coins(gaussian, honest)

    def enough(coins: int) -> bool:
        return ShiftPair(Binomial(honest * coins, 0.5), shift).delta(privacy.epsilon) <= privacy.delta

    return smallest_integer(enough, max(1, int(0.999 * gaussian / honest)))


@dataclass(frozen=True, slots=True, kw_only=True)
class BoundedBits(BitsSum, BoundedSumPlan):
    """Each user rounds its value to the grid and sends it as so many ones, with noise bits beside them.

    The adversary sees how many messages are 1, and nothing more: the rounded sum plus a binomial.

    Reference: [001] Algorithm 1, Lemma 3.1.

    >>> plan = BoundedBits.plan(users=10_000, privacy=Privacy(1, 1e-6), low=0, high=1)
    >>> plan.standard_error < 4.7, plan.messages_per_user_max < 40
    (True, True)
    """

    method: ClassVar[str] = "bits"
    trades_messages: ClassVar[bool] = True

    coins: int = noise("[1, inf)")
    probability: float = noise("(0, 1/2]")

    @classmethod
    def for_request(cls, request: Request, *, low: float, high: float) -> Self:
        """Fair coins, and the grid that is accurate enough with the fewest messages."""
        users, privacy, honest = request.users, request.privacy, request.honest
        check_range(low, high)
        if request.constants == "paper":
            if privacy.epsilon > 15:
                raise InfeasibleError("epsilon", privacy.epsilon, "must be <= 15 in the paper", "use exact constants")
            grid = paper_grid(users)
            coins, probability = paper_bits(honest, Privacy(privacy.epsilon / (1 + 2 / grid), privacy.delta), grid)
        else:
            # Everybody adds what the honest users alone must.
            target = gaussian_standard_deviation(privacy) * math.sqrt(users / honest)
            grid, coins = choose_grid(
                lambda grid: coins_for(grid, honest, privacy),
                lambda grid, coins: math.sqrt(users * (coins + 1)) / 2 / grid,
                target=target,
                coarsest=coarsest_grid(users, target),
                max_length=request.max_messages,
            )
            probability = 0.5
        return cls(**request.common, low=low, high=high, grid=grid, coins=coins, probability=probability)

    @property
    def dominates_because(self) -> str:
        return (
            "Every report has the same number of bits, so a permutation shows only how many are 1: with all others "
            "known, the user's rounded value plus the honest users' binomial noise. Two values rounded with the same "
            "secret differ by at most the grid, and for log-concave noise the largest shift is the worst."
        )

    def _paper_epsilon_with(self, honest_fraction: float) -> float | None:
        return robust_epsilon(self.privacy, honest_fraction)

    @property
    def lying_client(self) -> str:
        return (
            f"moves the sum by at most {self.influence:.4g}, its {self.messages_per_user_max} messages of "
            f"{self.step:.3g} each"
        )
