"""Requests that break off, are too long, come too late or too often: what is refused changes nothing."""

import asyncio
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import pytest

from harness.world import World, batch_rows, made_report, rows, small_task
from shuffledp.service.analyzer.app import analyzer_app
from shuffledp.service.routing import Seat
from shuffledp.service.shuffler.app import shuffler_app
from shuffledp.service.task import Task
from shuffledp.service.tokens import Tokens
from shuffledp.service.wire import CIPHERTEXT_BYTES, SentReport, pack_upload, single_body

LEASE = 60.0
# One batch of three reports of three messages may wait, and no second one.
MOST_WAITING = 9 * CIPHERTEXT_BYTES


@dataclass(frozen=True)
class Client:
    """Requests to an application in this process."""

    app: Any
    token: str

    def put(self, url: str, content: Any) -> httpx.Response:
        return asyncio.run(self._request("PUT", url, content))

    def post(self, url: str, content: Any) -> httpx.Response:
        return asyncio.run(self._request("POST", url, content))

    async def _request(self, method: str, url: str, content: Any) -> httpx.Response:
        headers = {"Authorization": f"Bearer {self.token}", "Content-Type": "application/octet-stream"}
        transport = httpx.ASGITransport(app=self.app)
        async with httpx.AsyncClient(transport=transport, base_url="http://here", headers=headers) as client:
            return await client.request(method, url, content=content)


class Service:
    """Both servers with a client each, and one task."""

    def __init__(self, folder: Path) -> None:
        self.world = World(folder, lease_seconds=LEASE, most_waiting_bytes=MOST_WAITING)
        tokens = Tokens.generate(bits=self.world.bits)
        self.task: Task = small_task(self.world.key.public)
        self.world.add_task(self.task)
        self.reports_url = f"/v1/tasks/{self.task.id}/reports"
        self.shuffler = Client(shuffler_app(self.world.shuffler, tokens), tokens.secrets["enrol"])
        self.analyzer = Client(analyzer_app(self.world.analyzer, tokens), tokens.secrets["hop"])

    def seats(self, count: int) -> list[Seat]:
        return self.world.shuffler.take_seats(self.task.id, count).result()

    def report(self, seat: Seat) -> SentReport:
        return SentReport(
            self.world.new_id(), seat.seat, made_report(self.task, seat.batches, bits=self.world.bits).body
        )

    def put(self, report: SentReport, body: bytes | None = None) -> Any:
        body = single_body(report.seat, report.body) if body is None else body
        return self.shuffler.put(f"{self.reports_url}/{report.report_id}", content=body)

    def kept(self) -> list[Any]:
        store = self.world.stores["shuffler"]
        found = [rows(store, f"SELECT * FROM {table}") for table in ("accepted", "arrivals", "sealed")]
        return [*found, batch_rows(store, "parts"), batch_rows(store, "pieces")]


@pytest.fixture
def service(tmp_path: Path) -> Iterator[Service]:
    made = Service(tmp_path / "world")
    yield made
    made.world.close()


def refused(answer: Any, status: int, kind: str) -> None:
    assert answer.status_code == status, answer.text
    assert answer.headers["content-type"] == "application/problem+json"
    assert answer.json()["type"] == f"urn:shuffledp:problem:{kind}"


def test_a_report_that_broke_off_is_refused_and_can_be_sent_whole(service: Service) -> None:
    report = service.report(service.seats(1)[0])
    whole, before = single_body(report.seat, report.body), service.kept()
    for length in (16, 17, 16 + CIPHERTEXT_BYTES, len(whole) - 1):
        refused(service.put(report, whole[:length]), 422, "report-length")
    refused(service.put(report, whole[:15]), 400, "bad-request")
    refused(service.put(report, b""), 400, "bad-request")
    refused(service.put(report, whole + b"x" * CIPHERTEXT_BYTES * 100), 413, "too-large")
    assert service.kept() == before
    assert service.put(report).status_code == 201
    assert service.put(report).status_code == 200


def test_an_upload_that_broke_off_keeps_nothing(service: Service) -> None:
    sent = [service.report(seat) for seat in service.seats(3)]
    upload, before = pack_upload(sent), service.kept()
    first = len(pack_upload(sent[:1]))
    for length in (1, 35, 36, 100, first + 1, first + 35, first + 36, len(upload) - 1):
        refused(service.shuffler.post(service.reports_url, content=upload[:length]), 400, "bad-request")
    assert service.kept() == before
    answer = service.shuffler.post(service.reports_url, content=upload)
    assert [each["status"] for each in answer.json()["results"]] == [201] * 3


