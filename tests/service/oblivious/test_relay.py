"""The relay for trials: what it forwards, what it refuses, and that it says nothing about anybody."""

import asyncio
import logging
from collections.abc import Callable
from typing import Any

import httpx
import pytest

from shuffledp.errors import ParameterError
from shuffledp.service.client import Relay
from shuffledp.service.oblivious import relay as relays
from shuffledp.service.oblivious.relay import gateway_url, relay_app
from shuffledp.service.origins import Origins
from shuffledp.service.telemetry import log_nothing

GATEWAY = "https://gateway.example/.well-known/ohttp-gateway"
REQUEST, ANSWER = "message/ohttp-req", "message/ohttp-res"
SEALED = bytes(range(100))


class Gateway(httpx.AsyncBaseTransport):
    """Keeps what the relay sends, and answers what a test wants."""

    def __init__(self, answer: Callable[[], Any]) -> None:
        self.answer, self.requests = answer, []

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        await request.aread()
        self.requests.append(request)
        given = self.answer()
        given = await given if asyncio.iscoroutine(given) else given
        return httpx.Response(given.status_code, headers=given.headers, stream=httpx.ByteStream(given.content))


def sealed_answer(**headers: str) -> httpx.Response:
    return httpx.Response(200, headers={"Content-Type": ANSWER, **headers}, content=b"sealed")


@pytest.fixture
def carried() -> Callable[..., Any]:
    """What a client gets from a relay, and what its gateway got."""

    def carry(
        answer: Callable[[], Any] = sealed_answer,
        method: str = "POST",
        path: str = "/",
        most: int = 1000,
        **request: Any,
    ) -> tuple[httpx.Response, list[httpx.Request]]:
        gateway = Gateway(answer)

        async def asked() -> httpx.Response:
            app = httpx.ASGITransport(relay_app(GATEWAY, most=most, transport=gateway))
            async with httpx.AsyncClient(transport=app, base_url="http://relay.example") as client:
                return await client.request(method, path, **{"content": SEALED, "headers": HEADERS, **request})

        return asyncio.run(asked()), gateway.requests

    return carry


HEADERS = {
    "Content-Type": REQUEST,
    "X-Forwarded-For": "203.0.113.9",
    "Forwarded": "for=203.0.113.9",
    "Via": "1.1 somewhere",
    "Cookie": "who=me",
    "User-Agent": "a device of one maker",
    "Authorization": "Bearer mine",
    "Accept-Language": "rm-CH",
}


def test_only_media_type_and_content_pass(carried: Callable[..., Any]) -> None:
    answer, [request] = carried(lambda: sealed_answer(**{"Set-Cookie": "a=b", "Server": "x", "ETag": "y"}))
    assert (request.method, str(request.url), request.content) == ("POST", GATEWAY, SEALED)
    assert dict(request.headers) == {"host": "gateway.example", "content-length": "100", "content-type": REQUEST}
    assert (answer.status_code, answer.content, answer.headers["content-type"]) == (200, b"sealed", ANSWER)
    assert set(answer.headers) == {"content-type", "content-length", "cache-control"}


@pytest.mark.parametrize(
    ("status", "request_"),
    [
        (405, {"method": "GET"}),
        (405, {"method": "PUT"}),
        (404, {"path": "/elsewhere"}),
        (415, {"headers": {"Content-Type": "application/json"}}),
        (415, {"headers": {}}),
        (415, {"headers": {"Content-Type": "message/ohttp-req; charset=utf-8"}}),
        (400, {"content": b""}),
        (400, {"content": bytes(54)}),
        (413, {"content": bytes(1001)}),
    ],
)
def test_anything_else_is_refused_and_reaches_nobody(
    carried: Callable[..., Any], status: int, request_: dict[str, Any]
) -> None:
    answer, requests = carried(**request_)
    assert answer.status_code == status and requests == []


async def _late() -> httpx.Response:
    await asyncio.sleep(30)
    return sealed_answer()


def _away() -> httpx.Response:
    raise httpx.ConnectError("refused")


def _broken() -> httpx.Response:
    raise httpx.ReadError("cut")


