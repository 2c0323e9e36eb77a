"""Learners behind the live service: regret of live runs beside simulated ones, devices and models a second, fetching.

Servers and clients run in processes of their own. With real encryption a person of the running example (d 5) costs
about a thousand ciphertexts, so that `--users` people are few by default; `--clear` people come in another run with
every ciphertext replaced by its message and 48 zeros, which changes no law: only that row is without encryption.
"""

import argparse
import json
import multiprocessing
import signal
import statistics
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import httpx
import numpy as np
from report import figure, report, shown

from service import SPAWN, Load, _Connection, served
from shuffledp import Privacy, RandomBits
from shuffledp.cli.demo_people import Doors, shared_out
from shuffledp.learn.bandits.linear.concurrent import ConcurrentLinUCB
from shuffledp.learn.bandits.linear.policy import LinearState
from shuffledp.learn.bandits.linear.setting import LinearSetting
from shuffledp.protocols.learner import DeviceStep
from shuffledp.references.bandits.catalogue import linear_policy
from shuffledp.references.bandits.linucb import LinUCB
from shuffledp.service import crypto
from shuffledp.service.analyzer.app import analyzer_app
from shuffledp.service.analyzer.opening import Opener
from shuffledp.service.analyzer.server import AnalyzerServer
from shuffledp.service.campaign import Campaign
from shuffledp.service.client.client import Client
from shuffledp.service.client.making import make_reports
from shuffledp.service.crypto import PrivateKey, SigningKey
from shuffledp.service.device import Device
from shuffledp.service.models import Model, OpenRound, signed, unchecked_model
from shuffledp.service.serving import Address, uvicorn_server
from shuffledp.service.shuffler.app import shuffler_app
from shuffledp.service.shuffler.sending import post_to
from shuffledp.service.shuffler.server import ShufflerServer
from shuffledp.service.store import open_analyzer_store, open_shuffler_store
from shuffledp.service.task import Task
from shuffledp.service.tokens import Tokens
from shuffledp.service.wire import CIPHERTEXT_BYTES, SignedText, Unpacked, unpack_messages
from shuffledp.simulation.environments.linear_runs import run_linear_bandit
from shuffledp.simulation.environments.linear_worlds import FixedArms
from shuffledp.simulation.environments.two_topics import Readers, TwoTopics

CLIENTS = 2
# As in Figure 1 of the paper on linear bandits.
ARMS, DIMENSION, DELTA, BATCH = 100, 5, 0.1, 20
SIMULATIONS = 200
DEVICES, CONNECTIONS = 10_000, 200


# --- without encryption ----------------------------------------------------------------------


class InTheClear:
    """Messages as long as ciphertexts that anybody can read."""

    def encrypt(self, message: bytes, key: Any, info: bytes) -> bytes:
        return bytes(32) + message + bytes(16)


class OpenerInTheClear:
    def open(self, body: bytes, task_id: str, batch_id: str) -> Unpacked:
        rows = np.frombuffer(body, dtype=np.uint8).reshape(-1, CIPHERTEXT_BYTES)
        return unpack_messages(rows[:, 32:-16].tobytes())

    def close(self) -> None:
        pass


def begin(clear: bool) -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    if clear:
        crypto._SUITE = InTheClear()


# --- servers ---------------------------------------------------------------------------------


def serve_analyzer(port: int, folder: Path, texts: list[str], tokens: Tokens, keys: Any, clear: bool) -> None:
    key, signing = keys
    opener = OpenerInTheClear() if clear else Opener(key, processes=2)
    store = open_analyzer_store(folder / f"analyzer-{port}.db")
    server = AnalyzerServer(store, key=key, opener=opener, signing=signing)
    for text in texts:
        server.add_task(text)
    uvicorn_server(analyzer_app(server, tokens), Address(port=port)).run()


def serve_shuffler(port: int, folder: Path, texts: list[str], tokens: Tokens, analyzer: str) -> None:
    store = open_shuffler_store(folder / f"shuffler-{port}.db")
    server = ShufflerServer(store, post=post_to(analyzer, tokens.secrets["hop"]), lease_seconds=3600.0)
    for text in texts:
        server.add_task(text)
    uvicorn_server(shuffler_app(server, tokens), Address(port=port)).run()


