"""A count of people's rows by bits: as many ones as rows, and a few noise bits."""

from dataclasses import dataclass
from typing import ClassVar, Self

from shuffledp.accounting.curves import smallest_meeting
from shuffledp.accounting.laws import Binomial
from shuffledp.accounting.pairs import ShiftPair
from shuffledp.privacy import Privacy
from shuffledp.protocols.bounded_sum.bits import coins_for
from shuffledp.protocols.domains.repeated import check_at_most
from shuffledp.protocols.fields import noise, only_exact
from shuffledp.protocols.people.count import RepeatedCountPlan
from shuffledp.protocols.request import Request
from shuffledp.protocols.sums.plan import BitsSum


def coin_for(shift: int, honest: int, privacy: Privacy) -> float:
    """The smallest probability at which one noise bit from each honest user hides a shift; 1/2 if none is enough."""

    def delta(probability: float) -> float:
        return 0.0 if probability >= 0.5 else ShiftPair(Binomial(honest, probability), shift).delta(privacy.epsilon)

    first = min(0.5, shift * shift / honest)
    return min(0.5, smallest_meeting(delta, privacy.delta, 0.0, first, relative=1e-9))


@dataclass(frozen=True, slots=True, kw_only=True)
class RepeatedCountBits(BitsSum, RepeatedCountPlan):
    """Each user sends a bit for each of its rows, zeros for those that it does not have, and noise bits.

    The adversary sees how many messages are 1, and nothing more: the count plus a binomial.

    >>> plan = RepeatedCountBits.plan(users=10_000, privacy=Privacy(1, 1e-6), at_most=3)
    >>> round(plan.standard_error, 1), plan.messages_per_user_max
    (14.1, 4)
    """

    method: ClassVar[str] = "bits"

    coins: int = noise("[1, inf)")
    probability: float = noise("(0, 1/2]")

    @classmethod
    def for_request(cls, request: Request, *, at_most: int) -> Self:
        """One rare noise bit a user, or so many fair ones where the users are few."""
        only_exact(request.constants)
        check_at_most(at_most)
        privacy, honest = request.privacy, request.honest
        coins, probability = coins_for(at_most, honest, privacy), 0.5
        if coins == 1:
            probability = coin_for(at_most, honest, privacy)
        return cls(**request.common, at_most=at_most, coins=coins, probability=probability)

    @property
    def dominates_because(self) -> str:
        return (
            "Every report has the same number of bits, so a permutation shows only how many are 1: with all others "
            "known, how many of the user's rows are a yes plus the honest users' binomial noise. Two users' rows "
            "differ by at most at_most ones, and for log-concave noise the largest shift is the worst."
        )

    @property
    def lying_client(self) -> str:
        return f"moves the count by at most {self.influence:,.0f}, its messages"
