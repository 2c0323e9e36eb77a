"""What an estimate from files costs a population: charged once for the same messages, before they are counted."""

from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

from shuffledp.accounting.ledger import Ledger
from shuffledp.protocols.ledger_entries import entry_of
from shuffledp.protocols.plan import Plan
from shuffledp.service.charging import entry_of_served
from shuffledp.service.task import Task


def charge_data(ledger: Path, asked: Task | Plan, messages: str) -> bool:
    """Spend what the messages of a data set cost; answers whether it was charged now.

    The same messages counted again by the same plan tell nothing new. Others do, also of a task that was charged
    before: people who are asked twice pay twice.

    Args:
        ledger: the population's budget.
        asked: what the people were asked.
        messages: what tells their messages from others, as `shuffledp.jobs.analyzing.name_of` has it.

    Raises:
        InfeasibleError: it would pass the budget; nothing is written.
    """
    entry = entry_of_served(asked) if isinstance(asked, Task) else entry_of(asked, datetime.now(UTC))
    entry = replace(entry, description=f"messages {messages[:16]}: {entry.description}")
    return Ledger.load(ledger).spend_once(entry)
