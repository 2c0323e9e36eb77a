"""Vector sums: the sum of vectors in a ball, by several methods."""

from typing import Any

from shuffledp.errors import ParameterError
from shuffledp.privacy import Privacy
from shuffledp.protocols.base import Constants
from shuffledp.protocols.choosing import Choice, choose
from shuffledp.protocols.comparison import gaussian_document
from shuffledp.protocols.vector_sum.ball import check_ball
from shuffledp.protocols.vector_sum.base import VectorSumPlan
from shuffledp.protocols.vector_sum.bits import VectorBits
from shuffledp.protocols.vector_sum.shares import VectorShares

METHODS: dict[str, type[VectorBits] | type[VectorShares]] = {
    method.method: method for method in (VectorBits, VectorShares)
}


class VectorSum:
    """Adds up vectors of length at most `radius`, with nobody trusted.

    >>> plan = VectorSum.plan(users=1000, privacy=Privacy(1, 1e-6), dimension=10, radius=1)
    >>> plan.method, round(plan.standard_error, 1)
    ('shares', 8.5)
    """

    protocol = "vector-sum"
    methods = METHODS
    asks_for = ("dimension", "radius", "rotation")

    @classmethod
    def plan(
        cls,
        *,
        users: int,
        privacy: Privacy,
        dimension: int,
        radius: float,
        method: str = "auto",
        rotation: int | None = None,
        honest_fraction: float = 1.0,
        max_messages: int | None = None,
        constants: Constants = "exact",
    ) -> VectorSumPlan:
        """The plan of the named method, or of the best one for these limits."""
        return cls.choose(
            users=users,
            privacy=privacy,
            dimension=dimension,
            radius=radius,
            rotation=rotation,
            method=method,
            honest_fraction=honest_fraction,
            max_messages=max_messages,
            constants=constants,
        ).plan

    @classmethod
    def choose(cls, *, method: str = "auto", max_messages: int | None = None, **asked: Any) -> Choice[VectorSumPlan]:
        """The smallest standard error among the methods that keep to the limits, and why."""
        for name in ("dimension", "radius"):
            if asked.get(name) is None:
                raise ParameterError(name, None, "must be given", f"add --{name}")
        return choose(METHODS, method, max_messages, {**asked, "max_messages": max_messages})

    @classmethod
    def comparison(cls, *, users: int, privacy: Privacy, dimension: int, radius: float) -> dict[str, Any]:
        """The method gaussian (P_Amp of [002]) in numbers; it cannot be run to protect anybody."""
        check_ball(dimension, radius)
        domain = {"dimension": dimension, "radius": radius}
        return gaussian_document(
            cls.protocol, users=users, privacy=privacy, dimension=dimension, radius=radius, domain=domain
        )
