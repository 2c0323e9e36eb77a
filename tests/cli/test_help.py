"""`shuffledp --help`: commands in groups, research under `papers`, old names for one version, and true words."""

import json
import re
from pathlib import Path

import pytest

from shuffledp import cli
from shuffledp.cli.app import COMMANDS

ROOT = Path(__file__).parents[2]


def said(capsys: pytest.CaptureFixture[str], *words: str) -> tuple[int, str, str]:
    with pytest.raises(SystemExit) as ended:
        cli.main(list(words))
    return int(ended.value.code or 0), *capsys.readouterr()


def test_commands_stand_in_their_groups(capsys: pytest.CaptureFixture[str]) -> None:
    out = said(capsys, "--help")[1]
    places = [out.index(f"─ {panel} ─") for panel in COMMANDS]
    assert places == sorted(places)
    for (panel, commands), begin, end in zip(COMMANDS.items(), places, [*places[1:], len(out)], strict=True):
        for name in commands:
            assert re.search(rf"│ {name} ", out[begin:end]), f"{name} is not in {panel}"
    assert not re.search(r"│ (experiment|compare|amplify) ", out)
    assert "must not collude" in re.sub(r"[\s│]+", " ", out)


def test_research_is_under_papers_and_old_names_say_so(capsys: pytest.CaptureFixture[str]) -> None:
    words = ["amplify", "--local-epsilon", "1", "--users", "1000", "--delta", "1e-6", "--json"]
    code, out, err = said(capsys, *words)
    assert code == 0 and "is now `shuffledp papers amplify`" in err and "next version" in err
    assert len(err.strip().splitlines()) == 1
    new, again, silent = said(capsys, "papers", *words)
    assert new == 0 and json.loads(again) == json.loads(out) and silent == ""
    code, out, err = said(capsys, "experiment", "secure-sum", "--users", "20", "--seed", "1")
    assert code == 0 and "is now `shuffledp papers secure-sum`" in err
    assert "shuffledp papers" in out and "shuffledp experiment" not in out


def test_nothing_promises_more_than_is_true() -> None:
    """The shuffler and the analyzer must not collude: nobody says that one need trust nobody."""
    told = [ROOT / "pyproject.toml", *(ROOT / "src").rglob("*.py"), *(ROOT / "examples").glob("*.py")]
    for file in told:
        text = re.sub(r"\s+", " ", file.read_text())
        for claim in ("nobody trusted", "nobody is trusted", "nobody sees any", "trusting nobody", "trust nobody"):
            assert claim not in text.lower(), (file, claim)


def test_tables_say_whom_one_trusts(capsys: pytest.CaptureFixture[str]) -> None:
    target = ["--users", "300", "--epsilon", "1", "--delta", "1e-6"]
    for words in (["binary-sum"], ["histogram", "--categories", "3"], ["ranges", "--domain", "0:9"]):
        out = re.sub(r"\s+", " ", said(capsys, "simulate", "--synthetic", "--protocol", *words, *target)[1])
        assert "two, kept apart" in out and "The two are the shuffler and the analyzer" in out
