"""One desk for every learner: its state is kept as JSON, batches wait for each other, any answer can be published."""

import io
import json
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from harness.world import OpenerHere, World, accept_reports, made_report, report_of, rows, small_task
from shuffledp.continual.counter import CounterState
from shuffledp.errors import ParameterError
from shuffledp.privacy import Privacy
from shuffledp.protocols.distinct_elements import DistinctElements
from shuffledp.protocols.distribution_test.verdict import TestedClaim
from shuffledp.protocols.tallies import Tally
from shuffledp.service.analyzer.server import AnalyzerServer
from shuffledp.service.crypto import PrivateKey
from shuffledp.service.openapi import ARROW
from shuffledp.service.store import open_analyzer_store
from shuffledp.service.task import Task
from shuffledp.service.wire import CIPHERTEXT_BYTES, SentReport


@pytest.fixture
def world(tmp_path: Path) -> Any:
    made = World(tmp_path / "world")
    yield made
    made.close()


def batches_of(world: World, task: Task, users: int) -> list[tuple[str, bytes]]:
    """The batches that so many users fill."""
    world.add_task(task)
    seats = world.shuffler.take_seats(task.id, users).result()
    sent = [SentReport(world.new_id(), s.seat, made_report(task, s.batches, bits=world.bits).body) for s in seats]
    accept_reports(world.shuffler, task.id, sent).result()
    world.shuffler.seal_full()
    world.network.deliver = lambda *_: True
    assert world.shuffler.send_waiting()
    return [(batch_id, body) for _, batch_id, body in world.network.sent]


def read(folder: Path, key: PrivateKey, task: Task, batches: list[tuple[str, bytes]]) -> list[dict[str, Any]]:
    """What an analyzer on this folder's store has published once it has read these batches, too."""
    server = AnalyzerServer(open_analyzer_store(folder / "analyzer.db"), key=key, opener=OpenerHere(key))
    server.add_task(task.text)
    for batch_id, body in batches:
        server.deliver(task.id, batch_id, body)
    server.read_all()
    history = server.history(task.id, 0, 1000)
    server.stop()
    return history


def test_a_store_of_version_0_1_0_goes_on(world: World, tmp_path: Path) -> None:
    """There the counter's own document was called "counter"; a message of the first batches did not open."""
    task = small_task(world.key.public)
    batches = batches_of(world, task, 24)
    batches[0] = (batches[0][0], bytes(CIPHERTEXT_BYTES) + batches[0][1][CIPHERTEXT_BYTES:])
    (tmp_path / "whole").mkdir()
    expected = read(tmp_path / "whole", world.key, task, batches)
    half = len(batches) // 2
    begun = read(tmp_path, world.key, task, batches[:half])
    store = open_analyzer_store(tmp_path / "analyzer.db")
    kept = store.read(lambda records: records.state(task.id))
    assert set(kept) == {"learner", "dropped", "void", "width"} and kept["dropped"] == 1 and kept["width"] == 1.0
    learner = kept.pop("learner")
    assert CounterState.from_document(learner).users == begun[-1]["time"]
    store.write(lambda records: records.set_state(task.id, {"counter": learner, **kept}))
    store.close()
    assert len(begun) < len(expected) and read(tmp_path, world.key, task, batches[half:]) == expected
    assert expected[-1]["dropped"] == 1 and expected[-1]["bound"] == pytest.approx(task.plan.error_bound + 1)


def test_batches_may_come_in_any_order(world: World, tmp_path: Path) -> None:
    task = small_task(world.key.public)
    batches = batches_of(world, task, 24)
    histories = []
    for number, order in enumerate((batches, batches[::-1])):
        (tmp_path / str(number)).mkdir()
        histories.append(read(tmp_path / str(number), world.key, task, order))
    assert histories[0] == histories[1] and len(histories[0]) > 2


def test_a_state_of_another_plan_is_refused(world: World) -> None:
    own, other = small_task(world.key.public), small_task(world.key.public, users=12)
    for task, plan in ((own, other.plan), (other, own.plan)):
        state = task.plan.learner().start().document()
        assert task.plan.learner().resume(json.loads(json.dumps(state))) == task.plan.learner().start()
        with pytest.raises(ParameterError, match="must"):
            plan.learner().resume(state)


def test_the_state_of_a_round_is_json(plan_named: Callable[[str], Any]) -> None:
    learner = plan_named("binary coins").learner()
    state = learner.start()
    again = learner.resume(json.loads(json.dumps(state.document())))
    assert again == state
    for broken in (None, {}, {**state.document(), "schema": 2}):
        with pytest.raises(ParameterError, match=r"schema( must be)? 1"):
            learner.resume(broken)
    with pytest.raises(ParameterError, match="must belong to the plan"):
        learner.resume({**state.document(), "fingerprint": "0" * 64})


