"""What keeps one token, one connection or one socket's file from being everybody's."""

import asyncio
import contextlib
import socket
import stat
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from shuffledp.errors import ParameterError
from shuffledp.service import punctual
from shuffledp.service.limits import Limits
from shuffledp.service.problems import RefusedError
from shuffledp.service.serving import Address, uvicorn_server
from shuffledp.service.shuffler.app import shuffler_app


@contextlib.contextmanager
def serving(app: Any, address: Address) -> Iterator[list[socket.socket]]:
    """A web server in a thread, on sockets of its own."""
    with address.taken() as sockets:
        server = uvicorn_server(app, address, lifespan="off")
        server.is_told = True
        thread = threading.Thread(target=lambda: asyncio.run(server.serve(sockets)), daemon=True)
        thread.start()
        deadline = time.monotonic() + 10
        while not server.started and time.monotonic() < deadline:
            time.sleep(0.01)
        yield sockets
        server.should_exit = True
        thread.join(10)


def test_a_token_that_asks_too_often_waits(make_service: Callable[..., Any]) -> None:
    now = [0.0]
    service = make_service()
    service.apps["shuffler"] = shuffler_app(
        service.shuffler, service.tokens, Limits(per_second=3, clock=lambda: now[0])
    )
    client, other = service.at("shuffler", "enrol"), service.at("shuffler", "read")
    answers = [client.get(f"/v1/tasks/{'0' * 64}") for _ in range(5)]
    assert [answer.status_code for answer in answers] == [404, 404, 404, 429, 429]
    assert answers[-1].headers["retry-after"] == "1" and answers[-1].json()["type"].endswith(":too-many")
    # Another role's token has a budget of its own, and whoever has none is told so.
    assert other.get(f"/v1/tasks/{'0' * 64}").status_code == 404
    assert service.at("shuffler").get(f"/v1/tasks/{'0' * 64}").status_code == 401
    assert service.at("shuffler").get("/healthz").status_code == 200
    now[0] = 1 / 3
    assert client.get(f"/v1/tasks/{'0' * 64}").status_code == 404


def test_requests_under_way_are_counted_and_counted_off() -> None:
    limits = Limits(at_once=2)
    full = pytest.raises(RefusedError, match="are under way")
    with limits.spent("enrol"), limits.spent("enrol"), limits.spent("read"), full, limits.spent("enrol"):
        pass
    with contextlib.suppress(KeyError), limits.spent("enrol"):
        raise KeyError
    with limits.spent("enrol"), limits.spent("enrol"):
        pass


@pytest.mark.parametrize("wrong", [{"per_second": 0.0}, {"per_second": float("inf")}, {"at_once": 0}])
def test_limits_that_let_nobody_in_are_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(ParameterError, match="max_"):
        Limits(**wrong)


def test_a_head_that_never_ends_is_cut_off(make_service: Callable[..., Any], monkeypatch: pytest.MonkeyPatch) -> None:
    """A byte now and then does not help; a second request on the same connection has its time, too."""
    monkeypatch.setattr(punctual, "HEAD_SECONDS", 0.4)
    service = make_service()
    with serving(service.shuffler_app, Address(port=0)) as sockets:
        port = sockets[0].getsockname()[1]
        for before in (b"", b"GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n"):
            with socket.create_connection(("127.0.0.1", port), timeout=10) as slow:
                slow.sendall(before)
                if before:
                    assert b"200 OK" in slow.recv(4096)
                started = time.monotonic()
                with contextlib.suppress(OSError):
                    for letter in b"GET /healthz HTTP/1.1\r\nX: " + 200 * b"y":
                        slow.sendall(bytes([letter]))
                        time.sleep(0.02)
                assert time.monotonic() - started < 3
        assert httpx.get(f"http://127.0.0.1:{port}/healthz").status_code == 200


def test_a_sockets_file_is_for_a_proxy_on_this_machine(make_service: Callable[..., Any], tmp_path: Path) -> None:
    path = tmp_path / "shuffler.sock"
    service = make_service()
    # What a server left that was killed is taken over.
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as dead:
        dead.bind(str(path))
    with serving(service.shuffler_app, Address(port=0, uds=path)):
        assert stat.S_IMODE(path.stat().st_mode) == 0o660
        with httpx.Client(transport=httpx.HTTPTransport(uds=str(path))) as client:
            assert client.get("http://shuffler/healthz").status_code == 200
        # One that is alive is not, and keeps its file.
        with pytest.raises(ParameterError, match="must be a new file"), Address(port=0, uds=path).taken():
            pass
        assert path.is_socket()
    assert not path.exists()


def test_plain_http_elsewhere_needs_a_proxy_that_is_said() -> None:
    with pytest.raises(ParameterError, match="--behind-proxy"):
        Address(host="0.0.0.0", port=1)
    assert Address(host="0.0.0.0", port=1, behind_proxy=True).url == "http://0.0.0.0:1"
    with pytest.raises(ParameterError, match="do not go together"):
        Address(port=0, uds=Path("x"), tls_cert=Path("c"), tls_key=Path("k"))
