"""The OpenAPI documents and the servers say the same, whatever is asked; garbage on the socket kills nothing."""

import contextlib
import json
import random
import re
import socket
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any

import httpx
import pytest
import schemathesis
from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis.errors import Unsatisfiable
from schemathesis import GenerationMode

from harness.schemas import DOCUMENTS, departures
from shuffledp.randomness import RandomBits
from shuffledp.service.openapi import ARROW, BINARY, JSON, OHTTP_REQUEST
from shuffledp.service.problems import KINDS, MEDIA_TYPE
from shuffledp.service.serving import Address, uvicorn_server
from shuffledp.service.task import Task
from shuffledp.service.tokens import ROLES
from shuffledp.service.wire import SentReport, new_id, pack_upload, single_body

SECURE = RandomBits.secure()
schemathesis.serializer.alias(OHTTP_REQUEST, BINARY)
SERVERS = tuple(DOCUMENTS)
OPERATIONS = [
    (server, method.upper(), path)
    for server, document in DOCUMENTS.items()
    for path, methods in document["paths"].items()
    for method in methods
]
# Requests of each kind; together at least 2,000 in each run.
# Of every operation, right ones and wrong ones; the sweep goes on where the suite ends.
GENERATED, SWEPT, GARBAGE = 24, 60, 1000


def operation(server: str, method: str, path: str) -> dict[str, Any]:
    found: dict[str, Any] = DOCUMENTS[server]["paths"][path][method.lower()]
    return found


def operation_at(server: str, method: str, path: str) -> tuple[str, str, str] | None:
    """The operation that this request is for; a HEAD is for what its GET is."""
    asked = "GET" if method == "HEAD" else method
    for at, known, template in OPERATIONS:
        pattern = "/".join("[^/]+" if part.startswith("{") else re.escape(part) for part in template.split("/"))
        if (at, known) == (server, asked) and re.fullmatch(pattern, path, re.DOTALL):
            return at, known, template
    return None


class Watch:
    """Holds every answer to the documents."""

    def __init__(self) -> None:
        self.seen: Counter[tuple[str, str, str, int]] = Counter()
        self.requests = 0

    def check(self, server: str, answer: httpx.Response) -> None:
        self.requests += 1
        request = answer.request
        found = operation_at(server, request.method, request.url.path)
        said = f"{server} {request.method} {request.url.path[:80]!r}: {answer.status_code} {answer.text[:200]}"
        if found is None:
            assert answer.status_code in (404, 405), said
        else:
            self.seen[*found, answer.status_code] += 1
            documented = operation(*found)["responses"]
            assert str(answer.status_code) in documented, said
            kinds = documented[str(answer.status_code)]["content"]
            if request.method != "HEAD":
                kind = answer.headers["content-type"].partition(";")[0]
                assert kind in kinds, said
                if kind in (JSON, MEDIA_TYPE):
                    assert not departures(server, kinds[kind]["schema"], answer.json()), said
        if answer.status_code >= 400 and request.method != "HEAD" and request.url.path != "/readyz":
            assert answer.headers["content-type"] == MEDIA_TYPE, said
            document = answer.json()
            assert {"type", "title", "status", "detail"} == set(document), said
            assert document["status"] == answer.status_code and document["detail"], said
        assert answer.status_code < 500, said


@pytest.fixture
def served(make_service: Callable[..., Any], make_task: Callable[..., Task]) -> tuple[Any, Task]:
    """Both servers with one running count, of which some was released."""
    service = make_service()
    task = service.add(make_task("running count"))
    service.send(task, [1] * 13)
    service.work()
    return service, task


# --- the documents ----------------------------------------------------------------------------


@pytest.mark.parametrize("server", SERVERS)
def test_the_document_lists_the_applications_routes(server: str, served: tuple[Any, Task]) -> None:
    service, _ = served
    document = service.at(server).get("/openapi.json").json()
    assert document == DOCUMENTS[server]
    routes = {(route.path, method) for route in service.apps[server].routes for method in route.methods}
    # A HEAD goes with every GET (RFC 9110) and is not listed.
    listed = {(path, method.upper()) for path, methods in document["paths"].items() for method in methods}
    assert routes - {(path, "HEAD") for path, method in listed if method == "GET"} == listed


