"""A population's budget, live: what would pass it is not served, and nothing is charged twice."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from harness.world import OpenerHere
from shuffledp.accounting.ledger import Ledger
from shuffledp.errors import InfeasibleError
from shuffledp.learn.bandits.arms.fixed_batches import FixedBatches
from shuffledp.privacy import Privacy
from shuffledp.protocols.binary_sum import BinarySum
from shuffledp.randomness import RandomBits
from shuffledp.service.analyzer.server import AnalyzerServer
from shuffledp.service.campaign import Campaign
from shuffledp.service.crypto import PrivateKey, SigningKey
from shuffledp.service.store import open_analyzer_store
from shuffledp.service.task import Task

PLAN = BinarySum.plan(users=30, privacy=Privacy(2, 1e-3), method="rr")


@pytest.fixture
def signing() -> SigningKey:
    return SigningKey.generate()


@pytest.fixture
def make_analyzer(tmp_path: Path, key: PrivateKey, signing: SigningKey) -> Any:
    made: list[AnalyzerServer] = []

    def make(name: str = "a.db") -> AnalyzerServer:
        store = open_analyzer_store(tmp_path / name)
        ledger = tmp_path / "panel.json"
        made.append(AnalyzerServer(store, key=key, opener=OpenerHere(key), signing=signing, ledger=ledger))
        return made[-1]

    yield make
    for server in made:
        server.stop()


def spent(path: Path) -> list[str]:
    return [entry.description.partition(":")[0] for entry in Ledger.load(path / "panel.json").account.entries]


def test_what_would_pass_the_budget_is_not_served(
    make_analyzer: Callable[..., AnalyzerServer], tmp_path: Path, key: PrivateKey, signing: SigningKey
) -> None:
    Ledger.open(tmp_path / "panel.json", "panel", Privacy(4.2, 3e-3))
    server = make_analyzer()
    tasks = [Task.create(PLAN, key.public, bits=RandomBits.secure()) for _ in range(2)]
    policy = FixedBatches(arms=2, horizon=60, privacy=Privacy(2, 1e-3), batch=30, method="coins")
    campaign = Campaign.create(policy, key.public, signing.public, bits=RandomBits.secure())
    assert server.add_task(tasks[0].text)[1] and server.add_task(campaign.text)[1]
    with pytest.raises(InfeasibleError, match="budget"):
        server.add_task(tasks[1].text)
    assert tasks[1].id not in server.tasks
    assert spent(tmp_path) == [f"task {tasks[0].id[:12]}", f"campaign {campaign.id[:12]}"]
    # Served already, here or after a restart: not charged again.
    assert not server.add_task(tasks[0].text)[1]
    server.stop()
    again = make_analyzer()
    assert not again.add_task(campaign.text)[1] and len(spent(tmp_path)) == 2


def test_what_was_charged_when_it_was_created_is_not_charged_again(
    make_analyzer: Callable[..., AnalyzerServer], tmp_path: Path, key: PrivateKey
) -> None:
    """Nor is one that a server was about to serve when it died, after charging it."""
    from shuffledp.service.charging import charge

    Ledger.open(tmp_path / "panel.json", "panel", Privacy(2.1, 2e-3))
    task = Task.create(PLAN, key.public, bits=RandomBits.secure())
    assert charge(tmp_path / "panel.json", task)
    assert make_analyzer().add_task(task.text)[1] and len(spent(tmp_path)) == 1
