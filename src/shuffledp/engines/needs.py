"""How much memory a run takes, said before it starts: from the plan's own numbers and what a row takes to read."""

from shuffledp.engines.sources import Source
from shuffledp.protocols.plan import Plan

INTERPRETER = 125 << 20
"""What a process takes before it has any data, with everything that is imported."""

# Messages that a task holds, made and waiting to be tallied, and what one of them takes while it is made.
_WAITING, _MESSAGE = 5 << 18, 32
# How many tallies a task holds at once, and the process that merges them and estimates from the last.
_IN_A_TASK, _AT_THE_END = 3, 8


def bytes_needed(plan: Plan, source: Source, tasks: int, *, fast: bool = False) -> int:
    """About how many bytes all processes take together that run a plan in pieces.

    Args:
        plan: one whose people may come in pieces.
        source: where their values come from.
        tasks: how many are worked on at once; the process that merges is another one where they are several.
        fast: whether the answer is drawn from its law.
    """
    tally = plan.summary_bytes if fast else plan.tally_bytes
    reading = max(source.unit, 1 << 16) * source.row_bytes
    made = 0 if fast else _WAITING * _MESSAGE + plan.user_bytes
    task = reading + made + _IN_A_TASK * tally
    held = source.rows * source.row_bytes if source.is_held else 0
    if tasks == 1:
        return INTERPRETER + held + task + _AT_THE_END * tally
    # What tasks leave waits to be merged, as it was sent and as it was read.
    return (tasks + 1) * INTERPRETER + held + tasks * task + (_AT_THE_END + 2 * (tasks + 1)) * tally


def bytes_at_once(plan: Plan, values: int, *, fast: bool = False) -> int:
    """About how many bytes a run takes in which everything is held at once, in one process.

    Args:
        plan: any plan.
        values: bytes of everybody's values.
        fast: whether the answer is drawn from its law.
    """
    return INTERPRETER + 3 * values + (8 * plan.summary_bytes if fast else plan.held_bytes + 8 * plan.tally_bytes)
