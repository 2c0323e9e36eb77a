"""Range counts, distribution functions and quantiles, in one and two dimensions."""

from typing import Any

from shuffledp.errors import ParameterError
from shuffledp.privacy import Privacy
from shuffledp.protocols.base import Constants
from shuffledp.protocols.choosing import Choice
from shuffledp.protocols.ranges.axes import AnyAxes, as_axes
from shuffledp.protocols.ranges.base import RangesPlan
from shuffledp.protocols.ranges.grid import Grid
from shuffledp.protocols.ranges.tree import Dyadic, Tree

METHODS: dict[str, Any] = {method.method: method for method in (Tree, Dyadic, Grid)}


class Ranges:
    """Counts the users in every range of values, or in every rectangle, with nobody trusted.

    >>> plan = Ranges.plan(users=100_000, privacy=Privacy(1, 1e-6), domain=1024, max_messages=8)
    >>> plan.method, plan.errors.prefix_bound < 0.005 * 100_000
    ('tree', True)
    """

    protocol = "ranges"
    methods = METHODS
    asks_for: tuple[str, ...] = ("domain", "branching")

    @classmethod
    def plan(
        cls,
        *,
        users: int,
        privacy: Privacy,
        domain: AnyAxes,
        branching: int | None = None,
        method: str = "auto",
        honest_fraction: float = 1.0,
        max_messages: int | None = None,
        constants: Constants = "exact",
    ) -> RangesPlan:
        """The plan of the named method, or of the one for this domain."""
        return cls.choose(
            users=users,
            privacy=privacy,
            domain=domain,
            branching=branching,
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
        domain: AnyAxes,
        branching: int | None = None,
        method: str = "auto",
        honest_fraction: float = 1.0,
        max_messages: int | None = None,
        constants: Constants = "exact",
    ) -> Choice[RangesPlan]:
        """The least error of the worst prefix within the messages allowed, and why."""
        axes = as_axes(domain)
        if method != "auto" and method not in METHODS:
            raise ParameterError("method", method, f"must be auto, {' or '.join(METHODS)}", "auto picks the best")
        if max_messages is not None and max_messages < 1:
            raise ParameterError("max_messages", max_messages, "must be >= 1", "leave it out for no limit")
        name = method if method != "auto" else "tree" if len(axes) == 1 else "grid"
        plan: RangesPlan = METHODS[name].plan(
            users=users,
            privacy=privacy,
            axes=axes,
            branching=branching,
            honest_fraction=honest_fraction,
            constants=constants,
            max_messages=max_messages,
        )
        levels = f"{len(plan.levels)} levels of branching {plan.branching[0]}"
        what = "all prefixes within" if len(axes) == 1 else "all corners within"
        why = (
            f"{name}: {levels}; {what} {plan.errors.prefix_bound:,.4g} users ({plan.errors.prefix_bound / users:.3%}) "
            f"with {plan.messages_per_user_mean:.3g} messages a user"
        )
        return Choice(plan, why if method == "auto" else f"{why}; as asked")
