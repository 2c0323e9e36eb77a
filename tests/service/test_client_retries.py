"""Whatever is answered, the same bytes are sent again: a second draw of noise for one seat would spend twice.

Only the shuffler's word that a seat is gone leads to a new report; `test_client` has that. Here every answer that
passes, or breaks off, or is somebody else's, is given to a single report and to an upload of many.
"""

import itertools
import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import pytest

from shuffledp import BinarySum, Privacy
from shuffledp.errors import ParameterError
from shuffledp.randomness import RandomBits
from shuffledp.service.client import Client, Outbox, ReportError, Sent, UnreachableError
from shuffledp.service.client import client as client_module
from shuffledp.service.crypto import PrivateKey
from shuffledp.service.store import open_outbox
from shuffledp.service.task import Task
from shuffledp.service.wire import SentReport, new_seat, split_single_body, unpack_upload

BITS = RandomBits.secure()
BUSY = {"type": "urn:shuffledp:problem:busy", "status": 429, "detail": "later"}
GONE = {"type": "urn:shuffledp:problem:seat-gone", "status": 410, "detail": "gone"}


@pytest.fixture(scope="module")
def task() -> Task:
    plan = BinarySum.plan(users=60, privacy=Privacy(2, 1e-3), method="coins")
    return Task.create(plan, PrivateKey.generate().public, bits=BITS)


Answer = Callable[[httpx.Request], httpx.Response]


@dataclass
class Wire:
    """A shuffler that gives out seats and keeps a note of every report it is sent; `answers` come first, one each."""

    task: Task
    answers: list[Answer] = field(default_factory=list)
    seats: int = 0
    sent: list[list[SentReport]] = field(default_factory=list)

    def handle(self, request: httpx.Request) -> httpx.Response:
        body = request.read()
        if request.url.path.endswith("/seats"):
            return httpx.Response(201, json={"seats": [self._seat() for _ in range(int(request.url.params["count"]))]})
        if request.method == "PUT":
            seat, report = split_single_body(body)
            self.sent.append([SentReport(request.url.path.rpartition("/")[2], seat, report)])
        else:
            self.sent.append(list(unpack_upload(body)))
        if self.answers:
            return self.answers.pop(0)(request)
        return acknowledged(self.sent[-1], alone=request.method == "PUT")

    def _seat(self) -> dict[str, Any]:
        position, self.seats = self.seats, self.seats + 1
        batches = [
            {name: getattr(batch, name) for name in batch.__slots__} for batch in self.task.routing.batches_of(position)
        ]
        return {"seat": new_seat(position, bits=BITS), "lease_seconds": 60.0, "batches": batches}

    @property
    def different(self) -> set[SentReport]:
        """All that was ever sent: a report's id, its seat and its bytes belong together."""
        return {report for upload in self.sent for report in upload}


def acknowledged(reports: list[SentReport], *, alone: bool) -> httpx.Response:
    if alone:
        return httpx.Response(201, json={"new": True})
    return httpx.Response(200, json={"results": [{"report_id": r.report_id, "status": 201} for r in reports]})


@dataclass
class Draws:
    """How often, and for how many seats, a client has randomized."""

    calls: int = 0
    seats: int = 0


@pytest.fixture
def draws(monkeypatch: pytest.MonkeyPatch) -> Draws:
    seen, make = Draws(), client_module.make_reports

    def counting(task: Task, values: Any, seats: Any, *, bits: RandomBits) -> list[bytes]:
        seen.calls += 1
        seen.seats += len(seats)
        return make(task, values, seats, bits=bits)

    monkeypatch.setattr(client_module, "make_reports", counting)
    return seen


@pytest.fixture
def wire(task: Task) -> Wire:
    return Wire(task)


def client_of(wire: Wire, outbox: Outbox | Path | None = None, **more: Any) -> Client:
    http = httpx.Client(transport=httpx.MockTransport(wire.handle))
    return Client(wire.task, "https://shuffler.test", "t" * 64, outbox, http, sleep=lambda pause: None, **more)


def answers(status: int, **more: Any) -> Answer:
    return lambda request: httpx.Response(status, **more)


def breaks(error: type[httpx.HTTPError]) -> Answer:
    def answer(request: httpx.Request) -> httpx.Response:
        raise error("broken", request=request)  # type: ignore[call-arg]

    return answer


def results_of_others(request: httpx.Request) -> httpx.Response:
    """As many as were asked for, under other ids."""
    count = 1 if request.method == "PUT" else len(list(unpack_upload(request.read())))
    return httpx.Response(200, json={"results": [{"report_id": "00" * 16, "status": 201}] * count})


