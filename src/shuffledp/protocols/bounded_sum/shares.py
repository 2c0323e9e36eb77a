"""Bounded sum by shares: split-and-mix of the rounded value plus a Polya share of discrete Laplace noise.

Reference: [004] Appendix B.1 and Balle, Bell, Gascon, Nissim 2020; the number of shares from our own bound.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from shuffledp.accounting.guarantee import DeltaTerm
from shuffledp.accounting.laws import DiscreteLaplace, IntegerLaw
from shuffledp.accounting.mixing import robust_messages
from shuffledp.accounting.pairs import ShiftPair
from shuffledp.errors import InfeasibleError, ParameterError
from shuffledp.estimates import Estimate
from shuffledp.messages import Batch, Reports
from shuffledp.protocols.bounded_sum.base import BoundedSumPlan
from shuffledp.protocols.domains.summed import check_range
from shuffledp.protocols.fields import only_exact, real_number, whole_number
from shuffledp.protocols.polya import polya_law, polya_pair, polya_sampling_term, pure_ratio, ratio_with
from shuffledp.protocols.request import Request
from shuffledp.protocols.splitting import FALSE_ALARM, Splitting, modulus_bits_for
from shuffledp.protocols.tallies import Tally
from shuffledp.randomness import RandomBits
from shuffledp.sampling.laws import sample_polya_difference

# Rounding may add this part to the noise's variance.
_ROUNDING_PART = 0.02
# Tables of noise have at most about this many entries: about a second to make.
_LONGEST_TABLE = 1 << 20
# A table ends where its tail is below e^-95.
_TABLE_DEPTH = 95.0


def _grid(users: int, epsilon: float) -> int:
    """Rounding users' values adds users/4 steps^2 to about 2 (grid/epsilon)^2."""
    wanted = math.ceil(epsilon * math.sqrt(users / (8 * _ROUNDING_PART)))
    longest = max(1, math.floor(epsilon * _LONGEST_TABLE / _TABLE_DEPTH))
    # At least as fine as the noise, so that whole steps cost nothing.
    return max(1, min(max(wanted, math.ceil(2 * epsilon)), longest))


