"""The JavaScript client in a real browser: the page that counts clicks, IndexedDB, and origins that are named."""

import contextlib
import functools
import http.server
import json
import os
import queue
import shutil
import subprocess
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from harness.children import child
from harness.node import ROOT, node_in
from harness.nursery import servers
from shuffledp.privacy import Privacy
from shuffledp.protocols.catalogue import PROTOCOLS
from shuffledp.randomness import RandomBits
from shuffledp.service.client import Client
from shuffledp.service.crypto import PrivateKey
from shuffledp.service.task import Task
from shuffledp.service.tokens import Tokens

SECURE = RandomBits.secure()
_PATIENCE = 90.0


def _chromium() -> str:
    found = shutil.which("chromium")
    if found is None:
        if os.environ.get("CI") == "true":
            raise RuntimeError("In CI the client must be tried in a browser: apt-get install chromium.")
        pytest.skip("there is no chromium: apt-get install chromium")
    return found


class _Site(http.server.SimpleHTTPRequestHandler):
    """Files of a folder, and a place where a page leaves what it found."""

    def __init__(self, *given: Any, found: "queue.Queue[dict[str, Any]]", **more: Any) -> None:
        self.found = found
        super().__init__(*given, **more)

    def do_POST(self) -> None:
        """Take what the page found."""
        self.found.put(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
        self.send_response(204)
        self.end_headers()

    def log_message(self, *_: Any) -> None:
        """Say nothing."""


@dataclass(frozen=True)
class Site:
    """A folder that is served as a web site.

    Attributes:
        folder: with the client and the example's page.
        origin: where a browser finds it.
        found: what pages left.
    """

    folder: Path
    origin: str
    found: "queue.Queue[dict[str, Any]]"

    def visited(self, page: str, profile: Path) -> dict[str, Any]:
        """What a page found in a browser."""
        words = [_chromium(), "--headless=new", "--no-sandbox", "--disable-gpu", "--remote-debugging-port=0"]
        silent = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
        with child([*words, f"--user-data-dir={profile}", f"{self.origin}/{page}"], **silent) as browser:
            try:
                return self.found.get(timeout=_PATIENCE)
            finally:
                browser.terminate()
                with contextlib.suppress(subprocess.TimeoutExpired):
                    browser.wait(timeout=10)


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Site]:
    """A site on this machine, with the client and the example's page."""
    folder = tmp_path / "site"
    shutil.copytree(ROOT / "examples" / "browser", folder / "examples" / "browser")
    client = node_in(tmp_path).folder
    (folder / "clients").mkdir()
    (folder / "clients" / "javascript").symlink_to(client)
    shutil.copy(client / "testing" / "page.html", folder)
    found: queue.Queue[dict[str, Any]] = queue.Queue()
    handler = functools.partial(_Site, directory=str(folder), found=found)
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as served:
        thread = threading.Thread(target=served.serve_forever)
        thread.start()
        yield Site(folder, f"http://localhost:{served.server_port}", found)
        served.shutdown()
        thread.join()


def test_a_page_counts_clicks_and_loses_none(site: Site, tmp_path: Path) -> None:
    page = site.folder / "examples" / "browser"
    plan = PROTOCOLS["binary-sum"].plan(users=6, privacy=Privacy(4, 1e-2), method="poisson-bits")
    key, tokens = PrivateKey.generate(), Tokens.generate(bits=SECURE)
    task = Task.create(plan, key.public, bits=SECURE)
    task.save(page / "task.json")
    with servers(tmp_path, key, tokens, origins=[site.origin]) as running:
        running.add_task(task)
        urls = {role: running.url(role) for role in ("shuffler", "analyzer")}
        settings = {"taskId": task.id, "token": tokens.secrets["enrol"], **urls}
        (page / "settings.json").write_text(json.dumps(settings))
        found = site.visited("page.html", tmp_path / "profile")
        with running.client("shuffler", "read") as reader:
            counts = reader.get(f"/v1/tasks/{task.id}").json()["counts"]
        with Client(task, urls["shuffler"], tokens.secrets["enrol"]) as client:
            assert client.report_many([0, 1, 0, 1]).new == 4
    assert found.pop("first").startswith("Thank you."), found
    assert found.pop("again").startswith("You have answered before"), found
    assert found == {
        "broken": "unreachable",
        "flushed": {"reports": 1, "new": 1, "refused": 0},
        "known": {"reports": 0, "new": 0, "known": True},
        "same": True,
        "unnamed": "kept from it",
    }
    # Two reports of the page, and no seat that was taken in vain.
    assert (counts["reports"], counts["seats_taken"], counts["leases"]) == (2, 2, 0)
