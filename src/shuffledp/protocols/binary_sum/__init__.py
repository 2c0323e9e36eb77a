"""Binary sums: how many users have the value 1, by several methods."""

import math
from dataclasses import dataclass

from shuffledp.errors import InfeasibleError, ParameterError
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

Method = type[Coins] | type[Shares] | type[Response] | type[ZSum] | type[PoissonBits] | type[Correlated] | type[Pure]
METHODS: dict[str, Method] = {
    method.method: method for method in (Coins, Shares, Response, ZSum, PoissonBits, Correlated, Pure)
}


@dataclass(frozen=True, slots=True)
class Choice:
    """The best plan for the limits given, and why."""

    plan: BinarySumPlan
    why: str


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
    ) -> Choice:
        """The smallest standard error among the methods that keep to the limits, and why."""
        if method != "auto" and method not in METHODS:
            raise ParameterError("method", method, f"must be auto, {' or '.join(METHODS)}", "auto picks the best")
        if max_messages is not None and max_messages < 1:
            raise ParameterError("max_messages", max_messages, "must be >= 1", "leave it out for no limit")
        plans: list[BinarySumPlan] = []
        refusals: dict[str, InfeasibleError] = {}
        for name in METHODS if method == "auto" else [method]:
            try:
                plans.append(
                    METHODS[name].plan(
                        users=users, privacy=privacy, honest_fraction=honest_fraction, constants=constants
                    )
                )
            except InfeasibleError as error:
                refusals[name] = error
        if not plans:
            raise next(iter(refusals.values()))
        limit = max_messages or max(plan.messages_per_user_max for plan in plans)
        fitting = [plan for plan in plans if plan.messages_per_user_max <= limit]
        if not fitting:
            nearest = min(plans, key=lambda plan: plan.messages_per_user_max)
            raise InfeasibleError(
                "max_messages",
                max_messages,
                f"must be at least {nearest.messages_per_user_max}, what {nearest.method} sends",
                "allow more messages, or a larger epsilon or delta",
            )
        best, *rest = sorted(fitting, key=_rank)
        if method != "auto":
            return Choice(best, f"{best.method}: as asked")
        reasons = [_in_short(plan) for plan in (best, *rest)]
        over = [plan for plan in sorted(plans, key=_rank) if plan not in fitting]
        reasons += [f"{plan.method} would send up to {plan.messages_per_user_max} messages" for plan in over]
        reasons += [f"{name} cannot: {error.parameter} {error.problem}" for name, error in refusals.items()]
        return Choice(best, "; ".join(reasons))


def _rank(plan: BinarySumPlan) -> tuple[float, float, float]:
    """By error in steps of 2%, then by messages, then by what one lying client can do."""
    influence = math.inf if plan.influence is None else plan.influence
    return round(math.log(plan.standard_error) / math.log(1.02)), plan.messages_per_user_mean, influence


def _in_short(plan: BinarySumPlan) -> str:
    error, messages = plan.standard_error, plan.messages_per_user_mean
    return f"{plan.method}: standard error {error:.3g} with {messages:.3g} messages a user"
