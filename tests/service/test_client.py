"""The client against the real shuffler, with a network that fails on demand."""

import asyncio
import os
import signal
import sqlite3
import stat
import subprocess
import sys
import textwrap
import threading
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import httpx
import numpy as np
import pytest

from harness.world import report_of
from shuffledp import BinarySum, Privacy, VectorSum
from shuffledp.continual.plan import CounterPlan
from shuffledp.errors import DataError, ParameterError, RandomnessError
from shuffledp.protocols.domains.summed import OneHot, Reals, Vectors
from shuffledp.randomness import RandomBits
from shuffledp.service.client import AnswerError, Client, Outbox, ReportError, Sent, UnreachableError, making
from shuffledp.service.crypto import PrivateKey, binding
from shuffledp.service.shuffler.app import shuffler_app
from shuffledp.service.shuffler.server import ShufflerServer
from shuffledp.service.store import open_outbox, open_shuffler_store
from shuffledp.service.store.sqlite.outbox import REFUSED
from shuffledp.service.task import Task
from shuffledp.service.tokens import Tokens
from shuffledp.service.wire import CIPHERTEXT_BYTES, position_of, split_single_body, unpack_messages, unpack_upload

KEY = PrivateKey.generate()
TOKENS = Tokens.generate(bits=RandomBits.secure())
URL = "https://shuffler.test"

Forward = Callable[[httpx.Request], httpx.Response]
Fault = Callable[[httpx.Request, Forward], httpx.Response]


class MockClock:
    def __init__(self) -> None:
        self.time = 1e9

    def now(self) -> float:
        return self.time


def task_of(plan) -> Task:
    return Task.create(plan, KEY.public, bits=RandomBits.secure())


@pytest.fixture(scope="module")
def task() -> Task:
    return task_of(BinarySum.plan(users=500, privacy=Privacy(1, 1e-6), method="coins"))


class Shuffler:
    """The real one; `faults` are used up, one a request."""

    def __init__(self, folder: Path, *tasks: Task) -> None:
        self.clock = MockClock()
        self.server = ShufflerServer(
            open_shuffler_store(folder / "shuffler.db"), post=lambda path, body: 201, clock=self.clock.now
        )
        for task in tasks:
            self.server.add_task(task.text)
        self.inside = httpx.AsyncClient(
            transport=httpx.ASGITransport(shuffler_app(self.server, TOKENS)), base_url="http://inside"
        )
        self.loop = asyncio.new_event_loop()
        self.thread = threading.Thread(target=self.loop.run_forever, daemon=True)
        self.thread.start()
        self.faults: list[Fault | None] = []
        self.requests: list[tuple[httpx.Request, int | str]] = []
        self.pauses: list[float] = []

    def __enter__(self) -> "Shuffler":
        self.server.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.server.stop()
        self.loop.call_soon_threadsafe(self.loop.stop)
        self.thread.join()
        self.loop.run_until_complete(self.loop.shutdown_default_executor())
        self.loop.close()

    def forward(self, request: httpx.Request) -> httpx.Response:
        inside = self.inside.request(
            request.method, request.url.raw_path.decode(), content=request.content, headers=request.headers
        )
        answer = asyncio.run_coroutine_threadsafe(inside, self.loop).result(60)
        return httpx.Response(answer.status_code, headers=answer.headers, content=answer.content)

    def handle(self, request: httpx.Request) -> httpx.Response:
        request.read()
        fault = self.faults.pop(0) if self.faults else None
        try:
            response = self.forward(request) if fault is None else fault(request, self.forward)
        except Exception as broken:
            self.requests.append((request, type(broken).__name__))
            raise
        self.requests.append((request, response.status_code))
        return response

    def client(self, task: Task, outbox: Outbox | Path | None = None, **more) -> Client:
        http = httpx.Client(transport=httpx.MockTransport(self.handle))
        return Client(task, URL, TOKENS.secrets["enrol"], outbox, http, sleep=self.pauses.append, **more)

    def counts(self, task: Task) -> dict[str, int]:
        return self.server.counts(task.id)

    @property
    def bodies(self) -> list[bytes]:
        return [request.content for request, _ in self.requests if "/reports" in request.url.path]

    @property
    def statuses(self) -> list[int | str]:
        return [status for _, status in self.requests]


