"""The gallery shows everything that can be drawn, by commands that exist, with numbers that commands have printed."""

import json
import re
import runpy
import sys
from pathlib import Path
from typing import Any

import click
import pytest
import typer
from typer.testing import CliRunner

from shuffledp.cli.app import app
from shuffledp.cli.papers import papers_app
from shuffledp.experiments.survey.comparison import TABLES

ROOT = Path(__file__).parents[1]
FOLDER = ROOT / "docs" / "gallery"
CHEAP = ("secure-sum", "amplification")
"""Exhibits whose command takes less than a tenth of a second beside what is imported anyway."""


@pytest.fixture(scope="module")
def draw() -> Any:
    sys.path.insert(0, str(FOLDER))
    try:
        return runpy.run_path(str(FOLDER / "draw.py"))
    finally:
        sys.path.remove(str(FOLDER))
        sys.modules.pop("exhibits", None)


def measured(draw: Any) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(draw["MEASURED"].read_text("utf-8"))
    return found


def test_the_page_has_what_was_measured_and_nothing_else(draw: Any) -> None:
    page, kept = draw["PAGE"].read_text("utf-8"), measured(draw)
    assert draw["page"](kept) == page, "run: python docs/gallery/draw.py --page"
    kept["amplification"]["rows"][0][1] = "0.0001"
    assert draw["page"](kept) != page


def test_every_command_exists_and_takes_its_options(draw: Any) -> None:
    """Read by the command line itself, which would refuse a word that it does not know."""
    for exhibit in draw["EXHIBITS"]:
        command: Any = typer.main.get_command(app)
        words, context = list(exhibit.words), click.Context(command)
        while hasattr(command, "get_command"):
            command, context = command.get_command(context, words.pop(0)), click.Context(command, parent=context)
        assert command.make_context("shuffledp", list(words), parent=context).params, exhibit.name
        with pytest.raises(Exception, match="No such option"):
            command.make_context("shuffledp", [*words, "--no-such-option"], parent=context)


def test_everything_that_can_be_drawn_is_there(draw: Any) -> None:
    shown = {tuple(each.words[:2]) for each in draw["EXHIBITS"]}
    commands = {command.name for command in papers_app.registered_commands}
    assert {("papers", name) for name in commands} <= shown
    said = " ".join(each.command for each in draw["EXHIBITS"])
    assert all(f"--table {number}" in said for number in TABLES) and "--figure 1" in said and "--figure 2" in said


def test_pictures_and_links_lead_somewhere(draw: Any) -> None:
    page = draw["PAGE"].read_text("utf-8")
    anchors = {draw["anchor"](title) for title in re.findall(r"^## (.*)$", page, re.MULTILINE)}
    links = re.findall(r"\]\(([^)]+)\)", page)
    assert len([link for link in links if link.endswith(".png")]) == sum(bool(each.draws) for each in draw["EXHIBITS"])
    for link in links:
        assert link[1:] in anchors if link[0] == "#" else (draw["PAGE"].parent / link).is_file(), link
    drawn = {path.stem for path in draw["PICTURES"].glob("*.png")}
    assert drawn == {each.name for each in draw["EXHIBITS"] if each.draws}, "a picture that nobody shows"


@pytest.mark.parametrize("name", CHEAP)
def test_a_cheap_command_prints_the_numbers_of_the_page(name: str, draw: Any) -> None:
    [exhibit] = [each for each in draw["EXHIBITS"] if each.name == name]
    done = CliRunner().invoke(app, [*exhibit.words, "--json"])
    assert done.exit_code == 0, done.output
    found = draw["kept_of"](exhibit, json.loads(done.stdout))
    assert found == measured(draw)[name]
