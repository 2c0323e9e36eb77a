"""A web site on this machine with the client as one module, and Chromium that visits its pages."""

import functools
import http.server
import json
import os
import queue
import shutil
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from harness.node import ROOT, node_in

_PATIENCE = 90.0
# Seconds for a browser to end after it was asked to.
_GRACE = 10.0


def program() -> str:
    """Debian's Chromium; a test is skipped where there is none, but not where CI=true."""
    found = shutil.which("chromium")
    if found is None:
        if os.environ.get("CI") == "true":
            raise RuntimeError("In CI the client must be tried in a browser: apt-get install chromium.")
        pytest.skip("there is no chromium: apt-get install chromium")
    return found


class _Files(http.server.SimpleHTTPRequestHandler):
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
        folder: with the example's page, and the client beside it as one module.
        origin: where a browser finds it.
        found: what pages left.
    """

    folder: Path
    origin: str
    found: "queue.Queue[dict[str, Any]]"

    def visited(self, page: str, profile: Path, patience: float = _PATIENCE) -> dict[str, Any]:
        """What a page found in a browser, which is ended afterwards, whatever happened."""
        words = [program(), "--headless=new", "--no-sandbox", "--disable-gpu", "--remote-debugging-port=0"]
        silent = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
        with subprocess.Popen([*words, f"--user-data-dir={profile}", f"{self.origin}/{page}"], **silent) as browser:
            try:
                return self.found.get(timeout=patience)
            finally:
                browser.terminate()
                try:
                    browser.wait(_GRACE)
                except subprocess.TimeoutExpired:
                    browser.kill()


@contextmanager
def site_in(folder: Path) -> Iterator[Site]:
    """A site in a folder that is empty: the example's page, what a release puts beside it, and pages of tests."""
    shutil.copytree(ROOT / "examples" / "browser", folder / "examples" / "browser", dirs_exist_ok=True)
    node = node_in(folder / "made")
    made = node.run("bundle.js", str(folder / "examples" / "browser"))
    assert made.returncode == 0, made.stderr
    for page in (node.folder / "testing").glob("*.html"):
        shutil.copy(page, folder)
    found: queue.Queue[dict[str, Any]] = queue.Queue()
    handler = functools.partial(_Files, directory=str(folder), found=found)
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as served:
        thread = threading.Thread(target=served.serve_forever)
        thread.start()
        try:
            yield Site(folder, f"http://localhost:{served.server_port}", found)
        finally:
            served.shutdown()
            thread.join()
