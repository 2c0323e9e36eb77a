"""Vector sum by bits: every coordinate in unary, with noise bits beside it.

Reference: [001] Algorithm 2 (P_VEC), with noise from the normal scores of the binomial.
"""

import math
from dataclasses import dataclass
from typing import ClassVar, Self

from shuffledp.accounting.gaussian import gaussian_standard_deviation
from shuffledp.accounting.guarantee import DeltaTerm
from shuffledp.accounting.laws import Binomial
from shuffledp.accounting.pairs import DominatingPair
from shuffledp.accounting.rounding import rounded_difference
from shuffledp.errors import InfeasibleError
from shuffledp.privacy import Privacy
from shuffledp.protocols.bounded_sum.bits import coins_for as coins_to_hide
from shuffledp.protocols.bounded_sum.paper import robust_epsilon
from shuffledp.protocols.fields import forwarded, noise
from shuffledp.protocols.grids import check_coins, choose_grid, coarsest_grid
from shuffledp.protocols.request import Request
from shuffledp.protocols.sums.noise import shift_pair
from shuffledp.protocols.sums.plan import BitsSum, SumPlan
from shuffledp.protocols.vector_sum.base import Scale, VectorSumPlan
from shuffledp.protocols.vector_sum.calibration import smallest_variance
from shuffledp.protocols.vector_sum.paper import paper_vector_bits


@dataclass(frozen=True, slots=True, kw_only=True)
class VectorBits(BitsSum, VectorSumPlan):
    """Each user rounds each coordinate to the grid over -reach..reach and sends it as so many ones among its bits.

    The adversary sees how many messages about each coordinate are 1: the rounded sum plus a binomial.

    Reference: [001] Algorithm 2, Theorem 3.2.

    Attributes:
        coins: how many noise bits a user sends about each coordinate.
        probability: of a one among them.

    >>> plan = VectorBits.plan(users=1000, privacy=Privacy(1, 1e-6), dimension=10, radius=1)
    >>> plan.standard_error < 1.1 * 8.45
    True
    """

    method: ClassVar[str] = "bits"
    trades_messages: ClassVar[bool] = True

    also_saved: ClassVar[tuple[str, ...]] = ("coins", "probability", "rotation", "rounding_failure", "outside")

    coins: int = noise("[1, inf)")
    probability: float = noise("(0, 1/2]")

    @classmethod
    def for_request(cls, request: Request, *, dimension: int, radius: float, rotation: int | None = None) -> Self:
        """Fair coins, and the grid that is accurate enough with the fewest messages."""
        users, privacy, honest = request.users, request.privacy, request.honest
        coordinates, span, fields = cls.shape_of(request, dimension, radius, rotation)
        failure, outside = fields["rounding_failure"], fields["outside"]
        if request.constants == "paper":
            if privacy.epsilon > 15 or rotation is not None:
                raise InfeasibleError(
                    "constants", "paper", "are given for epsilon <= 15 and no rotation", "use exact constants"
                )
            grid, coins, probability = paper_vector_bits(honest, privacy, dimension)
        else:
            # Everybody adds what the honest users alone must.
            target = gaussian_standard_deviation(privacy) * math.sqrt(users / honest)

            def coins_for(grid: int) -> int:
                difference = rounded_difference(grid / span, coordinates, failure)
                if coordinates == 1:
                    return coins_to_hide(math.ceil(min(grid + 1, difference.length)), honest, privacy)
                left = Privacy(
                    privacy.epsilon, (privacy.delta - difference.failure - coordinates * outside) * (1 - 1e-6)
                )
                check_coins((2 * difference.length * gaussian_standard_deviation(left)) ** 2, honest)
                variance = smallest_variance(
                    lambda variance: Binomial(max(1, math.ceil(4 * variance)), 0.5),
                    difference.length,
                    math.ceil(min(grid + 1, difference.length)),
                    outside,
                    left,
                    step=0.25,  # one coin
                )
                return math.ceil(4 * variance * (1 + 1e-9) / honest)

            grid, coins = choose_grid(
                coins_for,
                lambda grid, coins: math.sqrt(users * (coins + 1)) / 2 * span / grid,
                target=target,
                coarsest=coarsest_grid(users, target / span),
                max_length=None if request.max_messages is None else request.max_messages // coordinates,
            )
            probability = 0.5
        return cls(**fields, grid=grid, coins=coins, probability=probability)

    def pair(self, honest: int) -> DominatingPair:
        if self.coordinates > 1:
            return self.gaussian(honest)
        return shift_pair(self.batch.law(honest), self.largest_shift)

    def noise_terms(self, epsilon: float, honest: int) -> tuple[DeltaTerm, ...]:
        if self.coordinates > 1:
            return self.gaussian_terms(epsilon, honest)
        return SumPlan.noise_terms(self, epsilon, honest)

    @property
    def dominates_because(self) -> str:
        if self.coordinates > 1:
            return super(VectorBits, self).dominates_because
        return (
            "With all others known the view is the user's rounded number plus the honest users' binomial noise. Two "
            f"numbers rounded with the same secret differ by at most {self.largest_shift:,} steps, and for log-concave "
            "noise the largest shift is the worst."
        )

    bits_each = forwarded("grid")

    def log_moment(self, theta: float) -> float:
        # Hoeffding's lemma for every coin.
        return self.users * self.coins * theta**2 / 8

    @property
    def scale(self) -> Scale:
        return Scale(2 * self.reach / self.grid, self.grid / 2, self.grid / 2)

    def _paper_epsilon_with(self, honest_fraction: float) -> float | None:
        return robust_epsilon(self.privacy, honest_fraction)

    @property
    def lying_client(self) -> str:
        return f"moves all coordinates together by at most {self.influence:.4g}, its {self.batch.messages_max} messages"
