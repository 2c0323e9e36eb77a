"""What is in a file without noise is shown with `--with-truth` only, by every command that reads people's values.

Two files have the same number of people and nothing else in common. All that a command prints without `--with-truth`,
but for what carries noise, must be the same for both: a count of clipped values, an error, a number of messages that
depends on the values or the truth itself would differ.
"""

import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from shuffledp import cli

USERS = 400
TARGET = ["--epsilon", "2", "--delta", "1e-5"]

# Of each command: how it is asked, and which of its keys carry noise.
COMMANDS: dict[str, tuple[list[str], set[str]]] = {
    "sum of bits": (["sum", "FILE", "--column", "bit", "--method", "zsum"], {"estimate"}),
    "sum": (["sum", "FILE", "--column", "age", "--low", "20", "--high", "60", "--clip"], {"estimate"}),
    "vectors": (["sum", "FILE", "--columns", "a,b", "--radius", "0.5", "--clip"], {"estimate"}),
    "mean": (["mean", "FILE", "--column", "age", "--low", "20", "--high", "60", "--clip"], {"estimate"}),
    "weighted mean": (
        ["mean", "FILE", "--columns", "age,a", "--low", "20", "--high", "60", "--largest-weight", "1", "--clip"],
        {"estimate", "standard_error", "bound"},
    ),
    "variance": (
        ["variance", "FILE", "--column", "age", "--low", "20", "--high", "60", "--clip"],
        {"estimate", "standard_error", "bound", "lower", "upper", "standard_deviation", "mean"},
    ),
    "histogram": (
        ["histogram", "FILE", "--column", "city", "--domain", "Rome,Oslo", "--other", "else", "--method", "zsum"],
        {"histogram"},
    ),
    "quantile": (
        ["quantile", "FILE", "--column", "age", "--domain", "20:60", "--clip"],
        {"quantiles"},
    ),
    "count": (["count", "FILE", "--column", "bit", "--shufflers", "2"], {"estimate"}),
    "running histogram": (
        ["count", "FILE", "--column", "city", "--domain", "Rome", "--other", "else", "--shufflers", "2"],
        {"estimate"},
    ),
    "heavy hitters": (
        ["heavy-hitters", "FILE", "--column", "city", "--length", "4"],
        # How many levels were asked for follows from noisy counts.
        {"found", "levels", "messages_per_user_max"},
    ),
    "difference": (
        ["difference", "FILE", "--column", "bit", "--by", "city", "--groups", "Rome,Oslo", "--other-group", "else"],
        {"difference", "standard_error", "bound", "people", "population", "differs", "verdict", "by_group"},
    ),
    "test-uniform": (
        ["test-uniform", "FILE", "--column", "city", "--domain", "Rome,Oslo", "--other", "else", "--distance", "0.3"],
        {"rejected", "p_value", "statistic", "score", "verdict"},
    ),
    "simulate": (["simulate", "FILE", "--column", "bit", "--method", "zsum"], {"estimate"}),
    "simulate, clipped": (
        ["simulate", "FILE", "--protocol", "bounded-sum", "--column", "age", "--low", "20", "--high", "60", "--clip"],
        {"estimate"},
    ),
    "simulate, distinct": (
        ["simulate", "FILE", "--protocol", "distinct-elements", "--column", "city", "--domain", "Rome,Oslo,Lima"],
        {"estimate", "standard_error", "bound"},
    ),
    "fit": (
        [
            *["fit", "FILE", "--target", "bit", "--classes", "0,1", "--features", "a,b", "--bounds", "-1:1"],
            "--rounds-allowed",
            "3",
        ],
        {"coefficients", "intercept", "fingerprint", "beside_noise"},
    ),
}
# What has nothing to do with people: how long it took, and which file it was.
PUBLIC = {"seconds"}