@pytest.fixture
def shuffler(tmp_path: Path, task: Task) -> Iterator[Shuffler]:
    with Shuffler(tmp_path, task) as made:
        yield made


def lost_answer(request: httpx.Request, forward: Forward) -> httpx.Response:
    forward(request)
    raise httpx.ReadTimeout("the answer was lost", request=request)


def no_connection(request: httpx.Request, forward: Forward) -> httpx.Response:
    raise httpx.ConnectError("refused", request=request)


def answers(status: int, headers: dict[str, str] | None = None, **body) -> Fault:
    return lambda request, forward: httpx.Response(status, headers=headers, **(body or {"json": {}}))


# --- the plain way -------------------------------------------------------------------------------


def test_a_report_arrives_and_opens(shuffler: Shuffler, task: Task) -> None:
    with shuffler.client(task) as client:
        assert client.report(1) == Sent(reports=1, new=1, retried=0, refused=0)
        assert client.outbox.waiting(task.id) == 0
    assert shuffler.statuses == [201, 201]
    _, body = split_single_body(shuffler.bodies[0])
    (batch,) = task.routing.batches_of(0)
    ciphertexts = [body[i : i + CIPHERTEXT_BYTES] for i in range(0, len(body), CIPHERTEXT_BYTES)]
    plain = [KEY.open(ciphertext, binding(task.id, batch.batch_id)) for ciphertext in ciphertexts]
    assert unpack_messages(b"".join(plain)).malformed == 0 and len(plain) == batch.messages


def test_many_reports_arrive_in_few_requests(shuffler: Shuffler, task: Task) -> None:
    seen: list[int] = []
    with shuffler.client(task) as client:
        assert client.report_many(np.arange(500) % 2, progress=seen.append) == Sent(500, 500, 0, 0)
    assert shuffler.counts(task)["reports"] == 500 and len(shuffler.requests) <= 4
    assert seen[-1] == 500 and seen == sorted(seen)
    with shuffler.client(task) as client, pytest.raises(ReportError, match="all 500 seats are taken") as full:
        client.report(1)
    assert (full.value.unsent, full.value.waiting, full.value.cause.status) == (1, 0, 409)


def test_a_running_sum_takes_a_seat_in_every_level_and_none_in_a_last_slot_that_is_open(tmp_path: Path) -> None:
    plan = CounterPlan.plan(users=200, shufflers=2, privacy=Privacy(1, 1e-6), noise="coins")
    counting = task_of(replace(plan, counts_everybody=False))
    assert counting.routing.batches_of(199) == ()
    shuffler = Shuffler(tmp_path, counting)
    with shuffler, shuffler.client(counting) as client:
        assert client.report(True).new == 1
        assert client.report_many([0, 1] * 99 + [1]).new == 199
        assert shuffler.counts(counting)["reports"] == 200


def test_vectors(tmp_path: Path) -> None:
    plan = VectorSum.plan(users=30, privacy=Privacy(1, 1e-6), dimension=3, radius=1.0, method="bits")
    vectors = task_of(plan)
    shuffler = Shuffler(tmp_path, vectors)
    with shuffler, shuffler.client(vectors) as client:
        assert client.report([0.1, 0.2, 0.3]).new == 1
        assert client.report_many(np.full((4, 3), 0.1)).new == 4
        with pytest.raises(ParameterError, match=r"dimension|shape|numbers"):
            client.report(0.5)


@pytest.mark.parametrize("method", ["rr", "zsum", "poisson-bits", "correlated"])
def test_methods_in_which_a_user_may_have_nothing_to_say(tmp_path: Path, method: str) -> None:
    asking = task_of(BinarySum.plan(users=300, privacy=Privacy(1, 1e-6), method=method))
    shuffler = Shuffler(tmp_path, asking)
    with shuffler, shuffler.client(asking) as client:
        assert sum(client.report(0).new for _ in range(10)) == 10
        assert client.report_many([0, 1] * 20).new == 40
    singles = shuffler.bodies[:10]
    assert {len(body) for body in singles} == {16 + asking.routing.longest_report_bytes}


