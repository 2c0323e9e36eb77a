"""Live clients, CSV and .npy files need no pyarrow, and what needs it says which extra to install."""

import json
import subprocess
import sys
import tomllib
from importlib.metadata import distribution
from pathlib import Path

import numpy as np
from packaging.requirements import Requirement

ROOT = Path(__file__).resolve().parents[2]
LARGEST_MEGABYTES = 310

CHILD = """
import contextlib, io, json, sys
sys.modules["pyarrow"] = None
import shuffledp, shuffledp.service.analyzer.app, shuffledp.service.client
assert shuffledp.count([1.0, None] * 20, epsilon=1, delta=1e-3, method="coins", missing="default=0").plan.users == 40
from shuffledp.cli import main

told = []
for words in json.loads(sys.argv[1]):
    said = io.StringIO()
    sys.stdin = open("people.csv")
    with contextlib.redirect_stdout(said), contextlib.redirect_stderr(said), contextlib.suppress(BaseException):
        try:
            main(words + ["--epsilon", "1", "--delta", "1e-6", "--fast", "--with-truth"])
        except SystemExit as done:
            told.append([done.code, said.getvalue()])
print(json.dumps(told))
"""
"""Several command lines in one process that has no pyarrow."""


def test_csv_needs_no_pyarrow_and_parquet_names_its_extra(tmp_path: Path) -> None:
    (tmp_path / "people.csv").write_text("clicked,city,age\n" + '1.0,"Kyōto, east",30\n0.0,Łódź,\n' * 100)
    np.save(tmp_path / "bits.npy", np.arange(200) % 2)
    (tmp_path / "people.parquet").write_bytes(b"PAR1")
    coins = ["--method", "coins"]
    city = ["--column", "city", "--method", "opt-in"]
    age = ["simulate", "people.csv", "--protocol", "bounded-sum", "--low", "0", "--high", "99", "--column", "age"]
    commands = [
        ["simulate", "people.csv", "--column", "clicked", "--json", *coins],
        ["simulate", "bits.npy", *coins],
        ["histogram", "-", *city, "--domain", '"Kyōto, east",Łódź', "--csv", "found.csv"],
        [*age, "--missing", "default=0"],
        age,
        ["simulate", "people.parquet", "--column", "x", *coins],
        ["histogram", "people.csv", *city, "--domain", "a,b", "--other", "c", "--csv", "out.parquet"],
    ]
    words = [sys.executable, "-c", CHILD, json.dumps(commands)]
    done = subprocess.run(words, check=False, capture_output=True, cwd=tmp_path)
    assert done.returncode == 0, done.stderr.decode()
    told = json.loads(done.stdout)
    assert [code for code, _ in told] == [0, 0, 0, 0, 2, 2, 2], told
    assert '"users": 200' in told[0][1] and '"truth": 100' in told[0][1]
    assert '"Kyōto, east",' in (tmp_path / "found.csv").read_text(encoding="utf-8")
    assert "100 of 200 rows without one, the first in row 2" in told[4][1]
    assert all("pip install 'shuffledp[tables]'" in said and "Traceback" not in said for _, said in told[5:])
    assert not (tmp_path / "out.parquet").exists()


def needed(names: set[str]) -> set[str]:
    """What is installed with packages: they, and what they require without any extra."""
    found: set[str] = set()
    waiting = set(names)
    while waiting:
        name = waiting.pop()
        found.add(name)
        for text in distribution(name).requires or ():
            requirement = Requirement(text)
            if requirement.marker is None or requirement.marker.evaluate({"extra": ""}):
                waiting |= {requirement.name.lower().replace("_", "-")} - found
    return found


def test_the_base_is_small() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    wanted = {Requirement(text).name for text in project["dependencies"]}
    installed = needed(wanted)
    assert "pyarrow" not in installed and "httpx" in installed
    blocks = 0
    for name in installed:
        for file in distribution(name).files or ():
            path = Path(str(file.locate()))
            if path.is_file():
                blocks += -(-path.stat().st_size // 4096)
    blocks += sum(-(-path.stat().st_size // 4096) for path in (ROOT / "src").rglob("*.py"))
    assert blocks * 4096 / 2**20 < LARGEST_MEGABYTES
    assert next(Requirement(text) for text in project["dependencies"] if text.startswith("httpx")).specifier.contains(
        "0.28"
    )
    assert "<1" in next(text for text in project["dependencies"] if text.startswith("httpx"))
