"""Node with the JavaScript client and its one dependency, which npm fetches once into `build`."""

import hashlib
import os
import shutil
import subprocess
import tempfile
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import pytest

from harness.children import child

ROOT = Path(__file__).parents[2]
SOURCE, CACHE = ROOT / "clients" / "javascript", ROOT / "build" / "javascript"
_PATIENCE = 120.0


@dataclass(frozen=True)
class Node:
    """A copy of the client beside its dependency.

    Attributes:
        folder: where the copy is.
    """

    folder: Path

    def run(self, *words: str, stdin: str | None = None) -> "subprocess.CompletedProcess[str]":
        """What Node says to these words, in the client's folder."""
        where = {**os.environ, "SHUFFLEDP_VECTORS": str(ROOT / "tests" / "vectors"), "NODE_OPTIONS": _options()}
        return subprocess.run(
            ["node", *words],
            cwd=self.folder,
            env=where,
            input=stdin or "",
            capture_output=True,
            text=True,
            timeout=_PATIENCE,
        )

    @contextmanager
    def talking(self, *words: str) -> "Iterator[Callable[[str], str]]":
        """Node with these words, which answers a line to each line; killed in the end, and if it takes too long."""
        where = {**os.environ, "NODE_OPTIONS": _options()}
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
        with child(["node", *words], cwd=self.folder, env=where, text=True, **pipes) as process:
            deadline = threading.Timer(_PATIENCE, process.kill)
            deadline.start()

            def ask(line: str) -> str:
                process.stdin.write(line + "\n")
                process.stdin.flush()
                answer = process.stdout.readline().strip()
                assert answer, process.stderr.read()
                return answer

            try:
                yield ask
            finally:
                deadline.cancel()

    def answer(self, script: str, stdin: str) -> str:
        """What one of the client's tools prints."""
        ran = self.run(f"testing/{script}", stdin=stdin)
        assert ran.returncode == 0, ran.stderr
        return ran.stdout


@cache
def _options() -> str:
    """Before version 20 Node has Web Crypto, but not where browsers have it."""
    said = subprocess.run(["node", "--version"], capture_output=True, text=True, timeout=_PATIENCE).stdout
    return "--experimental-global-webcrypto" if int(said.strip("v").partition(".")[0]) < 20 else ""


def node_in(folder: Path, source: Path = SOURCE) -> Node:
    """The client in this folder, ready to run; a test is skipped where there is no Node, but not where CI=true.

    Args:
        folder: where the copy is made.
        source: of another package than the client, with a lock file of its own.
    """
    missing = [name for name in ("node", "npm") if shutil.which(name) is None]
    if missing:
        said = f"there is no {' and no '.join(missing)}: apt-get install nodejs npm"
        if os.environ.get("CI") == "true":
            raise RuntimeError(f"In CI the JavaScript client must be tested, and {said}.")
        pytest.skip(said)
    copy = folder / "client"
    shutil.copytree(source, copy, ignore=shutil.ignore_patterns("node_modules"))
    (copy / "node_modules").symlink_to(_modules(source))
    return Node(copy)


def _modules(source: Path) -> Path:
    """The folder of what the lock file names, by its digest; another process may make it at the same time."""
    lock = source / "package-lock.json"
    kept = CACHE / hashlib.sha256(lock.read_bytes()).hexdigest()[:16]
    if not (kept / "node_modules").is_dir():
        CACHE.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=CACHE) as fresh:
            for name in ("package.json", lock.name):
                shutil.copy(source / name, fresh)
            words = ["npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error"]
            ran = subprocess.run(words, cwd=fresh, capture_output=True, text=True, timeout=_PATIENCE)
            assert ran.returncode == 0, f"npm could not fetch what {lock} names: {ran.stderr}"
            kept.mkdir(exist_ok=True)
            try:
                (Path(fresh) / "node_modules").rename(kept / "node_modules")
            except OSError:
                # Another process was faster.
                assert (kept / "node_modules").is_dir()
    return kept / "node_modules"
