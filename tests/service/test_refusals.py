"""Who may do what, and what is refused: every endpoint with every role, and all that can be sent wrong."""

import asyncio
import hmac
import json
import logging
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import httpx
import pytest

from harness.world import report_of, tables_of
from shuffledp.randomness import RandomBits
from shuffledp.service.crypto import PrivateKey
from shuffledp.service.openapi import BINARY
from shuffledp.service.problems import MEDIA_TYPE
from shuffledp.service.routing import SeatInBatch
from shuffledp.service.task import Task
from shuffledp.service.tokens import ROLES, Tokens
from shuffledp.service.wire import CIPHERTEXT_BYTES, SentReport, pack_upload, single_body

SECURE = RandomBits.secure()
JSON = "application/json"

# --- who may do what --------------------------------------------------------------------------


@dataclass(frozen=True)
class Question:
    """An endpoint, who may ask it, and what with."""

    server: str
    method: str
    path: str
    roles: frozenset[str]
    takes: str | None = None

    def ask(self, service: Any, task_id: str, role: str | None = None, **more: Any) -> httpx.Response:
        path = self.path.format(task=task_id, report="0" * 32, batch="1.0.1")
        headers = {} if self.takes is None else {"Content-Type": self.takes}
        headers |= more.pop("headers", {})
        return service.at(self.server, role).request(self.method, path, headers=headers, **more)


ADMIN = frozenset({"admin"})
QUESTIONS = [
    Question("shuffler", "POST", "/v1/tasks", ADMIN, JSON),
    Question("shuffler", "GET", "/v1/tasks/{task}", ADMIN | {"enrol", "read"}),
    Question("shuffler", "GET", "/v1/tasks/{task}/fill", ADMIN | {"read"}),
    Question("shuffler", "POST", "/v1/tasks/{task}/seats", ADMIN | {"enrol"}),
    Question("shuffler", "PUT", "/v1/tasks/{task}/reports/{report}", ADMIN | {"enrol"}, BINARY),
    Question("shuffler", "POST", "/v1/tasks/{task}/reports", ADMIN | {"enrol"}, BINARY),
    Question("analyzer", "POST", "/v1/tasks", ADMIN, JSON),
    Question("analyzer", "GET", "/v1/tasks/{task}", ADMIN | {"read", "open"}),
    Question("analyzer", "POST", "/v1/tasks/{task}/batches/{batch}", ADMIN | {"hop"}, BINARY),
    Question("analyzer", "POST", "/v1/tasks/{task}/batches/{batch}/pieces/0", ADMIN | {"hop"}, BINARY),
    Question("analyzer", "POST", "/v1/tasks/{task}/batches/{batch}/manifest", ADMIN | {"hop"}, JSON),
    Question("analyzer", "POST", "/v1/openings", ADMIN | {"open"}),
    Question("analyzer", "POST", "/v1/openings/" + "0" * 32, ADMIN | {"open"}, BINARY),
    Question("analyzer", "DELETE", "/v1/openings/" + "0" * 32, ADMIN | {"open"}),
    Question("analyzer", "GET", "/v1/tasks/{task}/estimate", ADMIN | {"read"}),
    Question("analyzer", "GET", "/v1/tasks/{task}/history", ADMIN | {"read"}),
]
OPEN = [
    ("shuffler", ""),
    *(
        (server, path)
        for server in ("shuffler", "analyzer")
        for path in ("healthz", "readyz", "metrics", "openapi.json")
    ),
]
WITH_BODY = [question for question in QUESTIONS if question.takes]
OF_A_TASK = [question for question in QUESTIONS if "{task}" in question.path]


def name_of(question: Any) -> str:
    return f"{question.server} {question.method} {question.path}" if isinstance(question, Question) else str(question)


def problem(answer: httpx.Response, status: int, kind: str | None = None) -> dict[str, Any]:
    """The problem document, which says what is wrong and how to mend it."""
    assert answer.status_code == status, answer.text
    assert answer.headers["content-type"] == MEDIA_TYPE
    document: dict[str, Any] = answer.json()
    assert set(document) == {"type", "title", "status", "detail"} and document["status"] == status
    assert document["type"].startswith("urn:shuffledp:problem:") and len(document["title"].split()) >= 2
    assert kind is None or document["type"] == f"urn:shuffledp:problem:{kind}"
    # The last clause is the way out: something to do, in words.
    assert re.search(r"(^|: )[a-z]+ [^:]*\w[^:]*\.$", document["detail"]), document["detail"]
    assert ("www-authenticate" in answer.headers) == (status == 401)
    return document