@pytest.mark.parametrize("server", SERVERS)
def test_the_document_is_whole(server: str) -> None:
    document = DOCUMENTS[server]
    names = [each["operationId"] for methods in document["paths"].values() for each in methods.values()]
    assert len(names) == len(set(names)) and document["openapi"] == "3.1.0"
    for (at, method, path), each in ((key, operation(*key)) for key in OPERATIONS):
        if at != server:
            continue
        assert each["summary"], (method, path)
        named = {parameter["name"] for parameter in each.get("parameters", ()) if parameter["in"] == "path"}
        assert named == set(re.findall(r"{(\w+)}", path)), (method, path)
        for status, answer in each["responses"].items():
            assert answer["description"] and ("content" in answer) == (status != "304")
            # Every answer in JSON is an object that is written down, closed but for what its maker may add.
            for kind in {JSON, MEDIA_TYPE} & set(answer.get("content", ())):
                reference = answer["content"][kind]["schema"]["$ref"]
                assert reference.rpartition("/")[2] in document["components"]["schemas"], (method, path, status)
            if status.startswith("4"):
                assert list(answer["content"]) == [MEDIA_TYPE]


@pytest.mark.parametrize(("server", "method", "path"), OPERATIONS)
def test_tokens_and_media_types_are_as_documented(
    server: str, method: str, path: str, served: tuple[Any, Task]
) -> None:
    service, task = served
    each = operation(server, method, path)
    named = {"task_id": task.id, "report_id": "0" * 32, "batch_id": "1.0.1", "campaign_id": "0" * 64, "number": "0"}
    named |= {"piece": "0", "lease": "0" * 32}
    url = path.format(**named)
    assert (service.at(server).request(method, url).status_code == 401) == ("security" in each)
    answer = service.at(server, "admin").request(method, url, headers={"Content-Type": "text/x"}, content=b"x")
    assert (answer.status_code == 415) == ("requestBody" in each)
    if "security" in each:
        words = re.findall(r"\w+", each["description"])
        for role in ROLES:
            status = service.at(server, role).request(method, url).status_code
            assert (status == 403) == (role not in (*words, "admin")), role


def test_every_problem_has_its_own_name() -> None:
    assert len({kind.name for kind in KINDS}) == len(KINDS)
    documented = {int(s) for key in OPERATIONS for s in operation(*key)["responses"]}
    # 405 is for what is no operation, 500 for bugs, 425 is sealed: nobody but who asked a gateway sees it.
    # Relays, which have no document, answer with 502 and 504.
    assert {kind.status for kind in KINDS} - documented == {405, 425, 500, 502, 504}


