"""Draws the gallery: runs every command, keeps its numbers and its picture, and writes docs/gallery.md.

`make gallery`: some minutes. With names only these are run; with --page nothing is, and the page is written anew.
"""

import argparse
import base64
import io
import json
import re
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

from exhibits import EXHIBITS, Exhibit
from PIL import Image

DOCS = Path(__file__).parents[1]
PAGE, PICTURES = DOCS / "gallery.md", DOCS / "pictures" / "gallery"
MEASURED = PICTURES / "measured.json"
BUILD = DOCS.parent / "build" / "gallery"
WIDEST, COLOURS = 1400, 96

BEFORE = """# Gallery: the papers' figures and tables, measured

Every figure and table of the papers that the package can draw: what the paper prints, what was measured here, and the
command that draws it. Nothing below is typed by hand but the papers' own numbers and a sentence a picture: `make
gallery` runs the commands, keeps the numbers in `docs/pictures/gallery/measured.json` and writes this page. The papers,
their errata and what is proved here are on the theory pages: [000](theory/000-concurrent-shufflers.md),
[001](theory/001-convex-optimization.md), [002](theory/002-linear-bandits.md), [003](theory/003-binary-sums.md),
[004](theory/004-survey.md). Brackets are 95% intervals. Epsilon is 1 and delta 1e-6 unless a line says otherwise; the
worlds of 002's figures have delta 0.1.
"""


def run(exhibit: Exhibit) -> dict[str, Any]:
    """Run a command, keep its picture, and answer its rows."""
    BUILD.mkdir(parents=True, exist_ok=True)
    command = [sys.executable, "-m", "shuffledp", *exhibit.words, "--json"]
    said = subprocess.run(command, check=True, capture_output=True, text=True, cwd=BUILD).stdout
    found = json.loads(said)
    if exhibit.draws == "png":
        keep(exhibit, (BUILD / f"{exhibit.name}.png").read_bytes())
    elif exhibit.draws == "html":
        page = (BUILD / f"{exhibit.name}.html").read_text("utf-8")
        keep(exhibit, base64.b64decode(re.findall(r'src="data:image/png;base64,([^"]+)"', page)[0]))
    return kept_of(exhibit, found)


def kept_of(exhibit: Exhibit, found: Any) -> dict[str, Any]:
    """What of a command's answer is kept: the rows of the page, and the sentence that sums them up."""
    headings, rows = exhibit.rows(found)
    sees = found["tables"][0]["sees"] if "tables" in found else ""
    return {"headings": list(headings), "rows": rows, "sees": sees}


def keep(exhibit: Exhibit, picture: bytes) -> None:
    """A picture in as few bytes as it needs: no wider than a page, with as many colours as lines have."""
    image = Image.open(io.BytesIO(picture)).convert("RGB")
    if image.width > WIDEST:
        image = image.resize((WIDEST, round(image.height * WIDEST / image.width)), Image.Resampling.LANCZOS)
    PICTURES.mkdir(parents=True, exist_ok=True)
    image.quantize(COLOURS).save(PICTURES / f"{exhibit.name}.png", optimize=True)


def page(measured: dict[str, Any]) -> str:
    """The whole page from what was measured."""
    links = "\n".join(f"- [{each.title}](#{anchor(each.title)})" for each in EXHIBITS)
    return "\n".join((BEFORE, links, *(section(each, measured[each.name]) for each in EXHIBITS)))


def anchor(title: str) -> str:
    """The name that a heading has in links."""
    return re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-")


def section(exhibit: Exhibit, kept: dict[str, Any]) -> str:
    """One exhibit: the paper's words, the command, the picture and the table."""
    parts = [f"\n## {exhibit.title}\n"]
    if exhibit.says:
        parts.append(f"**In the paper:** {exhibit.says}\n")
    parts.append(f"    shuffledp {shlex.join(exhibit.words)}\n")
    if exhibit.draws:
        parts.append(f"![{exhibit.title}, measured](pictures/gallery/{exhibit.name}.png)\n")
    if sees := exhibit.sees or kept["sees"]:
        parts.append(f"{sees}\n")
    rows = [kept["headings"], ["---"] * len(kept["headings"]), *kept["rows"]]
    parts += ["| " + " | ".join(cell.replace("|", "\\|") for cell in row) + " |" for row in rows]
    return "\n".join(parts) + "\n"


def main() -> None:
    """Run what is asked for and write the page."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", help="exhibits to run; all unless some are named")
    parser.add_argument("--page", action="store_true", help="write the page from what was kept, and run nothing")
    given = parser.parse_args()
    measured = json.loads(MEASURED.read_text("utf-8")) if MEASURED.exists() else {"schema": 1}
    for exhibit in EXHIBITS:
        if not given.page and (not given.names or exhibit.name in given.names):
            print(f"shuffledp {shlex.join(exhibit.words)}", file=sys.stderr)
            measured[exhibit.name] = run(exhibit)
            MEASURED.write_text(json.dumps(measured, indent=1, ensure_ascii=False) + "\n", "utf-8")
    PAGE.write_text(page(measured), "utf-8")


if __name__ == "__main__":
    main()
