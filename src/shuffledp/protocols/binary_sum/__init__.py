"""Binary sums: how many users have the value 1, by several methods."""

from shuffledp.privacy import Privacy
from shuffledp.protocols.base import Constants
from shuffledp.protocols.binary_sum.base import BinarySumPlan
from shuffledp.protocols.binary_sum.coins import Coins
from shuffledp.protocols.binary_sum.correlated import Correlated
from shuffledp.protocols.binary_sum.poisson_bits import PoissonBits
from shuffledp.protocols.binary_sum.pure import Pure
from shuffledp.protocols.binary_sum.response import Response
from shuffledp.protocols.binary_sum.shares import Shares
from shuffledp.protocols.binary_sum.zsum import ZSum
from shuffledp.protocols.choosing import Choice, choose

Method = type[Coins] | type[Shares] | type[Response] | type[ZSum] | type[PoissonBits] | type[Correlated] | type[Pure]
METHODS: dict[str, Method] = {
    method.method: method for method in (Coins, Shares, Response, ZSum, PoissonBits, Correlated, Pure)
}


class BinarySum:
    """Counts the users whose value is 1, with nobody trusted.

    >>> plan = BinarySum.plan(users=60, privacy=Privacy(1, 1e-6), method="coins")
    >>> plan.noise
    {'law': 'binomial', 'bits_per_user': 2, 'probability': 0.5}
    >>> BinarySum.choose(users=10_000, privacy=Privacy(1, 1e-6), max_messages=2).why
    'rr: standard error 5.84 with 1 messages a user; zsum: ...'
    """

    protocol = "binary-sum"
    methods = METHODS
    asks_for: tuple[str, ...] = ()

    @classmethod
    def plan(
        cls,
        *,
        users: int,
        privacy: Privacy,
        method: str = "auto",
        honest_fraction: float = 1.0,
        max_messages: int | None = None,
        constants: Constants = "exact",
    ) -> BinarySumPlan:
        """The plan of the named method, or of the best one for these limits."""
        return cls.choose(
            users=users,
            privacy=privacy,
            method=method,
            honest_fraction=honest_fraction,
            max_messages=max_messages,
            constants=constants,
        ).plan

    @classmethod
    def choose(
        cls,
        *,
        users: int,
        privacy: Privacy,
        method: str = "auto",
        honest_fraction: float = 1.0,
        max_messages: int | None = None,
        constants: Constants = "exact",
    ) -> Choice[BinarySumPlan]:
        """The smallest standard error among the methods that keep to the limits, and why."""
        asked = {"users": users, "privacy": privacy, "honest_fraction": honest_fraction, "constants": constants}
        return choose(METHODS, method, max_messages, asked)
