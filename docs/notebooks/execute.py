"""Runs the notebooks and writes each as a notebook with its outputs and as a page: `make notebooks`.

A page is Markdown as MyST reads it, with its pictures in a folder beside it. Links between notebooks become links
between pages.
"""

import argparse
import base64
import os
import re
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from tempfile import TemporaryDirectory

import jupytext
import nbformat
from nbclient import NotebookClient
from traitlets.config import Config

HERE = Path(__file__).parent
NAMES = ("private_count", "running_count", "recommender", "private_model", "planning", "break_it")
"""In the order in which a newcomer reads them."""
SECONDS = 120


def executed(name: str) -> nbformat.NotebookNode:
    """A notebook with its outputs; an error in a cell is an error here."""
    notebook = jupytext.read(HERE / f"{name}.py")
    with TemporaryDirectory() as sockets:
        # Files of this machine instead of ports that others could read.
        config = Config({"KernelManager": {"transport": "ipc", "ip": f"{sockets}/kernel"}})
        asked = {"timeout": SECONDS, "startup_timeout": SECONDS, "kernel_name": "python3"}
        return NotebookClient(notebook, config=config, **asked).execute(cwd=str(HERE))


def page(notebook: nbformat.NotebookNode, pictures: Path) -> str:
    """A notebook as Markdown; its pictures are written to a folder."""
    parts = []
    for place, cell in enumerate(notebook.cells):
        if cell.cell_type == "markdown":
            parts.append(re.sub(r"\]\((\w+)\.py\)", r"](\1.md)", cell.source))
            continue
        parts.append(f"```python\n{cell.source}\n```")
        printed = "".join(output.text for output in cell.outputs if output.output_type == "stream")
        parts.append(f"```text\n{printed.rstrip()}\n```" if printed else "")
        shown = [output for output in cell.outputs if output.output_type != "stream"]
        parts += [_output(output, pictures, f"{place}-{number}") for number, output in enumerate(shown)]
    return "\n\n".join(part for part in parts if part) + "\n"


def _output(output: nbformat.NotebookNode, pictures: Path, name: str) -> str:
    """What a cell has shown or drawn: of several forms the richest."""
    data = output.data
    if "image/png" in data:
        pictures.mkdir(parents=True, exist_ok=True)
        (pictures / f"{name}.png").write_bytes(base64.b64decode(data["image/png"]))
        return f"![What the cell above draws]({pictures.name}/{name}.png)"
    if "text/html" in data:
        # Tables have the site's own lines, not the frames that pandas draws.
        table = re.sub(r"<style scoped>.*?</style>| border=\"1\"", "", data["text/html"], flags=re.DOTALL)
        return f"```{{raw}} html\n{table.strip()}\n```"
    return f"```text\n{data['text/plain']}\n```"


def main() -> None:
    """Run those that are named, or all."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", choices=[[], *NAMES], help="which; all unless some are named")
    parser.add_argument("--out", type=Path, default=HERE.parents[1] / "build" / "notebooks", help="the folder")
    given = parser.parse_args()
    given.out.mkdir(parents=True, exist_ok=True)
    names = given.names or NAMES
    with ThreadPoolExecutor(max(1, min(len(names), os.cpu_count() or 1))) as several:
        # Each has a process of its own; whoever waits for one needs no core.
        made = dict(zip(names, several.map(executed, names), strict=True))
    for name, notebook in made.items():
        nbformat.write(notebook, given.out / f"{name}.ipynb")
        (given.out / f"{name}.md").write_text(page(notebook, given.out / f"{name}_files"), "utf-8")
        print(f"{name}: {given.out / name}.md", file=sys.stderr)


if __name__ == "__main__":
    main()
