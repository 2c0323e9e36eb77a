"""Photographs the analyzer's page in both themes, with chromium and playwright; about a minute."""

import re
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

from playwright.sync_api import sync_playwright

HERE = Path(__file__).parent
SIZE = {"width": 1000, "height": 1080}
QUIET = ["--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking", "--disable-sync"]


def photograph(address: str) -> None:
    """Of a task's page that has all its releases."""
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path="/usr/bin/chromium", args=QUIET)
        for theme in ("light", "dark"):
            page = browser.new_page(viewport=SIZE, color_scheme=theme)
            page.goto(address)
            page.wait_for_selector("#chart canvas")
            page.wait_for_timeout(1500)
            page.screenshot(path=HERE / f"dashboard-{theme}.png")
        browser.close()


def main() -> None:
    """A live running count on this machine, looked at when everybody has come."""
    with tempfile.TemporaryDirectory() as folder:
        words = ["demo", "--folder", folder, "--users", "1200", "--noise", "coins", "--keep", "--json"]
        command = [sys.executable, "-m", "shuffledp", *words]
        demo = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        assert demo.stdout is not None and demo.stderr is not None
        try:
            found = next(filter(None, (re.search(r"http://\S+/tasks/\S+", line) for line in demo.stderr)))
            # The whole document is there when its last line is.
            for line in demo.stdout:
                if line.startswith("}"):
                    break
            photograph(found[0])
        finally:
            demo.send_signal(signal.SIGINT)
            demo.wait(timeout=60)


if __name__ == "__main__":
    main()
