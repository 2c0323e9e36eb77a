"""Vector sum by bits: every coordinate in unary, with noise bits beside it.

Reference: [001] Algorithm 2 (P_VEC), with noise from the normal scores of the binomial.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np

from shuffledp.accounting.gaussian import gaussian_standard_deviation
from shuffledp.accounting.guarantee import DeltaTerm
from shuffledp.accounting.laws import Binomial
from shuffledp.accounting.rounding import rounded_difference
from shuffledp.errors import InfeasibleError
from shuffledp.messages import Batch, Payloads
from shuffledp.privacy import Privacy
from shuffledp.protocols.bounded_sum.paper import robust_epsilon
from shuffledp.protocols.domains.ball import check_ball
from shuffledp.protocols.fields import optional_whole_number, real_number, whole_number
from shuffledp.protocols.grids import choose_grid, coarsest_grid
from shuffledp.protocols.request import Request
from shuffledp.protocols.tallies import Tally
from shuffledp.protocols.unary import Unary, least_coin_variance, probability_with
from shuffledp.protocols.vector_sum.base import (
    CLIPPING,
    ROUNDING_PART,
    WINDOW_PART,
    Floats,
    VectorSumPlan,
    Whole,
)
from shuffledp.protocols.vector_sum.calibration import smallest_variance
from shuffledp.protocols.vector_sum.paper import paper_vector_bits
from shuffledp.protocols.vector_sum.rotation import likely_range, padded_dimension
from shuffledp.randomness import RandomBits
from shuffledp.sampling.coins import binomial


@dataclass(frozen=True, slots=True, kw_only=True)
class VectorBits(VectorSumPlan):
    """Each user rounds each coordinate to the grid over -reach..reach and sends it as so many ones among its bits.

    The adversary sees how many messages about each coordinate are 1: the rounded sum plus a binomial.

    Reference: [001] Algorithm 2, Theorem 3.2.

    >>> plan = VectorBits.plan(users=1000, privacy=Privacy(1, 1e-6), dimension=10, radius=1)
    >>> plan.standard_error < 1.1 * 8.45
    True
    """

    method: ClassVar[str] = "bits"

    coins: int
    probability: float

    @classmethod
    def for_request(cls, request: Request, *, dimension: int, radius: float, rotation: int | None = None) -> Self:
        """Fair coins, and the grid that is accurate enough with the fewest messages."""
        users, privacy, max_messages = request.users, request.privacy, request.max_messages
        check_ball(dimension, radius)
        honest = request.honest
        coordinates = dimension if rotation is None else padded_dimension(dimension)
        failure, outside = ROUNDING_PART * privacy.delta, WINDOW_PART * privacy.delta / coordinates
        if request.constants == "paper":
            if privacy.epsilon > 15 or rotation is not None:
                raise InfeasibleError(
                    "constants", "paper", "are given for epsilon <= 15 and no rotation", "use exact constants"
                )
            grid, coins, probability = paper_vector_bits(honest, privacy, dimension)
        else:
            # The part of a ball's diameter that a coordinate spans.
            span = 1.0 if rotation is None else likely_range(users, coordinates, CLIPPING)
            # Everybody adds what the honest users alone must.
            target = gaussian_standard_deviation(privacy) * math.sqrt(users / honest)

            def coins_for(grid: int) -> int:
                difference = rounded_difference(grid / span, coordinates, failure)
                left = privacy.delta - difference.failure - coordinates * outside
                variance = smallest_variance(
                    lambda variance: Binomial(max(1, math.ceil(4 * variance)), 0.5),
                    difference.length,
                    math.ceil(min(grid + 1, difference.length)),
                    outside,
                    Privacy(privacy.epsilon, left * (1 - 1e-6)),
                    step=0.25,  # one coin
                )
                return math.ceil(4 * variance * (1 + 1e-9) / honest)

            grid, coins = choose_grid(
                coins_for,
                lambda grid, coins: math.sqrt(users * (coins + 1)) / 2 * span / grid,
                target=target,
                coarsest=coarsest_grid(users, target / span),
                max_length=None if max_messages is None else max_messages // coordinates,
            )
            probability = 0.5
        return cls(
            **request.common,
            dimension=dimension,
            radius=radius,
            rotation=rotation,
            grid=grid,
            coins=coins,
            probability=probability,
            rounding_failure=failure,
            outside=outside,
        )

    @property
    def _unary(self) -> Unary:
        return Unary(self.grid, self.coins, self.probability)

    def _check_noise(self) -> None:
        self._unary.check()

    @property
    def noise(self) -> dict[str, Any]:
        return {
            "law": "binomial",
            "grid": self.grid,
            "coins": self.coins,
            "probability": self.probability,
            "rotation": self.rotation,
            "rounding_failure": self.rounding_failure,
            "outside": self.outside,
        }

    @classmethod
    def from_noise(cls, noise: Mapping[str, Any], **common: Any) -> Self:
        return cls(
            grid=whole_number(noise, "grid"),
            coins=whole_number(noise, "coins"),
            probability=real_number(noise, "probability"),
            rotation=optional_whole_number(noise, "rotation"),
            rounding_failure=real_number(noise, "rounding_failure"),
            outside=real_number(noise, "outside"),
            **common,
        )

    def noise_law(self, users: int) -> Binomial:
        return self._unary.noise(users)

    def log_moment(self, theta: float) -> float:
        # Hoeffding's lemma for every coin.
        return self.users * self.coins * theta**2 / 8

    @property
    def step(self) -> float:
        return 2 * self.reach / self.grid

    @property
    def messages_per_user_mean(self) -> float:
        return float(self.messages_per_user_max)

    @property
    def messages_per_user_max(self) -> int:
        return self.coordinates * self._unary.length

    @property
    def bits_per_message(self) -> int:
        return 1 + self.label_bits

    @property
    def alphabet_size(self) -> int:
        return 2

    def delta_terms(self, epsilon: float, honest: int) -> tuple[DeltaTerm, ...]:
        return (*self._noise_terms(epsilon, honest), DeltaTerm("sampling", 0.0, "coins are drawn exactly"))

    def _paper_epsilon_with(self, honest_fraction: float) -> float | None:
        return robust_epsilon(self.privacy, honest_fraction)

    @property
    def influence(self) -> float:
        return self.step * self._unary.length

    @property
    def lying_client(self) -> str:
        return f"moves each coordinate by at most {self.influence:.4g}, its {self._unary.length} messages about it"

    @property
    def _origin(self) -> float:
        return self.grid / 2

    def _scaled(self, block: Floats) -> Floats:
        scaled = np.multiply(block, 1 / self.step)
        scaled += self._origin
        return np.clip(scaled, 0.0, float(self.grid), out=scaled)

    def _messages(self, rounded: Whole, bits: RandomBits) -> Payloads:
        return self._unary.messages(rounded, bits=bits)

    def tally(self, batch: Batch, malformed: int = 0) -> Tally:
        return self._unary.tally(batch, malformed, self.coordinates)

    def _totals(self, tally: Tally) -> tuple[Whole, int]:
        return self._unary.ones(tally, self.users)

    def quieter(self, part: float) -> dict[str, Any]:
        return {"probability": probability_with(part * least_coin_variance(self))}

    def _centre(self, steps: Whole) -> Floats:
        return np.asarray(steps - (self.noise_law(self.users).mean + self.users * self._origin))

    def _sample_noise(self, count: int, bits: RandomBits) -> Whole:
        return binomial(self.noise_law(self.users).trials, self.probability, count, bits=bits)

    def _run_sums(self, payloads: Payloads) -> Whole:
        return np.asarray(payloads.sum(axis=-1, dtype=np.int64))