PASSING: dict[str, Answer] = {
    **{
        f"{status} {words}": answers(status, **body)
        for status in (408, 425, 429, 500, 502, 503, 504)
        for words, body in {
            "busy": {"json": {**BUSY, "status": status}},
            "in words": {"text": "come back later"},
            "that calls the seat gone": {"json": {**GONE, "status": status}},
        }.items()
        # A 408 to an upload says that it was too slow: it is sent in halves, see below.
        if status != 408
    },
    "busy, come back soon": answers(429, json=BUSY, headers={"Retry-After": "3"}),
    "no connection": breaks(httpx.ConnectError),
    "connection lost while sending": breaks(httpx.WriteError),
    "connection lost while waiting": breaks(httpx.ReadError),
    "no answer in time": breaks(httpx.ReadTimeout),
    "answer cut off": breaks(httpx.RemoteProtocolError),
    "a captive portal": answers(200, text="<html>Welcome</html>", headers={"Content-Type": "text/html"}),
    "a portal with JSON": answers(200, json={"welcome": True}),
    "a portal that creates": answers(201, json={"new": False}),
    "no results": answers(200, json={"results": []}),
    "others' results": results_of_others,
    "a list": answers(200, json=[1, 2]),
    "nothing": answers(204),
}


@pytest.mark.parametrize("values", [[1], [0, 1, 1, 0, 1]], ids=["alone", "many"])
@pytest.mark.parametrize("name", PASSING)
def test_the_same_bytes_whatever_was_answered(wire: Wire, draws: Draws, name: str, values: list[int]) -> None:
    wire.answers = [PASSING[name]] * 3
    with client_of(wire, patience=1e9) as client:
        sent = client.report(values[0]) if len(values) == 1 else client.report_many(values)
        assert sent == Sent(reports=len(values), new=len(values), retried=len(values), refused=0)
        assert client.outbox.waiting(wire.task.id) == 0
    assert len(wire.sent) == 4 and all(upload == wire.sent[0] for upload in wire.sent)
    assert wire.seats == len(values) and (draws.calls, draws.seats) == (1, len(values))


@pytest.mark.parametrize("body", [{"json": BUSY}, {"json": GONE}, {"text": "too slow"}])
def test_a_report_alone_that_was_too_slow_is_sent_as_it_was(wire: Wire, draws: Draws, body: dict[str, Any]) -> None:
    wire.answers = [answers(408, **body)] * 3
    with client_of(wire, patience=1e9) as client:
        assert client.report(1) == Sent(1, 1, 1, 0)
    assert len(wire.sent) == 4 and len(wire.different) == 1 and (wire.seats, draws.calls) == (1, 1)


def test_every_kind_of_answer_one_after_the_other(wire: Wire, draws: Draws) -> None:
    wire.answers = list(PASSING.values())
    with client_of(wire, patience=1e9) as client:
        assert client.report_many([1, 0, 1]).reports == 3
    assert len(wire.sent) == len(PASSING) + 1 and all(upload == wire.sent[0] for upload in wire.sent)
    assert (wire.seats, draws.calls) == (3, 1)


@pytest.mark.parametrize("status", [408, 425, 429, 500, 502, 503, 504])
@pytest.mark.parametrize("rows", [[0], [4], [1, 3], [0, 1, 2, 3, 4]], ids=str)
def test_rows_that_must_wait_are_sent_again_as_they_are(wire: Wire, draws: Draws, status: int, rows: list[int]) -> None:
    """Some rows of an upload are busy, twice; only those are sent again, with their ids, seats and bytes."""

    def busy_for(waiting: list[int]) -> Answer:
        def answer(request: httpx.Request) -> httpx.Response:
            results = json.loads(acknowledged(wire.sent[-1], alone=False).content)["results"]
            for row in waiting:
                results[row] |= {"status": status, "problem": BUSY}
            return httpx.Response(200, json={"results": results})

        return answer

    wire.answers = [busy_for(rows)] if len(rows) == 1 else [busy_for(rows), busy_for(list(range(len(rows))))]
    with client_of(wire, patience=1e9) as client:
        assert client.report_many([1, 0, 1, 1, 0]) == Sent(reports=5, new=5, retried=len(rows), refused=0)
    first = wire.sent[0]
    assert all(upload == [first[row] for row in rows] for upload in wire.sent[1:])
    assert len(wire.sent) == 1 + (1 if len(rows) == 1 else 2)
    assert wire.different == set(first) and (wire.seats, draws.calls, draws.seats) == (5, 1, 5)