@dataclass(frozen=True)
class Live:
    """Both servers, and the campaign or the task that they serve."""

    asked: Campaign | Task
    analyzer: str
    shuffler: str
    tokens: Tokens

    @property
    def doors(self) -> Doors:
        return Doors(self.asked.text, self.shuffler, self.analyzer, self.tokens.secrets["enrol"])

    def read(self, path: str) -> dict:
        headers = {"Authorization": f"Bearer {self.tokens.secrets['read']}"}
        return httpx.get(self.analyzer + path, headers=headers, timeout=60).raise_for_status().json()

    def wait(self, done: Any) -> None:
        ends = time.monotonic() + 300
        while not done():
            if time.monotonic() > ends:
                raise SystemExit("the analyzer does not come to an end")
            time.sleep(0.05)

    def newest(self) -> SignedText:
        return SignedText.from_document(self.read(f"/v1/campaigns/{self.asked.id}/models/newest"))


@contextmanager
def live(make: Any, clear: bool = False) -> Iterator[Live]:
    """Servers of what `make` makes of the two public keys."""
    key, signing, bits = PrivateKey.generate(), SigningKey.generate(), RandomBits.secure()
    tokens, asked = Tokens.generate(bits=bits), make(key.public, signing.public, bits)
    with (
        tempfile.TemporaryDirectory() as name,
        served(serve_analyzer, Path(name), [asked.text], tokens, (key, signing), clear) as back,
        served(serve_shuffler, Path(name), [asked.text], tokens, f"http://127.0.0.1:{back}") as front,
    ):
        yield Live(asked, f"http://127.0.0.1:{back}", f"http://127.0.0.1:{front}", tokens)


def campaign_of(policy: Any) -> Any:
    return lambda key, signing, bits: Campaign.create(policy, key, signing, bits=bits, allow_unbounded=True)


# --- regret ----------------------------------------------------------------------------------


@dataclass(frozen=True)
class SameArms:
    """One of the paper's instances, as people of a live run meet it."""

    theta: Any
    features: Any

    def offer(self, users: int, generator: Any) -> Any:
        return np.broadcast_to(self.features, (users, *self.features.shape))

    def means(self, features: Any) -> Any:
        return np.clip(features @ self.theta, 0.0, 1.0)

    def copies(self, count: int) -> FixedArms:
        return FixedArms(np.tile(self.theta, (count, 1)), np.tile(self.features, (count, 1, 1)))


@dataclass(frozen=True)
class Ran:
    regret: float
    seconds: float
    ciphertexts: int
    models: int


