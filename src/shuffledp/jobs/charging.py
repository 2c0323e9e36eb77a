"""What an estimate from files costs a population: charged once for the same messages, before they are counted."""

from dataclasses import replace
from pathlib import Path

from shuffledp.accounting.ledger import Entry, Ledger


def charge_data(ledger: Path, asked: Entry, messages: str) -> bool:
    """Spend what the messages of a data set cost; answers whether it was charged now.

    The same messages counted again by the same plan tell nothing new. Others do, also of a task that was charged
    before: people who are asked twice pay twice.

    Args:
        ledger: the population's budget.
        asked: what the people were asked, as a ledger has it.
        messages: what tells their messages from others, as `shuffledp.jobs.analyzing.name_of` has it.

    Raises:
        InfeasibleError: it would pass the budget; nothing is written.
    """
    entry = replace(asked, description=f"messages {messages[:16]}: {asked.description}")
    return Ledger.load(ledger).spend_once(entry)
