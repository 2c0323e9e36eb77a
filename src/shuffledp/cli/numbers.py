"""Answers that are one number or a few (sums, means, variances): one screen, one document, one table for all."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from shuffledp.cli.answering import Answered, answered
from shuffledp.cli.asked import Asked
from shuffledp.cli.kept import KeptFiles
from shuffledp.cli.output import facts, next_steps, print_json, show

NO_PICTURE = "cannot be drawn: the answer is a number"


def answer_numbers(
    asked: Asked,
    file: Path,
    column: str | None,
    columns: str | None,
    *,
    out: Path | None,
    csv: Path | None,
    as_json: bool,
    **how: Any,
) -> None:
    """Answer from a file by the plan that is asked for, keep the answer and print it.

    Args:
        asked: the plan, or the options of one.
        file: a row a person.
        column: the column of values.
        columns: several of them, where a value has several numbers.
        out: where the answer's document is kept; by groups, or its picture.
        csv: where its table is kept.
        as_json: whether a program reads what is printed.
        **how: clip, fast, seed, with_truth and engine, as `answered` takes them.
    """
    # Several groups have a picture.
    no_picture = "" if asked.whose.get("by") else NO_PICTURE
    kept = KeptFiles.at(out=out, csv=csv, reads=(file, *asked.reads), no_picture=no_picture)
    tell_numbers(answered(asked, file, column, columns, shown=not as_json, **how), kept, as_json=as_json)


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
