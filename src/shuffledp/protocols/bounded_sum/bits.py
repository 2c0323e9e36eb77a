"""Bounded sum by bits: the rounded value in unary and a few noise bits.

Reference: [001] Algorithm 1 (P_1D), with the smallest noise that the exact curve allows.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from shuffledp.accounting.curves import smallest_integer
from shuffledp.accounting.gaussian import gaussian_standard_deviation
from shuffledp.accounting.guarantee import DeltaTerm
from shuffledp.accounting.laws import Binomial
from shuffledp.accounting.pairs import ShiftPair
from shuffledp.errors import InfeasibleError
from shuffledp.estimates import Estimate
from shuffledp.messages import Batch, Reports
from shuffledp.privacy import Privacy
from shuffledp.protocols.bounded_sum.base import BoundedSumPlan
from shuffledp.protocols.bounded_sum.paper import paper_bits, paper_grid, robust_epsilon
from shuffledp.protocols.domains.summed import check_range
from shuffledp.protocols.fields import real_number, whole_number
from shuffledp.protocols.grids import choose_grid, coarsest_grid
from shuffledp.protocols.request import Request
from shuffledp.protocols.tallies import Tally
from shuffledp.protocols.unary import Unary, least_coin_variance, probability_with
from shuffledp.randomness import RandomBits
from shuffledp.sampling.coins import binomial


def coins_for(shift: int, honest: int, privacy: Privacy) -> int:
    """Fair coins a user with which so many users hide a shift: more are a post-processing.

    Searched upwards from Gaussian noise, which needs fewer, so that few curves are computed.

    >>> coins_for(1, 1, Privacy(1, 1e-6))
    80
    """
    gaussian = (2 * shift * gaussian_standard_deviation(privacy)) ** 2

    def enough(coins: int) -> bool:
        return ShiftPair(Binomial(honest * coins, 0.5), shift).delta(privacy.epsilon) <= privacy.delta

    return smallest_integer(enough, max(1, int(0.999 * gaussian / honest)))


@dataclass(frozen=True, slots=True, kw_only=True)
class BoundedBits(BoundedSumPlan):
    """Each user rounds its value to the grid and sends it as so many ones, with noise bits beside them.

    The adversary sees how many messages are 1, and nothing more: the rounded sum plus a binomial.

    Reference: [001] Algorithm 1, Lemma 3.1.

    >>> plan = BoundedBits.plan(users=10_000, privacy=Privacy(1, 1e-6), low=0, high=1)
    >>> plan.standard_error < 4.7, plan.messages_per_user_max < 40
    (True, True)
    """

    method: ClassVar[str] = "bits"
    theory_page: ClassVar[str] = "docs/theory/001-sums.md"

    coins: int
    probability: float

    @classmethod
    def for_request(cls, request: Request, *, low: float, high: float) -> Self:
        """Fair coins, and the grid that is accurate enough with the fewest messages."""
        users, privacy, max_messages = request.users, request.privacy, request.max_messages
        check_range(low, high)
        honest = request.honest
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
                max_length=max_messages,
            )
            probability = 0.5
        return cls(
            **request.common,
            low=low,
            high=high,
            grid=grid,
            coins=coins,
            probability=probability,
        )

    @property
    def _unary(self) -> Unary:
        return Unary(self.grid, self.coins, self.probability)

    def _check_noise(self) -> None:
        self._unary.check()

    @property
    def noise(self) -> dict[str, Any]:
        return {"law": "binomial", "grid": self.grid, "coins": self.coins, "probability": self.probability}

    @classmethod
    def from_noise(cls, noise: Mapping[str, Any], **common: Any) -> Self:
        return cls(
            grid=whole_number(noise, "grid"),
            coins=whole_number(noise, "coins"),
            probability=real_number(noise, "probability"),
            **common,
        )

    @property
    def noise_law(self) -> Binomial:
        return self._unary.noise(self.users)

    @property
    def messages_per_user_mean(self) -> float:
        return float(self._unary.length)

    @property
    def messages_per_user_max(self) -> int:
        return self._unary.length

    @property
    def bits_per_message(self) -> int:
        return 1

    def pair(self, honest: int) -> ShiftPair:
        return ShiftPair(self._unary.noise(honest), self.grid)

    def delta_terms(self, epsilon: float, honest: int) -> tuple[DeltaTerm, ...]:
        noise = self.pair(honest).delta(epsilon)
        return (
            DeltaTerm("noise", noise, "the hockey-stick curve of the pair, the larger direction, rounded up"),
            DeltaTerm("sampling", 0.0, "coins are drawn exactly"),
        )

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
    def influence(self) -> float:
        return self.step * self.messages_per_user_max

    @property
    def lying_client(self) -> str:
        return (
            f"moves the sum by at most {self.influence:.4g}, its {self.messages_per_user_max} messages of "
            f"{self.step:.3g} each"
        )

    def randomize(self, values: ArrayLike, *, bits: RandomBits) -> Reports:
        rounded = self._rounded(self.check_values(values), bits)
        return Reports.of_equal_size(self._unary.messages(rounded, bits=bits))

    def summaries(self, reports: Reports, trials: int) -> NDArray[np.int64]:
        """The number of ones of each run."""
        return self._coarse(reports.payloads.reshape(trials, -1).sum(axis=1, dtype=np.int64))

    def tally(self, batch: Batch, malformed: int = 0) -> Tally:
        return self._unary.tally(batch, malformed)

    def estimate(self, tally: Tally, *, simulated: bool = False) -> Estimate:
        self.check_reports(tally.reports)
        ones, dropped = self._unary.ones(tally, self.users)
        return self._estimate(int(ones[0]) - self.noise_law.mean, dropped=dropped, simulated=simulated)

    def quieter(self, part: float) -> dict[str, Any]:
        return {"probability": probability_with(part * least_coin_variance(self))}

    def sample_estimate(self, values: ArrayLike, *, bits: RandomBits) -> Estimate:
        total = self._rounded_total(values, bits)
        noise = int(binomial(self.noise_law.trials, self.probability, 1, bits=bits)[0])
        return self._estimate(total + noise - self.noise_law.mean, simulated=not bits.is_secure)
