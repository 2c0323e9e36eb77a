"""ZSUM: a count that is exactly 0 when nobody has a 1."""

import math
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike

from shuffledp.accounting.curves import smallest_integer
from shuffledp.accounting.laws import Binomial
from shuffledp.accounting.pairs import ShiftPair
from shuffledp.errors import InfeasibleError
from shuffledp.messages import Reports
from shuffledp.protocols.binary_sum.base import CountedBits
from shuffledp.protocols.binary_sum.coins import smallest_fair_coins, smallest_probability
from shuffledp.protocols.cut import deviations_at, mean_squares_by_silence
from shuffledp.protocols.error_bounds import CONFIDENCE
from shuffledp.protocols.fields import noise, only_exact
from shuffledp.protocols.request import Request
from shuffledp.protocols.rounds import ExactRound
from shuffledp.protocols.tallies import Tally
from shuffledp.protocols.unary import probability_with
from shuffledp.randomness import RandomBits
from shuffledp.sampling.bernoulli import bernoulli
from shuffledp.sampling.coins import binomial

# The error is tabulated for sums up to about so many.
_MOST_SILENCES = 1 << 22


@dataclass(frozen=True, slots=True, kw_only=True)
class ZSum(ExactRound, CountedBits):
    """Each user sends a 1 if its bit is 1, and another 1 unless a rare coin says no.

    The adversary sees how many messages there are. At most n of them are noise, so a count above n
    proves a 1, and a count of at most n is answered with 0: a sum of 0 is always answered exactly,
    and sums too small to tell from 0 are answered with 0, too. So the error is that of coins for large sums, and
    for small ones up to the sum itself; its standard error is the root mean square error at the worst sum.

    Reference: [004] section 3.2, R_ZSUM (Balcer, Cheu 2020); the printed second case means sum x > 0.

    >>> from shuffledp import Privacy
    >>> plan = ZSum.plan(users=10_000, privacy=Privacy(1, 1e-6))
    >>> round(10_000 * plan.silence, 1), round(plan.standard_error, 2)
    (34.1, 26.77)
    """

    method: ClassVar[str] = "zsum"
    sends_own: ClassVar[bool] = False
    theory_page: ClassVar[str] = "docs/theory/004-survey.md"
    law: ClassVar[str] = "binomial"
    curve: ClassVar[str] = "the hockey-stick curve of the pair, rounded up"
    keeps_zero: ClassVar[bool] = True
    is_unbiased: ClassVar[bool] = False
    messages_per_user_max = 2

    silence: float = noise("(0, 1/2]")

    @classmethod
    def for_request(cls, request: Request) -> Self:
        """The rarest silences that hide one bit; the mirror image of one rare coin a user."""
        only_exact(request.constants)
        if request.honest < smallest_fair_coins(request.privacy):
            problem, way_out = "are too few for one coin each to hide a bit", "take more users, or the method coins"
            raise InfeasibleError("users", request.users, problem, f"{way_out}, which tosses several")
        silence = smallest_probability(request.honest, request.privacy)
        if silence * request.users > _MOST_SILENCES:
            problem = f"would be more than {_MOST_SILENCES} silences, below which sums are answered with 0"
            way_out = "take a larger epsilon or delta, or the method coins"
            raise InfeasibleError("noise", f"{silence * request.users:.3g}", problem, way_out)
        return cls(**request.common, silence=silence)

    @classmethod
    def least_error(cls, request: Request, **domain: Any) -> float:
        if request.honest < smallest_fair_coins(request.privacy):
            return 0.0
        law = Binomial(request.users, smallest_probability(request.honest, request.privacy))
        # A sum of the mean is answered with 0 by half: a binomial's median is at least its mean rounded down.
        return max(law.standard_deviation, math.floor(law.mean) / math.sqrt(2))

    @property
    def _silences(self) -> Binomial:
        """The noise messages that are missing; above the cut the error is their mean less their number."""
        return Binomial(self.users, self.silence)

    @property
    def standard_error(self) -> float:
        return math.sqrt(float(mean_squares_by_silence(self.users, self.silence).max()))

    def standard_errors_for(self, values: ArrayLike) -> float:
        return float(
            deviations_at(np.array(self.true_value(values)), mean_squares_by_silence(self.users, self.silence))
        )

    @property
    def error_bound(self) -> float:
        # Answered with 0, the error is the sum itself, at most the number of silences; lost messages are like more.
        law = self._silences
        return float(smallest_integer(lambda a: law.sf(a) + law.cdf(np.ceil(law.mean - a) - 1) <= 1 - CONFIDENCE, 0))

    @property
    def messages_per_user_mean(self) -> float:
        return 2 - self.silence

    def mean_messages(self, values: ArrayLike) -> float:
        return float(np.mean(self.check_values(values))) + 1 - self.silence

    @property
    def least_mean_messages(self) -> float:
        return 1 - self.silence

    @property
    def influence(self) -> float:
        # At the cut two messages lead from the answer 0 to the one of n + 2 messages.
        return 2 + self._silences.mean

    @property
    def lying_client(self) -> str:
        return (
            f"moves the count by at most 2, the number of its messages, or where it is near the cut from 0 to "
            f"{self.influence:.3g} and back"
        )

    def pair(self, honest: int) -> ShiftPair:
        return ShiftPair(Binomial(honest, self.silence))

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

    def _from_counts(self, ones: int, zeros: int) -> float:
        return ones - self.users + self._silences.mean if ones > self.users else 0.0

    def _dropped(self, tally: Tally, ones: int, zeros: int) -> int:
        # A 0 is no message of this protocol.
        return tally.messages + tally.malformed - ones

    def quieter(self, part: float) -> dict[str, Any]:
        return {"silence": probability_with(part * self.silence * (1 - self.silence))}

    def _sample(self, total: int, bits: RandomBits) -> float:
        silences = int(binomial(self.users, self.silence, 1, bits=bits)[0])
        return self._from_counts(total + self.users - silences, 0)
