"""A campaign on PostgreSQL: rounds served by a process that was not given it, rounds that are dropped, models kept."""

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from harness.postgresql import Server
from shuffledp.errors import DataError
from shuffledp.learn.bandits.arms.fixed_batches import FixedBatches
from shuffledp.privacy import Privacy
from shuffledp.randomness import RandomBits
from shuffledp.service.analyzer.replaying import replay
from shuffledp.service.campaign import Campaign
from shuffledp.service.device import Device
from shuffledp.service.models import unchecked_model
from shuffledp.service.rounds import split_round
from shuffledp.service.shuffler.app import shuffler_app
from shuffledp.service.shuffler.server import ShufflerServer
from shuffledp.service.store import inspect_store, look_into_analyzer, open_shuffler_store

USERS, BATCH = 40, 10


def test_a_campaign_is_served_by_a_process_that_was_not_given_it_and_a_round_is_dropped(
    postgresql: Server, tmp_path: Path, make_service: Callable[..., Any], set_clock: Any
) -> None:
    schemas = {role: postgresql.new_schema() for role in ("shuffler", "analyzer")}
    set_clock.time = time.time()
    service = make_service(
        address=lambda role: postgresql.address(tmp_path / "keys", schemas[role]), clock=set_clock.now
    )
    # The second was running before the campaign was given to the first; devices come to the second.
    front = open_shuffler_store(service.address("shuffler"))
    second = ShufflerServer(front, post=service._post, clock=set_clock.now)
    service.apps["shuffler"] = shuffler_app(second, service.tokens)
    learner = FixedBatches(arms=2, horizon=USERS, privacy=Privacy(4, 1e-2), batch=BATCH, method="coins")
    options: dict[str, Any] = {"bits": RandomBits.secure(), "allow_unbounded": True, "drop_after": 100.0}
    campaign = service.add(Campaign.create(learner, service.key.public, service.signing.public, **options))
    rng = np.random.default_rng(3)

    def come(count: int) -> list[str]:
        said = []
        servers = {"shuffler": "http://localhost", "analyzer": "http://localhost"}
        for _ in range(count):
            own = {"http": service.at("shuffler", "enrol"), "models_http": service.at("analyzer")}
            device = Device(campaign, **servers, **own, token=service.tokens.secrets["enrol"])
            choice = device.choose()
            said.append(device.reward(choice, bool(rng.random() < (0.2, 0.8)[choice.offer])).status)
            service.work()
        return said

    def rounds(name: str) -> list[int]:
        return sorted(split_round(each)[1] for each in front.read(lambda inside: getattr(inside, name)()))

    assert come(BATCH) == ["reported"] * BATCH and rounds("sealed_tasks") == [0] and second.knows(campaign.id)
    # The next round does not fill: the analyzer goes on, and when a later one was sealed its reports go.
    assert come(3) == ["reported"] * 3 and rounds("open_tasks") == [BATCH]
    set_clock.time += 200.0
    assert service.analyzer.drop_late() == 1
    assert come(BATCH) == ["reported"] * BATCH and rounds("sealed_tasks") == [0, 2 * BATCH]
    service.work()
    assert rounds("open_tasks") == []
    models = [unchecked_model(model) for model in service.analyzer.models(campaign.id, -1, 100)]
    assert [model.number for model in models] == list(range(len(models))) and len(models) == 4
    progress = service.analyzer.progress(campaign.id)
    totals = service.analyzer._store.read(lambda inside: inside.all_totals(campaign.id))
    assert progress.batches_read == progress.batches_received == len(totals) >= 2
    # What is on disk makes the same models, read beside the server that holds the store.
    analyzers = service.address("analyzer")
    assert inspect_store(analyzers).is_analyzers and not inspect_store(service.address("shuffler")).is_analyzers
    replayed = look_into_analyzer(analyzers, lambda records: replay(records, campaign))
    assert replayed is not None
    with pytest.raises(DataError, match="must be an analyzer's"):
        look_into_analyzer(service.address("shuffler"), lambda records: None)
    second.stop()
