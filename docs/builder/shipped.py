"""Formulas and diagrams: npm fetches what the lock file beside this names, and the part that pages need is copied."""

import hashlib
import shutil
import subprocess
import tempfile
from pathlib import Path

_HERE = Path(__file__).parent
_KEPT = Path(__file__).parents[2] / "build" / "docs-npm"
_PATIENCE = 120.0
# Of MathJax the program, what it loads when it meets rarer commands, what screen readers read, and a font; of Mermaid
# all there is.
PARTS = {
    "mathjax/tex-chtml.js": "mathjax/tex-chtml.js",
    "mathjax/a11y/assistive-mml.js": "mathjax/a11y/assistive-mml.js",
    "mathjax/input/tex/extensions": "mathjax/input/tex/extensions",
    "mathjax/LICENSE": "mathjax/LICENSE",
    "@mathjax/mathjax-newcm-font/chtml": "mathjax/fonts/mathjax-newcm-font/chtml",
    "@mermaid-js/tiny/dist/mermaid.tiny.js": "mermaid/mermaid.tiny.js",
    "@mermaid-js/tiny/LICENSE": "mermaid/LICENSE",
}


class NotFetchedError(RuntimeError):
    """A package is not there, and cannot be fetched."""


def installed() -> Path:
    """The folder with the packages of the lock file, which npm fetches once into `build`.

    Returns:
        A folder `node_modules`, named by the lock file's digest.

    Raises:
        NotFetchedError: there is no npm, or it does not fetch them.
    """
    lock = _HERE / "package-lock.json"
    kept = _KEPT / hashlib.sha256(lock.read_bytes()).hexdigest()[:16]
    if kept.is_dir():
        return kept
    npm = shutil.which("npm")
    if npm is None:
        raise NotFetchedError("MathJax and Mermaid come by npm, and there is none: apt-get install npm")
    _KEPT.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=_KEPT) as fresh:
        for file in (_HERE / "package.json", lock):
            shutil.copy(file, fresh)
        words = [npm, "ci", "--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error"]
        ran = subprocess.run(words, cwd=fresh, capture_output=True, text=True, timeout=_PATIENCE, check=False)
        if ran.returncode:
            raise NotFetchedError(f"npm does not fetch MathJax and Mermaid: {ran.stderr.strip()[-300:]}")
        try:
            (Path(fresh) / "node_modules").rename(kept)
        except OSError:
            # Another process was quicker.
            if not kept.is_dir():
                raise
    return kept


def ship(site: Path) -> None:
    """Copy what pages need of the packages into a built site.

    Args:
        site: the folder of its pages.
    """
    modules = installed()
    for source, target in PARTS.items():
        there = site / "_static" / target
        there.parent.mkdir(parents=True, exist_ok=True)
        if (modules / source).is_dir():
            shutil.copytree(modules / source, there, dirs_exist_ok=True)
        else:
            shutil.copy(modules / source, there)
