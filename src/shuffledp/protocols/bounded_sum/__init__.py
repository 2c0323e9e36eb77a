"""Bounded sums: the sum of reals in a known range, by several methods."""

from typing import Any

from shuffledp.errors import ParameterError
from shuffledp.privacy import Privacy
from shuffledp.protocols.base import Constants
from shuffledp.protocols.bounded_sum.base import BoundedSumPlan, check_range
from shuffledp.protocols.bounded_sum.bits import BoundedBits
from shuffledp.protocols.bounded_sum.shares import BoundedShares
from shuffledp.protocols.choosing import Choice, choose
from shuffledp.protocols.comparison import gaussian_document

METHODS: dict[str, type[BoundedBits] | type[BoundedShares]] = {
    method.method: method for method in (BoundedBits, BoundedShares)
}


class BoundedSum:
    """Adds up reals in [low, high], with nobody trusted.

    >>> plan = BoundedSum.plan(users=10_000, privacy=Privacy(1, 1e-6), low=-5, high=5)
    >>> plan.method, round(plan.standard_error, 1)
    ('shares', 14.3)
    """

    protocol = "bounded-sum"
    methods = METHODS
    asks_for = ("low", "high")

    @classmethod
    def plan(
        cls,
        *,
        users: int,
        privacy: Privacy,
        low: float,
        high: float,
        method: str = "auto",
        honest_fraction: float = 1.0,
        max_messages: int | None = None,
        constants: Constants = "exact",
    ) -> BoundedSumPlan:
        """The plan of the named method, or of the best one for these limits."""
        return cls.choose(
            users=users,
            privacy=privacy,
            low=low,
            high=high,
            method=method,
            honest_fraction=honest_fraction,
            max_messages=max_messages,
            constants=constants,
        ).plan

    @classmethod
    def choose(cls, *, method: str = "auto", max_messages: int | None = None, **asked: Any) -> Choice[BoundedSumPlan]:
        """The smallest standard error among the methods that keep to the limits, and why."""
        for name in ("low", "high"):
            if asked.get(name) is None:
                raise ParameterError(name, None, "must be given", f"add --{name}, the {name}est value there is")
        return choose(METHODS, method, max_messages, {**asked, "max_messages": max_messages})

    @classmethod
    def comparison(cls, *, users: int, privacy: Privacy, low: float, high: float) -> dict[str, Any]:
        """The method gaussian (P_Amp of [002]) in numbers; it cannot be run to protect anybody."""
        check_range(low, high)
        domain = {"low": low, "high": high}
        return gaussian_document(
            cls.protocol, users=users, privacy=privacy, dimension=1, radius=(high - low) / 2, domain=domain
        )