@pytest.mark.parametrize("status", [408, 413])
def test_halves_hold_the_same_reports(wire: Wire, draws: Draws, status: int) -> None:
    wire.answers = [answers(status, json={"type": "urn:shuffledp:problem:too-large", "detail": "no"})] * 3
    with client_of(wire, patience=1e9) as client:
        assert client.report_many(np.arange(9) % 2).new == 9
    assert len(wire.sent[0]) == 9 and wire.different == set(wire.sent[0])
    assert (wire.seats, draws.calls, draws.seats) == (9, 1, 9)


def test_one_seat_that_is_gone_changes_no_other_report(wire: Wire, draws: Draws) -> None:
    """Of four, one is gone and one busy: the first is made anew, the second sent again."""

    def mixed(request: httpx.Request) -> httpx.Response:
        results = json.loads(acknowledged(wire.sent[-1], alone=False).content)["results"]
        results[1] |= {"status": 410, "problem": GONE}
        results[2] |= {"status": 503, "problem": BUSY}
        return httpx.Response(200, json={"results": results})

    wire.answers = [mixed]
    with client_of(wire, patience=1e9) as client:
        assert client.report_many([1, 1, 1, 1]).reports == 4
    first = wire.sent[0]
    assert wire.sent[1] == [first[2]]
    [new] = wire.different - set(first)
    assert not {new.seat, new.report_id, new.body} & {part for report in first for part in vars_of(report)}
    assert (wire.seats, draws.calls, draws.seats) == (5, 2, 5)


def vars_of(report: SentReport) -> tuple[str, str, bytes]:
    return report.report_id, report.seat, report.body


@pytest.mark.parametrize("stream", [None, "a column"])
@pytest.mark.parametrize("in_a_file", [True, False])
def test_what_waits_is_sent_as_it_is_by_the_next_client(
    wire: Wire, draws: Draws, stream: str | None, in_a_file: bool, tmp_path: Path
) -> None:
    """Patience ends; whoever opens the same outbox sends what is in it, and the stream does not begin again."""
    outbox: Outbox | Path = tmp_path / "outbox.db" if in_a_file else open_outbox(None)
    wire.answers = list(itertools.islice(_failures(), 6))
    with client_of(wire, outbox, patience=0.0) as client:
        for _ in range(2):
            with pytest.raises(ReportError) as stopped:
                client.report_many([1, 0, 1], stream=stream) if not wire.sent else client.flush()
            assert isinstance(stopped.value.cause, UnreachableError)
    wire.answers.clear()
    with client_of(wire, outbox) as client:
        if stream is None:
            assert client.flush() == Sent(3, 3, 0, 0)
        else:
            assert client.report_many([1, 0, 1], stream=stream) == Sent(3, 3, 0, 0)
    assert len(wire.sent) >= 3 and wire.different == set(wire.sent[0])
    assert (wire.seats, draws.calls, draws.seats) == (3, 1, 3)


def _failures() -> Iterator[Answer]:
    while True:
        yield breaks(httpx.ConnectError)
        yield answers(503, json=BUSY)


def test_a_stream_of_several_blocks_goes_on_where_it_stopped(wire: Wire, draws: Draws, tmp_path: Path) -> None:
    """Stopped in the second block and begun again: every row is randomized once."""
    outbox, values = tmp_path / "outbox.db", np.arange(10) % 2
    with client_of(wire, outbox, patience=0.0) as client:
        client._block = client._largest_block = 4
        wire.answers = [lambda request: acknowledged(wire.sent[-1], alone=False), breaks(httpx.ConnectError)]
        with pytest.raises(ReportError) as stopped:
            client.report_many(values, stream="a column")
        assert (stopped.value.sent.reports, stopped.value.waiting, stopped.value.unsent) == (4, 4, 2)
    for expected in (Sent(6, 6, 0, 0), Sent(0, 0, 0, 0)):
        with client_of(wire, outbox) as client:
            assert client.report_many(values, stream="a column") == expected
    assert len(wire.different) == 10 and (wire.seats, draws.seats) == (10, 10)