@pytest.mark.parametrize(
    ("answer", "status"),
    [
        (_late, 504),
        (_away, 502),
        (_broken, 502),
        (lambda: httpx.Response(200, html="<p>a portal</p>"), 502),
        (lambda: httpx.Response(307, headers={"Location": "https://elsewhere.example"}), 502),
        (lambda: httpx.Response(201, headers={"Content-Type": ANSWER}), 502),
        (lambda: httpx.Response(200, json={}, headers={"Content-Type": "application/problem+json"}), 502),
        (lambda: httpx.Response(200, headers={"Content-Type": ANSWER}, content=bytes((4 << 20) + 1)), 502),
    ],
)
def test_a_gateway_that_does_not_answer_as_one_is_asked_once_and_said_so(
    carried: Callable[..., Any], monkeypatch: pytest.MonkeyPatch, answer: Callable[[], Any], status: int
) -> None:
    monkeypatch.setattr(relays, "ANSWER_SECONDS", 0.05)
    given, requests = carried(answer)
    assert given.status_code == status and len(requests) == 1
    assert given.json()["type"].endswith("gateway-slow" if status == 504 else "gateway-away")


def test_a_refusal_of_the_gateways_passes(carried: Callable[..., Any]) -> None:
    problem = {"Content-Type": "application/problem+json", "Retry-After": "3", "Set-Cookie": "a=b"}
    answer, _ = carried(lambda: httpx.Response(429, headers=problem, content=b"{}"))
    assert answer.status_code == 429 and answer.headers["retry-after"] == "3" and "set-cookie" not in answer.headers


def test_reports_pass_relay_and_gateway(make_hidden: Callable[..., Any], make_task: Callable[..., Any]) -> None:
    hidden = make_hidden()
    task = hidden.service.add(make_task("binary coins"))
    shuffler = httpx.ASGITransport(hidden.service.apps["shuffler"])
    hidden.service.apps["relay"] = relay_app("https://shuffler.example/.well-known/ohttp-gateway", transport=shuffler)
    wire = hidden.service.wire("relay")
    to_relay = Relay("https://relay.example", hidden.relay().keys)
    with hidden.client(task, wire, relay=to_relay) as client:
        assert client.report_many([1, 0, 1]).new == 3
    assert {str(request.url) for request in wire.requests} == {"https://relay.example"}
    stale = Relay("https://relay.example", (make_hidden().keys[0].config,))
    with hidden.client(task, wire, relay=stale) as client, pytest.raises(Exception, match="gateway-key"):
        client.report(1)


def test_it_logs_nothing_whatever_comes(
    carried: Callable[..., Any], caplog: pytest.LogCaptureFixture, capfd: pytest.CaptureFixture[str]
) -> None:
    names = ("shuffledp.service", "uvicorn", "asyncio", "httpx", "httpcore")
    before = {name: (logging.getLogger(name).handlers[:], logging.getLogger(name).propagate) for name in names}
    try:
        log_nothing()
        with caplog.at_level(logging.DEBUG):
            carried()
            carried(_away)
            carried(content=b"")
            logging.getLogger("uvicorn.error").warning("Invalid HTTP request received from 203.0.113.9")
        assert caplog.records == [] and capfd.readouterr() == ("", "")
    finally:
        for name, (handlers, propagates) in before.items():
            logging.getLogger(name).handlers[:], logging.getLogger(name).propagate = handlers, propagates


def test_pages_may_call_it_if_they_are_named() -> None:
    async def asked(origins: Origins) -> httpx.Response:
        app: Any = relay_app(GATEWAY, origins=origins, transport=Gateway(sealed_answer))
        assert app.state.server.leaves() == "a relay keeps nothing"
        preflight = {"Origin": "https://page.example", "Access-Control-Request-Method": "POST"}
        preflight["Access-Control-Request-Headers"] = "content-type"
        async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://relay.example") as client:
            return await client.options("/", headers=preflight)

    assert asyncio.run(asked(Origins.of(["https://page.example"]))).status_code == 200
    assert asyncio.run(asked(Origins.of(["https://another.example"]))).status_code == 400
    assert asyncio.run(asked(Origins())).status_code == 405


@pytest.mark.parametrize(
    ("url", "words"),
    [
        ("http://shuffler.example", "gateway must be https unless it is this machine"),
        ("shuffler", "gateway must be a gateway's or a shuffler's address"),
        ("https://me:you@shuffler.example", "gateway must be a gateway's or a shuffler's address"),
        ("https://shuffler.example/?a=b", "gateway must be a gateway's or a shuffler's address"),
        ("ftp://shuffler.example", "gateway must be a gateway's or a shuffler's address"),
    ],
)
def test_where_it_carries_to_is_checked(url: str, words: str) -> None:
    with pytest.raises(ParameterError, match=words):
        gateway_url(url)
    assert gateway_url(" http://127.0.0.1:8001/ ") == "http://127.0.0.1:8001/.well-known/ohttp-gateway"
