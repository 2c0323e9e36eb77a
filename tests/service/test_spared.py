"""A server that has its process to itself does not have the whole program looked through for its requests."""

import asyncio
import gc
import signal
import threading
from collections.abc import Iterator
from types import SimpleNamespace

import pytest
import uvicorn
from starlette.applications import Starlette

from shuffledp.service.serving import Address, run_until_told, uvicorn_server


@pytest.fixture
def collector(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[str]]:
    """What was asked of Python's collector, which is as before afterwards."""
    asked: list[str] = []
    before = gc.get_threshold()
    monkeypatch.setattr(gc, "freeze", lambda: asked.append("freeze"))
    monkeypatch.setattr(uvicorn.Server, "run", lambda self, sockets=None: asked.append("run"))
    yield asked
    gc.set_threshold(*before)


def test_what_is_loaded_is_spared_before_a_process_serves(collector: list[str]) -> None:
    before = gc.get_threshold()
    uvicorn_server(Starlette(), Address(port=0)).run()
    assert collector == ["freeze", "run"]
    assert gc.isenabled() and gc.get_threshold()[0] > before[0] and gc.get_threshold()[1:] == before[1:]


def test_a_server_beside_others_in_a_process_leaves_the_collector_alone(collector: list[str]) -> None:
    before = gc.get_threshold()
    thread = threading.Thread(target=uvicorn_server(Starlette(), Address(port=0)).run, daemon=True)
    thread.start()
    thread.join(30)
    assert collector == ["run"] and gc.get_threshold() == before


def test_servers_of_one_command_run_on_the_fastest_loop(collector: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    app = Starlette()
    app.state.server = SimpleNamespace(leaves=lambda: "nothing")
    server = uvicorn_server(app, Address(port=0))

    async def serve(_: object) -> None:
        collector.append(type(asyncio.get_running_loop()).__module__)

    monkeypatch.setattr(server, "serve", serve)
    before = {each: signal.getsignal(each) for each in (signal.SIGINT, signal.SIGTERM)}
    try:
        run_until_told([server], [[]], collector.append)
    finally:
        for each, handler in before.items():
            signal.signal(each, handler)
    assert collector[:2] == ["freeze", "uvloop"]
