"""Debian's Chromium, driven by playwright, and axe-core, which looks for what keeps people out.

Neither is part of the package: `apt-get install chromium`, `pip install '.[browser]'`; axe-core comes by npm into
`build`. Where one is missing, tests are skipped with the reason, but not where `CI=true`.
"""

import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

_PROGRAM = "/usr/bin/chromium"
_AXE = "axe-core@4"
_BUILD = Path(__file__).parents[2] / "build"
# Nothing is asked of anybody but the server: no updates, no experiments, no sandbox where tests run as root.
_ARGUMENTS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]


def missing(reason: str) -> None:
    """Leave a test out, where that is allowed."""
    if os.environ.get("CI") == "true":
        pytest.fail(f"{reason}: .ci/run installs it")
    pytest.skip(reason)


@contextmanager
def chromium() -> Iterator[Any]:
    """A browser without a screen."""
    program = shutil.which("chromium") or _PROGRAM
    if not Path(program).exists():
        missing("no chromium")
    try:
        from playwright.sync_api import sync_playwright
    except ImportError:
        missing("no playwright")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=program, args=_ARGUMENTS)
        try:
            yield browser
        finally:
            browser.close()


@contextmanager
def tab(browser: Any, address: str, *, width: int = 1280, theme: str = "light") -> Iterator[Any]:
    """An empty browser's page; whatever it complains about, or asks of another host, fails the test."""
    context = browser.new_context(viewport={"width": width, "height": 900}, color_scheme=theme, accept_downloads=True)
    page, complaints, hosts = context.new_page(), [], set()
    page.on("console", lambda said: complaints.append(said.text) if said.type in ("error", "warning") else None)
    page.on("pageerror", lambda error: complaints.append(str(error)))
    page.on("request", lambda request: hosts.add(urlsplit(request.url).netloc))
    page.set_default_timeout(20_000)
    try:
        yield page
    finally:
        context.close()
    assert not complaints
    assert hosts <= {urlsplit(address).netloc, ""}


def axe() -> str:
    """The text of axe-core, fetched once."""
    folder = _BUILD / "axe-core"
    script = folder / "node_modules" / "axe-core" / "axe.min.js"
    if not script.exists():
        npm = shutil.which("npm")
        if npm is None:
            missing("no npm to fetch axe-core with")
        _BUILD.mkdir(exist_ok=True)
        with tempfile.TemporaryDirectory(dir=_BUILD) as made:
            command = [str(npm), "install", "--prefix", made, "--no-audit", "--no-fund", "--ignore-scripts", _AXE]
            done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
            if done.returncode:
                missing(f"npm does not fetch axe-core ({done.stderr.strip()[-200:]})")
            # Another process may have been quicker.
            if not folder.exists():
                shutil.copytree(made, folder, dirs_exist_ok=True)
    return script.read_text("utf-8")
