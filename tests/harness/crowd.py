"""Crowds that report to real servers while these are killed; then every report is counted.

What a client was told is compared with what the analyzer added up: an acknowledged report is in each of its batches
exactly once, a refused one in none, and one without an answer in all of them or in none.
"""

import hashlib
import random
import threading
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx

from harness.nursery import Servers
from harness.world import MadeReport, made_report
from shuffledp.continual.plan import CounterPlan
from shuffledp.randomness import RandomBits
from shuffledp.service.routing import SeatInBatch
from shuffledp.service.task import Task
from shuffledp.service.wire import SentReport, new_id, pack_upload

# Seconds after which nobody tries any longer.
LONGEST = 55.0


@dataclass
class Crowd:
    """Clients that insist: they send the same bytes until they are answered, or give up for good."""

    task: Task
    running: Servers
    seed: int
    busy: threading.Event
    """Set whenever a request leaves."""
    sent: dict[str, tuple[tuple[SeatInBatch, ...], MadeReport]] = field(default_factory=dict)
    answers: dict[str, int] = field(default_factory=dict)
    tries: int = 0
    at: tuple[str, ...] = ("shuffler",)
    """The shufflers that they come to, each time to another."""
    deadline: float = field(default_factory=lambda: time.monotonic() + LONGEST)

    def run(self, until: threading.Event) -> None:
        """Report until all seats of the task are taken, and none came back."""
        bits, choice = RandomBits.secure(), random.Random(self.seed)
        with ExitStack() as opened:
            clients = [opened.enter_context(self.running.client(name, "enrol", timeout=10.0)) for name in self.at]
            while time.monotonic() < self.deadline:
                taken = self._insist(clients, f"/v1/tasks/{self.task.id}/seats?count={choice.randint(1, 30)}", None)
                if taken.status_code == 409:
                    if until.is_set() and self._is_full():
                        return
                    # Leases run out, and their seats come back.
                    time.sleep(0.1)
                    continue
                assert taken.status_code == 201, taken.text
                upload = []
                for seat in taken.json()["seats"]:
                    batches = tuple(SeatInBatch(**batch) for batch in seat["batches"])
                    report_id = new_id(bits=bits)
                    made = made_report(self.task, batches, bits=bits)
                    self.sent[report_id] = batches, made
                    upload.append(SentReport(report_id, seat["seat"], made.body))
                gives_up = not until.is_set() and choice.random() < 0.1
                self._upload(clients, upload, tries=1 if gives_up else 10**6)
        raise AssertionError("the task does not fill")

    def _is_full(self) -> bool:
        try:
            with self.running.client(random.choice(self.at), "admin", timeout=10.0) as operator:
                counts = operator.get(f"/v1/tasks/{self.task.id}").raise_for_status().json()["counts"]
        except httpx.TransportError:
            # It was killed, or is just being started again: nobody knows yet.
            return False
        return bool(counts["reports"] == self.task.routing.users)

    def _upload(self, clients: list[httpx.Client], upload: list[SentReport], tries: int) -> None:
        answer = self._insist(clients, f"/v1/tasks/{self.task.id}/reports", pack_upload(upload), tries)
        if answer.status_code != 200:
            return
        for result in answer.json()["results"]:
            self.answers[result["report_id"]] = result["status"]

    def _insist(self, clients: list[httpx.Client], path: str, body: bytes | None, tries: int = 10**6) -> httpx.Response:
        binary = {"Content-Type": "application/octet-stream"}
        # Some do not wait for the first answer: it is lost.
        patience = 0.01 if body is not None and random.Random(body).random() < 0.2 else 10.0
        for _ in range(tries):
            assert time.monotonic() < self.deadline, "the servers do not answer any more"
            self.tries += 1
            self.busy.set()
            client = random.choice(clients)
            try:
                answer = client.post(path, content=body, headers=binary, timeout=httpx.Timeout(10.0, read=patience))
                if answer.status_code not in (429, 503):
                    return answer
                # As a real client does, but sooner.
                time.sleep(0.1)
            except httpx.HTTPError:
                patience = 10.0
                time.sleep(0.02)
        return httpx.Response(504)


def wait_until_read(running: Servers, tasks: list[Task]) -> None:
    deadline = time.monotonic() + 30
    with running.client("analyzer", "read") as client:
        for task in tasks:
            expected = sum(1 for _ in full_batches(task))
            while (read := client.get(f"/v1/tasks/{task.id}").json()["batches_read"]) < expected:
                assert time.monotonic() < deadline, f"{read} of {expected} batches were read"
                time.sleep(0.1)


def full_batches(task: Task) -> Iterator[str]:
    routing = task.routing
    every = {batch.batch_id for position in range(routing.users) for batch in routing.batches_of(position)}
    for batch_id in every:
        place = routing.find(batch_id)
        if place is not None and int(routing.schedule.users_by(place[2])) <= routing.users:
            yield batch_id


@dataclass(frozen=True)
class Found:
    """What the stores have of a task in the end."""

    kept: Callable[[list[str]], set[str]]
    """Which of these reports the shuffler knows, and how many it knows."""
    kept_in_all: int
    totals: list[tuple[str, str, int, int, None]]
    """Of every batch at the analyzer: its id, what it said, dropped, void, and its bytes, which are gone."""
    releases: list[tuple[int]]


def check(folder: Path, task: Task, crowds: list[Crowd], found: Found) -> None:
    """Every acknowledged report is in each of its batches once, a refused one in none."""
    sent = {report_id: report for crowd in crowds for report_id, report in crowd.sent.items()}
    answers = {report_id: status for crowd in crowds for report_id, status in crowd.answers.items()}
    kept = found.kept(list(sent))
    acknowledged = {report_id for report_id, status in answers.items() if status in (200, 201)}
    assert set(answers.values()) <= {200, 201, 410}
    assert len(kept) == found.kept_in_all == task.routing.users
    assert acknowledged <= kept, "an acknowledged report was lost"
    assert not kept & {report_id for report_id, status in answers.items() if status == 410}, "a refused one was kept"
    # Some had no answer and are in: never twice, as the rest of this shows.
    inside: dict[str, list[bytes]] = defaultdict(list)
    ones: Counter[str] = Counter()
    for report_id in kept:
        batches, made = sent[report_id]
        for batch in batches:
            inside[batch.batch_id] += made.pieces[batch.batch_id]
            ones[batch.batch_id] += made.ones[batch.batch_id]
    opened = [line.split() for line in (folder / "opened").read_text().splitlines() if line.startswith(task.id)]
    expected = {
        batch_id: hashlib.sha256(b"".join(sorted(inside[batch_id]))).hexdigest() for batch_id in full_batches(task)
    }
    assert {(batch_id, content) for _, batch_id, content, _ in opened} == set(expected.items())
    orders = Counter(batch_id for batch_id, _ in {(batch_id, order) for _, batch_id, _, order in opened})
    assert set(orders.values()) == {1}, "a batch was sent in two orders"
    assert sorted(found.totals) == sorted(
        (batch_id, str(ones[batch_id] - half(task, batch_id)), 0, 0, None) for batch_id in expected
    )
    schedule = task.routing.schedule
    slots, _ = schedule.place_of(task.routing.users)
    assert sorted(found.releases) == [(int(schedule.users_by(slot + 1)),) for slot in range(slots)]


def half(task: Task, batch_id: str) -> int:
    place, plan = task.routing.find(batch_id), task.plan
    assert place is not None and isinstance(plan, CounterPlan)
    mechanism: Any = plan.mechanism(plan.schedule.batch_users(place[1], place[2]))
    return int(mechanism.coins) // 2
