"""What benchmarks and tests measure already, by their names: nothing is written twice."""

import importlib
import sys
from typing import Any

from evidence.printed import ROOT


def benchmark(name: str) -> Any:
    """A module of the folder benchmarks."""
    return _of("benchmarks", name)


def tested(name: str) -> Any:
    """A module of the folder tests, such as faults.test_kill."""
    return _of("tests", name)


def _of(folder: str, name: str) -> Any:
    place = str(ROOT / folder)
    # Both folders have a module called service: whoever is asked comes first.
    sys.path[:] = [place, *(each for each in sys.path if each != place)]
    return importlib.import_module(name)
