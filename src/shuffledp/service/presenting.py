"""What an analyzer has released, as the task's plan presents it: for the command line and for the page."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from shuffledp.estimates import Estimate, VectorEstimate
from shuffledp.protocols.plan import Plan
from shuffledp.protocols.presentation import Presentation, View, figure, present_numbers


def presented(plan: Plan, newest: Mapping[str, Any], view: View | None = None) -> Presentation:
    """A release as the plan presents it; an answer that is neither a number nor a list of them, as its fields.

    Args:
        plan: the task's.
        newest: a release as JSON; its `time` is how many people are in it.
        view: which part to show, beside how many people came.

    >>> from shuffledp import BinarySum, Privacy
    >>> plan = BinarySum.plan(users=100, privacy=Privacy(1, 1e-6), method="coins")
    >>> newest = {"time": 100, "estimate": 31.0, "standard_error": 5.0, "bound": 10.0, "confidence": 0.95}
    >>> presented(plan, newest).facts
    (('estimate', '31.0 ± 5 (within 10 with 95% confidence)'),)
    """
    if isinstance(newest["estimate"], Mapping):
        return Presentation(tuple((name.replace("_", " "), figure(each)) for name, each in newest["estimate"].items()))
    value = np.asarray(newest["estimate"], dtype=np.float64)
    kind: Any = Estimate if value.ndim == 0 else VectorEstimate
    estimate = kind(
        value=value if value.ndim else float(value),
        standard_error=newest.get("standard_error") or 0.0,
        bound=newest.get("bound") or 0.0,
        confidence=newest.get("confidence") or 0.0,
        dropped=int(newest.get("dropped") or 0),
    )
    try:
        return plan.present(estimate, view=replace(view or View(), users=int(newest["time"])))
    except AttributeError:
        # A release keeps numbers, their error and their bound: a plan whose answers have names of their own, or errors
        # of their own, cannot present it, and the numbers are shown as they are.
        return present_numbers(estimate)


def counted(plan: Plan, time: int) -> str:
    """How many are in an estimate, and how many never will be.

    >>> from shuffledp import BinarySum, Privacy
    >>> plan = BinarySum.plan(users=100, privacy=Privacy(1, 1e-6), method="coins")
    >>> counted(plan, 100)
    'all 100 users'
    """
    words = f"the first {time:,} of {plan.users:,} users"
    if plan.uncounted == 0:
        return words if time < plan.users else f"all {plan.users:,} users"
    left = f"the last {plan.uncounted:,} are in no batch that fills"
    return f"{words}; {left}" if time < plan.users - plan.uncounted else f"{words}, all that will be: {left}"


def in_words(value: Any) -> str:
    """A number, or the first of a list of them, as people read it; nothing for None.

    >>> in_words(1234.5), in_words([1, 2.25]), in_words(None)
    ('1,234.5', '[1, 2.25]', '')
    """
    if value is None:
        return ""
    if isinstance(value, list):
        return f"[{', '.join(in_words(item) or '-' for item in value[:6])}{', ...' if len(value) > 6 else ''}]"
    if isinstance(value, bool) or not isinstance(value, int | float):
        return str(value)
    return f"{value:,.4g}" if abs(value) < 1000 else f"{value:,.1f}"


def error_in_words(newest: Mapping[str, Any]) -> str:
    """How far off a release may be, to stand behind its number; empty where it says nothing about that.

    >>> error_in_words({"standard_error": 5.0, "bound": 10.0, "confidence": 0.95})
    ' ± 5 (within 10 with 95% confidence)'
    """
    words = "" if newest.get("standard_error") is None else f" ± {in_words(newest['standard_error'])}"
    if newest.get("bound") is not None and newest.get("confidence") is not None:
        words += f" (within {in_words(newest['bound'])} with {newest['confidence']:.0%} confidence)"
    return words
