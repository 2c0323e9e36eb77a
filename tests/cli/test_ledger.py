"""`shuffledp ledger`: open, show, spend, close."""

import json
from pathlib import Path

import pytest
import typer
from typer.testing import CliRunner

from shuffledp import BinarySum, Privacy, cli
from shuffledp.cli.ledger import ledger_app
from shuffledp.errors import InfeasibleError

app = typer.Typer(pretty_exceptions_enable=False)
app.add_typer(ledger_app, name="ledger")


@app.callback()
def start() -> None:
    """A small application around the commands."""


def run(*words: object):
    return CliRunner().invoke(app, ["ledger", *map(str, words)])


def shown(*words: object) -> dict:
    result = run(*words, "--json")
    assert result.exit_code == 0 and result.stderr == "", result.output
    return json.loads(result.stdout)


@pytest.fixture
def ledger(tmp_path: Path) -> Path:
    file = tmp_path / "ledger.json"
    shown("open", file, "--population", "panel", "--epsilon", 1, "--delta", 1e-6)
    return file


def plan(folder: Path, epsilon: float, delta: float, method: str = "coins") -> Path:
    file = folder / f"plan-{epsilon}-{method}.json"
    document = BinarySum.plan(users=500, privacy=Privacy(epsilon, delta), method=method).document()
    file.write_text(json.dumps(document))
    return file


KEYS = {"schema", "version", "population", "epsilon", "delta", "state", "entries", "spent", "left"}


def test_the_life_of_a_ledger(ledger: Path, tmp_path: Path) -> None:
    new = shown("show", ledger)
    assert new.keys() == KEYS
    assert (new["schema"], new["version"], new["state"], new["entries"]) == (1, 1, "open", [])
    assert new["left"] == {"epsilon": 1, "question": {"epsilon": 1, "delta": 1e-6}}
    spent = shown("spend", ledger, "--plan", plan(tmp_path, 0.5, 1e-7))
    assert spent["version"] == 2 and spent["entries"][0]["pair"]["law"] == "binomial"
    assert 0 < spent["spent"]["epsilon"] <= 0.5 and 0.5 <= spent["left"]["epsilon"] < 1
    assert shown("show", ledger) == spent
    closed = shown("close", ledger)
    assert closed["state"] == "closed" and closed["left"]["question"] is None and closed["version"] == 3


def test_a_plan_for_the_whole_budget_is_accepted_once(ledger: Path, tmp_path: Path) -> None:
    whole = plan(tmp_path, 1, 1e-6, "shares")
    assert shown("spend", ledger, "--plan", whole)["entries"][0]["extra_delta"] > 0
    before = ledger.read_bytes()
    result = run("spend", ledger, "--plan", whole)
    assert isinstance(result.exception, InfeasibleError) and "left" in str(result.exception)
    assert ledger.read_bytes() == before


def test_a_person_reads_tables(ledger: Path, tmp_path: Path) -> None:
    assert "one more question of epsilon 1, delta 1e-06" in run("show", ledger).stdout.replace("\n", " ")
    out = run("spend", ledger, "--plan", plan(tmp_path, 0.5, 1e-7)).stdout
    for said in ("The budget of panel", "Asked so far", "binary-sum", "500", "spent", "left"):
        assert said in out
    assert "nothing more can be asked" in run("close", ledger).stdout


@pytest.fixture
def main(capsys, monkeypatch):
    monkeypatch.setattr("shuffledp.cli.app.app", app)

    def call(*words: object) -> tuple[int, str, str]:
        with pytest.raises(SystemExit) as ended:
            cli.main(["ledger", *map(str, words)])
        out, err = capsys.readouterr()
        return int(ended.value.code or 0), out, err

    return call


def test_what_would_pass_the_budget_exits_with_2_and_says_what_is_left(main, ledger: Path, tmp_path: Path) -> None:
    large = plan(tmp_path, 2, 1e-6)
    code, out, err = main("spend", ledger, "--plan", large)
    assert code == 2 and out == "" and len(err.strip().splitlines()) == 1
    assert "left is a question of epsilon 1 and delta 1e-06" in err
    code, out, err = main("spend", ledger, "--plan", large, "--json")
    assert code == 2 and err == "" and json.loads(out)["error"]["parameter"] == "budget"
    assert shown("show", ledger)["version"] == 1


@pytest.mark.parametrize(
    ("words", "parameter"),
    [
        (["show", "missing.json"], "ledger"),
        (["close", "missing.json"], "ledger"),
        (["open", "LEDGER", "--population", "a", "--epsilon", "1", "--delta", "1e-6"], "ledger"),
        (["open", "nowhere/at/all.json", "--population", "a", "--epsilon", "1", "--delta", "1e-6"], "ledger"),
        (["open", "new.json", "--population", "", "--epsilon", "1", "--delta", "1e-6"], "population"),
        (["open", "new.json", "--population", "a", "--epsilon", "0", "--delta", "1e-6"], "epsilon"),
        (["open", "new.json", "--population", "a", "--epsilon", "1", "--delta", "2"], "delta"),
        (["open", "new.json", "--epsilon", "1", "--delta", "1e-6"], "population"),
        (["spend", "LEDGER"], "users"),
        (["spend", "LEDGER", "--plan", "missing.json"], "plan"),
    ],
)
def test_bad_input_is_one_sentence_and_exit_code_2(
    main, ledger: Path, tmp_path: Path, monkeypatch, words: list[str], parameter: str
) -> None:
    monkeypatch.chdir(tmp_path)
    words = [str(ledger) if word == "LEDGER" else word for word in words]
    code, out, err = main(*words)
    assert code == 2 and out == "" and len(err.strip().splitlines()) == 1 and err.endswith(".\n"), err
    code, out, err = main(*words, "--json")
    assert code == 2 and err == "" and json.loads(out)["error"]["parameter"] == parameter
    assert not (tmp_path / "new.json").exists()


def test_every_command_and_option_has_a_help_text() -> None:
    def walk(command, path: str) -> None:
        assert command.help or command.callback.__doc__, path
        for parameter in command.params:
            assert parameter.name == "help" or parameter.help, f"{path} {parameter.name}"
        for name, inner in getattr(command, "commands", {}).items():
            walk(inner, f"{path} {name}")

    walk(typer.main.get_command(ledger_app), "ledger")