@pytest.fixture(scope="module")
def files(tmp_path_factory) -> list[Path]:
    """The same number of people, and otherwise nothing in common."""
    draws = np.random.default_rng(1)
    found = []
    for name, share, cities in (
        ("one.csv", 0.1, ["Rome"] * 9 + ["Oslo"]),
        ("other.csv", 0.8, ["Oslo", "Oslo", "Lima", "Rome"]),
    ):
        ages = draws.integers(0, 80, USERS) if share < 0.5 else draws.integers(30, 50, USERS)
        lines = [
            f"{int(draws.random() < share)},{age},{draws.choice(cities)},{a * share:.3f},{b * share:.3f}"
            for age, a, b in zip(ages, draws.random(USERS), draws.random(USERS), strict=True)
        ]
        path = tmp_path_factory.mktemp("people") / name
        path.write_text("bit,age,city,a,b\n" + "\n".join(lines) + "\n")
        found.append(path)
    return found


@pytest.fixture
def said(capsys) -> Any:
    def call(words: list[str], file: Path, *more: str) -> str:
        with pytest.raises(SystemExit) as ended:
            cli.main([str(file) if word == "FILE" else word for word in words] + TARGET + list(more))
        out, err = capsys.readouterr()
        assert not ended.value.code, err
        return out.replace(str(file), "FILE")

    return call


def _public(text: str, noised: set[str]) -> dict[str, Any]:
    found = {name: value for name, value in json.loads(text).items() if name not in noised | PUBLIC}
    if "beside_noise" in noised:
        # This warning follows from the released model; all others must be the same.
        found["warnings"] = [said for said in found["warnings"] if not said.startswith("By its length the model")]
    return found


@pytest.mark.parametrize("name", COMMANDS)
def test_all_but_noised_fields_are_the_same_whatever_people_s_values_are(said, files, name: str) -> None:
    words, noised = COMMANDS[name]
    one, other = (_public(said(words, file, "--json"), noised) for file in files)
    assert one == other
    # Errors that are whole numbers may agree by chance, once in ten times or so: not six times in a row.
    shown = ([_public(said(words, file, "--json", "--with-truth"), noised) for file in files] for _ in range(6))
    assert any(here != there for here, there in shown), "nothing is shown that this test could miss"


def test_a_seed_shows_no_truth(said, files) -> None:
    words, noised = COMMANDS["simulate, clipped"]
    one, other = (_public(said(words, file, "--seed", "5", "--json"), noised) for file in files)
    assert one == other and one["simulated"]


def _lines(text: str) -> list[str]:
    """The rows of a screen without numbers that follow from noise, and without how long it took."""
    return [re.sub(r"\s+", " ", re.sub(r"in [\d.]+ s|--with-truth", "", line)) for line in text.splitlines()]


@pytest.mark.parametrize("name", COMMANDS)
def test_a_screen_shows_no_fact_without_noise(said, files, name: str) -> None:
    words, _ = COMMANDS[name]
    screens = [" ".join(_lines(said(words, file))) for file in files]
    for word in ("truth", "true value", "clipped into", "were brought", "off by 0", "right on"):
        assert not any(word in screen for screen in screens), word
    asked = " ".join(_lines(said(words, files[0], "--with-truth")))
    assert any(word in asked for word in ("truth", "true", "right on"))


def test_made_up_data_shows_its_truth(said) -> None:
    words = ["simulate", "--synthetic", "--users", "300"]
    assert json.loads(said(words, Path("none"), "--json"))["truth"] is not None
    assert "true value" in said(words, Path("none"))
    assert (
        json.loads(said(["count", "--synthetic", "--users", "300", "--shufflers", "2"], Path("none"), "--json"))[
            "truth"
        ]
        is not None
    )


def test_every_command_that_reads_people_s_values_is_in_this_table() -> None:
    """A new command with a file of people cannot forget the rule."""
    import typer

    from shuffledp.cli.app import app

    root: Any = typer.main.get_command(app)
    reading = {
        name
        for name, command in root.commands.items()
        if any(parameter.name == "file" and parameter.param_type_name == "argument" for parameter in command.params)
    }
    # `report` sends each person's own value, randomized; `predict` and `evaluate` have tests of their own.
    assert reading - {"report", "predict", "evaluate"} == {words[0] for words, _ in COMMANDS.values()}
    for name in reading - {"report"}:
        assert any("--with-truth" in parameter.opts for parameter in root.commands[name].params), name
