"""A count of people's rows by shares: split-and-mix of a user's own count plus a Polya share of Laplace noise."""

from dataclasses import dataclass
from typing import ClassVar, Self

from shuffledp.accounting.mixing import robust_messages
from shuffledp.protocols.domains.repeated import check_at_most
from shuffledp.protocols.fields import only_exact
from shuffledp.protocols.people.count import RepeatedCountPlan
from shuffledp.protocols.request import Request
from shuffledp.protocols.sums.plan import LaplaceShares


@dataclass(frozen=True, slots=True, kw_only=True)
class RepeatedCountShares(LaplaceShares, RepeatedCountPlan):
    """Each user adds its part of discrete Laplace noise to its own count and sends that in random shares.

    The adversary sees shares that are, up to a stated distance, uniform given their sum modulo 2^modulus_bits: the
    count plus discrete Laplace noise, a trusted curator's answer.

    >>> from shuffledp.privacy import Privacy
    >>> plan = RepeatedCountShares.plan(users=10_000, privacy=Privacy(1, 1e-6), at_most=3)
    >>> round(plan.standard_error, 2), plan.messages_per_user_max
    (4.22, 10)
    """

    method: ClassVar[str] = "shares"
    moved: ClassVar[str] = "the count"

    @classmethod
    def for_request(cls, request: Request, *, at_most: int) -> Self:
        """The honest users' noise alone is discrete Laplace; the shares mix them to within delta."""
        only_exact(request.constants)
        check_at_most(at_most)
        found = cls.least(request, at_most, at_most, robust_messages, "bits")
        return cls(**request.common, at_most=at_most, **found)

    @property
    def dominates_because(self) -> str:
        return (
            "Up to the transport term, permuted shares can be simulated from their sum modulo q; with all others known "
            "that is how many of the user's rows are a yes plus the honest users' Polya shares, which add up to "
            "discrete Laplace noise. Two users' rows differ by at most at_most ones."
        )
