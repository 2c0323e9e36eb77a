"""What released versions wrote is read as it was meant; what a later one writes is refused, and nothing is changed."""

import json
import math
import re
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from shuffledp.errors import DataError
from shuffledp.protocols.catalogue import PROTOCOLS

from . import writers
from .later import LATER, LATER_FILES
from .meaning import MEANINGS

FOLDER = Path(__file__).parent
VERSIONS = sorted(path.parent.name for path in FOLDER.glob("*/meaning.json"))
MEANT = {version: json.loads((FOLDER / version / "meaning.json").read_text("utf-8")) for version in VERSIONS}


@pytest.fixture
def copied(tmp_path: Path) -> Any:
    """A version's files in a folder of this test, as their owner has them: others cannot read them."""

    def copy(version: str) -> Path:
        made = Path(shutil.copytree(FOLDER / version, tmp_path / version))
        for path in made.rglob("*"):
            path.chmod(0o700 if path.is_dir() else 0o600)
        return made

    return copy


def differences(meant: Any, now: Any, path: str = "") -> Iterator[str]:
    """What is said otherwise; another machine's last bits are no difference."""
    if isinstance(meant, dict) and isinstance(now, dict):
        for key in sorted(meant.keys() | now.keys()):
            yield from differences(meant.get(key), now.get(key), f"{path}.{key}")
    elif isinstance(meant, list) and isinstance(now, list) and len(meant) == len(now):
        for place, (old, new) in enumerate(zip(meant, now, strict=True)):
            yield from differences(old, new, f"{path}[{place}]")
    elif isinstance(meant, float) and isinstance(now, float):
        if not math.isclose(meant, now, rel_tol=1e-9, abs_tol=1e-15):
            yield f"{path}: was {meant}, is {now}"
    elif meant != now or type(meant) is not type(now):
        yield f"{path}: was {meant}, is {now}"


@pytest.mark.parametrize("kind", MEANINGS)
@pytest.mark.parametrize("version", VERSIONS)
def test_files_mean_what_they_meant(copied: Any, version: str, kind: str) -> None:
    if kind not in MEANT[version]:
        pytest.skip(f"{version} had no such file")
    now = json.loads(json.dumps(MEANINGS[kind](copied(version))))
    assert not list(differences(MEANT[version][kind], now))


def test_another_meaning_is_seen(copied: Any) -> None:
    """Each number that is another, and a file that says something else without being refused."""
    for kind, meant in MEANT["0.1.0"].items():
        text = re.sub("[1-8]", lambda digit: str(int(digit[0]) + 1), json.dumps(meant))
        assert list(differences(meant, json.loads(text))), kind
    folder = copied("0.1.0")
    file = folder / "states" / "counter.json"
    document = json.loads(file.read_text("utf-8"))
    document["users"] -= 1
    file.write_text(json.dumps(document), "utf-8")
    assert list(differences(MEANT["0.1.0"]["state"], MEANINGS["state"](folder)))


def _content(folder: Path) -> dict[str, bytes]:
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


@pytest.mark.parametrize("name", LATER_FILES)
def test_a_file_of_a_later_version_is_refused_with_a_way_forward(copied: Any, name: str) -> None:
    folder, later = copied(VERSIONS[-1]), LATER_FILES[name]
    later.change(folder)
    before = _content(folder)
    with pytest.raises(DataError) as refused:
        later.read(folder)
    said = str(refused.value)
    assert str(LATER) in said and ": use the shuffledp that " in said, said
    assert said.endswith(".") and "\n" not in said
    after = _content(folder)
    # A store is unpacked to be looked at; what was there is as it was.
    assert {path: after.get(path) for path in before} == before
    assert not [path for path in after if "part" in path.rpartition("/")[2] and path not in before]


# --- nothing is kept without a record --------------------------------------------------------------------------------


def test_every_version_label_is_in_a_record() -> None:
    found = writers.labels()
    known = writers.LABELS.keys() | writers.NOT_KEPT.keys()
    assert found == known, f"no record: {sorted(found - known)}; gone: {sorted(known - found)}"
    named = {kind for kinds in writers.LABELS.values() for kind in kinds}
    assert named == LATER_FILES.keys(), "every version in a file has a later one that is refused"


def test_every_writer_is_in_a_record() -> None:
    found = writers.writing()
    known = writers.KEPT_BY.keys() | writers.OTHERWISE.keys()
    assert found == known, f"no record: {sorted(found - known)}; gone: {sorted(known - found)}"
    assert {kind for kinds in writers.KEPT_BY.values() for kind in kinds} <= MEANINGS.keys()


def test_every_kind_is_in_a_released_version() -> None:
    recorded = {kind for meant in MEANT.values() for kind in meant}
    assert recorded == MEANINGS.keys(), "write the next version's files: python -m tests.compatibility.write"


def test_every_family_has_a_plan_in_a_released_version() -> None:
    plans = {path.stem for path in FOLDER.glob("*/plans/*.json")}
    assert PROTOCOLS.keys() <= plans


def test_the_page_names_every_kind() -> None:
    page = (FOLDER.parents[1] / "docs" / "reference" / "compatibility.md").read_text("utf-8")
    for kind in MEANINGS:
        assert kind in page, kind