def test_bad_values_are_refused_before_anything_is_sent(shuffler: Shuffler, task: Task) -> None:
    with shuffler.client(task) as client:
        with pytest.raises(DataError, match="row 3"):
            client.report_many([0, 1, 2, 1])
        with pytest.raises(DataError):
            client.report(7)
        assert client.report_many([]) == Sent(0, 0, 0, 0)
    assert shuffler.requests == []


def test_all_values_look_alike_on_the_wire(shuffler: Shuffler, task: Task) -> None:
    with shuffler.client(task) as client:
        for value in (0, 1, True, False, np.uint8(1), 0, 1):
            client.report(value)
        client.report_many([0] * 3)
        client.report_many([1] * 3)
    singles, uploads = shuffler.bodies[:7], shuffler.bodies[7:]
    assert {len(body) for body in singles} == {16 + task.routing.longest_report_bytes}
    assert len({len(body) for body in uploads}) == 1 and len(set(shuffler.bodies)) == 9


@pytest.mark.parametrize("kind", ["bits", "reals", "vectors", "categories"])
def test_reports_made_together_are_those_made_alone(kind: str) -> None:
    asked = {"users": 120, "shufflers": 2, "privacy": Privacy(8, 1e-2), "noise": "coins"}
    domains = {"bits": None, "reals": Reals(3), "vectors": Vectors(2, 1.0, 2), "categories": OneHot(3)}
    counting = task_of(CounterPlan.plan(**asked, domain=domains[kind]))
    # Such that rounding leaves nothing to chance: then only coins differ.
    values = {
        "bits": np.arange(40) % 2,
        "reals": (np.arange(40) % 4) / 3,
        "vectors": np.array([[1.0, 0.0], [0.0, -1.0], [-0.5, 0.5], [0.0, 0.0]] * 10),
        "categories": np.arange(40) % 3,
    }[kind]
    bits = RandomBits.secure()
    positions = [*range(30), *range(90, 94), 60, 50, 40, 41, 42, 119]
    seats = [counting.routing.batches_of(position) for position in positions]
    made = making.make_reports(counting, values, seats, bits=bits)

    domain = counting.plan.domain
    steps = domain.to_steps(domain.check_values(values), bits=bits).reshape(40, domain.coordinates)

    def read(body: bytes, seat, own: np.ndarray) -> list[tuple[int, int, list[int]]]:
        found = []
        for batch in seat:
            part, body = body[: batch.messages * CIPHERTEXT_BYTES], body[batch.messages * CIPHERTEXT_BYTES :]
            pieces = [part[i : i + CIPHERTEXT_BYTES] for i in range(0, len(part), CIPHERTEXT_BYTES)]
            opened = [KEY.open(piece, binding(counting.id, batch.batch_id)) for piece in pieces]
            messages = unpack_messages(b"".join(opened))
            mechanism = counting.plan.mechanism(batch.size)
            coins = messages.payloads.size // mechanism.coordinates - mechanism.length
            # In random order: coins cannot be told from the value's own bits, and only bounds are left.
            ones = np.bincount(messages.labels[messages.payloads == 1], minlength=mechanism.coordinates)
            least = own - mechanism.lowest
            assert ((least <= ones) & (ones <= least + coins)).all()
            found.append((messages.payloads.size, messages.fillers, np.sort(messages.labels).tolist()))
        return found

    for body, value, seat, own in zip(made, values, seats, steps, strict=True):
        assert read(body, seat, own) == read(report_of(counting, value, seat, bits=bits), seat, own)
    with pytest.raises(RandomnessError):
        making.make_reports(counting, values, seats, bits=RandomBits.seeded(1))


def test_seeded_bits_are_refused(shuffler: Shuffler, task: Task) -> None:
    with pytest.raises(RandomnessError, match="protect nobody"):
        shuffler.client(task, bits=RandomBits.seeded(1))
    assert shuffler.requests == []


