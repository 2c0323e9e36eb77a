"""Every hint that a command prints can be typed as it is, plans the very same thing, and says if it spends again."""

import json
import shlex
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from shuffledp import cli

TARGET = ["--epsilon", "2", "--delta", "1e-5"]
LIMITED = [*TARGET, "--honest-fraction", "0.8"]
PEOPLE = ["--user", "who", "--at-most", "2"]

ASKED: dict[str, list[str]] = {
    "sum": ["sum", "p.csv", "--column", "bit", "--method", "shares", *LIMITED, "--max-messages", "20"],
    "sum of vectors": ["sum", "p.csv", "--columns", "a,b", "--radius", "2", "--method", "bits", *LIMITED],
    "sum of repeat users": ["sum", "p.csv", "--column", "bit", *PEOPLE, *TARGET],
    "variance": ["variance", "p.csv", "--column", "age", "--low", "0", "--high", "99", *LIMITED],
    "histogram": [
        "histogram",
        "p.csv",
        "--column",
        "city",
        "--domain",
        "Oslo,São Tomé",
        "--other",
        "rest",
        "--method",
        "decoys",
        *LIMITED,
    ],
    "public histogram": [
        "histogram",
        "p.csv",
        "--column",
        "city",
        "--domain",
        "data",
        "--domain-is-public",
        "--method",
        "decoys",
        *TARGET,
    ],
    "planned histogram": ["histogram", "p.csv", "--column", "bit", "--plan", "h.json"],
    "quantile": ["quantile", "p.csv", "--column", "age", "--domain", "20:60", "--method", "dyadic", "--clip", *LIMITED],
    "count": ["count", "p.csv", "--column", "bit", "--shufflers", "2", "--noise", "coins", *LIMITED],
    "made-up count": [
        "count",
        "--synthetic",
        "--users",
        "300",
        "--shufflers",
        "2",
        "--noise",
        "laplace",
        "--confidence",
        "0.9",
        *LIMITED,
    ],
    "heavy hitters": [
        "heavy-hitters",
        "p.csv",
        "--column",
        "city",
        "--length",
        "3",
        "--honest-fraction",
        "0.9",
        *TARGET,
    ],
    "test-uniform": ["test-uniform", "p.csv", "--column", "bit", "--domain", "0:1", "--distance", "0.4", *TARGET],
    "simulate": [
        "simulate",
        "--synthetic",
        "--users",
        "300",
        "--constants",
        "paper",
        "--method",
        "coins",
        *TARGET[2:],
        "--epsilon",
        "1",
    ],
    "simulate vectors": ["simulate", "p.csv", "--protocol", "vector-sum", "--columns", "a,b", "--radius", "2", *TARGET],
    "simulate a plan": ["simulate", "p.csv", "--column", "bit", "--plan", "b.json"],
    "plan": ["plan", "mean", "--users", "300", "--low", "0", "--high", "9", "--max-messages", "40", *LIMITED],
    "plan ranges": ["plan", "ranges", "--users", "300", "--domain", "0:1x0:1", "--steps", "4", *TARGET],
    "plan counter": ["plan", "counter", "--users", "300", "--noise", "skellam", "--shufflers", "2", *LIMITED],
    "kept plan": ["plan", "binary-sum", "--users", "300", "--method", "coins", *LIMITED, "-o", "my plan.json"],
    "protocols": ["protocols", "distinct-elements", "--categories", "3", "--users", "300", *LIMITED],
    "fit": [
        "fit",
        "p.csv",
        "--target",
        "bit",
        "--classes",
        "0,1",
        "--features",
        "a,b",
        "--bounds",
        "0:1",
        "--rounds-allowed",
        "3",
        *LIMITED,
    ],
}


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    draws = np.random.default_rng(1)
    rows = [
        f"u{person // 2},{draws.integers(0, 2)},{draws.integers(25, 55)},{draws.choice(['Oslo', 'São Tomé'])},"
        f"{draws.random():.3f},{draws.random():.3f}"
        for person in range(300)
    ]
    Path("p.csv").write_text("who,bit,age,city,a,b\n" + "\n".join(rows) + "\n")
    return tmp_path


@pytest.fixture
def typed(capsys) -> Any:
    def call(words: list[str]) -> str:
        with pytest.raises(SystemExit) as ended:
            cli.main(words)
        out, err = capsys.readouterr()
        assert not ended.value.code, (words, err)
        return str(out)

    return call


def hints(screen: str) -> dict[str, list[str]]:
    """The words of each hint, by what it is for."""
    found = {}
    for line in screen.partition("Next:\n")[2].splitlines():
        what, _, command = line.strip().partition("  ")
        program, *words = shlex.split(command)
        assert program.endswith("shuffledp"), line
        found[what] = words
    return found


@pytest.mark.parametrize("name", ASKED)
def test_every_hint_runs_and_plans_the_same(here: Path, typed: Any, name: str) -> None:
    words = ASKED[name]
    for plan, made in (("h.json", ["histogram", "--domain", "0:1"]), ("b.json", ["binary-sum"])):
        if plan in words:
            typed(["plan", *made, "--users", "300", *TARGET, "-o", plan])
    secret = typed([*words, "--seed", "1", "--json"] if "fit" in words else [*words, "--json"])
    document = json.loads(secret)
    fingerprint = document.get("fingerprint") if "protocols" not in words else None
    suggested = hints(typed(words))
    assert suggested, "every command says what to do next"
    for what, hint in suggested.items():
        # A hint for one's own data leaves the file and its columns to whoever types it.
        own = {"YOUR.csv": "p.csv", "C": _column(words), "A,B,C": "a,b", "U": "who"}
        hint = [own.get(word, word) if "YOUR.csv" in hint else word for word in hint]
        # What it keeps goes into a file of its own: -o is given once.
        hint = ["another.json" if before == "-o" else word for before, word in zip(["", *hint], hint, strict=False)]
        found = json.loads(typed([*hint, "--json"] if hint[0] != "audit" else [*hint, "--trials", "100", "--json"]))
        reads = any(word in hint for word in ("p.csv", "people.csv"))
        assert ("spends epsilon" in what) == (reads and "p.csv" in words and hint[0] != "predict"), what
        if what.startswith("how many users") or hint[0] == "fit" or what == "compare solvers":
            continue
        if fingerprint is not None and not (reads and _bounded(hint)):
            assert found["fingerprint"] == fingerprint, (what, hint)
        for option in ("--honest-fraction", "--max-messages"):
            if option in words and option not in hint:
                assert "--plan" in hint or _is_unknown(hint, option), (what, option)


def _bounded(hint: list[str]) -> bool:
    """Whether the file has other users than the plan: people with several rows."""
    return "--at-most" in hint


def _is_unknown(hint: list[str], option: str) -> bool:
    """Whether a hint's command has no such option."""
    import typer

    from shuffledp.cli.app import app

    command: Any = typer.main.get_command(app)
    for word in hint:
        if not hasattr(command, "get_command"):
            break
        command = command.get_command(None, word)
    return not any(option in parameter.opts for parameter in command.params)


def _column(words: list[str]) -> str:
    if "--domain" in words and words[words.index("--domain") + 1].startswith("Oslo"):
        return "city"
    return "a" if "--low" in words and "--column" not in words else "bit"


def test_a_seeded_run_spends_nothing(here: Path, typed: Any) -> None:
    words = ["histogram", "p.csv", "--column", "bit", "--categories", "2", *TARGET]
    assert any("spends epsilon 2 again" in what for what in hints(typed(words)))
    assert not any("spends" in what for what in hints(typed([*words, "--seed", "1"])))