@pytest.mark.parametrize("question", QUESTIONS, ids=name_of)
def test_each_role_may_do_its_own(question: Question, make_service: Callable[..., Any], make_task: Any) -> None:
    service = make_service()
    task = service.add(make_task("binary coins"))
    for role in ROLES:
        answer = question.ask(service, task.id, role)
        if role in question.roles:
            assert answer.status_code not in (401, 403), answer.text
        else:
            assert "ask the operator" in problem(answer, 403, "role-wrong")["detail"]
    problem(question.ask(service, task.id), 401, "token-missing")
    secret = service.tokens.secrets["admin"]
    for header in ("Bearer", "Bearer ", "Basic " + secret, secret, "Bearer " + "0" * 64, "Bearer " + secret[:-1],
                   "Bearer " + secret + "0", "Bearer " + secret.upper() + "X", "Bearer \u00ff\u00fe"):  # fmt: skip
        answer = question.ask(service, task.id, headers={"Authorization": header.encode("latin-1")})
        problem(answer, 401, "token-missing")
    assert question.ask(service, task.id, headers={"Authorization": "bEARER " + secret}).status_code not in (401, 403)


@pytest.mark.parametrize(("server", "path"), OPEN)
def test_what_needs_no_token_says_nothing_about_people(
    server: str, path: str, make_service: Callable[..., Any], make_task: Any
) -> None:
    service = make_service()
    task = service.add(make_task("binary coins"))
    sent = service.send(task, [1, 0, 1])
    answer = service.at(server).get(f"/{path}")
    assert answer.status_code == 200
    for report in sent:
        assert report.report_id not in answer.text and report.seat not in answer.text
    assert "127.0.0.1" not in answer.text and task.id not in answer.text


def test_a_refused_request_changes_nothing_whatever_it_holds(make_service: Callable[..., Any], make_task: Any) -> None:
    service = make_service()
    task = service.add(make_task("binary coins"))
    before = service.shuffler.counts(task.id)
    for question in QUESTIONS:
        question.ask(service, task.id, content=task.text.encode() if question.takes else None)
    assert service.shuffler.counts(task.id) == before
    assert service.at("shuffler", "enrol").post("/v1/tasks", content=b"{}").status_code == 403


def test_tokens_are_compared_in_constant_time(monkeypatch: pytest.MonkeyPatch, tokens: Tokens) -> None:
    """Nothing but hmac.compare_digest decides, and each question asks it about every role."""
    compared: list[tuple[bytes, bytes]] = []
    real = hmac.compare_digest

    def recorded(first: bytes, second: bytes) -> bool:
        compared.append((first, second))
        return real(first, second)

    monkeypatch.setattr(hmac, "compare_digest", recorded)
    for role in ROLES:
        compared.clear()
        tokens.check("Bearer " + tokens.secrets[role], role)
        secret = tokens.secrets[role].encode()
        assert compared == [(secret, other.encode()) for other in tokens.secrets.values()]
    for answer in (False, True):
        monkeypatch.setattr(hmac, "compare_digest", lambda first, second, answer=answer: answer)
        if answer:
            tokens.check("Bearer nonsense", "hop")
        else:
            with pytest.raises(Exception, match="the token is unknown here"):
                tokens.check("Bearer " + tokens.secrets["admin"], "admin")


def test_secrets_stay_out_of_words(tokens: Tokens, key: PrivateKey) -> None:
    words = f"{tokens!r} {tokens} {key!r} {key} {[tokens, key]!r}"
    assert not any(secret in words for secret in (*tokens.secrets.values(), key.text, key.raw.hex(), repr(key.raw)))


# --- what is refused --------------------------------------------------------------------------


@pytest.fixture
def served(make_service: Callable[..., Any], make_task: Callable[..., Task]) -> tuple[Any, Task]:
    """Both servers with one running count."""
    service = make_service()
    return service, service.add(make_task("running count"))


def role_for(question: Question) -> str:
    return min(question.roles - {"admin"}, default="admin")


@pytest.mark.parametrize("question", OF_A_TASK, ids=name_of)
@pytest.mark.parametrize("task_id", ["0" * 64, "x", "..%2f..", "%00", "é", "a" * 5000], ids=lambda text: text[:8])
def test_unknown_tasks(question: Question, task_id: str, served: tuple[Any, Task]) -> None:
    problem(question.ask(served[0], task_id, role_for(question)), 404)