def run_live(policy: Any, world: SameArms, clear: bool) -> Ran:
    """Everybody comes; the regret of all of them."""
    users = policy.setting.users
    with (
        live(campaign_of(policy), clear) as both,
        SPAWN.Pool(CLIENTS, initializer=begin, initargs=(clear,)) as pool,
    ):
        pool.map(abs, range(2 * CLIENTS))
        guests = [Readers(world, people) for people in shared_out(users, CLIENTS)]
        together = max(1, policy.slot_users // (4 * CLIENTS))
        started = time.perf_counter()
        coming = [pool.apply_async(both.doors.let_in, (each, together)) for each in guests]
        came = [each.get() for each in coming]
        both.wait(lambda: unchecked_model(both.newest()).number == policy.releases)
        seconds = time.perf_counter() - started
        sent = sum(map(both.asked.routing.layouts[0].report_bytes, range(users))) // CIPHERTEXT_BYTES
    if any((each.models < 0).any() for each in came):
        raise SystemExit("somebody was not asked")
    return Ran(float(sum(each.lost.sum() for each in came)), seconds, sent, policy.releases)


def order(users: int, clear: bool) -> list[dict]:
    """linucb < concurrent-4 < shuffle-vec < local: the middle two live, the outer two simulated in the same world."""
    setting = LinearSetting(users=users, dimension=DIMENSION, nonnegative=True)
    drawn = FixedArms.drawn(1, arms=ARMS, dimension=DIMENSION, generator=np.random.default_rng((1, DIMENSION)))
    world = SameArms(drawn.theta[0], drawn.features[0])
    names = ("linucb", "concurrent-4", "shuffle-vec", "ldp")
    policies = {name: linear_policy(name, setting, Privacy(1, DELTA), batch=BATCH) for name in names}
    simulated = {
        name: run_linear_bandit(policy, world.copies(SIMULATIONS), seed=1).final for name, policy in policies.items()
    }
    ran = {name: run_live(policies[name], world, clear) for name in names[1:3]}
    ours, vec = ran["concurrent-4"], ran["shuffle-vec"]
    words = f"{users:,} people, d {DIMENSION}, epsilon 1, " + ("NOT encrypted" if clear else "encrypted")
    means = {name: float(found.mean()) for name, found in simulated.items()}
    told = ", ".join(f"{name} {mean:,.0f}" for name, mean in means.items())
    place = float((simulated["concurrent-4"] < ours.regret).mean())
    low, high = np.quantile(simulated["concurrent-4"], [0.005, 0.995])
    inside = f"{ours.regret:,.0f} in {low:,.0f} to {high:,.0f}: above {place:.1%} of {SIMULATIONS} simulations"
    each = 1e3 * ours.seconds / users
    cost = (
        f"{ours.ciphertexts:,} ciphertexts, {ours.models} models, {ours.seconds:.0f} s; shuffle-vec {vec.seconds:.0f} s"
    )
    vecs = f"{vec.regret:,.0f}, live"
    return [
        figure(f"{words}: linucb / concurrent-4", means["linucb"] / ours.regret, "<=", 1, f"live {ours.regret:,.0f}"),
        figure(f"{words}: concurrent-4 / shuffle-vec", ours.regret / vec.regret, "<=", 1, f"{vecs}; {told}"),
        figure(f"{words}: shuffle-vec / local", vec.regret / means["ldp"], "<=", 1, f"local {means['ldp']:,.0f}"),
        figure(
            f"{words}: concurrent-4 outside the central 99%", float(not low <= ours.regret <= high), "<=", 0, inside
        ),
        shown(f"{words}: milliseconds a person", each, cost),
    ]


# --- devices and models a second -------------------------------------------------------------


@dataclass
class Fetching:
    """Devices one by one, each with its own fetch, choice, seat and report; or clients of a task without a model."""

    doors: Doors
    people: int
    vectors: Any = None
    late: int = field(default=0)

    def run(self) -> int:
        """How often somebody was late, and came again."""
        with httpx.Client(timeout=60) as http, httpx.Client(timeout=60) as models_http:
            self._devices(http, models_http) if self.vectors is None else self._clients(http)
        return self.late

    def _devices(self, http: httpx.Client, models_http: httpx.Client) -> None:
        campaign, world, generator = Campaign.from_text(self.doors.campaign), TwoTopics(), np.random.default_rng()
        doors, done = self.doors, 0
        reached = {"shuffler": doors.shuffler, "analyzer": doors.analyzer, "token": doors.token}
        while done < self.people:
            with Device(campaign, **reached, http=http, models_http=models_http) as device:
                offers = world.offer(1, generator)
                choice = device.choose(None, offers[0])
                clicked = generator.random() < world.means(offers)[0, choice.offer]
                if device.reward(choice, clicked).is_reported:
                    done += 1
                else:
                    self.late += 1
                    time.sleep(0.02)

    def _clients(self, http: httpx.Client) -> None:
        task = Task.from_text(self.doors.campaign)
        for vector in self.vectors:
            with Client(task, self.doors.shuffler, self.doors.token, http=http) as client:
                client.report_prepared(vector[np.newaxis])


def at_work(both: Live, jobs: list[Fetching], done: Any) -> tuple[float, int]:
    with SPAWN.Pool(CLIENTS, initializer=begin, initargs=(False,)) as pool:
        pool.map(abs, range(2 * CLIENTS))
        started = time.perf_counter()
        coming = [pool.apply_async(job.run) for job in jobs]
        late = sum(each.get() for each in coming)
        both.wait(done)
        return time.perf_counter() - started, late


def devices(users: int) -> list[dict]:
    """The same plan, once with a model that everybody fetches and once as a task; sealed, and read to the end."""
    world = TwoTopics()
    setting = LinearSetting(users=users, dimension=world.dimension, nonnegative=True)
    policy: Any = ConcurrentLinUCB.planned(setting, Privacy(1, 1e-4), shufflers=4)
    # Whole slots: the last model is of everybody.
    users = policy.releases * policy.slot_users
    policy = replace(policy, setting=replace(setting, users=users))
    shares = shared_out(users, CLIENTS)
    with live(campaign_of(policy)) as both:
        jobs = [Fetching(both.doors, people) for people in shares]
        seconds, late = at_work(both, jobs, lambda: unchecked_model(both.newest()).number == policy.releases)
    plain_task = lambda key, signing, bits: Task.create(policy.plan, key, bits=bits, allow_unbounded=True)  # noqa: E731
    with live(plain_task) as both:
        vectors = setting.joint.pack(np.full((users, 2), 0.5), np.ones(users))
        jobs = [Fetching(both.doors, people, vectors[:people]) for people in shares]
        path = f"/v1/tasks/{both.asked.id}"
        slots = policy.releases
        plain, _ = at_work(both, jobs, lambda: both.read(path)["batches_read"] >= slots)
    rate, beside = users / seconds, users / plain
    note = f"{rate:.1f} beside {beside:.1f}; {users} people, {late} times somebody waited for the next model"
    return [figure("devices a second / clients of the same plan without a model", rate / beside, ">=", 0.25, note)]


def models(people: int) -> list[dict]:
    """How often an analyzer reads a slot's batches and publishes: a signed model, or a sum. Nothing is opened."""
    setting = LinearSetting(users=people, dimension=DIMENSION, nonnegative=True)
    policy: Any = linear_policy("concurrent-4", setting, Privacy(1, DELTA))
    key, signing, bits = PrivateKey.generate(), SigningKey.generate(), RandomBits.secure()
    campaign = campaign_of(policy)(key.public, signing.public, bits)
    task = Task.create(policy.plan, key.public, bits=bits, allow_unbounded=True)
    rates = {}
    suite, crypto._SUITE = crypto._SUITE, InTheClear()
    try:
        for name, asked, served_as in (("models", campaign, campaign.round_task(0, 0)), ("sums", task, task)):
            with tempfile.TemporaryDirectory() as folder:
                store = open_analyzer_store(Path(folder) / "analyzer.db")
                server = AnalyzerServer(store, key=key, opener=OpenerInTheClear(), signing=signing)
                server.add_task(asked.text)
                rates[name] = policy.releases / sum(_reading(server, served_as, policy))
                server.stop()
    finally:
        crypto._SUITE = suite
    told = f"{rates['models']:.1f} models beside {rates['sums']:.1f} sums a second"
    note = f"{told}, d {DIMENSION}, {policy.slot_users} people a slot"
    return [figure("models a second / sums of the same batches", rates["models"] / rates["sums"], ">=", 0.5, note)]


def _reading(server: AnalyzerServer, task: Any, policy: Any) -> Iterator[float]:
    """Slot by slot, the seconds that reading its full batches takes."""
    bodies: dict[str, list[bytes]] = {}
    vector = policy.setting.joint.pack(np.full((policy.slot_users, DIMENSION), 0.4), np.ones(policy.slot_users))
    for slot in range(policy.releases):
        first = task.routing.users_by(slot)
        seats = [task.routing.batches_of(first + place) for place in range(policy.slot_users)]
        for report_body in make_reports(task, vector, seats, bits=RandomBits.secure()):
            for batch, start, end in task.routing.slot(slot).columns:
                bodies.setdefault(batch.batch_id, []).append(report_body[start:end])
        sizes = {batch.batch_id: batch.size for batch in seats[0]}
        for batch_id in [each for each, size in sizes.items() if len(bodies[each]) == size]:
            server.deliver(task.id, batch_id, b"".join(bodies.pop(batch_id)))
        started = time.perf_counter()
        server.read_all()
        yield time.perf_counter() - started


def sizes() -> list[dict]:
    """What devices fetch, and how long an analyzer takes to make and sign it."""
    rows, key = [], SigningKey.generate()
    for dimension in (2, 5, 10, 20, 50):
        policy = LinUCB(setting=LinearSetting(users=20_000, dimension=dimension))
        drawn = np.random.default_rng(1).normal(size=(10_000, dimension)) / dimension
        sums = policy.setting.joint.pack(drawn, np.full(10_000, 0.5)).sum(axis=0)
        state = LinearState(policy.fingerprint, 10_000, tuple(sums.tolist()))
        seconds = []
        for _ in range(20):
            started = time.perf_counter()
            step: DeviceStep = policy.last_step(state)
            model = Model("ab" * 32, 100, OpenRound(0, 0, 100, 101), step, policy.known(state))
            text = json.dumps(signed(model, key).document())
            seconds.append(time.perf_counter() - started)
        middle = statistics.median(seconds)
        made = f"made and signed in {1e3 * middle:.2f} ms: {1 / middle:,.0f} a second"
        rows.append(shown(f"bytes of a model, d {dimension}", len(text), made))
    return rows


# --- ten thousand devices at once ------------------------------------------------------------


class Short(_Connection):
    """As it, but an answer that says nothing has no length."""

    def data_received(self, data: bytes) -> None:
        if (self.received + data)[9:12] == b"304" and (self.received + data).endswith(b"\r\n\r\n"):
            self.received, data = b"", (self.received + data)[:-2] + b"content-length: 0\r\n\r\n"
        super().data_received(data)


def ask_all(port: int, request: bytes, count: int, connections: int) -> Load:
    import asyncio

    import uvloop

    async def run() -> Load:
        loop = asyncio.get_running_loop()
        waiting, load = iter([request] * count), Load(0.0, [], [])
        finished = [loop.create_future() for _ in range(connections)]
        started = time.perf_counter()
        for done in finished:
            await loop.create_connection(lambda done=done: Short(waiting, load, done), "127.0.0.1", port)
        await asyncio.gather(*finished)
        return Load(time.perf_counter() - started, load.latencies, load.bodies)

    return uvloop.run(run())


def fetching(devices: int) -> list[dict]:
    """Everybody has the newest model already, and asks whether it still is: from memory, beside a bare answer."""
    setting = LinearSetting(users=20_000, dimension=DIMENSION, nonnegative=True)
    policy = linear_policy("concurrent-4", setting, Privacy(1, DELTA))
    with live(campaign_of(policy)) as both:
        port = int(both.analyzer.rpartition(":")[2])
        path = f"/v1/campaigns/{both.asked.id}/models/newest"
        tag, head = both.newest().signature, "GET {} HTTP/1.1\r\nHost: 127.0.0.1\r\n{}\r\n"
        asked = {
            "304": head.format(path, f'If-None-Match: "{tag}"\r\n').encode(),
            "200": head.format(path, "").encode(),
            "healthz": head.format("/healthz", "").encode(),
        }
        # Three rounds of each, in turn: the machine is not alike all the time.
        loads: dict[str, list[Load]] = {name: [] for name in asked}
        for _ in range(3):
            for name, request in asked.items():
                loads[name].append(ask_all(port, request, devices, CONNECTIONS))
    for name, status in (("304", b"304"), ("200", b"200"), ("healthz", b"200")):
        if any(body[:3] != status for load in loads[name] for body in load.bodies):
            raise SystemExit(f"another answer than {status!r} to {name}")
    rates = {name: statistics.median(devices / load.seconds for load in found) for name, found in loads.items()}
    waits = {name: statistics.median(load.p99 for load in found) for name, found in loads.items()}
    told = ", ".join(f"{name} {rates[name]:,.0f} a second, p99 {waits[name]:.0f} ms" for name in asked)
    note = f"{devices:,} devices over {CONNECTIONS} connections: {told}"
    return [
        figure(
            "a model that has not changed: requests a second / healthz",
            rates["304"] / rates["healthz"],
            ">=",
            0.5,
            note,
        ),
        figure("a model that has not changed: p99 / healthz", waits["304"] / waits["healthz"], "<=", 2, ""),
        figure("a model, whole: requests a second / healthz", rates["200"] / rates["healthz"], ">=", 0.4, ""),
    ]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--users", type=int, default=1600, help="people of the encrypted run; 0 leaves it out")
    parser.add_argument("--clear", type=int, default=20_000, help="people of the run without encryption; 0: none")
    parser.add_argument("--devices", type=int, default=400, help="people of the run device by device; 0: none")
    parser.add_argument("--quick", action="store_true", help="few people of each")
    asked = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    if asked.quick:
        asked.users, asked.clear, asked.devices = 0, 1000, 150
    rows = sizes() + models(200 if asked.quick else 1000) + fetching(2000 if asked.quick else DEVICES)
    rows += devices(asked.devices) if asked.devices else []
    rows += order(asked.users, clear=False) if asked.users else []
    rows += order(asked.clear, clear=True) if asked.clear else []
    return report("Live learning", rows)


if __name__ == "__main__":
    multiprocessing.freeze_support()
    sys.exit(main())