# --- the network fails ---------------------------------------------------------------------------


def test_a_lost_answer_leads_to_the_same_bytes_and_one_acceptance(shuffler: Shuffler, task: Task) -> None:
    shuffler.faults = [None, lost_answer, lost_answer]
    with shuffler.client(task) as client:
        assert client.report(1) == Sent(reports=1, new=0, retried=1, refused=0)
    assert len(shuffler.bodies) == 3 and len(set(shuffler.bodies)) == 1
    assert len({request.url for request, _ in shuffler.requests[1:]}) == 1
    assert shuffler.counts(task)["reports"] == 1 and shuffler.counts(task)["seats_taken"] == 1


def test_lost_answers_to_uploads_too(shuffler: Shuffler, task: Task) -> None:
    shuffler.faults = [None, lost_answer]
    with shuffler.client(task) as client:
        assert client.report_many([1, 0, 1]) == Sent(reports=3, new=0, retried=3, refused=0)
    assert shuffler.bodies[0] == shuffler.bodies[1] and shuffler.counts(task)["reports"] == 3


def test_no_connection_for_a_while(shuffler: Shuffler, task: Task) -> None:
    shuffler.faults = [no_connection, no_connection, None, no_connection, answers(502), answers(503)]
    with shuffler.client(task) as client:
        assert client.report(0) == Sent(1, 1, 1, 0)
    assert len(set(shuffler.bodies)) == 1 and len(shuffler.pauses) == 5
    assert all(0 <= pause <= 20 for pause in shuffler.pauses)


@pytest.mark.parametrize("status", [429, 503])
def test_retry_after_is_honoured(shuffler: Shuffler, task: Task, status: int) -> None:
    shuffler.faults = [answers(status, {"Retry-After": "7"}), None, answers(status, {"Retry-After": "3"})]
    with shuffler.client(task) as client:
        assert client.report(0).new == 1
    assert len(shuffler.pauses) == 2 and shuffler.pauses[0] >= 7 and shuffler.pauses[1] >= 3


def test_a_date_in_retry_after_is_honoured(shuffler: Shuffler, task: Task) -> None:
    shuffler.faults = [
        answers(503, {"Retry-After": "Wed, 21 Oct 2015 07:28:00 GMT"}),
        answers(429, {"Retry-After": "x"}),
    ]
    with shuffler.client(task) as client:
        assert client.report(0).new == 1


def test_some_reports_of_an_upload_must_wait(shuffler: Shuffler, task: Task) -> None:
    def half(request: httpx.Request, forward: Forward) -> httpx.Response:
        document = forward(request).json()
        document["results"][1] = {
            "report_id": document["results"][1]["report_id"],
            "status": 429,
            "problem": {"type": "urn:shuffledp:problem:busy", "status": 429, "detail": "later"},
        }
        return httpx.Response(200, json=document)

    shuffler.faults = [None, half]
    with shuffler.client(task) as client:
        assert client.report_many([1, 0, 1]) == Sent(reports=3, new=2, retried=1, refused=0)
    assert shuffler.counts(task)["reports"] == 3


def test_a_captive_portal_acknowledges_nothing(shuffler: Shuffler, task: Task) -> None:
    portal = answers(200, {"Content-Type": "text/html"}, text="<html>Welcome</html>")
    shuffler.faults = [portal, None, portal, answers(200, json={"welcome": True}), answers(201, json={"new": False})]
    with shuffler.client(task) as client:
        assert client.report(1) == Sent(1, 1, 1, 0)
    assert shuffler.counts(task)["reports"] == 1


def test_patience_ends_and_the_outbox_keeps_the_bytes(shuffler: Shuffler, task: Task, tmp_path: Path) -> None:
    box = tmp_path / "outbox.db"
    shuffler.faults = [None] + [no_connection] * 10
    with shuffler.client(task, box, patience=0.0) as client:
        with pytest.raises(ReportError, match="1 wait in the outbox") as stopped:
            client.report(1)
        assert isinstance(stopped.value.cause, UnreachableError)
        assert (stopped.value.sent, stopped.value.waiting, stopped.value.unsent) == (Sent(0, 0, 0, 0), 1, 0)
    shuffler.faults.clear()
    with shuffler.client(task, box) as client:
        assert client.flush() == Sent(1, 1, 0, 0)
        assert client.flush() == Sent(0, 0, 0, 0)
    assert len(set(shuffler.bodies)) == 1 and shuffler.counts(task)["reports"] == 1