@dataclass(frozen=True, slots=True, kw_only=True)
class BoundedShares(BoundedSumPlan):
    """Each user adds its part of discrete Laplace noise to its rounded value and sends that in random shares.

    The adversary sees shares that are, up to a stated distance, uniform given their sum modulo
    2^modulus_bits: the rounded sum plus discrete Laplace noise, a trusted curator's answer. One client
    that lies, or one lost share, voids the batch; that is detected.

    Reference: [004] Appendix B.1.

    >>> plan = BoundedShares.plan(users=10_000, privacy=Privacy(1, 1e-6), low=0, high=1)
    >>> round(plan.standard_error, 2), plan.messages_per_user_max, plan.bits_per_message
    (1.43, 11, 62)
    """

    method: ClassVar[str] = "shares"
    can_be_voided: ClassVar[bool] = True
    theory_page: ClassVar[str] = "docs/theory/001-sums.md"

    ratio: float
    shares: int
    modulus_bits: int
    largest_deviation: int

    @classmethod
    def for_request(cls, request: Request, *, low: float, high: float) -> Self:
        """The honest users' noise alone is discrete Laplace; the shares mix them to within delta."""
        users, privacy = request.users, request.privacy
        only_exact(request.constants)
        check_range(low, high)
        honest = request.honest
        grid = _grid(users, privacy.epsilon)
        ratio = pure_ratio(privacy.epsilon, grid)
        deviation = polya_law(users / honest, ratio).deviation_quantile(FALSE_ALARM)
        modulus_bits = modulus_bits_for(users * grid + 2 * deviation + 1)
        left = privacy.delta - polya_sampling_term(users, honest, ratio, privacy.epsilon).value
        if left <= 0:
            raise InfeasibleError(
                "delta",
                privacy.delta,
                "is smaller than what sampling tables round off",
                "choose a larger delta, or the method bits, whose noise is drawn exactly",
            )
        distance = left * (1 - 1e-9) / (1 + math.exp(privacy.epsilon))
        return cls(
            **request.common,
            low=low,
            high=high,
            grid=grid,
            ratio=ratio,
            shares=robust_messages(honest, 1 << modulus_bits, distance),
            modulus_bits=modulus_bits,
            largest_deviation=deviation,
        )

    @property
    def _splitting(self) -> Splitting:
        spread = self.largest_deviation
        return Splitting(self.shares, self.modulus_bits, -spread, self.users * self.grid + spread)

    def _check_noise(self) -> None:
        if not 0 < self.ratio < 1:
            raise ParameterError("ratio", self.ratio, "must lie strictly between 0 and 1", "make the plan again")
        self._splitting.check(self.largest_deviation)

    @property
    def noise(self) -> dict[str, Any]:
        return {
            "law": "discrete-laplace",
            "grid": self.grid,
            "ratio": self.ratio,
            "share_of": self.honest_users,
            "shares": self.shares,
            "modulus_bits": self.modulus_bits,
            "largest_deviation": self.largest_deviation,
        }

    @classmethod
    def from_noise(cls, noise: Mapping[str, Any], **common: Any) -> Self:
        return cls(
            grid=whole_number(noise, "grid"),
            ratio=real_number(noise, "ratio"),
            shares=whole_number(noise, "shares"),
            modulus_bits=whole_number(noise, "modulus_bits"),
            largest_deviation=whole_number(noise, "largest_deviation"),
            **common,
        )

    @property
    def noise_law(self) -> IntegerLaw:
        return polya_law(self.users / self.honest_users, self.ratio)

    @property
    def messages_per_user_mean(self) -> float:
        return float(self.shares)

    @property
    def messages_per_user_max(self) -> int:
        return self.shares

    @property
    def bits_per_message(self) -> int:
        return self.modulus_bits

    def pair(self, honest: int) -> ShiftPair:
        return polya_pair(honest / self.honest_users, self.ratio, self.grid)

    def delta_terms(self, epsilon: float, honest: int) -> tuple[DeltaTerm, ...]:
        return (
            DeltaTerm("noise", self.pair(honest).delta(epsilon), "the hockey-stick curve of the pair"),
            *self._splitting.transport_terms(honest, epsilon),
            polya_sampling_term(self.users, self.honest_users, self.ratio, epsilon),
        )

    @property
    def dominates_because(self) -> str:
        return (
            "Up to the transport term, permuted shares can be simulated from their sum modulo q; with all others known "
            "that is the user's rounded value plus the honest users' Polya shares. Two values rounded with the same "
            "secret differ by at most the grid."
        )

    @property
    def influence(self) -> None:
        return None

    @property
    def lying_client(self) -> str:
        return self._splitting.lying_client("the sum")

    def randomize(self, values: ArrayLike, *, bits: RandomBits) -> Reports:
        rounded = self._rounded(self.check_values(values), bits)
        noise = sample_polya_difference(Fraction(1, self.honest_users), self.ratio, rounded.size, bits=bits)
        return Reports.of_equal_size(self._splitting.split(rounded + noise, bits=bits))

    def summaries(self, reports: Reports, trials: int) -> NDArray[np.int64]:
        """The sum of each run: all that is left of the shares but for the transport term."""
        totals = self._splitting.total(reports.payloads.reshape(trials, -1))
        return self._coarse(self._splitting.centred(totals))

    def tally(self, batch: Batch, malformed: int = 0) -> Tally:
        return self._splitting.tally(batch, malformed)

    def estimate(self, tally: Tally, *, simulated: bool = False) -> Estimate:
        self.check_reports(tally.reports)
        (total,) = self._splitting.sums(tally, self.users * self.shares)
        return self._estimate(float(total), simulated=simulated)

    def quieter(self, part: float) -> dict[str, Any]:
        return {"ratio": ratio_with(part * DiscreteLaplace(self.ratio).variance)}

    def sample_estimate(self, values: ArrayLike, *, bits: RandomBits) -> Estimate:
        total = self._rounded_total(values, bits)
        shape = Fraction(self.users, self.honest_users)
        noise = int(sample_polya_difference(shape, self.ratio, 1, bits=bits)[0])
        residue = np.array((total + noise) % (1 << self.modulus_bits), dtype=np.uint64)
        return self._estimate(float(self._splitting.decode(residue)), simulated=not bits.is_secure)
