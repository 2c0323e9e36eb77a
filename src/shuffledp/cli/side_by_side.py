"""Every method of a family for one question, as rows."""

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from shuffledp.cli.asked import Asked
from shuffledp.errors import InfeasibleError, ParameterError

if TYPE_CHECKING:
    from shuffledp.protocols.family import Choice
    from shuffledp.protocols.plan import Plan


def plans_of(asked: Asked, known: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """The plan of every method, or the error that refuses it.

    Args:
        asked: the family and what is asked of it; its method is not looked at.
        known: plans and errors of methods that were tried before; what was skipped is planned here.

    Raises:
        ParameterError: no method takes the question, and not for want of users, messages or privacy.
    """
    from shuffledp.protocols.choosing import Skipped

    found: dict[str, Any] = dict(known or {})
    for name in asked.family.methods:
        if name in found and not isinstance(found[name], Skipped):
            continue
        try:
            found[name] = asked.choice(method=name).plan
        except ParameterError as refusal:
            found[name] = refusal
    wrong = [
        each for each in found.values() if isinstance(each, ParameterError) and not isinstance(each, InfeasibleError)
    ]
    if wrong and not any(map(is_plan, found.values())):
        raise wrong[0]
    return {name: found[name] for name in asked.family.methods}


def is_plan(found: Any) -> bool:
    """Whether a method has a plan, and not an error that refuses it."""
    return not isinstance(found, Exception)


def refused(name: str, refusal: Any) -> dict[str, Any]:
    """The row of a method that cannot do it."""
    return {"method": name, "available": False, "why": f"{refusal.parameter} {refusal.problem}"}


def numbers(plan: "Plan") -> dict[str, Any]:
    """Errors and messages of a plan."""
    return {
        "standard_error": plan.standard_error,
        **plan.further_numbers(),
        "messages_per_user_mean": plan.messages_per_user_mean,
        "messages_per_user_max": plan.messages_per_user_max,
        "bits_per_message": plan.bits_per_message,
        "influence_of_a_lying_client": plan.influence,
    }


def method_rows(asked: Asked, choice: "Choice[Plan]") -> list[dict[str, Any]]:
    """What each method would do for the same question, the best first; those not planned yet are planned here."""
    limit, rows = asked.request.get("max_messages"), []
    tried = {**choice.considered, choice.plan.method: choice.plan}
    for name, found in plans_of(asked, tried).items():
        if not is_plan(found):
            rows.append((math.inf, refused(name, found)))
            continue
        sent = found.messages_per_user_max
        fits = limit is None or sent <= limit
        why = {} if fits else {"why": f"sends up to {sent} messages, more than {limit}"}
        rows.append((asked.family.error(found), {"method": name, "available": fits, **why, **numbers(found)}))
    return [row for _, row in sorted(rows, key=lambda each: (not each[1]["available"], each[0]))]
