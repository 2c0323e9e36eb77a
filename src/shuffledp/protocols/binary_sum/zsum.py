"""ZSUM: a count that is exactly 0 when nobody has a 1."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike

from shuffledp.accounting.curves import smallest_integer
from shuffledp.accounting.guarantee import DeltaTerm
from shuffledp.accounting.laws import Binomial
from shuffledp.accounting.pairs import ShiftPair
from shuffledp.errors import InfeasibleError, ParameterError
from shuffledp.estimates import Estimate
from shuffledp.messages import Reports
from shuffledp.protocols.binary_sum.base import CONFIDENCE, AdditiveNoisePlan
from shuffledp.protocols.binary_sum.coins import smallest_fair_coins, smallest_probability
from shuffledp.protocols.fields import only_exact, real_number
from shuffledp.protocols.request import Request
from shuffledp.protocols.tallies import Tally
from shuffledp.protocols.unary import probability_with
from shuffledp.randomness import RandomBits
from shuffledp.sampling.bernoulli import bernoulli
from shuffledp.sampling.coins import binomial


@dataclass(frozen=True, slots=True, kw_only=True)
class ZSum(AdditiveNoisePlan):
    """Each user sends a 1 if its bit is 1, and another 1 unless a rare coin says no.

    The adversary sees how many messages there are. At most n of them are noise, so a count above n
    proves a 1, and a count of at most n is answered with 0: a sum of 0 is always answered exactly,
    and so are sums too small to tell from 0.

    Reference: [004] section 3.2, R_ZSUM (Balcer, Cheu 2020); the printed second case means sum x > 0.

    >>> plan = ZSum.plan(users=10_000, privacy=Privacy(1, 1e-6))
    >>> round(10_000 * plan.silence, 1), round(plan.standard_error, 2)
    (34.1, 5.83)
    """

    method: ClassVar[str] = "zsum"
    theory_page: ClassVar[str] = "docs/theory/004-survey.md"
    keeps_zero: ClassVar[bool] = True

    silence: float

    @classmethod
    def for_request(cls, request: Request) -> Self:
        """The rarest silences that hide one bit; the mirror image of one rare coin a user."""
        users, privacy = request.users, request.privacy
        only_exact(request.constants)
        honest = request.honest
        if honest < smallest_fair_coins(privacy):
            raise InfeasibleError(
                "users",
                users,
                "are too few for one coin each to hide a bit",
                "take more users, or the method coins, which tosses several",
            )
        return cls(
            **request.common,
            silence=smallest_probability(honest, privacy),
        )

    def _check_noise(self) -> None:
        if not 0 < self.silence <= 0.5:
            raise ParameterError("silence", self.silence, "must lie in (0, 1/2]", "make the plan again")

    @property
    def noise(self) -> dict[str, Any]:
        return {"law": "binomial", "silence": self.silence}

    @classmethod
    def from_noise(cls, noise: Mapping[str, Any], **common: Any) -> Self:
        return cls(silence=real_number(noise, "silence"), **common)

    @property
    def noise_law(self) -> Binomial:
        """The missing noise messages; the error is their mean less their number."""
        return Binomial(self.users, self.silence)

    @property
    def error_bound(self) -> float:
        # Answered with 0, the error is the sum itself, at most the number of silences.
        law = self.noise_law
        return float(smallest_integer(lambda a: law.sf(a) + law.cdf(np.ceil(law.mean - a) - 1) <= 1 - CONFIDENCE, 0))

    @property
    def messages_per_user_mean(self) -> float:
        return 2 - self.silence

    def mean_messages(self, values: ArrayLike) -> float:
        return float(np.mean(self.check_values(values))) + 1 - self.silence

    @property
    def messages_per_user_max(self) -> int:
        return 2

    @property
    def influence(self) -> float:
        return 2.0

    @property
    def lying_client(self) -> str:
        return "moves the count by at most 2, the number of its messages"

    def pair(self, honest: int) -> ShiftPair:
        return ShiftPair(Binomial(honest, self.silence))

    def delta_terms(self, epsilon: float, honest: int) -> tuple[DeltaTerm, ...]:
        return (
            DeltaTerm("noise", self.pair(honest).delta(epsilon), "the hockey-stick curve of the pair, rounded up"),
            DeltaTerm("sampling", 0.0, "coins are drawn exactly"),
        )

    @property
    def dominates_because(self) -> str:
        return (
            "All messages are 1, so the view is their number: the user's bit plus n minus the honest users' silences; "
            "n - B is the mirror image of B, which swaps the two directions."
        )

    def randomize(self, values: ArrayLike, *, bits: RandomBits) -> Reports:
        true = self.check_values(values)
        sizes = true.astype(np.int64) + 1 - bernoulli(self.silence, true.size, bits=bits)
        return Reports(np.ones(int(sizes.sum()), dtype=np.uint8), sizes)

    def estimate(self, tally: Tally, *, simulated: bool = False) -> Estimate:
        count, zeros, dropped = self._read_bits(tally)
        return self._from_count(count, dropped=dropped + zeros, simulated=simulated)

    def quieter(self, part: float) -> dict[str, Any]:
        return {"silence": probability_with(part * self.silence * (1 - self.silence))}

    def _from_count(self, count: int, *, dropped: int = 0, simulated: bool = False) -> Estimate:
        value = count - self.users + self.noise_law.mean if count > self.users else 0.0
        return self._estimate(value, dropped=dropped, simulated=simulated)

    def sample_estimate(self, values: ArrayLike, *, bits: RandomBits) -> Estimate:
        total = int(self._all_values(values).sum(dtype=np.int64))
        silences = int(binomial(self.users, self.silence, 1, bits=bits)[0])
        return self._from_count(total + self.users - silences, simulated=not bits.is_secure)
