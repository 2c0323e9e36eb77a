"""A shuffle that could understand a message would not be a shuffler's."""

import subprocess
import sys
from pathlib import Path

from harness.messages import write_ciphertexts

CODE = """
import sys
from pathlib import Path
from shuffledp.engines import LocalEngine
from shuffledp.jobs.shuffling import shuffle_files
with LocalEngine(processes=1) as engine:
    assert shuffle_files(Path(sys.argv[1]), Path(sys.argv[2]), engine=engine).manifest.messages == 9
print(sorted(name for name in sys.modules if name.startswith("shuffledp.")))
"""


def test_a_running_shuffle_holds_no_code_that_understands_a_message(tmp_path: Path) -> None:
    words = [sys.executable, "-c", CODE, write_ciphertexts(tmp_path / "in", (4, 5)), tmp_path / "out"]
    out = subprocess.run(words, capture_output=True, text=True, check=True, timeout=120).stdout
    loaded = set(eval(out))
    assert "shuffledp.jobs.shuffling" in loaded
    forbidden = ("shuffledp.protocols", "shuffledp.accounting", "shuffledp.simulation", "shuffledp.references")
    assert not [name for name in loaded if name.startswith(forbidden)], loaded