def test_an_answer_that_is_no_number_is_published(
    make_service: Callable[..., Any], make_task: Callable[..., Task], monkeypatch: pytest.MonkeyPatch
) -> None:
    errors = {"false_alarm": 0.05, "miss": 0.2, "distance": 0.25}
    claim = TestedClaim(
        statistic=1.5, score=9.0, threshold=2.0, p_value=0.001, rejected=True, claim="uniform", **errors
    )
    service = make_service()
    task = service.add(make_task("binary rr"))
    monkeypatch.setattr(type(task.plan), "estimate", lambda self, tally, *, simulated=False: claim)
    service.send(task, [1] * 20)
    service.work()
    client = service.at("analyzer", "read")
    answer = client.get(f"/v1/tasks/{task.id}/estimate").json()
    assert answer["estimate"] == asdict(claim) and answer["time"] == 20
    assert answer["standard_error"] is answer["bound"] is answer["confidence"] is None
    (release,) = client.get(f"/v1/tasks/{task.id}/history").json()["releases"]
    assert release["estimate"]["rejected"] is True
    table = client.get(f"/v1/tasks/{task.id}/history", headers={"Accept": ARROW}).content
    assert pa.ipc.open_stream(io.BytesIO(table)).read_all().to_pylist() == [release]
    # Where pyarrow is not installed the same comes as JSON.
    monkeypatch.setattr("shuffledp.service.analyzer.app.is_installed", lambda package: False)
    plain = client.get(f"/v1/tasks/{task.id}/history", headers={"Accept": ARROW})
    assert plain.headers["content-type"] == "application/json" and plain.json()["releases"] == [release]


@pytest.mark.parametrize("name", ["binary coins", "binary rr", "binary poisson-bits", "bounded bits", "vector bits"])
def test_messages_that_do_not_open_are_counted_and_widen_the_bound(
    name: str, world: World, make_task: Callable[..., Task]
) -> None:
    plan = make_task(name).plan
    task = Task.create(plan, world.key.public, bits=world.bits)
    values = [[0.0, 0.0] if name == "vector bits" else 0] * plan.users
    (release,) = spoken(world, task, values, spoiled=2)
    lost = 2 * task.routing.report_bytes(0) // CIPHERTEXT_BYTES
    assert release["dropped"] == lost
    assert release["bound"] == pytest.approx(plan.error_bound + lost * plan.message_influence)
    assert rows(world.stores["analyzer"], "SELECT dropped, void FROM batches") == [(lost, 0)]


def spoken(world: World, task: Task, values: list[Any], spoiled: int = 0) -> list[dict[str, Any]]:
    """What is published once these values are reported, the first so many reports as bytes that cannot be opened."""
    world.add_task(task)
    seats = world.shuffler.take_seats(task.id, len(values)).result()
    bodies = [report_of(task, v, seat.batches, bits=world.bits) for v, seat in zip(values, seats, strict=True)]
    bodies = [bytes(len(body)) for body in bodies[:spoiled]] + bodies[spoiled:]
    sent = [SentReport(world.new_id(), seat.seat, body) for seat, body in zip(seats, bodies, strict=True)]
    accept_reports(world.shuffler, task.id, sent).result()
    world.shuffler.seal_full()
    assert world.shuffler.send_waiting()
    world.analyzer.read_all()
    return world.analyzer.history(task.id, 0, 10)


@pytest.mark.parametrize("spoiled", [0, 1])
def test_distinct_elements_by_name_and_none_where_the_round_is_void(world: World, spoiled: int) -> None:
    plan = DistinctElements.plan(users=30, privacy=Privacy(6, 1e-2), categories=["red", "green", "blue"])
    task = Task.create(plan, world.key.public, bits=world.bits, allow_unbounded=True)
    releases = spoken(world, task, ["red", "green"] * 15, spoiled)
    progress = world.analyzer.progress(task.id)
    assert (progress.batches_read, progress.batches_void, progress.releases) == (1, spoiled, 1 - spoiled)
    for release in releases:
        # Three parities, each off by at most one: the estimate can be further off only if the plan were another's.
        assert release["time"] == 30 and abs(release["estimate"] - 2) <= 3 * plan.message_influence


@pytest.mark.parametrize("changed", [{"users": -5}, {"users": 10**6}, {"users": 3, "tally": {}}])
def test_a_state_that_a_round_cannot_come_to_is_refused(plan_named: Callable[[str], Any], changed: dict) -> None:
    learner = plan_named("binary coins").learner()
    whole = Tally(np.array([3, 4]), learner.plan.users, 7).document()
    document = learner.start().document() | changed
    with pytest.raises(ParameterError):
        learner.resume(document | ({"tally": whole} if "tally" in changed else {}))
    with pytest.raises(ParameterError):
        learner.resume(learner.start().document() | {"users": learner.plan.users})
