"""Long work can be ended: after an interrupt nothing is half-written, one sentence is said, and the code is 130."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from harness.children import child
from shuffledp import cli

WORKED = 1.6
"""Seconds of CPU before it is interrupted: imports are over, and everything below takes longer."""
PATIENCE = 60.0
TARGET = ["--epsilon", "1", "--delta", "1e-6"]
LONG = {
    "simulate": [
        "simulate",
        "--synthetic",
        "--users",
        "300000000",
        "--memory",
        "12GB",
        "--method",
        "coins",
        *TARGET,
        "-o",
        "a.json",
        "--json",
    ],
    "histogram": [
        *["histogram", "p.csv", "--column", "age", "--domain", "0:99999", "--method", "fake-users", *TARGET],
        *["--csv", "a.csv"],
    ],
    "count": ["count", "--synthetic", "--users", "90000000", "--shufflers", "5", *TARGET, "--csv", "a.csv"],
    "quantile": ["quantile", "p.csv", "--column", "age", "--domain", "0:999999", *TARGET, "--picture", "a.png"],
    "fit": [
        *["fit", "p.csv", "--target", "bit", "--classes", "0,1", "--interactive", "--solver", "gd", *TARGET],
        *["--bounds", "0:100", "--rounds-allowed", "20000", "-o", "model.json"],
    ],
    "plan": ["plan", "counter", "--users", "900000000", "--shufflers", "6", *TARGET, "-o", "plan.json"],
    "audit": ["audit", "binary-sum", "--users", "1000", "--method", "coins", "--trials", "90000000", *TARGET],
    "papers counter": ["papers", "counter", "--picture", "slopes.png"],
    "papers compare": ["papers", "compare", "-o", "page.html"],
}


@pytest.fixture(scope="module")
def rows() -> str:
    return "bit,age,height\n" + "".join(f"{i % 2},{i % 97},{i % 13}\n" for i in range(20_000))


def _cpu_seconds(process: int) -> float:
    """What a process and its children have used: those of a pool do the work."""
    ticks = 0
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = stat.read_text().rpartition(")")[2].split()
        except OSError:
            continue
        if process in (int(stat.parent.name), int(fields[1])):
            ticks += int(fields[11]) + int(fields[12])
    return ticks / os.sysconf("SC_CLK_TCK")


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="needs the CPU time of a child, as Linux tells it")
@pytest.mark.parametrize("name", LONG)
def test_an_interrupt_ends_it_and_leaves_nothing(rows: str, tmp_path: Path, name: str) -> None:
    (tmp_path / "p.csv").write_text(rows)
    words = [sys.executable, "-m", "shuffledp", *LONG[name]]
    with child(words, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        deadline = time.monotonic() + PATIENCE
        while process.poll() is None and _cpu_seconds(process.pid) < WORKED and time.monotonic() < deadline:
            time.sleep(0.02)
        assert process.poll() is None, "it was over before it could be interrupted"
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=PATIENCE)
    # To a shell both are 130: where an interrupt meets code that was made from text, Python ends by the signal itself.
    assert process.returncode in (cli.INTERRUPTED, -signal.SIGINT) and cli.INTERRUPTED == 128 + signal.SIGINT
    left = {path.name for path in tmp_path.iterdir()} - {"p.csv"}
    # What an experiment has measured is kept beside its picture, whole, so that a second run goes on.
    assert left <= ({"slopes.png.rows.json"} if name == "papers counter" else set())
    assert all(json.loads((tmp_path / each).read_text()) for each in left)
    if "--json" in words:
        assert "no file is half-written" in json.loads(out)["error"]["message"] and err == ""
    else:
        assert out == "" and err.strip().splitlines()[-1] == "shuffledp: interrupted, and no file is half-written."


def test_an_error_that_comes_of_an_interrupt_is_one(monkeypatch: pytest.MonkeyPatch, capsys) -> None:
    """A library that was met by an interrupt may raise an error of its own."""

    def met(*_: object) -> None:
        try:
            raise KeyboardInterrupt
        except KeyboardInterrupt:
            raise SystemError("returned NULL without setting an exception") from None

    def broken(*_: object) -> None:
        raise SystemError("a bug")

    for run, code in ((met, cli.INTERRUPTED), (broken, 1)):
        monkeypatch.setattr(cli, "_check_once", run)
        with pytest.raises(SystemExit) as ended:
            cli.main(["protocols"])
        assert ended.value.code == code
    assert "interrupted, and no file is half-written" in capsys.readouterr().err


READING = """
import sys
from pathlib import Path
from shuffledp.tables.arrow_table import ArrowCsv
from shuffledp.tables.csv_source import CsvSource
table = ArrowCsv(CsvSource("p.csv", "p.csv", Path("p.csv")))
table.numbers(["bit", "age"]), table.words("height")
print("pyarrow" in sys.modules, "pandas" in sys.modules)
"""


def test_pandas_is_not_imported_where_an_interrupt_would_be_lost(rows: str, tmp_path: Path) -> None:
    """Pyarrow imports pandas for whoever calls `to_numpy`, and drops whatever is raised meanwhile."""
    (tmp_path / "p.csv").write_text(rows + "1,,a word\n")
    words = [sys.executable, "-c", READING]
    said = subprocess.run(words, cwd=tmp_path, capture_output=True, text=True, check=True, timeout=PATIENCE)
    assert said.stdout.split() == ["True", "False"]
