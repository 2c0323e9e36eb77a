import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLES = sorted((Path(__file__).parents[2] / "examples").glob("*.py"))
SAID = {
    "first_hour": (
        *(f"\n{number}. " for number in range(1, 11)),
        *("München", "北京", "القاهرة", 'Halle, "Saale"', "elsewhere", "B less A", "analyzer + shuffler", "minutes"),
    )
}
"""What an example must say, beside anything."""
FEWER = {"private_network": ["4", "3"]}
"""Arguments with which an example is quick."""


@pytest.mark.parametrize("script", EXAMPLES, ids=lambda path: path.stem)
def test_examples_run_and_print_an_answer(script: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-W", "error", script, *FEWER.get(script.stem, ())], capture_output=True, text=True, check=True
    )
    # A slow machine is told what takes so long.
    said = [line for line in done.stderr.splitlines() if not line.endswith(" s so far)")]
    assert done.stdout.strip() and said == []
    missing = [words for words in SAID.get(script.stem, ()) if words not in done.stdout]
    assert not missing
