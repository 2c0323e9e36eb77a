"""An analyzer with a few small tasks, a campaign and its page; releases are written as the analyzer writes them."""

import asyncio
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any

import httpx
import pytest
from starlette.applications import Starlette

from harness.campaigns import some_arms
from harness.names import HOSTILE
from harness.world import OpenerHere
from shuffledp import BinarySum, Histogram, Privacy, RandomBits
from shuffledp.continual.plan import CounterPlan
from shuffledp.dashboard.access import Access
from shuffledp.dashboard.app import with_dashboard
from shuffledp.dashboard.fills import FillWatch
from shuffledp.service.analyzer.app import analyzer_app
from shuffledp.service.analyzer.server import AnalyzerServer
from shuffledp.service.campaign import Campaign
from shuffledp.service.crypto import PrivateKey, SigningKey
from shuffledp.service.fill import Fill
from shuffledp.service.models import signed, unchecked_model
from shuffledp.service.serving import LOOPBACK, Address, uvicorn_server
from shuffledp.service.store import open_analyzer_store
from shuffledp.service.store.contract import Release
from shuffledp.service.task import Task
from shuffledp.service.tokens import Tokens


@dataclass(frozen=True)
class Here(httpx.BaseTransport):
    """Hands requests to an application without a socket."""

    app: Starlette

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        body = request.read()

        async def answer() -> httpx.Response:
            copy = httpx.Request(request.method, request.url, headers=request.headers.raw, content=body)
            found = await httpx.ASGITransport(self.app).handle_async_request(copy)
            return httpx.Response(found.status_code, headers=found.headers.raw, content=await found.aread())

        return asyncio.run(answer())


def browser(app: Starlette, address: str) -> httpx.Client:
    """What keeps cookies and follows nothing by itself."""
    return httpx.Client(transport=Here(app), base_url=address)


@dataclass
class Analyzer:
    """An analyzer that tests release for."""

    server: AnalyzerServer
    tokens: Tokens
    signing: SigningKey
    served: dict[str, Any] = field(default_factory=dict)

    def release(self, name: str, time: int, estimate: Any, *, bound: float = 7.5) -> None:
        """Publish an estimate of the first so many people."""
        made = Release(time, estimate, 3.0, bound, 0.95, 2, 0)
        self.server._store.write(lambda records: records.add_release(self.served[name].id, made))

    def learn(self) -> None:
        """Publish the campaign's next model."""
        campaign = self.served["campaign"]
        last = unchecked_model(self.server.newest_model(campaign.id))
        model = replace(last, number=last.number + 1, estimate={"means": [0.25, None], "active": [0, 1], "width": 0.5})
        text = signed(model, self.signing)
        self.server._store.write(lambda records: records.add_model(campaign.id, model.number, text))
        self.server._remember_newest(campaign.id)

    def app(self, access: Access | None = None, **more: Any) -> Starlette:
        """The application with its page; without an access it is this machine's own."""
        found = access or Access(self.tokens, is_open=True, is_secure=False)
        return with_dashboard(analyzer_app(self.server, self.tokens), found, **more)

    def filled(self, task_id: str) -> Fill:
        """What a shuffler might say of a task or a round: all levels are about 4 tenths full, but for the last."""
        owner, *number = task_id.split(".")
        found = next(each for each in self.served.values() if each.id == owner).routing
        routing = found.layouts[int(number[1])] if number else found
        return Fill((*[4] * (len(routing.sizes_by_level) - 1), 10))

    def open(self, **more: Any) -> httpx.Client:
        """A browser on the machine itself."""
        return browser(self.app(**more), "http://127.0.0.1:8002")

    def far(self, **more: Any) -> httpx.Client:
        """A browser elsewhere, by TLS."""
        access = Access(self.tokens, is_open=False, **more)
        return browser(self.app(access), "https://analyzer.example")


@pytest.fixture(scope="session")
def analyzer(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Analyzer]:
    """One analyzer for all tests of the page: most only look."""
    key, signing, bits = PrivateKey.generate(), SigningKey.generate(), RandomBits.secure()
    store = open_analyzer_store(str(tmp_path_factory.mktemp("page") / "analyzer.db"))
    server = AnalyzerServer(store, key=key, opener=OpenerHere(key), signing=signing)
    found = Analyzer(server, Tokens.generate(bits=bits), signing)
    privacy = Privacy(4, 1e-2)
    plans = {
        "count": BinarySum.plan(users=20, privacy=privacy, method="coins"),
        "running": CounterPlan.plan(users=30, shufflers=2, privacy=privacy, noise="coins"),
        "histogram": Histogram.plan(users=40, privacy=privacy, categories=list(HOSTILE), method="decoys"),
        "empty": BinarySum.plan(users=21, privacy=privacy, method="coins"),
        "moving": CounterPlan.plan(users=300, shufflers=2, privacy=privacy, noise="coins"),
    }
    for name, plan in plans.items():
        found.served[name] = Task.create(plan, key.public, bits=bits, allow_unbounded=True)
        server.add_task(found.served[name].text)
    campaign = Campaign.create(some_arms(), key.public, signing.public, bits=bits, allow_unbounded=True)
    found.served["campaign"] = campaign
    server.add_task(campaign.text)
    found.release("count", 20, 12.25)
    for people in (3, 9, 15):
        found.release("running", people, people / 2)
    found.release("histogram", 40, [float(place) for place in range(len(HOSTILE))])
    found.learn()
    yield found
    server.stop()


@contextmanager
def on_a_port(app: Starlette) -> Iterator[str]:
    """The application on a port of this machine, without its chores; answers its address."""
    with Address(port=0).taken() as sockets:
        port = sockets[0].getsockname()[1]
        server = uvicorn_server(app, Address(port=port), lifespan="off")
        server.is_told = True
        thread = threading.Thread(target=server.run, args=(sockets,))
        thread.start()
        try:
            address = f"http://{LOOPBACK}:{port}"
            deadline = time.monotonic() + 30
            while not server.started:
                assert time.monotonic() < deadline
                time.sleep(0.01)
            yield address
        finally:
            server.should_exit = server.force_exit = True
            thread.join()


@pytest.fixture(scope="session")
def a_port() -> Any:
    """Puts an application on a port."""
    return on_a_port


@pytest.fixture(scope="session")
def address(analyzer: Analyzer) -> Iterator[str]:
    """Where a real server answers, which is told how full batches are."""
    with on_a_port(analyzer.app(fills=FillWatch(analyzer.filled, begin=lambda work: work()))) as url:
        assert httpx.get(f"{url}/healthz").status_code == 200
        yield url
