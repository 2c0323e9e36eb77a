"""A campaign on both desks, in memory: devices talk to them as over HTTP, and nothing else is in between.

Records are SQLite's without a file: repeated small campaigns take a moment each.
"""

import sqlite3
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import httpx

from harness.world import open_here
from shuffledp.randomness import RandomBits
from shuffledp.service.analyzer.desk import AnalyzerDesk
from shuffledp.service.campaign import Campaign
from shuffledp.service.crypto import PrivateKey, SigningKey
from shuffledp.service.device import Device
from shuffledp.service.problems import RefusedError
from shuffledp.service.server import Served
from shuffledp.service.shuffler.desk import ShufflerDesk
from shuffledp.service.store.sqlite import analyzer as analyzer_store
from shuffledp.service.store.sqlite import shuffler as shuffler_store
from shuffledp.service.store.sqlite.engine import StoreConnection
from shuffledp.service.store.sqlite.redeeming import LATER
from shuffledp.service.wire import SentReport, split_single_body

BITS = RandomBits.secure()
TOKEN = "t" * 64


def _memory(schema: str) -> sqlite3.Connection:
    connection = sqlite3.connect(":memory:", isolation_level=None, factory=StoreConnection)
    connection.executescript(schema)
    return connection


@dataclass
class LiveCampaign(httpx.BaseTransport):
    """One run of a campaign: what its devices send is sealed, delivered and read as soon as a batch is full."""

    campaign: Campaign
    key: PrivateKey
    signing: SigningKey
    make_device: Callable[..., Device] = Device
    clients: tuple[httpx.Client, ...] = field(init=False)

    def __post_init__(self) -> None:
        self.clients = (httpx.Client(transport=self), httpx.Client(transport=self))
        campaign = self.campaign
        self.front: Any = shuffler_store.SqliteShufflerRecords(_memory(shuffler_store.SCHEMA + LATER))
        schema = analyzer_store.SCHEMA + analyzer_store.LATER
        self.back: Any = analyzer_store.SqliteAnalyzerRecords(_memory(schema))
        rounds = Served({}, campaign.round_of_id)
        routings = Served({}, lambda task_id: (found := campaign.round_of_id(task_id)) and found.routing)
        self.shuffler = ShufflerDesk(routings, BITS)
        self.analyzer = AnalyzerDesk(rounds, {campaign.id: campaign}, self.signing)
        self.back.add_task(campaign.id, campaign.text)
        self.analyzer.open_campaign(self.back, campaign)

    def device(self) -> Device:
        """Another person's device."""
        http, models_http = self.clients
        urls = {"shuffler": "http://localhost", "analyzer": "http://localhost"}
        return self.make_device(self.campaign, **urls, token=TOKEN, http=http, models_http=models_http, patience=0.0)

    @property
    def state(self) -> Any:
        """Where the learner stands."""
        kept = self.back.state(self.campaign.id)
        learner = self.campaign.learner
        return learner.start() if kept is None else learner.resume(kept["learner"])

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        parts = request.url.path.split("/")
        if parts[2] == "campaigns":
            return httpx.Response(200, json=self.back.last_model(self.campaign.id).document())
        task_id, what = parts[3], parts[4]
        self.front.add_task(task_id, "")
        try:
            if what == "seats":
                seat = self.shuffler.take_seat(self.front, task_id, int(request.url.params["slots"]))
                return httpx.Response(201, json={"seats": [seat.document()]})
            seat_id, body = split_single_body(request.read())
            [answer] = self.shuffler.accept(self.front, task_id, [SentReport(parts[5], seat_id, body)])
        except RefusedError as refused:
            return httpx.Response(refused.kind.status, json=refused.document())
        assert not isinstance(answer, RefusedError), answer
        for _, batch_id in self.front.full_batches():
            self._release(task_id, batch_id)
        return httpx.Response(201, json={"new": True})

    def _release(self, task_id: str, batch_id: str) -> None:
        body = self.shuffler.full_batch(self.front, task_id, batch_id)
        pieces = self.shuffler.permuted_batch(task_id, self.shuffler.peeled(task_id, batch_id, body).body)
        assert self.shuffler.seal(self.front, task_id, batch_id, pieces)
        body = self.front.sealed(task_id, batch_id)
        assert self.analyzer.deliver(self.back, task_id, batch_id, body)
        self.analyzer.read(self.back, task_id, batch_id, open_here(self.key, body, task_id, batch_id))
