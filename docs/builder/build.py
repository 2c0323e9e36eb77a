"""Builds the site, with every warning an error, and looks at all its links: what `make docs` runs."""

import gc
import shutil
import sys
import time
from pathlib import Path

from builder import checking

ROOT = Path(__file__).parents[2]
SITE = ROOT / "build" / "docs" / "html"


def build(site: Path) -> checking.Findings:
    """Build the site anew, and look at it.

    Args:
        site: the folder for its pages; what was in it is gone.

    Raises:
        SystemExit: Sphinx has warned of something.
    """
    from sphinx.cmd.build import main as sphinx

    shutil.rmtree(site, ignore_errors=True)
    trees = site.with_name("trees")
    shutil.rmtree(trees, ignore_errors=True)
    words = ["-b", "html", "-W", "--keep-going", "-q", "-d", str(trees), str(ROOT / "docs"), str(site)]
    if code := sphinx(words):
        raise SystemExit(code)
    return checking.looked_at(site)


def main(folder: str | None = None) -> int:
    """Build it, and say how that went.

    Args:
        folder: where to; `build/docs/html` if left out.

    Returns:
        The exit code: 1 if a link leads nowhere, or a page would fetch something from elsewhere.
    """
    # Almost all that Sphinx makes stays to the end, and is looked through in vain.
    gc.set_threshold(200_000, 50, 50)
    site = SITE if folder is None else Path(folder)
    found = build(site)
    for each in (*found.broken, *found.foreign):
        print(each, file=sys.stderr)
    print(
        f"{site / 'index.html'}: {found.pages} pages, {found.links} links inside of which {len(found.broken)} lead "
        f"nowhere, {len(found.foreign)} things from other hosts; {time.process_time():.0f} s of CPU"
    )
    return 1 if found.broken or found.foreign else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
