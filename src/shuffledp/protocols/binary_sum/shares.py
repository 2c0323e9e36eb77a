"""Binary sum by shares: split-and-mix of the bit plus a Polya share of discrete Laplace noise.

Reference: [004] Appendix A (Ishai, Kushilevitz, Ostrovsky, Sahai) for the mixing; Polya shares as in
Ghazi, Kumar, Manurangsi, Pagh 2020; the number of shares from our own exact bound.
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
from shuffledp.accounting.mixing import smallest_messages
from shuffledp.accounting.pairs import ShiftPair
from shuffledp.errors import InfeasibleError, ParameterError
from shuffledp.estimates import Estimate
from shuffledp.messages import Batch, Reports
from shuffledp.protocols.binary_sum.base import AdditiveNoisePlan
from shuffledp.protocols.fields import real_number, whole_number
from shuffledp.protocols.polya import polya_law, polya_pair, polya_sampling_term, pure_ratio, ratio_with
from shuffledp.protocols.request import Request
from shuffledp.protocols.splitting import FALSE_ALARM, Splitting, modulus_bits_for
from shuffledp.protocols.tallies import Tally
from shuffledp.randomness import RandomBits
from shuffledp.sampling.laws import sample_polya_difference


@dataclass(frozen=True, slots=True, kw_only=True)
class Shares(AdditiveNoisePlan):
    """Each user adds its part of discrete Laplace noise to its bit and sends the sum in random shares.

    The adversary sees shares that are, up to a stated distance, uniform given their sum modulo
    2^modulus_bits: the count plus discrete Laplace noise, a trusted curator's answer. One client that
    lies, or one lost share, voids the batch; that is detected.

    >>> plan = Shares.plan(users=10_000, privacy=Privacy(1, 1e-6))
    >>> round(plan.standard_error, 3), plan.messages_per_user_max, plan.bits_per_message
    (1.357, 9, 54)
    """

    method: ClassVar[str] = "shares"
    can_be_voided: ClassVar[bool] = True
    has_one_pair: ClassVar[bool] = True
    theory_page: ClassVar[str] = "docs/theory/split-and-mix.md"

    ratio: float
    shares: int
    modulus_bits: int
    largest_deviation: int

    @classmethod
    def for_request(cls, request: Request) -> Self:
        """The honest users' noise alone is discrete Laplace; the shares mix them to within delta."""
        users, privacy = request.users, request.privacy
        honest = request.honest
        ratio = pure_ratio(privacy.epsilon)
        deviation = polya_law(users / honest, ratio).deviation_quantile(FALSE_ALARM)
        modulus_bits = modulus_bits_for(users + 2 * deviation + 1)
        left = privacy.delta - polya_sampling_term(users, honest, ratio, privacy.epsilon).value
        if left <= 0:
            raise InfeasibleError(
                "delta",
                privacy.delta,
                "is smaller than what sampling tables round off",
                "choose a larger delta, a smaller epsilon, or the method coins, whose noise is drawn exactly",
            )
        distance = left * (1 - 1e-9) / (1 + math.exp(privacy.epsilon))
        shares = (
            _closed_form_shares(honest, modulus_bits, distance)
            if request.constants == "paper"
            else smallest_messages(honest, 1 << modulus_bits, distance)
        )
        return cls(
            **request.common,
            ratio=ratio,
            shares=shares,
            modulus_bits=modulus_bits,
            largest_deviation=deviation,
        )

    def _check_noise(self) -> None:
        if not 0 < self.ratio < 1:
            raise ParameterError("ratio", self.ratio, "must lie strictly between 0 and 1", "make the plan again")
        self._splitting.check(self.largest_deviation)

    @property
    def noise(self) -> dict[str, Any]:
        return {
            "law": "discrete-laplace",
            "ratio": self.ratio,
            "share_of": self.honest_users,
            "shares": self.shares,
            "modulus_bits": self.modulus_bits,
            "largest_deviation": self.largest_deviation,
        }

    @classmethod
    def from_noise(cls, noise: Mapping[str, Any], **common: Any) -> Self:
        return cls(
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
        return polya_pair(honest / self.honest_users, self.ratio)

    def delta_terms(self, epsilon: float, honest: int) -> tuple[DeltaTerm, ...]:
        return (
            DeltaTerm("noise", self.pair(honest).delta(epsilon), "the hockey-stick curve of the pair"),
            *self._splitting.transport_terms(honest, epsilon),
            polya_sampling_term(self.users, self.honest_users, self.ratio, epsilon),
        )

    @property
    def dominates_because(self) -> str:
        return (
            "Up to the transport term, permuted shares can be simulated from their sum modulo q; with all other "
            "users' values known that is a function of the user's bit plus the honest users' Polya shares, "
            "which add up to discrete Laplace noise."
        )

    @property
    def influence(self) -> None:
        return None

    @property
    def lying_client(self) -> str:
        return self._splitting.lying_client("the count")

    def randomize(self, values: ArrayLike, *, bits: RandomBits) -> Reports:
        true = self.check_values(values)
        noise = sample_polya_difference(Fraction(1, self.honest_users), self.ratio, true.size, bits=bits)
        return Reports.of_equal_size(self._splitting.split(true + noise, bits=bits))

    def summaries(self, reports: Reports, trials: int) -> NDArray[np.int64]:
        """The sum of each run: all that is left of the shares but for the transport term."""
        totals = self._splitting.total(reports.payloads.reshape(trials, -1))
        return self._splitting.centred(totals).reshape(-1, 1)

    @property
    def _splitting(self) -> Splitting:
        spread = self.largest_deviation
        return Splitting(self.shares, self.modulus_bits, -spread, self.users + spread)

    def tally(self, batch: Batch, malformed: int = 0) -> Tally:
        return self._splitting.tally(batch, malformed)

    def estimate(self, tally: Tally, *, simulated: bool = False) -> Estimate:
        self.check_reports(tally.reports)
        (total,) = self._splitting.sums(tally, self.users * self.shares)
        return self._estimate(float(total), simulated=simulated)

    def quieter(self, part: float) -> dict[str, Any]:
        return {"ratio": ratio_with(part * DiscreteLaplace(self.ratio).variance)}

    def sample_estimate(self, values: ArrayLike, *, bits: RandomBits) -> Estimate:
        total = int(self._all_values(values).sum(dtype=np.int64))
        shape = Fraction(self.users, self.honest_users)
        noise = int(sample_polya_difference(shape, self.ratio, 1, bits=bits)[0])
        residue = np.array((total + noise) % (1 << self.modulus_bits), dtype=np.uint64)
        return self._estimate(float(self._splitting.decode(residue)), simulated=not bits.is_secure)

    def sample_sums(self, ones: NDArray[np.int64], batches: int, *, bits: RandomBits) -> NDArray[np.float64]:
        shape = Fraction(self.users, self.honest_users) * batches
        noise = sample_polya_difference(shape, self.ratio, ones.size, bits=bits)
        return np.asarray(ones + noise.reshape(ones.shape), dtype=np.float64)


def _closed_form_shares(honest: int, modulus_bits: int, distance: float) -> int:
    """Balle, Bell, Gascon, Nissim 2020: worst-case smoothness with sigma = -log2(distance), n >= 19."""
    if honest < 19:
        raise InfeasibleError("users", honest, "must be >= 19 for the closed form", "use exact constants")
    sigma = -math.log2(distance)
    return max(3, math.ceil((2 * sigma + modulus_bits) / (math.log2(honest) - math.log2(math.e)) + 2))
