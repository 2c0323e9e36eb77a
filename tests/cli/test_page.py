"""`serve` and `demo` say where the page is, keep it while it is wanted, and open a browser only if asked to."""

import subprocess
import sys
import webbrowser
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from harness.children import child
from shuffledp.cli import demo_servers
from shuffledp.cli.serve_making import make_analyzer
from shuffledp.errors import ShuffleDPError
from shuffledp.randomness import RandomBits
from shuffledp.service.keys import make_keys
from shuffledp.service.serving import Address


@pytest.fixture(scope="module")
def keys(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder of keys."""
    folder = tmp_path_factory.mktemp("page") / "keys"
    make_keys(folder, bits=RandomBits.secure())
    return folder


@pytest.mark.parametrize(
    ("page", "where", "expected"),
    [
        ("auto", {}, "open"),
        ("login", {}, "login"),
        ("auto", {"behind_proxy": True}, "login"),
        ("off", {}, "off"),
    ],
)
def test_an_analyzer_serves_the_page_that_was_asked_for(
    page: str, where: dict[str, Any], expected: str, keys: Path, tmp_path: Path
) -> None:
    server = make_analyzer(str(tmp_path / "a.db"), keys, [], Address(port=8002, **where), page=page)
    app: Any = server.config.app
    try:
        routes = {route.path for route in app.routes}
        assert ("/plan" in routes) == (expected != "off") and "/v1/tasks" in routes
        if expected != "off":
            assert app.state.dashboard.access.is_open == (expected == "open")
    finally:
        app.state.server.stop()


def test_a_browser_is_opened_only_if_that_was_asked_for(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    opened: list[str] = []
    monkeypatch.setattr(webbrowser, "open", opened.append)
    demo_servers.say_where("http://127.0.0.1:1/tasks/x", opens=False)
    assert opened == [] and "http://127.0.0.1:1/tasks/x" in capsys.readouterr().err
    demo_servers.say_where("http://127.0.0.1:1/tasks/x", opens=True)
    assert opened == ["http://127.0.0.1:1/tasks/x"]


def test_the_page_stays_until_somebody_interrupts_or_a_server_ends(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    naps: list[float] = []

    def nap(seconds: float) -> None:
        naps.append(seconds)
        if len(naps) == 3:
            raise KeyboardInterrupt

    monkeypatch.setattr(demo_servers.time, "sleep", nap)
    with child([sys.executable, "-S", "-c", "input()"], stdin=subprocess.PIPE) as process:
        server = demo_servers.DemoServer("analyzer", process, tmp_path / "analyzer.log")
        both: Any = SimpleNamespace(analyzer="http://127.0.0.1:1", servers={"analyzer": server})
        demo_servers.keep_running(both, shown=True)
        assert len(naps) == 3 and "stays at http://127.0.0.1:1/" in capsys.readouterr().out
        process.kill()
        process.wait()
        with pytest.raises(ShuffleDPError, match="the analyzer has ended"):
            demo_servers.keep_running(both, shown=False)