def test_without_a_seat_nothing_waits_and_the_value_may_be_reported_again(shuffler: Shuffler, task: Task) -> None:
    shuffler.faults = [no_connection]
    with shuffler.client(task, patience=0.0) as client:
        with pytest.raises(ReportError) as stopped:
            client.report_many([1, 1])
        assert (stopped.value.waiting, stopped.value.unsent) == (0, 2)
        assert client.report_many([1, 1]).new == 2


# --- refusals ------------------------------------------------------------------------------------


def late(shuffler: Shuffler) -> Fault:
    def fault(request: httpx.Request, forward: Forward) -> httpx.Response:
        shuffler.clock.time += 61
        return forward(request)

    return fault


def test_a_seat_that_is_gone_leads_to_a_new_seat_and_new_noise(shuffler: Shuffler, task: Task) -> None:
    shuffler.faults = [None, late(shuffler)]
    with shuffler.client(task) as client:
        assert client.report(1) == Sent(reports=1, new=1, retried=1, refused=0)
        assert client.outbox.waiting(task.id) == 0
    assert shuffler.statuses == [201, 410, 201, 201]
    first, second = shuffler.bodies
    assert first[:16] != second[:16] and first != second
    assert shuffler.counts(task)["reports"] == 1 and shuffler.counts(task)["seats_taken"] == 1


def test_the_same_for_a_whole_block(shuffler: Shuffler, task: Task) -> None:
    shuffler.faults = [None, late(shuffler)]
    with shuffler.client(task) as client:
        assert client.report_many([1] * 20) == Sent(reports=20, new=20, retried=20, refused=0)
    assert shuffler.counts(task)["reports"] == 20
    ids = [{report.report_id for report in unpack_upload(body)} for body in shuffler.bodies]
    assert not ids[0] & ids[1]


@pytest.mark.parametrize(
    "fault",
    [
        answers(410, text="gone"),
        answers(410, json={"type": "about:blank"}),
        answers(401, json={"type": "urn:shuffledp:problem:token-missing", "detail": "no."}),
        answers(404, json={"type": "urn:shuffledp:problem:task-unknown", "detail": "no."}),
        answers(307, {"Location": "http://elsewhere.test/"}),
        answers(413, json={"type": "urn:shuffledp:problem:too-large", "detail": "no."}),
        answers(400, json={"type": "urn:shuffledp:problem:bad-request", "detail": "no."}),
    ],
)
def test_no_other_refusal_leads_to_new_noise(shuffler: Shuffler, task: Task, fault: Fault) -> None:
    shuffler.faults = [None, fault]
    with shuffler.client(task) as client:
        with pytest.raises(ReportError) as stopped:
            client.report(1)
        assert isinstance(stopped.value.cause, AnswerError) and stopped.value.waiting == 1
        assert client.flush() == Sent(1, 1, 0, 0)
    assert len(set(shuffler.bodies)) == 1


@pytest.mark.parametrize(("status", "kind"), [(413, "too-large"), (408, "too-slow")])
def test_an_upload_that_is_too_large_or_too_slow_is_halved(
    shuffler: Shuffler, task: Task, status: int, kind: str
) -> None:
    too_large = answers(status, json={"type": f"urn:shuffledp:problem:{kind}", "detail": "no."})
    shuffler.faults = [None, too_large, too_large]
    with shuffler.client(task) as client:
        assert client.report_many([1] * 9).new == 9
    assert shuffler.counts(task)["reports"] == 9


def test_a_wrong_token_is_said(shuffler: Shuffler, task: Task) -> None:
    http = httpx.Client(transport=httpx.MockTransport(shuffler.handle))
    with Client(task, URL, TOKENS.secrets["read"], http=http) as client:
        with pytest.raises(ReportError, match=r"403 role-wrong"):
            client.report(1)
        assert TOKENS.secrets["read"] not in repr(client)