def test_a_refused_row_of_a_stream_does_not_set_it_back(wire: Wire, draws: Draws, tmp_path: Path) -> None:
    """The first row is refused and made again, after the last one was: the stream is done all the same."""
    outbox, values = tmp_path / "outbox.db", np.arange(4) % 2

    def first_gone(request: httpx.Request) -> httpx.Response:
        results = json.loads(acknowledged(wire.sent[-1], alone=False).content)["results"]
        results[0] |= {"status": 410, "problem": GONE}
        return httpx.Response(200, json={"results": results})

    wire.answers = [first_gone]
    for expected in (4, 0):
        with client_of(wire, outbox) as client:
            assert client.report_many(values, stream="a column").reports == expected
    assert (wire.seats, draws.seats) == (5, 5)


@pytest.mark.parametrize("stream", [None, "a column"])
def test_refused_bytes_leave_the_outbox(wire: Wire, stream: str | None, tmp_path: Path) -> None:
    """They may never be sent again, beside the new ones; of a stream the row is left, to be reported again."""
    outbox = open_outbox(tmp_path / "outbox.db")
    with client_of(wire, outbox, patience=0.0) as client:
        wire.answers = [breaks(httpx.ConnectError)]
        with pytest.raises(ReportError):
            client.report_many([1, 1], stream=stream)
        wire.answers = [
            lambda request: httpx.Response(
                200,
                json={"results": [{"report_id": r.report_id, "status": 410, "problem": GONE} for r in wire.sent[-1]]},
            )
        ]
        assert client.flush() == Sent(0, 0, 0, 2)
        assert outbox.waiting(wire.task.id) == 0 and outbox.first(wire.task.id, 10, 1 << 20) == []
    kept = outbox._write(lambda db: db.execute("SELECT body FROM reports").fetchall())
    assert kept == ([] if stream is None else [(b"",), (b"",)])
    outbox.close()


@pytest.mark.parametrize(
    "problem", [None, {}, {"type": "about:blank"}, {"type": "urn:shuffledp:problem:other"}, "gone"]
)
def test_a_row_that_is_gone_in_other_words_stays_as_it_is(wire: Wire, draws: Draws, problem: Any) -> None:
    """Only the shuffler's own word leads to new noise: any other refusal leaves the report in the outbox."""

    def refused(request: httpx.Request) -> httpx.Response:
        results = json.loads(acknowledged(wire.sent[-1], alone=False).content)["results"]
        results[1] |= {"status": 410} | ({} if problem is None else {"problem": problem})
        return httpx.Response(200, json={"results": results})

    wire.answers = [refused]
    with client_of(wire) as client:
        with pytest.raises(ReportError) as stopped:
            client.report_many([1, 0, 1])
        assert (stopped.value.sent.reports, stopped.value.waiting) == (2, 1)
        assert client.flush() == Sent(1, 1, 0, 0)
    assert wire.sent[1] == [wire.sent[0][1]] and (wire.seats, draws.calls) == (3, 1)


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
def test_nothing_is_sent_elsewhere(wire: Wire, draws: Draws, status: int) -> None:
    """A redirect would carry the token and the report along; it is a refusal, and the report waits."""
    hosts: list[str] = []
    inner = wire.handle
    wire.handle = lambda request: hosts.append(request.url.host) or inner(request)  # type: ignore[method-assign]
    wire.answers = [answers(status, headers={"Location": "https://elsewhere.test/v1/tasks/x/reports/y"})]
    with client_of(wire) as client:
        with pytest.raises(ReportError) as stopped:
            client.report(1)
        assert stopped.value.waiting == 1 and client.flush() == Sent(1, 1, 0, 0)
    assert set(hosts) == {"shuffler.test"} and len(wire.different) == 1 and draws.calls == 1


@pytest.mark.parametrize("url", ["http://shuffler.example", "http://10.0.0.7:8080", "http://localhost.example"])
def test_nothing_is_sent_in_the_clear(task: Task, url: str) -> None:
    with pytest.raises(ParameterError, match="shuffler"):
        Client(task, url, "t" * 64)
    for near in ("http://127.0.0.1:8080", "http://localhost:8080", "https://shuffler.example"):
        Client(task, near, "t" * 64).close()


def test_acknowledged_bytes_leave_the_disk_at_once(wire: Wire, tmp_path: Path) -> None:
    """Not when the client ends: it may run for months."""
    files = tmp_path / "outbox"
    files.mkdir()
    with client_of(wire, files / "outbox.db", patience=0.0) as client:
        wire.answers = [breaks(httpx.ConnectError)]
        with pytest.raises(ReportError):
            client.report(1)
        needle = wire.sent[0][0].body[8:40]
        assert any(needle in file.read_bytes() for file in files.iterdir())
        assert client.flush().reports == 1
        assert not any(needle in file.read_bytes() for file in files.iterdir())
