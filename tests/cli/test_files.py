"""`-o`, `--picture`, `--csv`, `--with-truth` and `--seed` mean the same in every command, and are declared once."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import typer

from shuffledp import cli
from shuffledp.cli import options
from shuffledp.cli.app import app

TARGET = ["--epsilon", "2", "--delta", "1e-5"]
# A file is the only thing that these make, and it must be named.
OWN_DOCUMENT = {"plan", "fit", "task create", "campaign create", "campaign model", "papers compare", "token"}


def commands(command: Any = None, path: str = "") -> Iterator[tuple[str, Any]]:
    """Every command with its path; hidden ones are left out."""
    command = typer.main.get_command(app) if command is None else command
    if hasattr(command, "list_commands"):
        for name in command.list_commands(None):
            found = command.get_command(None, name)
            if not found.hidden:
                yield from commands(found, f"{path} {name}".strip())
    else:
        yield path, command


ALL = dict(commands())


def declared(annotation: Any) -> str:
    """The help text of a shared option."""
    return str(annotation.__metadata__[0].help)


@pytest.mark.parametrize("path", ALL)
def test_shared_options_are_declared_once(path: str) -> None:
    shared = {
        "--picture": {declared(options.Picture)},
        "--csv": {declared(options.Csv)},
        "--with-truth": {declared(options.WithTruth)},
        "--seed": {declared(options.Seed), declared(options.FixedSeed)},
        "--json": {declared(options.AsJson)},
        "--fast": {declared(options.Fast)},
        "--clip": {declared(options.Clip)},
    }
    for parameter in ALL[path].params:
        for option, helps in shared.items():
            if option in parameter.opts:
                assert parameter.help in helps, f"{path} {option}"
        if "--out" in parameter.opts or "-o" in parameter.opts:
            assert {"-o", "--out"} == set(parameter.opts), path
            own = any(path.startswith(name) for name in OWN_DOCUMENT)
            assert own or parameter.help == declared(options.Out), path
        if parameter.name == "as_json" or "--with-truth" in parameter.opts:
            assert parameter.is_flag, path
    with_files = {option for parameter in ALL[path].params for option in parameter.opts}
    # Where a picture or a table can be had by its own option, `-o` has it by its suffix.
    if with_files & {"--csv"}:
        assert "-o" in with_files, path


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    Path("p.csv").write_text("bit,age,city\n" + "".join(f"{i % 2},{i % 60},{'ab'[i % 3 == 0]}\n" for i in range(200)))
    return tmp_path


def run(*words: str) -> None:
    with pytest.raises(SystemExit) as ended:
        cli.main([*words, "--json"])
    assert not ended.value.code, words


HEADS = {"png": b"\x89PNG", "svg": b"<?xml", "pdf": b"%PDF"}
DRAWN = {
    "histogram": ["histogram", "p.csv", "--column", "city", "--domain", "a,b", "--method", "decoys", *TARGET],
    "quantile": ["quantile", "p.csv", "--column", "age", "--domain", "0:59", "--fast", *TARGET],
    "count": ["count", "p.csv", "--column", "bit", "--shufflers", "2", "--fast", *TARGET],
}


@pytest.mark.parametrize("name", DRAWN)
def test_out_is_understood_by_its_suffix(here: Path, capsys: pytest.CaptureFixture[str], name: str) -> None:
    # Every format is drawn once, and every command draws.
    for number, suffix in enumerate(HEADS if name == "count" else ["svg"]):
        picture = Path(f"drawn.{suffix}")
        run(*DRAWN[name], "--picture" if number == 1 else "-o", str(picture))
        assert picture.read_bytes().startswith(HEADS[suffix])
        assert json.loads(capsys.readouterr().out)["picture"] == str(picture)
    run(*DRAWN[name], "-o", "table.csv")
    assert json.loads(capsys.readouterr().out)["csv"] == "table.csv"
    run(*DRAWN[name], "-o", "answer.json", "--csv", "same.csv")
    document = json.loads(capsys.readouterr().out)
    assert json.loads(Path("answer.json").read_text()) == document
    assert Path("table.csv").read_text().splitlines()[0] == Path("same.csv").read_text().splitlines()[0]


def test_a_plan_is_a_document_and_a_schedule_a_picture(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["plan", "counter", "--users", "300", "--shufflers", "2", *TARGET]
    run(*words, "-o", "schedule.pdf")
    assert Path("schedule.pdf").read_bytes().startswith(b"%PDF")
    run(*words, "-o", "plan", "--picture", "schedule.svg")
    assert json.loads(Path("plan").read_text())["protocol"] == "counter" and Path("schedule.svg").is_file()
    with pytest.raises(SystemExit) as ended:
        cli.main(["plan", "binary-sum", "--users", "300", *TARGET, "-o", "plan.png"])
    assert ended.value.code == 2 and not Path("plan.png").exists()
