"""A shuffler that could understand a message would not be a shuffler."""

import subprocess
import sys


def test_a_running_shuffler_holds_no_code_that_understands_a_message() -> None:
    code = """
import sys
import numpy as np
from shuffledp import RandomBits, Shuffler, ShufflerPool, Reports
from shuffledp.shuffle.shuffler import BatchSpec
pool = ShufflerPool(2, bits=RandomBits.secure())
pool.open(0, BatchSpec(4))
assert pool.accept(0, Reports.of_equal_size(np.ones((4, 2), dtype=np.uint8))).reports == 4
print(sorted(name for name in sys.modules if name.startswith("shuffledp.")))
"""
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    loaded = set(eval(out))
    assert "shuffledp.shuffle.pool" in loaded
    forbidden = ("shuffledp.protocols", "shuffledp.accounting", "shuffledp.simulation", "shuffledp.references")
    assert not [name for name in loaded if name.startswith(forbidden)], loaded
