"""Long work can be ended: after an interrupt nothing is half-written, one sentence is said, and the code is 130."""

import json
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from shuffledp import cli

SOON = 0.25
"""Seconds of work before it is interrupted; everything below takes longer."""
TARGET = ["--epsilon", "1", "--delta", "1e-6"]
LONG = {
    "simulate": ["simulate", "--synthetic", "--users", "9000000", "--method", "coins", *TARGET, "-o", "a.json"],
    "histogram": [
        *["histogram", "p.csv", "--column", "age", "--domain", "0:9999", "--method", "correlated", *TARGET],
        *["--csv", "a.csv"],
    ],
    "count": ["count", "--synthetic", "--users", "9000000", "--shufflers", "5", *TARGET, "--csv", "a.csv"],
    "quantile": ["quantile", "p.csv", "--column", "age", "--domain", "0:99999", *TARGET, "--picture", "a.png"],
    "fit": [
        *["fit", "p.csv", "--target", "bit", "--classes", "0,1", "--interactive", "--solver", "gd", *TARGET],
        *["--rounds-allowed", "20000", "-o", "model.json"],
    ],
    "plan": ["plan", "counter", "--users", "900000000", "--shufflers", "6", *TARGET, "-o", "plan.json"],
    "audit": ["audit", "binary-sum", "--users", "1000", "--method", "coins", "--trials", "90000000", *TARGET],
    "papers counter": ["papers", "counter", "--picture", "slopes.png"],
    "papers compare": ["papers", "compare", "-o", "page.html"],
}


@pytest.fixture
def soon() -> Iterator[None]:
    """An interrupt, as the terminal's, after a quarter of a second."""
    before = signal.signal(signal.SIGALRM, signal.default_int_handler)
    signal.setitimer(signal.ITIMER_REAL, SOON)
    yield
    signal.setitimer(signal.ITIMER_REAL, 0)
    signal.signal(signal.SIGALRM, before)


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    rows = "".join(f"{i % 2},{i % 97},{i % 13}\n" for i in range(20_000))
    Path("p.csv").write_text("bit,age,height\n" + rows)
    return tmp_path


@pytest.mark.parametrize("name", LONG)
def test_an_interrupt_ends_it_and_leaves_nothing(here: Path, soon: Any, capsys: Any, name: str) -> None:
    with pytest.raises(SystemExit) as ended:
        cli.main([*LONG[name], "--json"] if name == "simulate" else LONG[name])
    out, err = capsys.readouterr()
    assert ended.value.code == cli.INTERRUPTED == 130
    assert [path.name for path in here.iterdir()] == ["p.csv"]
    if name == "simulate":
        assert "no file is half-written" in json.loads(out)["error"]["message"] and err == ""
    else:
        assert out == "" and err.strip().splitlines()[-1] == "shuffledp: interrupted, and no file is half-written."
