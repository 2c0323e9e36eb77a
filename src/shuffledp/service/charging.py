"""What tasks and campaigns cost their population, and a ledger that is charged before one is served."""

from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

from shuffledp.accounting.ledger import Ledger
from shuffledp.accounting.spending import Entry
from shuffledp.learn.live.described import described
from shuffledp.protocols.ledger_entries import entry_of
from shuffledp.service.campaign import Campaign
from shuffledp.service.task import Task


def entry_of_served(served: Task | Campaign) -> Entry:
    """What a task or a campaign costs its population, under a name that is its own.

    >>> from shuffledp import BinarySum, Privacy, RandomBits
    >>> from shuffledp.service.crypto import PrivateKey
    >>> plan = BinarySum.plan(users=100, privacy=Privacy(1, 1e-6), method="coins")
    >>> task = Task.create(plan, PrivateKey.generate().public, bits=RandomBits.secure())
    >>> entry_of_served(task).description == f"task {task.id[:12]}: binary-sum by coins"
    True
    """
    if isinstance(served, Campaign):
        entry = described(served.learner).entry
        return replace(entry, description=f"campaign {served.id[:12]}: {entry.description}")
    entry = entry_of(served.plan, datetime.now(UTC))
    return replace(entry, description=f"task {served.id[:12]}: {entry.description}")


def charge(ledger: Path, served: Task | Campaign) -> bool:
    """Spend what a task or a campaign costs from a budget, once; answers whether it was charged now.

    One that was charged before, when it was created perhaps, is not charged again.

    Args:
        ledger: the population's budget.
        served: what is about to be served.

    Raises:
        InfeasibleError: it would pass the budget; nothing is written.
    """
    return Ledger.load(ledger).spend_once(entry_of_served(served))
