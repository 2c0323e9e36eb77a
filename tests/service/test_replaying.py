"""Models computed again from what their batches said: true ones pass, and every kind of wrong one is found."""

import json
import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from shuffledp import Privacy, RandomBits
from shuffledp.continual.plan import CounterPlan
from shuffledp.learn.bandits.arms.fixed_batches import FixedBatches
from shuffledp.service.analyzer.replaying import RefutedError, Replayed, replay
from shuffledp.service.campaign import Campaign
from shuffledp.service.crypto import SigningKey
from shuffledp.service.device import Device
from shuffledp.service.models import Model, signed, unchecked_model
from shuffledp.service.store import inspect_store, look_into_analyzer
from shuffledp.service.wire import SignedText

BATCH = 5
# Neither arm is dropped, but for a chance of 1e-9.
ARMS = FixedBatches(arms=2, horizon=40, privacy=Privacy(4, 1e-2), batch=BATCH, method="coins", failure=1e-9)
COUNT = CounterPlan.plan(users=20, shufflers=2, privacy=Privacy(4, 1e-2), noise="coins").learner()


class Run:
    """A campaign with both servers, and people who come to it."""

    earlier: str
    """The learner's state before the last batch."""

    def __init__(self, service: Any, learner: Any, **more: Any) -> None:
        self.service = service
        keys = service.key.public, service.signing.public
        self.campaign = Campaign.create(learner, *keys, bits=RandomBits.secure(), **more)
        service.add(self.campaign)

    def come(self, people: int, act: Callable[[Device], object]) -> None:
        for _ in range(people):
            token = self.service.tokens.secrets["enrol"]
            http = {"http": self.service.at("shuffler"), "models_http": self.service.at("analyzer")}
            where = {"shuffler": "http://localhost", "analyzer": "http://localhost"}
            act(Device(self.campaign, **where, token=token, clock=self.service.clock, **http))
            self.service.work()

    @property
    def file(self) -> Path:
        return self.service.folder / "analyzer.db"

    def stored_state(self) -> str:
        return json.dumps(look_into_analyzer(self.file, lambda records: records.state(self.campaign.id)))

    def replayed(self) -> Replayed:
        """Beside the server, which holds the store."""
        return look_into_analyzer(self.file, lambda records: replay(records, self.campaign))

    def change(self, query: str, *values: Any) -> None:
        with sqlite3.connect(self.file) as database:
            assert database.execute(query, values).rowcount == 1
        database.close()

    def forge(self, place: int, key: SigningKey, **fields: Any) -> None:
        """Put a model with other fields in the place of one, signed by this key."""
        found = look_into_analyzer(self.file, lambda records: records.model(self.campaign.id, place))
        document = {**unchecked_model(found).document(), **fields}
        made: SignedText = signed(Model.from_document(document), key)
        self.change("UPDATE models SET text = ?, signature = ? WHERE number = ?", made.text, made.signature, place)


def pull(device: Device) -> None:
    choice = device.choose()
    device.reward(choice, 1)


@pytest.fixture
def arms(make_service: Callable[..., Any], set_clock: Any, in_the_clear: None) -> Run:
    """Two batches that were read, one round that was dropped, and another batch."""
    run = Run(make_service(clock=set_clock.now), ARMS, drop_after=60.0)
    run.come(2 * BATCH + 2, pull)
    set_clock.time += 61
    assert run.service.analyzer.drop_late() == 1
    run.earlier = run.stored_state()
    run.come(BATCH, pull)
    return run


def test_true_models_are_what_their_batches_say(arms: Run) -> None:
    assert inspect_store(arms.file).is_analyzers
    before = arms.file.read_bytes()
    found = arms.replayed()
    assert (found.models, found.dropped, found.void) == (5, 1, 0)
    assert found.state["users"] == 4 * BATCH and arms.file.read_bytes() == before


def test_a_running_sum_and_a_campaign_that_nobody_came_to(make_service: Any, in_the_clear: None) -> None:
    run = Run(make_service(), COUNT)
    assert run.replayed().models == 1
    run.come(20, lambda device: device.report(1))
    assert run.replayed().models > 2 and run.replayed().state["users"] == 20


def test_whatever_is_wrong_is_found(arms: Run) -> None:
    genuine, stranger = arms.service.signing, SigningKey.generate()
    kept = sqlite3.connect(arms.file)
    copy = sqlite3.connect(":memory:")
    kept.backup(copy)
    where = "WHERE task_id LIKE '%.0.%'"
    total = json.loads(kept.execute(f"SELECT total FROM batches {where}").fetchone()[0])
    # Zeros for ones: of 15 messages there are never as many of the one as of the other.
    moved = json.dumps({**total, "counts": total["counts"][::-1]})
    newest = unchecked_model(arms.service.analyzer.newest_model(arms.campaign.id))
    other = {"name": "pull", "parameters": {"arm": 1 - newest.step.parameters["arm"]}}
    estimate = {"means": [0.123, None], "active": [0, 1], "width": None}

    def lose_the_last() -> None:
        arms.change("DELETE FROM models WHERE number = 4")
        arms.change("UPDATE tasks SET state = ?", arms.earlier)

    wrong: list[tuple[str, Callable[[], None]]] = [
        ("another estimate", lambda: arms.change(f"UPDATE batches SET total = ? {where}", moved)),
        ("another estimate", lambda: arms.forge(1, genuine, estimate=estimate)),
        ("another step", lambda: arms.forge(4, genuine, step=other)),
        ("a wrong signature", lambda: arms.forge(2, stranger)),
        ("number 7", lambda: arms.forge(2, genuine, number=7)),
        ("model 1 must be there", lambda: arms.change("DELETE FROM models WHERE number = 1")),
        ("after 3 releases", lambda: arms.change("DELETE FROM models WHERE number = 4")),
        ("must have one more", lose_the_last),
        ("after 4 releases", lambda: arms.change("UPDATE tasks SET state = ?", arms.earlier)),
        ("after 4 releases", lambda: arms.change("UPDATE tasks SET state = NULL")),
        # As if the round had been dropped: then its model would say nothing of it.
        ("what the released batches make it", lambda: arms.change(f"DELETE FROM batches {where}")),
    ]
    for words, break_it in wrong:
        arms.replayed()
        break_it()
        with pytest.raises(RefutedError, match=words):
            arms.replayed()
        copy.backup(kept)
    kept.close()
    copy.close()


def test_a_campaign_that_waits_drops_nothing(make_service: Any, in_the_clear: None) -> None:
    run = Run(make_service(), ARMS)
    run.come(BATCH, pull)
    run.change("DELETE FROM batches")
    with pytest.raises(RefutedError, match="must rest on batches that were read"):
        run.replayed()