@pytest.mark.parametrize("question", WITH_BODY, ids=name_of)
@pytest.mark.parametrize("kind", [None, "text/plain", "application/x-www-form-urlencoded", "multipart/form-data", "x"])
def test_other_media_types(question: Question, kind: str | None, served: tuple[Any, Task]) -> None:
    service, task = served
    headers = {} if kind is None else {"Content-Type": kind}
    answer = replace(question, takes=None).ask(service, task.id, role_for(question), headers=headers, content=b"x")
    assert question.takes in problem(answer, 415, "media-type")["detail"]


@pytest.mark.parametrize("question", WITH_BODY, ids=name_of)
def test_bodies_that_announce_too_much(question: Question, served: tuple[Any, Task]) -> None:
    service, task = served
    for announced in (str((256 << 20) + 1), "9" * 30, "-1", "x"):
        answer = question.ask(service, task.id, role_for(question), headers={"Content-Length": announced}, content=b"x")
        problem(answer, 413, "too-large")


LIMITS = {"/v1/tasks": 1 << 20, "/v1/tasks/{task}/reports/{report}": 385 + 16, "/v1/tasks/{task}/reports": 421_000}


@pytest.mark.parametrize("question", [q for q in WITH_BODY if q.path in LIMITS], ids=name_of)
@pytest.mark.parametrize("more", [0, 1])
def test_bodies_that_do_not_say_how_long_they_are(question: Question, more: int, served: tuple[Any, Task]) -> None:
    service, task = served
    left = LIMITS[question.path] + more
    parts = [b"\xff" * size for size in [100_000] * (left // 100_000) + [left % 100_000]]
    asked: list[int] = []

    def body() -> Iterator[bytes]:
        for part in parts:
            asked.append(len(part))
            yield part

    answer = question.ask(service, task.id, role_for(question), content=body())
    assert "content-length" not in answer.request.headers
    if more:
        assert "send less at a time" in problem(answer, 413, "too-large")["detail"]
    else:
        problem(answer, {"PUT": 410}.get(question.method, 400))


@pytest.mark.parametrize("question", WITH_BODY, ids=name_of)
def test_bodies_that_never_end(question: Question, served: tuple[Any, Task], monkeypatch: pytest.MonkeyPatch) -> None:
    service, task = served
    monkeypatch.setattr("shuffledp.service.http.BODY_SECONDS", 0.05)
    path = question.path.format(task=task.id, report="0" * 32, batch="1.0.1")
    app = service.apps[question.server]
    said: list[Any] = []
    scope = {
        "type": "http", "method": question.method, "path": path, "query_string": b"", "root_path": "",
        "headers": [
            (b"authorization", f"Bearer {service.tokens.secrets[role_for(question)]}".encode()),
            (b"content-type", str(question.takes).encode()),
        ],
    }  # fmt: skip

    async def receive() -> dict[str, Any]:
        # A byte now and then: the connection is alive.
        await asyncio.sleep(0.01)
        return {"type": "http.request", "body": b"x", "more_body": True}

    async def send(message: Any) -> None:
        said.append(message)

    asyncio.run(app(scope, receive, send))
    # Whoever trickles does not keep the connection.
    assert (b"connection", b"close") in said[0]["headers"]
    assert said[0]["status"] == 408 and json.loads(said[1]["body"])["type"].endswith("too-slow")


def test_long_bodies_have_more_time(served: tuple[Any, Task], monkeypatch: pytest.MonkeyPatch) -> None:
    service, task = served
    monkeypatch.setattr("shuffledp.service.http.BODY_SECONDS", 0.05)
    monkeypatch.setattr("shuffledp.service.http._LEAST_BYTES_A_SECOND", 1000)
    service.loop.run(_slow_upload(service, task, said := []))
    assert said[0]["status"] == 400, "it came a hundred bytes in 10 milliseconds, which is fast enough"


async def _slow_upload(service: Any, task: Task, said: list[Any]) -> None:
    parts = [b"x" * 100] * 20
    scope = {
        "type": "http", "method": "POST", "path": f"/v1/tasks/{task.id}/reports", "query_string": b"", "root_path": "",
        "headers": [
            (b"authorization", f"Bearer {service.tokens.secrets['enrol']}".encode()),
            (b"content-type", BINARY.encode()),
        ],
    }  # fmt: skip

    async def receive() -> dict[str, Any]:
        await asyncio.sleep(0.01)
        return {"type": "http.request", "body": parts.pop(), "more_body": bool(parts)}

    async def send(message: Any) -> None:
        said.append(message)

    await service.apps["shuffler"](scope, receive, send)


def test_uploads_of_too_many_reports(served: tuple[Any, Task]) -> None:
    service, task = served
    many = pack_upload([SentReport("0" * 32, "0" * 32, b"")] * 1001)
    question = Question("shuffler", "POST", "/v1/tasks/{task}/reports", ADMIN, BINARY)
    problem(question.ask(service, task.id, "enrol", content=many), 413, "too-large")


@pytest.mark.parametrize("server", ["shuffler", "analyzer"])
def test_other_methods(server: str, served: tuple[Any, Task]) -> None:
    service, task = served
    mine = {(question.path, question.method) for question in QUESTIONS if question.server == server}
    mine |= {(f"/{path}", method) for at, path in OPEN if at == server for method in ("GET", "HEAD")}
    mine |= {(path, "HEAD") for path, method in mine if method == "GET"}
    tried = 0
    for path in {path for path, _ in mine}:
        for method in ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE", "PROPFIND"):
            if (path, method) in mine:
                continue
            url = path.format(task=task.id, report="0" * 32, batch="1.0.1")
            answer = service.at(server, "admin").request(method, url)
            if method == "HEAD":
                assert answer.status_code == 405
            else:
                problem(answer, 405, "method-not-allowed")
            tried += 1
    assert tried > 40


ELSEWHERE = ("/", "/v1", "/v2/tasks", "/v1/tasks/x/y/z", "/admin", "/v1/tasks/a/reports/b/c")


# At its door the shuffler says what it is.
@pytest.mark.parametrize(
    ("path", "server"),
    [(path, server) for server, door in (("shuffler", 1), ("analyzer", 0)) for path in ELSEWHERE[door:]],
)
def test_nothing_else_is_there(path: str, server: str, served: tuple[Any, Task]) -> None:
    problem(served[0].at(server, "admin").get(path), 404, "not-found")


@pytest.mark.parametrize("count", ["0", "-1", "1001", "x", "1.0", "", "٣", "1" * 400])
def test_counts_of_seats(count: str, served: tuple[Any, Task]) -> None:
    service, task = served
    answer = service.at("shuffler", "enrol").post(f"/v1/tasks/{task.id}/seats", params={"count": count})
    assert "1..1000" in problem(answer, 400)["detail"]


@pytest.mark.parametrize("question", [("limit", "0"), ("limit", "100001"), ("after", "-1"), ("after", "x")])
def test_questions_about_history(question: tuple[str, str], served: tuple[Any, Task]) -> None:
    service, task = served
    answer = service.at("analyzer", "read").get(f"/v1/tasks/{task.id}/history", params=dict([question]))
    assert question[0] in problem(answer, 400)["detail"]


@pytest.mark.parametrize("report_id", ["0", "0" * 31, "0" * 33, "G" * 32, "A" * 32, "é" * 32])
def test_ids_of_reports(report_id: str, served: tuple[Any, Task]) -> None:
    service, task = served
    answer = service.at("shuffler", "enrol").put(
        f"/v1/tasks/{task.id}/reports/{report_id}", content=bytes(100), headers={"Content-Type": BINARY}
    )
    assert "draw one" in problem(answer, 400)["detail"]


def put(service: Any, task: Task, report_id: str, seat: str, body: bytes) -> httpx.Response:
    path = f"/v1/tasks/{task.id}/reports/{report_id}"
    return service.at("shuffler", "enrol").put(path, content=single_body(seat, body), headers={"Content-Type": BINARY})


def take(service: Any, task: Task) -> tuple[str, tuple[SeatInBatch, ...]]:
    answer = service.at("shuffler", "enrol").post(f"/v1/tasks/{task.id}/seats")
    (seat,) = answer.json()["seats"]
    return seat["seat"], tuple(SeatInBatch(**each) for each in seat["batches"])


def test_seats_that_were_never_given_out(served: tuple[Any, Task]) -> None:
    service, task = served
    answer = put(service, task, "0" * 32, "f" * 32, bytes(385))
    assert "take a new seat" in problem(answer, 410, "seat-gone")["detail"]


def test_a_seat_of_another_task(served: tuple[Any, Task], make_task: Callable[..., Task]) -> None:
    service, task = served
    other = service.add(make_task("running count"))
    seat, _ = take(service, task)
    problem(put(service, other, "0" * 32, seat, bytes(385)), 410, "seat-gone")


def test_a_seat_whose_lease_ran_out(make_service: Callable[..., Any], make_task: Any, set_clock: Any) -> None:
    service = make_service(clock=set_clock.now, lease_seconds=60.0)
    task = service.add(make_task("running count"))
    seat, batches = take(service, task)
    report = report_of(task, 1, batches, bits=SECURE)
    set_clock.time += 60.0
    problem(put(service, task, "0" * 32, seat, report), 410, "seat-gone")
    # Somebody else has the place now; the late report is refused for good, and the new one is taken.
    other, same = take(service, task)
    assert same == batches and other != seat
    problem(put(service, task, "0" * 32, seat, report), 410, "seat-gone")
    assert put(service, task, "1" * 32, other, report_of(task, 0, same, bits=SECURE)).status_code == 201
    assert service.shuffler.counts(task.id)["reports"] == 1


@pytest.mark.parametrize("change", [-385, -CIPHERTEXT_BYTES, -1], ids=str)
def test_reports_of_another_length(change: int, served: tuple[Any, Task]) -> None:
    service, task = served
    seat, _ = take(service, task)
    answer = put(service, task, "0" * 32, seat, bytes(385 + change))
    assert "its seat needs 385" in problem(answer, 422, "report-length")["detail"]
    # The seat is still there for the right one.
    assert put(service, task, "0" * 32, seat, bytes(385)).status_code == 201


def test_bodies_without_a_seat(served: tuple[Any, Task]) -> None:
    service, task = served
    answer = service.at("shuffler", "enrol").put(
        f"/v1/tasks/{task.id}/reports/{'0' * 32}", content=b"short", headers={"Content-Type": BINARY}
    )
    assert "send it whole" in problem(answer, 400)["detail"]


def test_full_tasks(make_service: Callable[..., Any], make_task: Any) -> None:
    service = make_service()
    task = service.add(make_task("binary rr"))
    service.send(task, [1] * 20)
    answer = service.at("shuffler", "enrol").post(f"/v1/tasks/{task.id}/seats")
    assert "needs no more reports" in problem(answer, 409, "task-full")["detail"]


def test_a_full_outbox_asks_to_come_back(served: tuple[Any, Task]) -> None:
    service, task = served
    seat, batches = take(service, task)
    report = report_of(task, 1, batches, bits=SECURE)
    service.shuffler.desk = replace(service.shuffler.desk, most_waiting_bytes=-1)
    for answer in (
        service.at("shuffler", "enrol").post(f"/v1/tasks/{task.id}/seats"),
        put(service, task, "0" * 32, seat, report),
    ):
        problem(answer, 429, "busy")
        assert int(answer.headers["retry-after"]) > 0
    service.shuffler.desk = replace(service.shuffler.desk, most_waiting_bytes=1 << 30)
    assert put(service, task, "0" * 32, seat, report).status_code == 201


def test_a_replay_changes_nothing(served: tuple[Any, Task]) -> None:
    service, task = served
    seat, batches = take(service, task)
    report = report_of(task, 1, batches, bits=SECURE)
    assert put(service, task, "a" * 32, seat, report).status_code == 201
    before = tables_of(service.folder / "shuffler.db")
    other, _ = take(service, task)
    kept = tables_of(service.folder / "shuffler.db")
    # The same again; the same id with other bytes, another seat, another length: answered, and not kept.
    for replay in ((seat, report), (seat, bytes(385)), (other, report), ("f" * 32, b"")):
        answer = put(service, task, "a" * 32, *replay)
        assert (answer.status_code, answer.json()) == (200, {"new": False})
    together = pack_upload([SentReport("a" * 32, seat, report)] * 3)
    answer = service.at("shuffler", "enrol").post(
        f"/v1/tasks/{task.id}/reports", content=together, headers={"Content-Type": BINARY}
    )
    assert [result["status"] for result in answer.json()["results"]] == [200] * 3
    assert tables_of(service.folder / "shuffler.db") == kept
    assert {name: rows for name, rows in kept.items() if name.startswith("parts_")} == {
        name: rows for name, rows in before.items() if name.startswith("parts_")
    }
    # Under a new id it would be a second report: its seat is gone.
    problem(put(service, task, "b" * 32, seat, report), 410, "seat-gone")


def test_an_upload_answers_for_each_report(served: tuple[Any, Task]) -> None:
    service, task = served
    (good, batches), (short, _) = take(service, task), take(service, task)
    report = report_of(task, 1, batches, bits=SECURE)
    reports = [("a", good, report), ("a", good, report), ("b", short, b"x"), ("c", "f" * 32, report)]
    body = pack_upload([SentReport(letter * 32, seat, part) for letter, seat, part in reports])
    answer = service.at("shuffler", "enrol").post(
        f"/v1/tasks/{task.id}/reports", content=body, headers={"Content-Type": BINARY}
    )
    results = answer.json()["results"]
    assert [result["status"] for result in results] == [201, 200, 422, 410]
    assert [result["report_id"][0] for result in results] == list("aabc")
    assert [set(result["problem"]) for result in results[2:]] == [{"type", "title", "status", "detail"}] * 2


def test_batches_are_taken_once(served: tuple[Any, Task]) -> None:
    service, task = served
    body = SECURE.unsigned(task.routing.batch_bytes(6), 8).tobytes()
    hop = service.at("analyzer", "hop")
    headers = {"Content-Type": BINARY}
    url = f"/v1/tasks/{task.id}/batches/"
    assert hop.post(url + "1.0.1", content=body, headers=headers).status_code == 201
    assert hop.post(url + "1.0.1", content=body, headers=headers).status_code == 200
    problem(hop.post(url + "1.0.1", content=body[::-1], headers=headers), 409, "batch-differs")
    problem(hop.post(url + "1.0.1", content=body[:-1], headers=headers), 422, "report-length")
    for name in ("1.0.2", "x", "01.0.1", "%31.0.1.", "9.9.9"):
        problem(hop.post(url + name, content=body, headers=headers), 404, "batch-unknown")
    # What opens for nobody is read, counted as missing, and blocks nothing.
    assert service.analyzer.read_all() == 1
    assert hop.post(url + "1.0.1", content=body, headers=headers).status_code == 200
    assert service.analyzer.read_all() == 0
    estimate = service.at("analyzer", "read").get(f"/v1/tasks/{task.id}/estimate").json()
    assert estimate["time"] == 6 and estimate["dropped"] > 0 and estimate["bound"] > task.plan.error_bound


@pytest.mark.parametrize("body", [b"", b"{", b"null", b"[]", b"\xff\xfe", b'{"version": 1}', b'{"version": 2}', b"7"])
@pytest.mark.parametrize("server", ["shuffler", "analyzer"])
def test_what_is_no_task(server: str, body: bytes, served: tuple[Any, Task]) -> None:
    answer = served[0].at(server, "admin").post("/v1/tasks", content=body, headers={"Content-Type": JSON})
    problem(answer, 400)


def test_tasks_to_another_key(served: tuple[Any, Task], plan_named: Callable[[str], Any]) -> None:
    task = Task.create(plan_named("binary rr"), PrivateKey.generate().public, bits=SECURE)
    admin = served[0].at("analyzer", "admin")
    answer = admin.post("/v1/tasks", content=task.text.encode(), headers={"Content-Type": JSON})
    assert "must be this analyzer's" in problem(answer, 400)["detail"]


def test_a_task_is_served_once(make_service: Callable[..., Any], make_task: Callable[..., Task]) -> None:
    service, task = make_service(), make_task("binary rr")
    for server in ("shuffler", "analyzer"):
        for status in (201, 200, 200):
            answer = service.at(server, "admin").post(
                "/v1/tasks", content=task.text.encode() + b"\n", headers={"Content-Type": JSON}
            )
            assert (answer.status_code, answer.json()) == (status, {"task_id": task.id})


def test_nothing_secret_is_logged_by_anything(
    caplog: pytest.LogCaptureFixture, served: tuple[Any, Task], key: PrivateKey
) -> None:
    """All loggers at their most talkative, in a run with refusals and a bug."""
    service, task = served
    with caplog.at_level(logging.DEBUG):
        sent = service.send(task, [1] * 30)
        service.work()
        put(service, task, "0" * 32, "f" * 32, b"marked-body")
        service.shuffler.desk = None
        problem(put(service, task, "0" * 32, "f" * 32, b""), 500, "internal")
    said = " ".join(f"{record.getMessage()} {record.__dict__}" for record in caplog.records)
    secrets = (*service.tokens.secrets.values(), key.text, key.raw.hex(), "marked-body", "Bearer")
    assert not [secret for secret in (*secrets, *(report.seat for report in sent)) if secret in said]