def test_leases_too_short_for_this_machine_end_in_a_sentence(shuffler: Shuffler, task: Task) -> None:
    shuffler.faults = [None, late(shuffler)] * 20
    with shuffler.client(task) as client, pytest.raises(ReportError, match="longer leases") as stopped:
        client.report_many([1, 0])
    assert (stopped.value.waiting, stopped.value.unsent) == (0, 2) and len(shuffler.requests) == 10


@pytest.mark.parametrize("change", [{"size": 501}, {"seat": 500}, {"batch_id": "1.0.2"}, {"messages": 1}, {"level": 2}])
def test_a_shuffler_that_lies_about_a_seat_gets_nothing(shuffler: Shuffler, task: Task, change: dict) -> None:
    def lie(request: httpx.Request, forward: Forward) -> httpx.Response:
        document = forward(request).json()
        document["seats"][0]["batches"][0] |= change
        return httpx.Response(201, json=document)

    shuffler.faults = [lie]
    with shuffler.client(task) as client, pytest.raises(ReportError, match="seat that the task does not have"):
        client.report(1)
    assert shuffler.bodies == []


@pytest.mark.parametrize(
    "nonsense",
    [
        {"seat": 1.5}, {"size": "500"}, {"level": True}, {"batch_id": 7}, {"batch_id": None}, {"seat": 10**40},
        {"messages": []}, {"batch_id": "1.0.1" * 1000}, {"seat": -(10**40)},
    ],
)  # fmt: skip
def test_seats_that_are_nonsense_end_in_a_sentence(shuffler: Shuffler, task: Task, nonsense: dict) -> None:
    def lie(request: httpx.Request, forward: Forward) -> httpx.Response:
        document = forward(request).json()
        document["seats"][0]["batches"][0] |= nonsense
        return httpx.Response(201, json=document)

    shuffler.faults = [lie] * 100
    with shuffler.client(task, patience=0.0) as client, pytest.raises(ReportError, match="seat"):
        client.report(1)
    assert shuffler.bodies == []


@pytest.mark.parametrize("seats", [None, {}, [None], [[]], [{"seat": "0" * 32}], [{"lease_seconds": 10**400}], "seats"])
def test_answers_without_seats_end_in_a_sentence(shuffler: Shuffler, task: Task, seats: object) -> None:
    if isinstance(seats, list) and isinstance(seats[0], dict):
        seats = [{"seat": "0" * 32, "lease_seconds": 60, "batches": 5} | seats[0]]
    shuffler.faults = [answers(201, json={"seats": seats})] * 100
    with shuffler.client(task, patience=0.0) as client, pytest.raises(ReportError, match="seats"):
        client.report(1)
    assert shuffler.bodies == []


# --- the outbox ----------------------------------------------------------------------------------


def killed_at(request_name: str, folder: Path, task: Task) -> None:
    """A client process of its own that kills itself when this request comes."""
    (folder / "task.json").write_text(task.text)
    script = f"""
        import os, signal, sys
        from pathlib import Path
        import httpx
        from shuffledp.service.client import Client
        from shuffledp.service.task import Task

        task = Task.load(Path({str(folder / "task.json")!r}))
        seats = [
            {{"seat": f"{{place:012x}}" + os.urandom(10).hex(), "lease_seconds": 60.0, "batches": [
                {{"level": b.level, "batch_id": b.batch_id, "size": b.size, "seat": b.seat, "messages": b.messages}}
                for b in task.routing.batches_of(place)]}}
            for place in range(10)
        ]

        def handle(request):
            if {request_name!r} in request.url.path:
                os.kill(os.getpid(), signal.SIGKILL)
            return httpx.Response(201, json={{"seats": seats}})

        http = httpx.Client(transport=httpx.MockTransport(handle))
        with Client(task, "https://x", "t" * 64, Path({str(folder / "outbox.db")!r}), http) as client:
            client.report_many([1] * 10, stream="rows")
    """
    ended = subprocess.run([sys.executable, "-c", textwrap.dedent(script)], timeout=60, check=False)
    assert ended.returncode == -signal.SIGKILL


