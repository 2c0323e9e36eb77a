"""The best method for given limits, and why."""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Generic, Protocol, TypeVar, cast

from shuffledp.errors import InfeasibleError, ParameterError
from shuffledp.protocols.base import Plan
from shuffledp.protocols.comparison import GAUSSIAN

P = TypeVar("P", bound=Plan, covariant=True)


class _HasInfluence(Protocol):
    @property
    def influence(self) -> float | None: ...


@dataclass(frozen=True, slots=True)
class Choice(Generic[P]):
    """The best plan for the limits given, and why."""

    plan: P
    why: str
    considered: Mapping[str, Any] = field(default_factory=dict)
    """What became of each method that was tried: its plan, or the error that refuses it."""


def choose(
    methods: Mapping[str, Any],
    method: str,
    max_messages: int | None,
    asked: Mapping[str, Any],
    *,
    error: Callable[[Any], float] = lambda plan: plan.standard_error,
    error_name: str = "standard error",
) -> "Choice[Any]":
    """The smallest error among the methods that keep to the limits, and why.

    `asked` is what each method's own `plan` is called with.
    """

    def rank(plan: Plan) -> tuple[float, float, float]:
        return _rank(plan, error(plan))

    if method != "auto" and method not in methods:
        way_out = (
            f"{GAUSSIAN} can only be compared, by `shuffledp plan`" if method == GAUSSIAN else "auto picks the best"
        )
        raise ParameterError("method", method, f"must be auto, {' or '.join(methods)}", way_out)
    if max_messages is not None and max_messages < 1:
        raise ParameterError("max_messages", max_messages, "must be >= 1", "leave it out for no limit")
    plans: list[Plan] = []
    refusals: dict[str, InfeasibleError] = {}
    for name in methods if method == "auto" else [method]:
        try:
            plans.append(methods[name].plan(**asked))
        except InfeasibleError as refusal:
            refusals[name] = refusal
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
    best, *rest = sorted(fitting, key=rank)
    considered: dict[str, Plan | InfeasibleError] = {**{plan.method: plan for plan in plans}, **refusals}
    if method != "auto":
        return Choice(best, f"{best.method}: as asked", considered)
    reasons = [_in_short(plan, error_name, error(plan)) for plan in (best, *rest)]
    over = [plan for plan in sorted(plans, key=rank) if plan not in fitting]
    reasons += [f"{plan.method} would send up to {plan.messages_per_user_max} messages" for plan in over]
    reasons += [f"{name} cannot: {refusal.parameter} {refusal.problem}" for name, refusal in refusals.items()]
    return Choice(best, "; ".join(reasons), considered)


def _rank(plan: Plan, error: float) -> tuple[float, float, float]:
    """By error in steps of 2%, then by messages, then by what one lying client can do."""
    influence = cast(_HasInfluence, plan).influence
    # At a large epsilon a method may have no error at all: nothing is better.
    steps = -math.inf if error <= 0 else round(math.log(error) / math.log(1.02))
    return steps, plan.messages_per_user_mean, math.inf if influence is None else influence


def _in_short(plan: Plan, error_name: str, error: float) -> str:
    return f"{plan.method}: {error_name} {error:.3g} with {plan.messages_per_user_mean:.3g} messages a user"
