"""Binary sum by symmetric Poisson bits: noise messages that are as often 0 as 1."""

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike

from shuffledp.accounting.curves import smallest_meeting
from shuffledp.accounting.differences import Skellam
from shuffledp.accounting.guarantee import DeltaTerm, delta_of_distance
from shuffledp.accounting.laws import Poisson
from shuffledp.accounting.split_coins import SplitCoinsPair
from shuffledp.messages import Reports
from shuffledp.protocols.binary_sum.base import CountedBits, check_delta, check_drawn, smallest_cap
from shuffledp.protocols.error_bounds import CONFIDENCE
from shuffledp.protocols.fields import noise, only_exact
from shuffledp.protocols.request import Request
from shuffledp.randomness import RandomBits
from shuffledp.sampling.laws import poisson, sample_skellam

# The part of delta that goes to cutting off very many noise bits from one user.
_CUT_PART = 1e-3


@dataclass(frozen=True, slots=True, kw_only=True)
class PoissonBits(CountedBits):
    """Each user sends its bit and Poisson(rate / honest users) fair coins.

    The adversary sees the numbers of ones and of zeros. The noise is symmetric, and Poisson numbers
    add up whatever the number of users, so that missing users only thin it out.

    Reference: [004] Table 2 and footnote 5 (Balcer, Cheu, Joseph, Mao 2020), in Poisson form.

    >>> from shuffledp import Privacy
    >>> plan = PoissonBits.plan(users=10_000, privacy=Privacy(1, 1e-6))
    >>> round(plan.rate, 1), round(plan.standard_error, 2)
    (85.3, 4.62)
    """

    method: ClassVar[str] = "poisson-bits"
    theory_page: ClassVar[str] = "docs/theory/004-survey.md"
    law: ClassVar[str] = "poisson-bits"

    rate: float = noise("(0, inf)")
    most_noise_bits: int = noise("[0, inf)")

    @classmethod
    def for_request(cls, request: Request) -> Self:
        """The smallest rate for the honest users; one user's share of it is cut off far out."""
        privacy = request.privacy
        only_exact(request.constants)
        check_delta(privacy)
        target = privacy.delta * (1 - 2 * _CUT_PART)
        rate = smallest_meeting(lambda r: SplitCoinsPair(r).delta(privacy.epsilon), target, 0.0, 10.0, relative=1e-9)
        check_drawn(rate / request.honest)
        limit = _CUT_PART * privacy.delta / (delta_of_distance(math.exp(privacy.epsilon), 1.0) * request.users)
        cap = smallest_cap(Poisson(rate / request.honest).sf, limit)
        return cls(**request.common, rate=rate, most_noise_bits=cap)

    @property
    def _rate_per_user(self) -> Fraction:
        return Fraction(self.rate) / self.honest_users

    @property
    def _doubled_noise(self) -> Skellam:
        """Ones less zeros among all users' noise bits: twice the error."""
        return Skellam(float(self._rate_per_user * self.users))

    @property
    def standard_error(self) -> float:
        return self._doubled_noise.standard_deviation / 2

    @property
    def error_bound(self) -> float:
        return self._doubled_noise.deviation_quantile(1 - CONFIDENCE) / 2

    @property
    def messages_per_user_mean(self) -> float:
        return 1 + float(self._rate_per_user)

    @property
    def messages_per_user_max(self) -> int:
        return 1 + self.most_noise_bits

    @property
    def influence(self) -> float:
        # All its messages as 1s instead of 0s: each moves the estimate by a half up instead of a half down.
        return float(self.messages_per_user_max)

    @property
    def lying_client(self) -> str:
        return f"moves the count by at most {self.influence:.3g}: one for each message that is a 1 instead of a 0"

    def pair(self, honest: int) -> SplitCoinsPair:
        return SplitCoinsPair(float(self._rate_per_user * honest))

    def delta_terms(self, epsilon: float, honest: int) -> tuple[DeltaTerm, ...]:
        table = poisson(self._rate_per_user)
        factor = math.exp(epsilon)
        cut = self.users * Poisson(float(self._rate_per_user)).sf(self.most_noise_bits)
        return (
            DeltaTerm("noise", self.pair(honest).delta(epsilon), "the mean curve over the number of noise bits"),
            DeltaTerm(
                "cut-off", delta_of_distance(factor, cut), f"a user sends at most {self.most_noise_bits} noise bits"
            ),
            DeltaTerm(
                "sampling", delta_of_distance(factor, self.users * table.distance), "what the noise table rounds"
            ),
        )

    @property
    def dominates_because(self) -> str:
        return (
            "A permuted multiset of bits shows its numbers of ones and zeros; with everybody else's bits known these "
            "are the user's bit in one of two places plus independent Poisson numbers of ones and of zeros."
        )

    def randomize(self, values: ArrayLike, *, bits: RandomBits) -> Reports:
        true = self.check_values(values)
        coins = np.minimum(poisson(self._rate_per_user).sample(true.size, bits=bits), self.most_noise_bits)
        sizes = coins + 1
        total = int(sizes.sum())
        payloads = np.unpackbits(bits.unsigned((total + 7) // 8, 8), count=total)
        payloads[np.cumsum(sizes) - sizes] = true
        return Reports(payloads, sizes)

    def _from_counts(self, ones: int, zeros: int) -> float:
        return (ones - zeros + self.users) / 2

    def quieter(self, part: float) -> dict[str, Any]:
        return {"rate": part * self.rate}

    def _sample(self, total: int, bits: RandomBits) -> float:
        doubled = int(sample_skellam(self._rate_per_user * self.users, 1, bits=bits)[0])
        return total + doubled / 2
