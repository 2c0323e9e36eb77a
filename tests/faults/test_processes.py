"""What only real processes show: broken connections, limits of the system, a next hop that is not there."""

import resource
import socket
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from harness.nursery import Servers, servers
from harness.world import made_report, small_task
from shuffledp.errors import ParameterError
from shuffledp.randomness import RandomBits
from shuffledp.service.crypto import PrivateKey
from shuffledp.service.routing import SeatInBatch
from shuffledp.service.store import open_shuffler_store
from shuffledp.service.task import Task
from shuffledp.service.tokens import Tokens
from shuffledp.service.wire import CIPHERTEXT_BYTES, SentReport, new_id, pack_upload

BITS = RandomBits.secure()


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Servers]:
    folder = tmp_path_factory.mktemp("servers")
    key, tokens = PrivateKey.generate(), Tokens.generate(bits=BITS)
    with servers(folder, key, tokens, most_waiting_bytes=100 * CIPHERTEXT_BYTES) as made:
        yield made


@pytest.fixture
def task(running: Servers) -> Task:
    made = small_task(running.key.public, users=60)
    running.add_task(made)
    return made


@pytest.fixture
def client(running: Servers) -> Iterator[httpx.Client]:
    with running.client("shuffler", "enrol", timeout=20.0) as made:
        yield made


def reports(client: httpx.Client, task: Task, count: int) -> list[SentReport]:
    seats = client.post(f"/v1/tasks/{task.id}/seats?count={count}").raise_for_status().json()["seats"]
    made = []
    for seat in seats:
        batches = tuple(SeatInBatch(**batch) for batch in seat["batches"])
        made.append(SentReport(new_id(bits=BITS), seat["seat"], made_report(task, batches, bits=BITS).body))
    return made


def send(client: httpx.Client, task: Task, sent: list[SentReport]) -> list[int]:
    answer = client.post(
        f"/v1/tasks/{task.id}/reports", content=pack_upload(sent), headers={"Content-Type": "application/octet-stream"}
    )
    if answer.status_code == 503:
        # A commit that fails refuses the whole upload.
        return [503] * len(sent)
    return [result["status"] for result in answer.raise_for_status().json()["results"]]


def counts(running: Servers, task: Task) -> dict[str, Any]:
    with running.client("shuffler", "admin", timeout=20.0) as operator:
        found: dict[str, Any] = operator.get(f"/v1/tasks/{task.id}").raise_for_status().json()["counts"]
    return found


def wait_for(truth: Callable[[], bool], words: str, seconds: float = 20.0) -> None:
    deadline = time.monotonic() + seconds
    while not truth():
        assert time.monotonic() < deadline, words
        time.sleep(0.1)


def test_a_second_server_on_the_store_is_told_which_process_holds_it(running: Servers, task: Task) -> None:
    with pytest.raises(ParameterError, match=f"process {running.pids['shuffler']} has held it"):
        open_shuffler_store(running.store("shuffler"))


def test_a_connection_that_breaks_off_leaves_nothing(running: Servers, task: Task, client: httpx.Client) -> None:
    sent = reports(client, task, 5)
    upload = pack_upload(sent)
    before = counts(running, task)
    head = (
        f"POST /v1/tasks/{task.id}/reports HTTP/1.1\r\nHost: here\r\nContent-Length: {len(upload)}\r\n"
        f"Content-Type: application/octet-stream\r\nAuthorization: Bearer {running.tokens.secrets['enrol']}\r\n\r\n"
    ).encode()
    # In the head, after it, between two reports, within one, before the last byte.
    for length in (50, len(head), len(head) + len(upload) // 5, len(head) + 1000, len(head) + len(upload) - 1):
        with socket.create_connection(("127.0.0.1", running.orders["shuffler"]["port"])) as connection:
            connection.sendall((head + upload)[:length])
    # A whole one whose sender does not wait for the answer counts.
    assert counts(running, task) == before
    assert send(client, task, sent) == [201] * 5
    with socket.create_connection(("127.0.0.1", running.orders["shuffler"]["port"])) as connection:
        connection.sendall(head + upload)
    assert send(client, task, sent) == [200] * 5
    assert counts(running, task)["reports"] == before["reports"] + 5


@pytest.mark.skipif(not hasattr(resource, "prlimit"), reason="limits of other processes can be set on Linux only")
def test_a_store_that_cannot_grow_refuses_and_recovers(running: Servers, task: Task, client: httpx.Client) -> None:
    sent = reports(client, task, 20)
    before = counts(running, task)
    pid, unlimited = running.pids["shuffler"], (resource.RLIM_INFINITY, resource.RLIM_INFINITY)
    log = Path(f"{running.store('shuffler')}-wal")
    now = log.stat().st_size if log.exists() else 0
    resource.prlimit(pid, resource.RLIMIT_FSIZE, (now, resource.RLIM_INFINITY))
    try:
        refused = send(client, task, sent)
        assert set(refused) == {503}
        assert counts(running, task) == before
    finally:
        resource.prlimit(pid, resource.RLIMIT_FSIZE, unlimited)
    assert send(client, task, sent) == [201] * 20


def test_reports_wait_while_the_analyzer_is_away(running: Servers, task: Task, client: httpx.Client) -> None:
    running.kill("analyzer")
    sent = reports(client, task, 60)
    seats = f"/v1/tasks/{task.id}/seats"
    try:
        assert send(client, task, sent[:40]) == [201] * 40
        # Sealing is a chore: when it comes round, too much waits.
        wait_for(lambda: client.post(seats).status_code == 429, "no limit is felt")
        assert int(client.post(seats).headers["retry-after"]) >= 1
        assert set(send(client, task, sent[40:])) == {429}
        assert set(send(client, task, sent[:40])) == {200}
    finally:
        running.start("analyzer")
    wait_for(lambda: send(client, task, sent[40:41]) != [429], "batches wait although the analyzer is back")
    assert send(client, task, sent[40:41]) == [200]
    assert send(client, task, sent) == [200] * 41 + [201] * 19
    wait_for(lambda: counts(running, task)["batches_sent"] > 10, "nothing is sent")
    with running.client("analyzer", "read") as reader:
        wait_for(
            lambda: reader.get(f"/v1/tasks/{task.id}").json()["batches_read"] == counts(running, task)["batches_sent"],
            "batches are not read",
        )
        assert reader.get(f"/v1/tasks/{task.id}").json()["dropped"] == 0
