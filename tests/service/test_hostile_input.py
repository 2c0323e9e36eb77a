"""Tests that fail today, each for one finding; for tests/service (they use its conftest)."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from shuffledp.errors import DataError
from shuffledp.privacy import Privacy
from shuffledp.protocols.binary_sum import BinarySum
from shuffledp.service.routing import Routing
from shuffledp.service.shuffler.server import ShufflerServer
from shuffledp.service.store import open_shuffler_store
from shuffledp.service.store.sqlite.engine import SqliteStore
from shuffledp.service.task import Task
from shuffledp.service.wire import Unpacked

JSON = {"Content-Type": "application/json"}


@pytest.mark.parametrize("body", [b"[" * 100_000, b'{"a":' * 100_000])
@pytest.mark.parametrize("server", ["shuffler", "analyzer"])
def test_deep_json_is_no_task(server: str, body: bytes, make_service: Callable[..., Any]) -> None:
    assert make_service().at(server, "admin").post("/v1/tasks", content=body, headers=JSON).status_code == 400


@pytest.mark.parametrize("server", ["shuffler", "analyzer"])
def test_405_says_what_is_allowed(server: str, make_service: Callable[..., Any]) -> None:
    answer = make_service().at(server, "admin").delete("/v1/tasks")
    assert (answer.status_code, answer.headers.get("allow")) == (405, "POST")


@pytest.mark.parametrize("path", ["/healthz/", "/v1/tasks/"])
def test_nothing_is_redirected(path: str, make_service: Callable[..., Any]) -> None:
    answer = make_service().at("shuffler", "admin").get(path, headers={"Host": "evil.example"})
    assert answer.status_code == 404 and "location" not in answer.headers


def test_a_length_of_thousands_of_digits(make_service: Callable[..., Any]) -> None:
    client = make_service().at("shuffler", "admin")
    headers = JSON | {"Content-Length": "9" * 5000}
    assert client.post("/v1/tasks", content=b"{}", headers=headers).status_code == 413


@pytest.mark.parametrize("name", ["running count", "running histogram"])
def test_a_liars_fillers_move_a_sum_and_void_nothing(
    name: str, make_task: Callable[..., Task], make_desks: Callable[..., Any]
) -> None:
    """One client marks one filler as counting."""

    def lie(messages: Unpacked) -> Unpacked:
        assert messages.fillers
        return Unpacked(
            np.append(messages.payloads, np.uint64(1)),
            np.append(messages.labels, np.uint32(0)),
            messages.fillers - 1,
            messages.malformed,
        )

    task = make_task(name)
    releases = make_desks(task, lie).run([1] * 30)
    assert [release.void for release in releases] == [0] * 5
    assert all(release.dropped > 0 for release in releases)


def test_ids_on_disk_do_not_lie_in_the_order_of_arrival(
    make_service: Callable[..., Any], make_task: Callable[..., Task]
) -> None:
    """Thirty reports that come one by one: of a random order, 0.9 or more has probability below 1e-10."""
    service = make_service()
    task = service.add(make_task("running count"))
    sent = [service.send(task, [1])[0] for _ in range(30)]
    service.work()
    raw = (service.folder / "shuffler.db").read_bytes()
    places = [raw.find(bytes.fromhex(report.report_id)) for report in sent]
    spearman = np.corrcoef(np.arange(30), np.argsort(np.argsort(places)))[0, 1]
    assert abs(spearman) < 0.9


def test_a_killed_shuffler_forgets_when_it_comes_back(
    tmp_path: Path, make_service: Callable[..., Any], make_task: Callable[..., Task], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Killed after a batch was marked as sent and before the log was emptied."""
    service = make_service()
    task = service.add(make_task("binary rr"))
    sent = service.send(task, [1] * 20)
    service.shuffler.seal_full()
    with monkeypatch.context() as killed:
        killed.setattr(SqliteStore, "forget", lambda self: None)
        assert service.shuffler.send_waiting()
    for name in ("shuffler.db", "shuffler.db-wal"):
        shutil.copy(service.folder / name, tmp_path / name)
    again = ShufflerServer(open_shuffler_store(tmp_path / "shuffler.db"), post=lambda path, body: 201)
    again.seal_full()
    again.send_waiting()
    held = b"".join(file.read_bytes() for file in tmp_path.glob("shuffler.db*"))
    again.stop()
    assert not [report for report in sent if report.body[:16] in held]


@pytest.mark.parametrize("count", [2.5, float("nan"), True, "2"])
def test_counts_of_messages_are_whole_numbers(count: Any, make_task: Callable[..., Task]) -> None:
    document = make_task("running count").routing.document()
    with pytest.raises(DataError):
        Routing.from_document(document | {"messages": document["messages"] | {"18": count}})


def test_sizes_have_one_spelling(make_task: Callable[..., Task]) -> None:
    document = make_task("running count").routing.document()
    with pytest.raises(DataError):
        Routing.from_document(document | {"messages": {" 18": 9, **document["messages"]}})


@pytest.mark.parametrize(
    "change", [{"warnings": []}, {"warnings": ["other"]}, {"more": 1}, {"nonce": "x"}, {"nonce": None}]
)
def test_warnings_cannot_be_taken_out_of_a_task(change: dict[str, Any], make_task: Callable[..., Task]) -> None:
    plan = BinarySum.plan(users=20, privacy=Privacy(2, 1e-3), method="shares")
    document = json.loads(make_task(plan, allow_unbounded=True).text) | change
    with pytest.raises(DataError):
        Task.from_text(json.dumps(document, sort_keys=True, separators=(",", ":")))
