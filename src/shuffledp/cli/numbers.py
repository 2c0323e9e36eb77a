"""Answers that are one number or a few (sums, means, variances): one screen, one document, one table for all."""

from collections.abc import Sequence
from typing import Any

from shuffledp.cli.answering import Answered
from shuffledp.cli.kept import KeptFiles
from shuffledp.cli.output import facts, next_steps, print_json, show

NO_PICTURE = "cannot be drawn: the answer is a number"


def tell_numbers(
    found: Answered,
    kept: KeptFiles,
    *,
    as_json: bool,
    told: Sequence[tuple[str, str]] | None = None,
    figures: dict[str, Any] | None = None,
) -> None:
    """Keep an answer, and print it: the estimate, how accurate it is, who is trusted with what, and what next.

    Args:
        found: the answer.
        kept: where it is kept.
        as_json: whether a program reads what is printed.
        told: rows in words, where the command has better ones than the plan.
        figures: numbers in JSON, likewise: estimate, standard_error and bound are the plan's if they are left out.
    """
    plan, estimate, truth = found.plan, found.estimate, found.truth
    own = {name: getattr(estimate, of) for name, of in (("estimate", "value"), *((n, n) for n in _ERRORS))}
    off_by = plan.off_by(estimate, truth) if found.shows_truth else None
    facts_of_it = {"dropped": estimate.dropped, "truth": truth, "error": off_by}
    document = found.document({**own, **facts_of_it, **(figures or {}), **kept.named})
    kept.write(document, found.presented, found.asked.whose.get("by"))
    if as_json:
        print_json(document)
        return
    rows = found.facts(*kept.facts, told=told)
    show(*found.presented.listings, facts(f"{plan.title}, by {plan.method}", rows), plan.compared())
    next_steps(
        [
            ("why it is private", found.other("explain")),
            ("other methods", found.other(f"plan {plan.protocol}")),
            ("keep the plan", found.other(f"plan {plan.protocol}", "-o plan.json")),
        ]
    )


_ERRORS = ("standard_error", "bound", "confidence")
