"""The notebooks run from the first cell to the last, draw, and become pages whose links lead somewhere."""

import re
import runpy
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

FOLDER = Path(__file__).parents[1] / "docs" / "notebooks"
SAID = {
    "private_count": "analyzer + shuffler: see whose messages are whose",
    "running_count": "the largest error of all 4,000 answers",
    "recommender": "step that the device computes: choose",
    "private_model": "a curator: 8",
    "planning": "poisson-bits: ± 4.62",
    "break_it": "half of the noise: epsilon is at least 1.",
}
"""What each must have printed by its end."""
BY_KERNEL = "planning"
"""The one that is run as people do it, by a kernel: the others are run as scripts, which is quicker."""


def sources() -> list[Path]:
    return sorted(path for path in FOLDER.glob("*.py") if path.stem != "execute")


@pytest.fixture
def plots() -> Iterator[Any]:
    """Where figures are drawn, on no screen; those of a notebook are closed after it."""
    import matplotlib.pyplot as plt

    plt.switch_backend("agg")
    plt.close("all")
    yield plt
    plt.close("all")


@pytest.mark.parametrize("name", sorted(SAID.keys() - {BY_KERNEL}))
def test_a_notebook_runs_to_its_end(name: str, plots: Any, capsys: pytest.CaptureFixture[str]) -> None:
    runpy.run_path(str(FOLDER / f"{name}.py"))
    assert SAID[name] in capsys.readouterr().out
    assert plots.get_fignums(), "it draws nothing"


def test_a_notebook_becomes_a_page_with_its_outputs(tmp_path: Path) -> None:
    command = [sys.executable, str(FOLDER / "execute.py"), BY_KERNEL, "--out", str(tmp_path)]
    subprocess.run(command, check=True, capture_output=True, timeout=240)
    page = (tmp_path / f"{BY_KERNEL}.md").read_text("utf-8")
    assert SAID[BY_KERNEL] in page and "```{raw} html" in page and "```python" in page
    pictures = re.findall(r"!\[[^]]*\]\(([^)]*)\)", page)
    assert pictures and all((tmp_path / each).stat().st_size > 5_000 for each in pictures)
    assert '"output_type": "display_data"' in (tmp_path / f"{BY_KERNEL}.ipynb").read_text("utf-8")


def test_every_notebook_is_run_explained_and_short() -> None:
    listed = runpy.run_path(str(FOLDER / "execute.py"))["NAMES"]
    assert {path.stem for path in sources()} == set(listed) == set(SAID)
    for path in sources():
        text = path.read_text("utf-8")
        kinds = re.findall(r"^# %%(.*)$", text, re.MULTILINE)
        assert kinds[0].strip() == "[markdown]" and kinds.count(" [markdown]") >= 5, path.name
        assert "**In short.**" in text and "What just happened" in text and "trusted" in text, path.name
        code = [cell for cell in re.split(r"^# %%.*$", text, flags=re.MULTILINE) if not cell.strip().startswith("#")]
        assert max(len(cell.strip().splitlines()) for cell in code) <= 26, path.name
        for link in re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", text):
            assert (FOLDER / link).exists(), f"{path.name}: {link}"