def test_the_road_of_a_report_is_documented(served: tuple[Any, Task], make_task: Callable[..., Task]) -> None:
    """What goes well, and each refusal that a client can cause: all of them have a documented status."""
    service, task = served
    watch, other = Watch(), make_task("binary rr")
    binary, as_json = {"Content-Type": BINARY}, {"Content-Type": "application/json"}

    def ask(server: str, role: str, method: str, path: str, **more: Any) -> httpx.Response:
        answer: httpx.Response = service.at(server, role).request(method, f"/v1/tasks{path}", **more)
        watch.check(server, answer)
        return answer

    for server in SERVERS:
        for text in (other.text, other.text, "{}"):
            ask(server, "admin", "POST", "", content=text.encode(), headers=as_json)
        for task_id in (task.id, "0" * 64):
            ask(server, "read", "GET", f"/{task_id}")
    here = f"/{other.id}"
    ask("shuffler", "enrol", "POST", f"{here}/seats?count=0")
    (lone, *many) = ask("shuffler", "enrol", "POST", f"{here}/seats?count=1000").json()["seats"]
    ask("shuffler", "enrol", "POST", f"{here}/seats")
    name, body = f"{here}/reports/{'a' * 32}", single_body(lone["seat"], bytes(77))
    for content in (single_body(lone["seat"], b""), body, body, bytes(93 + 1), b""):
        ask("shuffler", "enrol", "PUT", name, content=content, headers=binary)
    ask("shuffler", "enrol", "PUT", f"{here}/reports/{'b' * 32}", content=body, headers=binary)
    ask("shuffler", "enrol", "PUT", f"{here}/reports/x", content=body, headers=binary)
    upload = [SentReport(new_id(bits=SECURE), seat["seat"], bytes(77)) for seat in many]
    for content in (pack_upload(upload), pack_upload(upload), b"x"):
        ask("shuffler", "enrol", "POST", f"{here}/reports", content=content, headers=binary)
    service.work()
    size = task.routing.batch_bytes(6)
    for batch, content in (("1.2.3", bytes(size)), ("1.2.3", bytes(size)), ("1.2.3", b"\1" * size), ("1.2.3", b""),
                           ("9.9.9", b"")):  # fmt: skip
        ask("analyzer", "hop", "POST", f"/{task.id}/batches/{batch}", content=content, headers=binary)
    for query in ("", "?after=6&limit=1", "?limit=0"):
        ask("analyzer", "read", "GET", f"/{task.id}/history{query}")
    arrow = ask("analyzer", "read", "GET", f"/{task.id}/history", headers={"Accept": ARROW})
    assert arrow.headers["content-type"] == ARROW
    ask("analyzer", "read", "GET", f"/{task.id}/estimate")
    for path in ("/healthz", "/readyz", "/metrics", "/openapi.json"):
        for server in SERVERS:
            watch.check(server, service.at(server).get(path))
    statuses = {status for *_, status in watch.seen}
    assert statuses == {200, 201, 400, 404, 409, 410, 413, 422}


# --- whatever is asked ------------------------------------------------------------------------