def test_a_bad_report_among_good_ones_is_refused_alone(service: Service) -> None:
    one, two, three = (service.report(seat) for seat in service.seats(3))
    short = SentReport(two.report_id, two.seat, two.body[:-1])
    stranger = SentReport(service.world.new_id(), service.world.new_id(), three.body)
    upload = pack_upload([one, short, stranger, three, one])
    answer = service.shuffler.post(service.reports_url, content=upload)
    assert [each["status"] for each in answer.json()["results"]] == [201, 422, 410, 201, 200]


def test_a_body_that_does_not_say_its_length_is_cut_off(service: Service) -> None:
    async def endless() -> AsyncIterator[bytes]:
        for _ in range(10_000):
            yield bytes(100_000)

    refused(service.shuffler.post(service.reports_url, content=endless()), 413, "too-large")


def test_another_task_another_batch_another_length(service: Service) -> None:
    report = service.report(service.seats(1)[0])
    other = "0" * 64
    url = f"/v1/tasks/{other}/reports/{report.report_id}"
    refused(service.shuffler.put(url, content=single_body(report.seat, report.body)), 404, "task-unknown")
    refused(service.analyzer.post(f"/v1/tasks/{other}/batches/1.0.1", content=b""), 404, "task-unknown")
    for name in ("1.0.0", "1.0.99", "9.0.1", "1.1.0", "01.0.1", "1.0", "x", "1.0.1.2"):
        url = f"/v1/tasks/{service.task.id}/batches/{name}"
        refused(service.analyzer.post(url, content=b"abc"), 404, "batch-unknown")
    batch = service.task.routing.batches_of(0)[0]
    whole = bytes(service.task.routing.batch_bytes(batch.size))
    for body in (whole[:-1], whole + b"x", b""):
        url = f"/v1/tasks/{service.task.id}/batches/{batch.batch_id}"
        refused(service.analyzer.post(url, content=body), 422, "report-length")
    assert service.world.analyzer.progress(service.task.id).batches_received == 0


def test_a_seat_that_was_refused_stays_gone_when_the_clock_is_set_back(service: Service) -> None:
    report = service.report(service.seats(1)[0])
    service.world.clock.move(LEASE)
    refused(service.put(report), 410, "seat-gone")
    # The client has made another report by now: a copy of this one must not get in.
    service.world.clock.move(-LEASE)
    refused(service.put(report), 410, "seat-gone")
    # Nor after the server was killed; and the place is not lost.
    again = service.seats(1)[0]
    assert [batch.seat for batch in again.batches] == [0, 0, 0]
    assert service.put(service.report(again)).status_code == 201


def test_a_clock_that_was_set_back_gives_no_seat_to_two(service: Service) -> None:
    first = service.report(service.seats(1)[0])
    service.world.clock.move(-10 * LEASE)
    second = service.report(service.seats(1)[0])
    assert {service.put(first).status_code, service.put(second).status_code} == {201}
    service.world.clock.move(100 * LEASE)
    assert service.put(first).status_code == 200


def test_an_analyzer_that_is_away_for_long_stops_new_reports_until_it_is_back(service: Service) -> None:
    service.world.network.fate = lambda: "lost"
    sent = [service.report(seat) for seat in service.seats(9)]
    for report in sent[:6]:
        assert service.put(report).status_code == 201
    service.world.shuffler.seal_full()
    assert not service.world.shuffler.send_waiting()
    before = service.kept()
    for answer in (service.put(sent[6]), service.shuffler.post(f"/v1/tasks/{service.task.id}/seats", content=b"")):
        refused(answer, 429, "busy")
        assert int(answer.headers["retry-after"]) >= 1
    # What was acknowledged is still known.
    assert service.put(sent[0]).status_code == 200
    assert service.kept() == before
    service.world.network.fate = lambda: "delivered"
    assert service.world.shuffler.send_waiting()
    assert [service.put(report).status_code for report in sent[6:]] == [201] * 3


def test_a_full_disk_answers_503_and_when_to_come_again(service: Service) -> None:
    report = service.report(service.seats(1)[0])
    store = service.world.stores["shuffler"]

    def limit(pages: str) -> None:
        store.write(lambda records: records.db.execute(f"PRAGMA max_page_count = {pages}").fetchone())

    limit("1")
    filler = [SentReport(report.report_id, report.seat, report.body)]
    answer = service.put(report)
    while answer.status_code == 201:
        filler = [service.report(seat) for seat in service.seats(1)]
        answer = service.put(filler[0])
    refused(answer, 503, "no-room")
    assert int(answer.headers["retry-after"]) >= 1
    limit(str(1 << 30))
    assert service.put(filler[0]).status_code in (200, 201)
