"""Options as they can be typed again."""

import shlex
from pathlib import Path
from typing import TYPE_CHECKING

from shuffledp.privacy import Privacy

if TYPE_CHECKING:
    from shuffledp.protocols.plan import Plan
    from shuffledp.tables.reading import Reading


def target_options(privacy: Privacy) -> str:
    """An epsilon and a delta as they are typed."""
    return f"--epsilon {privacy.epsilon!r} --delta {privacy.delta!r}"


def data_options(file: Path, column: str | None, reading: "Reading | None" = None) -> str:
    """A file, its column and how it is read, as they are typed."""
    named = "" if column is None else f"--column {shlex.quote(column)}"
    return " ".join(filter(None, (shlex.quote(str(file)), named, "" if reading is None else reading.options)))


def own_columns(plan: "Plan") -> str:
    """How the columns of somebody's own file are named."""
    domain = plan.domain
    values = "--columns A,B,C" if domain.row.is_row else "--column C"
    whose = "" if domain.most_rows is None else " --user U"
    return values + whose + ("" if domain.group_list is None else " --by G")


def plan_options(plan: "Plan", max_messages: int | None = None, values: str | None = None) -> str:
    """The options that make this plan again; those for the values as they were typed, if that is known."""
    words = [f"--users {plan.users} {target_options(plan.privacy)}", plan.options if values is None else values]
    words.append(f"--method {plan.method}")
    if max_messages is not None:
        words.append(f"--max-messages {max_messages}")
    if plan.honest_fraction != 1:
        words.append(f"--honest-fraction {plan.honest_fraction!r}")
    if plan.constants != "exact":
        words.append(f"--constants {plan.constants}")
    return " ".join(word for word in words if word)
