"""What both servers' HTTP sides keep: no line that says where a request came from, no connection that says nothing."""

import asyncio
import json
import logging
import threading
from collections.abc import Callable
from typing import Any

import pytest
from starlette.applications import Starlette
from starlette.requests import Request

from shuffledp.errors import ParameterError
from shuffledp.service import chores as chores_module
from shuffledp.service import http as http_module
from shuffledp.service.addresses import refuse_plain_http
from shuffledp.service.chores import Chores
from shuffledp.service.http import read_body
from shuffledp.service.problems import TOO_SLOW, RefusedError
from shuffledp.service.serving import Address, uvicorn_server
from shuffledp.service.task import Task
from shuffledp.service.telemetry import JsonLines


def test_a_request_leaves_no_line_that_says_where_it_came_from(
    caplog: pytest.LogCaptureFixture, make_service: Callable[..., Any], make_task: Callable[..., Task]
) -> None:
    """All loggers at their most talkative, as the service formats them: no address, no path, no seat, no id."""
    service = make_service()
    task = service.add(make_task("binary coins"))
    with caplog.at_level(logging.DEBUG, logger="shuffledp.service"):
        sent = service.send(task, [1, 0, 1])
        assert service.at("shuffler").get("/v1/tasks/nobody").status_code == 401
    lines = [JsonLines().format(record) for record in caplog.records if record.name.startswith("shuffledp")]
    said = " ".join(lines)
    assert all(isinstance(json.loads(line), dict) for line in lines)
    for secret in ("127.0.0.1", "http://", "testserver", "/v1/", *(r.report_id for r in sent), *(r.seat for r in sent)):
        assert secret not in said, said


def test_the_web_server_keeps_no_access_log_and_believes_no_proxy() -> None:
    config = uvicorn_server(Starlette(), Address(port=0)).config
    assert not config.access_log and not config.proxy_headers and not config.server_header
    assert config.log_config is None and config.limit_concurrency is not None


@pytest.mark.parametrize(
    "url",
    [
        "http://shuffler.example",
        "HTTP://shuffler.example:80/path",
        "http://127.0.0.1@shuffler.example",
        "http://localhost:80@10.1.2.3:8080/",
        "http://127.0.0.1.example",
        "http://[2001:db8::1]:8080",
    ],
)
def test_plain_http_is_for_this_machine_only(url: str) -> None:
    with pytest.raises(ParameterError, match="must be https"):
        refuse_plain_http(url, "shuffler")
    for near in ("http://127.0.0.1:8080", "http://[::1]:8080/x", "http://localhost", "https://shuffler.example"):
        refuse_plain_http(near, "shuffler")


def test_a_chore_that_failed_is_done_again(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("_FIRST_WAIT", "_LONGEST_WAIT", "_PAUSE"):
        monkeypatch.setattr(chores_module, name, 0.01)
    tries, done = [], threading.Event()

    def work() -> bool:
        tries.append(None)
        if len(tries) < 3:
            raise MemoryError
        done.set()
        return True

    chores = Chores("fails twice", work)
    chores.start()
    assert done.wait(10)
    chores.stop()


@pytest.mark.parametrize("parts", [0, 1])
def test_a_body_that_stops_is_not_waited_for(parts: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing at all, or a byte and then nothing: the connection is given up."""
    monkeypatch.setattr(http_module, "BODY_SECONDS", 0.05)
    given = [{"type": "http.request", "body": b"x", "more_body": True}] * parts

    async def receive() -> Any:
        return given.pop() if given else await asyncio.sleep(60)

    async def read() -> bytes:
        scope = {"type": "http", "method": "PUT", "headers": [], "path": "/"}
        return await asyncio.wait_for(read_body(Request(scope, receive), 1000), timeout=10)

    with pytest.raises(RefusedError) as refused:
        asyncio.run(read())
    assert refused.value.kind is TOO_SLOW
