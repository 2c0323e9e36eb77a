"""The whole site: built without a warning, every link followed, ten pages looked at in a real Chromium."""

import os
import re
import subprocess
import sys
import threading
from collections.abc import Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from builder import shipped
from harness.chromium import axe, chromium, missing, tab

ROOT = Path(__file__).parents[2]
_PATIENCE = 400.0

LOOKED_AT = (
    "index.html",
    "tutorial/first-count.html",
    "howto/index.html",
    "howto/watch-a-task.html",
    "reference/api/engines.html",
    "reference/commands/models.html",
    "reference/life-of-a-report.html",
    "theory/accounting.html",
    "glossary.html",
    "search.html?q=shuffler",
)


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The site, built as `make docs` does."""
    try:
        shipped.installed()
    except shipped.NotFetchedError as reason:
        missing(str(reason))
    folder = tmp_path_factory.mktemp("site") / "html"
    words = [sys.executable, "-m", "builder.build", str(folder)]
    where = {**os.environ, "PYTHONPATH": str(ROOT / "docs")}
    ran = subprocess.run(words, cwd=ROOT, env=where, capture_output=True, text=True, timeout=_PATIENCE, check=False)
    assert ran.returncode == 0, ran.stdout + ran.stderr
    assert not ran.stderr
    return folder


class _Quiet(SimpleHTTPRequestHandler):
    def log_message(self, *words: Any) -> None:
        """Say nothing."""


@pytest.fixture(scope="module")
def address(site: Path) -> Iterator[str]:
    """Where the site is served, on this machine."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(_Quiet, directory=str(site)))
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()
        thread.join(timeout=10)


def test_the_site_is_built_without_a_warning_and_every_link_leads_somewhere(site: Path) -> None:
    # That nothing leads nowhere, and nothing comes from elsewhere, is the build's own exit code.
    built = {str(page.relative_to(site).with_suffix("")) for page in site.rglob("*.html")}
    written = {str(page.relative_to(ROOT / "docs").with_suffix("")) for page in (ROOT / "docs").rglob("*.md")}
    assert written - built == {"README"} and built - written == {"genindex", "search"}
    theory = (site / "theory" / "accounting.html").read_text("utf-8")
    assert 'class="math' in theory and "_static/mathjax/tex-chtml.js" in theory
    assert "tex-chtml" not in (site / "index.html").read_text("utf-8")
    answers = (site / "reference" / "api" / "answers.html").read_text("utf-8")
    assert 'id="shuffledp.count"' in answers and "Parameters" in answers and "Raises" in answers
    # Hyphens of options are hyphens, and formulas are not shown as they are written.
    assert "--epsilon" in (site / "reference" / "commands" / "plans-and-proofs.html").read_text("utf-8")
    prose = re.sub(r"<(pre|span class=\"math|div class=\"math).*?</(pre|span|div)>", "", theory, flags=re.S)
    assert "$" not in re.sub(r"<script.*?</script>", "", prose, flags=re.S)


def test_formulas_are_drawn_and_none_is_refused(address: str) -> None:
    """On the pages with most of them, and with the widest; MathJax draws what it cannot read in red."""
    with chromium() as browser, tab(browser, address) as page:
        for name in ("002-linear-bandits", "split-and-mix", "distribution-tests", "amplification"):
            page.goto(f"{address}/theory/{name}.html")
            page.wait_for_function("window.MathJax?.startup?.promise")
            page.evaluate("MathJax.startup.promise.then(() => true)")
            drawn, written = (
                page.evaluate(f"document.querySelectorAll('{each}').length") for each in ("mjx-container", ".math")
            )
            assert drawn == written > 80, name
            assert not page.evaluate("document.querySelectorAll('[data-mjx-error]').length"), name
            wide = "[...document.querySelectorAll('div.math')].filter(each => each.scrollWidth > each.clientWidth + 1)"
            assert not page.evaluate(f"{wide}.map(each => each.textContent)"), name
        # A wrong twin, on the page as it is.
        page.evaluate("MathJax.tex2chtmlPromise('\\\\frac{1}').then(made => { document.body.append(made) })")
        assert page.evaluate("document.querySelectorAll('[data-mjx-error]').length")


def test_ten_pages_keep_nobody_out(address: str) -> None:
    script = axe()
    with chromium() as browser:
        for theme, width in (("light", 1280), ("dark", 390)):
            with tab(browser, address, width=width, theme=theme) as page:
                for path in LOOKED_AT:
                    page.goto(f"{address}/{path}")
                    if "q=" in path:
                        page.wait_for_selector("#search-results li a")
                    if page.query_selector("pre.mermaid"):
                        page.wait_for_selector("pre.mermaid svg")
                    if page.query_selector(".math"):
                        page.wait_for_selector("mjx-container")
                    page.evaluate(script)
                    found = page.evaluate("axe.run({resultTypes: ['violations']}).then(found => found.violations)")
                    grave = [
                        (each["id"], [node["html"][:300] for node in each["nodes"]][:5])
                        for each in found
                        if each["impact"] in ("serious", "critical")
                    ]
                    assert not grave, (theme, path, grave)
                    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth"), (theme, path)
                    dark = page.evaluate("getComputedStyle(document.body).backgroundColor") != "rgb(255, 255, 255)"
                    assert dark == (theme == "dark"), path
