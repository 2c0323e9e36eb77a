"""Every command of the streaming benchmark on a small file read in pieces: it answers, or says what it needs."""

import importlib.util
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from shuffledp.cli import answering, heavy_hitters, running
from shuffledp.protocols.catalogue import PROTOCOLS

FOLDER = Path(__file__).parents[2] / "benchmarks"


def benchmark() -> ModuleType:
    """The script, which is no package's."""
    sys.path.insert(0, str(FOLDER))
    try:
        spec = importlib.util.spec_from_file_location("streaming_benchmark", FOLDER / "streaming.py")
        assert spec is not None and spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
    finally:
        sys.path.remove(str(FOLDER))
    return module


STREAMING = benchmark()
ALWAYS = ("grouped-mean by shares", "counter by coins", "two axes by grid", "distribution-test by decoys")
CASES = [
    pytest.param(name, words, id=name, marks=() if name in ALWAYS else pytest.mark.sweep)
    for name, words in STREAMING.cases()
]


def test_every_family_with_people_of_its_own_is_there() -> None:
    there = {words[words.index("--protocol") + 1] for words in STREAMING.COMMANDS.values() if "--protocol" in words}
    there |= set(STREAMING.METHODS)
    # What --by, --user and --at-most make of a family is asked by its own name.
    others = {name for name in PROTOCOLS if not name.startswith(("repeated-", "grouped-"))}
    assert others <= there


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    found: Path = STREAMING.people(tmp_path_factory.mktemp("people") / "people.parquet", 1500)
    return found


@pytest.mark.parametrize(("name", "words"), CASES)
def test_it_answers_in_pieces_or_says_what_it_needs(
    name: str, words: list[str], file: Path, asked: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    for module in (answering, heavy_hitters, running):
        monkeypatch.setattr(module, "SMALL", 100)
    command, *options = words
    target = ["--epsilon", "1", "--delta", "1e-6", "--seed", "1", "--processes", "1", "--memory", "900MB"]
    # Its messages grow with the square of the people.
    refused = name.startswith("masked-sum")
    found = asked(command, file, *options, *target, code=2 if refused else 0)
    if refused:
        assert found["error"]["parameter"] in ("memory", "domain", "users")
    else:
        assert ("pieces" in found) == (not name.startswith("counter")), found