def lease_what_waits(shuffler: Shuffler, task: Task, box: Path) -> None:
    """Let the shuffler know the seats that the killed process had."""
    with sqlite3.connect(box) as db:
        seats = [row[0].hex() for row in db.execute("SELECT seat FROM reports")]
    db.close()

    def add(store) -> None:
        for seat in seats:
            ends = shuffler.clock.now() + 60
            store.db.execute("INSERT INTO leases VALUES (?, ?, ?, ?)", (task.id, position_of(seat), seat, ends))

    shuffler.server._store.write(add)


def test_a_client_killed_before_it_could_send_sends_after_its_restart(
    shuffler: Shuffler, task: Task, tmp_path: Path
) -> None:
    killed_at("/reports", tmp_path, task)
    box = tmp_path / "outbox.db"
    lease_what_waits(shuffler, task, box)
    with sqlite3.connect(box) as db:
        kept = {row[0] for row in db.execute("SELECT body FROM reports")}
    db.close()
    with shuffler.client(task, box) as client:
        assert client.outbox.waiting(task.id) == 10
        assert client.flush() == Sent(10, 10, 0, 0)
        # The stream is known to be done: nobody is randomized twice.
        assert client.report_many([1] * 10, stream="rows") == Sent(0, 0, 0, 0)
    assert {report.body for body in shuffler.bodies for report in unpack_upload(body)} == kept
    assert shuffler.counts(task)["reports"] == 10


def test_what_is_refused_after_a_restart_is_counted_and_a_stream_reports_it_again(
    shuffler: Shuffler, task: Task, tmp_path: Path
) -> None:
    killed_at("/reports", tmp_path, task)
    with shuffler.client(task, tmp_path / "outbox.db") as client:
        assert client.flush() == Sent(0, 0, 0, refused=10)
        assert client.outbox.rows_refused(task.id, "rows") == list(range(10))
        assert client.report_many([1] * 12, stream="rows") == Sent(12, 12, 0, 0)
        assert client.outbox.rows_refused(task.id, "rows") == []
        assert client.report_many([1] * 12, stream="rows") == Sent(0, 0, 0, 0)
        assert client.report_many([1] * 2, stream="other") == Sent(2, 2, 0, 0)
    assert shuffler.counts(task)["reports"] == 14


def test_a_stream_goes_on_by_itself_after_a_restart(shuffler: Shuffler, task: Task, tmp_path: Path) -> None:
    killed_at("/reports", tmp_path, task)
    with shuffler.client(task, tmp_path / "outbox.db") as client:
        assert client.report_many([1] * 10, stream="rows") == Sent(10, 10, 0, 0)
    assert shuffler.counts(task)["reports"] == 10


def test_a_refusal_in_a_stream_survives_a_stop_before_the_new_seat(shuffler: Shuffler, task: Task) -> None:
    shuffler.faults = [None, late(shuffler), no_connection]
    outbox = open_outbox(None)
    with shuffler.client(task, outbox, patience=0.0) as client, pytest.raises(ReportError) as stopped:
        client.report_many([1, 0, 1], stream="rows")
    assert stopped.value.unsent == 3 and outbox.rows_refused(task.id, "rows") == [0, 1, 2]
    with shuffler.client(task, outbox) as client:
        assert client.report_many([1, 0, 1], stream="rows").new == 3
    assert outbox.rows_refused(task.id, "rows") == [] and shuffler.counts(task)["reports"] == 3