def drawn(strategy: Any, count: int) -> list[Any]:
    """So many examples of a strategy, the same in every run."""
    made: list[Any] = []

    @seed(5)
    @settings(
        max_examples=count,
        deadline=None,
        database=None,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(strategy)
    def make(case: Any) -> None:
        made.append(case)

    # Where a document leaves nothing to do wrong, there is nothing to make.
    with contextlib.suppress(Unsatisfiable):
        make()
    return made


def cases_of(server: str, mode: GenerationMode, count: int) -> Iterator[Any]:
    """Requests that schemathesis makes from a document, right ones or wrong ones."""
    schema = schemathesis.openapi.from_dict(DOCUMENTS[server])
    for result in schema.get_all_operations():
        yield from drawn(result.ok().as_strategy(generation_mode=mode), count)


def content_of(case: Any) -> bytes:
    body = case.body
    if isinstance(body, bytes):
        return body
    data = getattr(body, "data", None)
    if isinstance(data, bytes):
        return data
    try:
        return json.dumps(body).encode("utf-8", "surrogatepass")
    except (TypeError, ValueError):
        return b""


@pytest.mark.parametrize("count", [GENERATED, pytest.param(SWEPT, marks=pytest.mark.sweep)])
@pytest.mark.parametrize("server", SERVERS)
def test_requests_made_from_the_document(server: str, count: int, served: tuple[Any, Task]) -> None:
    service, task = served
    watch, choose = Watch(), random.Random(3)
    clients = {role: service.at(server, role) for role in (None, *ROLES)}
    for mode in GenerationMode:
        for case in cases_of(server, mode, count):
            path = case.formatted_path
            given_id = case.path_parameters.get("task_id") if case.path_parameters else None
            if given_id is not None and choose.random() < 0.7:
                rest = case.path.split("{task_id}", 1)[1]
                for name in ("report_id", "batch_id"):
                    rest = rest.replace(f"{{{name}}}", choose.choice(["a" * 32, "1.0.1", "2.0.3", "x"]))
                path = f"/v1/tasks/{task.id}{rest}"
            if path.endswith(("/", "%2F")):
                continue
            query = {str(k): str(v).encode("utf-8", "replace") for k, v in (case.query or {}).items()}
            headers = {"Content-Type": case.media_type} if case.media_type else {}
            client = clients[choose.choice([*ROLES, "admin", "admin", None])]
            content = content_of(case) if case.media_type else None
            watch.check(server, client.request(case.method, path, params=query, headers=headers, content=content))
    assert watch.requests > 5 * count, watch.requests
    assert len({status for *_, status in watch.seen}) > 4


def garbage(choose: random.Random, server: str, task: Task) -> tuple[str, str, dict[str, bytes], bytes]:
    """A request that is wrong somewhere: method, path, query, headers or body."""
    _, method, template = choose.choice([each for each in OPERATIONS if each[0] == server])
    if choose.random() < 0.15:
        method = choose.choice(["GET", "HEAD", "POST", "PUT", "DELETE", "PATCH", "OPTIONS", "TRACE", "BREW"])

    def word() -> str:
        return choose.choice(
            ["a" * 32, "1.0.1", "1.0.2", "2.0.3", "x", "%00", "%ff", "..", "%2e%2e%2f", "é", "0" * 64, "-1", "🙂",
             "a" * 3000, "%0d%0aX:y", ";", "'--", "{{7*7}}", task.id[:-1]]
        )  # fmt: skip

    path = re.sub(
        r"{(\w+)}", lambda found: task.id if found[1] == "task_id" and choose.random() < 0.8 else word(), template
    )
    if choose.random() < 0.1:
        path = "/" + "/".join(word() for _ in range(choose.randrange(1, 5)))
    if choose.random() < 0.4:
        numbers = ["0", "1", "7", "-1", "1e9", "", "x", "9" * 40, "٣", "%00"]
        names = ["count", "limit", "after", "x"]
        path += "?" + "&".join(f"{choose.choice(names)}={choose.choice(numbers)}" for _ in range(3))
    headers = {"Content-Type": choose.choice([BINARY.encode(), b"application/json", b"", b"\xff", b"text/plain"])}
    if choose.random() < 0.2:
        headers[choose.choice(["Accept", "X-Forwarded-For", "Host", "Range", "Expect", "If-Match"])] = choose.choice(
            [ARROW.encode(), b"*/*", b"\xff\xfe", b"a" * 5000, b"bytes=0-"]
        )
    bodies = [
        b"",
        choose.randbytes(choose.randrange(200)),
        choose.randbytes(36 * choose.randrange(1, 40)),
        pack_upload([SentReport(choose.randbytes(16).hex(), choose.randbytes(16).hex(), choose.randbytes(9))] * 3),
        b"{" * choose.randrange(5),
        json.dumps({"version": 1, "routing": choose.choice([None, {}, [], {"version": 1}])}).encode(),
        task.text.encode()[: choose.randrange(len(task.text))],
        task.text.replace(choose.choice("0123456789"), choose.choice("0123456789")).encode(),
    ]
    return method, path, headers, choose.choice(bodies)


@pytest.mark.parametrize("server", SERVERS)
def test_garbage(server: str, served: tuple[Any, Task], make_task: Callable[..., Task]) -> None:
    service, task = served
    watch, choose = Watch(), random.Random(4)
    clients = {role: service.at(server, role) for role in (None, *ROLES)}
    while watch.requests < GARBAGE:
        method, path, headers, body = garbage(choose, server, task)
        client = clients[choose.choice([*ROLES, "admin", None])]
        if path.partition("?")[0].endswith(("/", "%2f")):
            continue
        watch.check(server, client.request(method, path, headers=headers, content=body))
    # After all that, both still work.
    estimate = service.at("analyzer", "read").get(f"/v1/tasks/{task.id}/estimate").json()
    assert estimate["time"] == 12 and estimate["void"] == 0
    service.send(service.add(make_task("binary rr")), [1] * 20)
    service.work()
    assert len({status for *_, status in watch.seen}) > 5


# --- on the socket ----------------------------------------------------------------------------


@contextlib.contextmanager
def listening(app: Any) -> Iterator[int]:
    """The application on a free port of this machine."""
    server = uvicorn_server(app, Address(port=0), lifespan="off")
    thread = threading.Thread(target=server.run, daemon=True)
    thread.start()
    end = time.monotonic() + 20
    while not server.started and time.monotonic() < end:
        time.sleep(0.02)
    try:
        yield server.servers[0].sockets[0].getsockname()[1]
    finally:
        server.should_exit = True
        thread.join(20)


def spoken(port: int, said: bytes) -> bytes:
    """What the server answers to these bytes before it hangs up or has nothing more to say."""
    with socket.create_connection(("127.0.0.1", port), timeout=5) as connection:
        with contextlib.suppress(OSError):
            connection.sendall(said)
            connection.shutdown(socket.SHUT_WR)
        heard = b""
        with contextlib.suppress(OSError):
            while part := connection.recv(65536):
                heard += part
        return heard


HOST = b"Host: x\r\n"
MALFORMED = [
    b"",
    b"\r\n\r\n",
    b"\x00" * 1000,
    b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + b"\xaa" * 200,
    b"GET\r\n\r\n",
    b"GET / HTTP/9.9\r\n" + HOST + b"\r\n",
    b"GET /healthz HTTP/1.1\r\nno colon\r\n\r\n",
    b"GET /\xff\xfe HTTP/1.1\r\n" + HOST + b"\r\n",
    b"GET /healthz HTTP/1.1\r\n" + HOST + b"X: " + b"a" * 200_000 + b"\r\n\r\n",
    b"GET /" + b"a" * 200_000 + b" HTTP/1.1\r\n" + HOST + b"\r\n",
    b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
    b"POST /v1/tasks HTTP/1.1\r\n" + HOST + b"Content-Length: -1\r\n\r\n",
    b"POST /v1/tasks HTTP/1.1\r\n" + HOST + b"Content-Length: " + b"9" * 5000 + b"\r\n\r\n",
    b"POST /v1/tasks HTTP/1.1\r\n" + HOST + b"Content-Length: 1\r\nContent-Length: 2\r\n\r\nab",
    b"POST /v1/tasks HTTP/1.1\r\n" + HOST + b"Content-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
    b"POST /v1/tasks HTTP/1.1\r\n" + HOST + b"Transfer-Encoding: chunked\r\n\r\nzz\r\nxx",
    b"POST /v1/tasks HTTP/1.1\r\n" + HOST + b"Transfer-Encoding: chunked\r\n\r\nffffffffffffffffff\r\nxx",
    b"POST /v1/tasks HTTP/1.1\r\n" + HOST + b"Content-Length: 100\r\n\r\nbroken off",
    b"PUT /v1/tasks/x/reports/y HTTP/1.1\r\n" + HOST + b"Expect: 100-continue\r\nContent-Length: 10\r\n\r\n",
    b"GET /healthz HTTP/1.1\r\n" + HOST + b"Upgrade: websocket\r\nConnection: upgrade\r\n\r\n",
]


@pytest.mark.parametrize("server", SERVERS)
def test_malformed_requests_on_the_socket(
    server: str, served: tuple[Any, Task], caplog: pytest.LogCaptureFixture
) -> None:
    service, task = served
    choose = random.Random(6)
    noise = [choose.randbytes(choose.randrange(1, 2000)) for _ in range(30)]
    torn = b"GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n"
    changed = [torn[:at] + bytes([choose.randrange(256)]) + torn[at + 1 :] for at in range(0, len(torn), 2)]
    with listening(service.apps[server]) as port:
        for said in [*MALFORMED, *noise, *changed]:
            heard = spoken(port, said)
            assert heard == b"" or re.match(rb"HTTP/1\.1 (?!5)\d\d\d ", heard), (said[:80], heard[:200])
            assert b"Traceback" not in heard and b"server:" not in heard.lower()
        address = f"http://127.0.0.1:{port}"
        assert httpx.get(f"{address}/healthz").text == "ok\n"
        headers = {"Authorization": f"Bearer {service.tokens.secrets['read']}"}
        assert httpx.get(f"{address}/v1/tasks/{task.id}", headers=headers).status_code == 200
    said_so = " ".join(record.getMessage() for record in caplog.records if record.name.startswith("uvicorn"))
    assert "127.0.0.1" not in said_so and "Traceback" not in said_so