def test_the_outbox_holds_no_plaintext(shuffler: Shuffler, task: Task, tmp_path: Path, monkeypatch) -> None:
    packed: list[bytes] = []
    real = making.pack_messages
    monkeypatch.setattr(making, "pack_messages", lambda *a, **k: packed.extend(made := real(*a, **k)) or made)
    box = tmp_path / "outbox.db"
    shuffler.faults = [None, no_connection]
    with shuffler.client(task, box, patience=0.0) as client, pytest.raises(ReportError):
        client.report_many([1] * 50)
    on_disk = b"".join(file.read_bytes() for file in tmp_path.glob("outbox.db*"))
    assert len(packed) == 50 * task.routing.batches_of(0)[0].messages
    assert not any(message in on_disk or message[:16] in on_disk for message in packed)
    assert KEY.raw not in on_disk and TOKENS.secrets["enrol"].encode() not in on_disk
    with sqlite3.connect(box) as db:
        columns = {row[1] for row in db.execute("PRAGMA table_info(reports)")}
        bodies = {row[0] for row in db.execute("SELECT body FROM reports")}
    db.close()
    assert columns == {"report_id", "task_id", "seat", "body", "state", "stream", "row"}
    assert {len(body) for body in bodies} == {task.routing.longest_report_bytes} and len(bodies) == 50


def test_what_was_acknowledged_is_nowhere_on_disk(shuffler: Shuffler, task: Task, tmp_path: Path) -> None:
    with shuffler.client(task, tmp_path / "outbox.db") as client:
        client.report(1)
    _, body = split_single_body(shuffler.bodies[0])
    on_disk = b"".join(file.read_bytes() for file in tmp_path.glob("outbox.db*"))
    assert body[:77] not in on_disk and body[-77:] not in on_disk


def test_the_outbox_is_its_owners_and_one_processes(tmp_path: Path) -> None:
    box = tmp_path / "outbox.db"
    old = os.umask(0)
    try:
        with open_outbox(box):
            for file in tmp_path.glob("outbox.db*"):
                if not file.name.endswith(".lock"):
                    assert stat.S_IMODE(file.stat().st_mode) == 0o600, file
            with pytest.raises(ParameterError, match=f"process {os.getpid()} has held it"):
                open_outbox(box)
    finally:
        os.umask(old)
    with open_outbox(box) as again:
        assert again.waiting("any") == 0
    with pytest.raises(ParameterError, match="must be open"):
        again.waiting("any")


def test_other_files_are_no_outbox(tmp_path: Path, shuffler: Shuffler, task: Task) -> None:
    text = tmp_path / "notes.txt"
    text.write_text("no database at all, but long enough to be taken for one " * 30)
    with pytest.raises(ParameterError):
        open_outbox(text)
    with sqlite3.connect(tmp_path / "other.db") as db:
        db.execute("CREATE TABLE store (label TEXT)")
        db.execute("INSERT INTO store VALUES ('shuffler 1')")
    db.close()
    with pytest.raises(DataError, match="must be of outbox 1"):
        open_outbox(tmp_path / "other.db")
    with pytest.raises(ParameterError):
        open_outbox(tmp_path / "no" / "outbox.db")


def test_reports_of_another_task_stay(shuffler: Shuffler, task: Task) -> None:
    outbox = open_outbox(None)
    shuffler.faults = [None, no_connection]
    with shuffler.client(task, outbox, patience=0.0) as client, pytest.raises(ReportError):
        client.report(1)
    other = task_of(BinarySum.plan(users=500, privacy=Privacy(1, 1e-6), method="coins"))
    with shuffler.client(other, outbox) as client:
        assert client.flush() == Sent(0, 0, 0, 0)
    assert outbox.waiting(task.id) == 1 and outbox.waiting(other.id) == 0 and REFUSED == "refused"


@pytest.mark.parametrize("url", ["", "shuffler", "ftp://x", "http://", "http://u:p@x", "http://x/?a=1"])
def test_addresses_are_checked(task: Task, url: str) -> None:
    with pytest.raises(ParameterError) as refused:
        Client(task, url, "t" * 64)
    assert refused.value.parameter == "shuffler"


def test_blocks_fit_the_machine(shuffler: Shuffler, task: Task) -> None:
    with shuffler.client(task) as client:
        client._block = 8
        client._fit_block(seconds=1.0, lease=60.0)
        assert client._block == 16
        client._fit_block(seconds=4.0, lease=60.0)
        assert client._block == 16
        client._fit_block(seconds=11.0, lease=60.0)
        assert client._block == 8
        assert 1 <= client._largest_block <= 1000
